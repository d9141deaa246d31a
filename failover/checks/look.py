"""What every check looks at, and how findings name things."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from failover.model.names import TopicPartition
from failover.model.plan import Plan, PlannedGroup
from failover.model.snapshot import Snapshot


class Look(NamedTuple):
    """Is one look at both clusters, what was decided from it, what this tool wrote last, and the plan before."""

    snapshot: Snapshot
    groups: Sequence[PlannedGroup]
    written: Mapping[str, Mapping[TopicPartition, int]]
    earlier: Plan | None = None


def some(names: Iterable[str], limit: int = 3) -> str:
    """Lists the first few names and says how many more there are."""
    ordered = sorted(set(names))
    more = len(ordered) - limit
    return ", ".join(ordered[:limit]) + (f" and {more} more" if more > 0 else "")


def count(number: int, noun: str) -> str:
    """Writes a number with its noun: ``1 group``, ``2 groups``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def span(seconds: float) -> str:
    """Writes a length of time in the largest fitting unit: ``40 s``, ``12 min``, ``3 h``, ``7 days``."""
    for size, unit in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size or (unit == "days" and seconds >= size and not seconds % size):
            number = f"{seconds / size:.1f}".removesuffix(".0")
            return f"{number} {'day' if number == '1' and unit == 'days' else unit}"
    return f"{seconds:.0f} s"
