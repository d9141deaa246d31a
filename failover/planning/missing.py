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
        known = None if view.source_range is None else view.source_range.end
        return Start("at-log-end", end, Proof.LOG_END, _unread_before(view, end, known))
    if not policy.startswith(BY_TIME) or view.by_time is None:
        return None
    offset = min(max(view.by_time, start), end)
    passed_over = _unread_before(view, offset, view.source_by_time)
    if offset == start:
        return Start("at-log-start", offset, Proof.LOG_START, 0)
    if offset == end:
        return Start("at-log-end", offset, Proof.LOG_END, passed_over)
    return Start("at-time", offset, Proof.TIMESTAMP, passed_over)


def _unread_before(view: PartitionView, offset: int, same_on_source: int | None) -> int:
    """Bounds the unread records of the target before ``offset``.

    How many were read is unknown, so all that are there count; unless the source tells the group's commit and where the
    same place lies there: what was not read before it on the source is all that can be unread before it here (records
    keep their order, and MM2 keeps their timestamps). Not believed where the target's topic has records of its own: on
    the way back, and where both clusters use one name.
    """
    held = offset - view.target_range.start if view.target_range is not None else offset
    if same_on_source is None or view.source_commit is None or view.original or view.topic == view.source_topic:
        return held
    return min(held, max(0, same_on_source - view.source_commit.offset))
