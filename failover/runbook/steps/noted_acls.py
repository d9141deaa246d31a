"""ACLs that a step is about to create, noted first so that the way back deletes exactly those."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from failover.model.rights import AclBinding
from failover.runbook.kinds import Context


def note_acls(context: Context, bindings: Iterable[AclBinding]) -> None:
    """Keeps them in the run's journal, durable on return, beside those of an earlier try of the same step."""
    # A step that was cut short finds what it created there already: forgotten, it would stay on the way back.
    every = dict.fromkeys([*noted_acls(context), *bindings])
    context.note(created=[msgspec.json.encode(binding).decode() for binding in every])


def noted_acls(context: Context) -> list[AclBinding]:
    """Gives what was noted, also before a crash."""
    noted = context.notes.get("created") or []
    assert isinstance(noted, list)
    return [msgspec.json.decode(each, type=AclBinding) for each in noted]
