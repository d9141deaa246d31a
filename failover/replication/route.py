"""A lane's place among the brokers: who leads its partition on either side, and who is responsible for it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from failover.kafka.wire.metadata import NO_TOPIC_ID
from failover.replication.lane import Lane
from failover.replication.tally import Tally

if TYPE_CHECKING:
    from failover.replication.anchor import Anchor
    from failover.replication.batches import Limits
    from failover.replication.shard import Shard

_ANCHORS = 64
UNFENCED = 1 << 63
"""Is where a log ends that is not looked at, beyond every offset."""


class Room:
    """Bounds the bytes that are read and not yet acknowledged, all lanes together."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.used = 0
        self._waiting: list[Callable[[], None]] = []

    @property
    def full(self) -> bool:
        return self.used >= self.most

    def take(self, size: int) -> None:
        """Notes bytes that are held further, or no more where ``size`` is negative."""
        self.used += size
        if self._waiting and not self.full:
            waiting, self._waiting = self._waiting, []
            for call in waiting:
                call()

    def when_free(self, call: Callable[[], None]) -> None:
        """Calls once, as soon as it is full no more."""
        if call not in self._waiting:
            self._waiting.append(call)


class Route:
    """Is a lane with what the engine knows of it.

    ``source_id``, ``target_id``: topic ids. ``source_node``, ``target_node``: the brokers it is read from and written
    to, -1 while there is none. ``target_epoch``: that of the leader under which the target was last known to be whole,
    -1 before. ``source_end``: the source's end as last heard, -1 before. ``reason``: why it stands still, "" while it
    does not. ``anchors``: where it stood at times, newest last. ``generation``: the shard's when its lane was started
    last, 0 before. ``since``: see ``Anchor``. ``attempts``: to bring it back since it last went on. ``limits``: of its
    batches, where the target takes none as large as others do. ``parked``: nothing more is read until the target has
    taken something (see ``crowding``). ``sifting``: only until the record is found that it
    refuses. ``tally``: what has been copied. ``whole``: the target's end as it was before the fences behind which the
    lane has not been started yet.
    """

    __slots__ = (
        "_counted",
        "anchors",
        "attempts",
        "generation",
        "lane",
        "limits",
        "mending",
        "parked",
        "reason",
        "room",
        "shard",
        "sifting",
        "since",
        "source_end",
        "source_epoch",
        "source_id",
        "source_node",
        "tally",
        "target_epoch",
        "target_id",
        "target_node",
        "whole",
    )

    def __init__(self, lane: Lane, shard: Shard, room: Room) -> None:
        self.lane = lane
        self.shard = shard
        self.room = room
        self.source_id = self.target_id = NO_TOPIC_ID
        self.source_node = self.target_node = -1
        self.source_epoch = self.target_epoch = -1
        self.source_end = -1
        self.reason = ""
        self.anchors: deque[Anchor] = deque(maxlen=_ANCHORS)
        self.generation = 0
        self.since: int | None = None
        self.mending = self.parked = False
        self.attempts = 0
        self.limits: Limits | None = None
        self.sifting = False
        self.tally = Tally()
        self.whole = UNFENCED
        self._counted = 0

    def count(self) -> None:
        """Brings the room's account up to date; after whatever changes what the lane holds."""
        held = self.lane.buffered
        change, self._counted = held - self._counted, held
        self.room.take(change)

    def __str__(self) -> str:
        return f"{self.lane.source} -> {self.lane.target}"
