"""``--missing``: where a partition starts whose position is not known, and what that may pass over."""

from __future__ import annotations

from typing import NamedTuple

from failover.model.translation import Proof
from failover.planning.view import PartitionView

BY_TIME = ("at=", "ago=")


class Start(NamedTuple):
    """Is a start that a policy gives. ``passed_over``: unread records before it, at most."""

    reason: str
    offset: int
    proof: Proof
    passed_over: int


def start_of(view: PartitionView, policy: str) -> Start | None:
    """Gives where ``policy`` starts the partition, whose log must be known; None where it gives no place.

    ``leave`` and ``fail`` give none, nor does a time at which the target could not tell where it stood.
    """
    assert view.target_range is not None
    start, end = view.target_range
    if policy == "earliest":
        return Start("at-log-start", start, Proof.LOG_START, 0)
    if policy == "latest":
        return Start("at-log-end", end, Proof.LOG_END, _unread_before(view, end))
    if not policy.startswith(BY_TIME) or view.by_time is None:
        return None
    offset = min(max(view.by_time, start), end)
    if offset == start:
        return Start("at-log-start", offset, Proof.LOG_START, 0)
    if offset == end:
        return Start("at-log-end", offset, Proof.LOG_END, _unread_before(view, offset))
    return Start("at-time", offset, Proof.TIMESTAMP, _unread_before(view, offset))


def _unread_before(view: PartitionView, offset: int) -> int:
    """Bounds the unread records of the target before ``offset``.

    How many were read is unknown, so all that are there count; but no more than are unread on the source, where it
    tells. Not believed where the target's topic has records of its own (on the way back, and where both clusters use
    one name), nor where the source's log ends before the group's commit: then it is another log than was read.
    Timestamps prove nothing here: they need not grow with the offsets.
    """
    assert view.target_range is not None
    held = offset - view.target_range.start
    commit, log = view.source_commit, view.source_range
    if commit is None or log is None or commit.offset > log.end or view.original or view.topic == view.source_topic:
        return held
    return min(held, log.end - commit.offset)
