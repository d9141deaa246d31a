"""What every check looks at, and how findings name things."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from failover.model.names import TopicPartition
from failover.model.plan import PlannedGroup
from failover.model.snapshot import Snapshot


class Look(NamedTuple):
    """Is one look at both clusters, what was decided from it, and what this tool wrote last."""

    snapshot: Snapshot
    groups: Sequence[PlannedGroup]
    written: Mapping[str, Mapping[TopicPartition, int]]


def some(names: Iterable[str], limit: int = 3) -> str:
    """Lists the first few names and says how many more there are."""
    ordered = sorted(set(names))
    more = len(ordered) - limit
    return ", ".join(ordered[:limit]) + (f" and {more} more" if more > 0 else "")


def count(number: int, noun: str) -> str:
    """Writes a number with its noun: ``1 group``, ``2 groups``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
