"""Lists that a step keeps in the run's journal, for its way back and for when it is begun again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from failover.runbook.kinds import Context


def noted(context: Context, key: str) -> list[Any]:
    """Gives what the step noted there, also before a crash; [] where it noted nothing."""
    found = context.notes.get(key) or []
    assert isinstance(found, list)
    return found


def note_more(context: Context, key: str, values: Iterable[str]) -> list[Any]:
    """Notes values beside those of an earlier try of the same step, durable on return; gives all.

    A step that was cut short finds what it did there already: forgotten, it would stay on the way back.
    """
    every = list(dict.fromkeys([*noted(context, key), *values]))
    context.note(**{key: every})
    return every
