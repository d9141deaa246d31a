"""The question where one partition's copying goes on, and its answers."""

from __future__ import annotations

from typing import Literal

import msgspec

from failover.kafka.wire.metadata import NO_TOPIC_ID
from failover.model.cluster import LogRange
from failover.replication.anchor import Anchor

MAX_RECORDS = 200_000
"""Offsets of one log whose records are compared for one partition at most; ten times as many are counted."""

How = Literal["anchor", "counted", "content", "start", "chosen", "source-recreated", "source-truncated", "diverged"]


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """Asks for the position of one partition.

    ``anchors``: newest first. ``source``, ``target``: the logs as they are, the target's behind the fence; the source's
    ends at the last stable offset if aborted records are left out. ``source_topic_id``, ``target_topic_id``: as now.
    ``start``: where it begins if nothing was ever copied, a number being a source offset. ``whole``: the target's end
    before there was a fence, whose markers hide that it has lost records; None where it is not known.
    """

    anchors: tuple[Anchor, ...]
    source: LogRange
    target: LogRange
    source_topic_id: bytes = NO_TOPIC_ID
    target_topic_id: bytes = NO_TOPIC_ID
    start: Literal["earliest", "latest"] | int = "earliest"
    max_records: int = MAX_RECORDS
    whole: int | None = None

    @property
    def beginning(self) -> int:
        """Gives the source offset at which a partition begins of which nothing was ever copied."""
        first, last = self.source
        if self.start == "earliest":
            return first
        return last if self.start == "latest" else min(max(self.start, first), last)

    @property
    def since(self) -> int | None:
        """Gives the target offset below which nothing tells, as somebody chose another position there; None without."""
        if not self.anchors or same_topic(self.anchors[0].target_topic_id, self.target_topic_id) is False:
            return None
        return self.anchors[0].since

    def narrowed(self) -> Question:
        """Leaves out what was copied before somebody chose another position: it is neither counted nor compared."""
        since = self.since
        if since is None:
            return self
        start, end = self.target
        return msgspec.structs.replace(
            self,
            target=LogRange(min(max(start, since), end), end),
            anchors=tuple(each for each in self.anchors if each.downstream is not None and each.downstream >= since),
        )


class Located(msgspec.Struct, frozen=True, kw_only=True):
    """Says from where the copying goes on: source offset ``upstream`` becomes target offset ``downstream``, its end.

    ``leader_epoch``: of what lies before ``upstream`` on the source, -1 if that is not known. ``how``: ``anchor``
    (nothing was copied since), ``counted``, ``content``, ``start`` (nothing was ever copied), ``chosen`` (by somebody),
    ``source-recreated``, ``source-truncated`` (it ends below what was copied), ``diverged`` (the target's last records
    are not on the source: it was truncated and has grown since, or somebody else writes on the target). ``lost``:
    source offsets from ``upstream`` on that the source's log no longer has, at most; the copying goes on behind them.
    ``diverged``: records at the target's end that the source does not have. ``detail``: the numbers, one line.
    ``since``: as the question's, or where what was ``chosen`` begins now.
    """

    upstream: int
    downstream: int
    leader_epoch: int = -1
    how: How
    lost: int = 0
    diverged: int = 0
    detail: str = ""
    since: int | None = None


class Unknown(msgspec.Struct, frozen=True):
    """Says that the position cannot be told for sure, and why."""

    reason: str


def same_topic(then: bytes, now: bytes) -> bool | None:
    """Compares topic ids; None where one is not known."""
    return None if NO_TOPIC_ID in (then, now) else then == now
