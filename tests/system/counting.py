"""Counts, record by record, what consumers would read again or pass over from an offset on.

Every produced value is unique in its cluster, so a value says which source record it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from failover.model.records import Record


class Counted(NamedTuple):
    """Is what starting at an offset of the target means, in records."""

    reread: int
    skipped: int


def count(source: Sequence[Record], target: Sequence[Record], committed: int, start: int) -> Counted:
    """Judges ``start`` on the target for a group that has consumed the source below ``committed``.

    Read again: a target record at or beyond ``start`` whose value was consumed. Skipped: a value not
    consumed that the target holds, but nowhere at or beyond ``start``.
    """
    consumed = {record.value for record in source if record.offset < committed}
    ahead = [record.value for record in target if record.offset >= start]
    unread = {record.value for record in target if record.value not in consumed}
    return Counted(sum(value in consumed for value in ahead), len(unread.difference(ahead)))


def partitions(plan: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Lists every partition of every group of a plan's JSON, with the group's name added."""
    return [{"group": group["group"], **p} for group in plan["groups"] for p in group["partitions"]]
