"""The offset syncs of a flow, followed: what came since the last look is added to what is known."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from failover.errors import BrokerError
from failover.kafka.wire.cluster import WireCluster
from failover.kafka.wire.columns import read_columns
from failover.kafka.wire.logs import log_ranges
from failover.mm2.fields import DecodeError
from failover.mm2.offset_sync import offset_sync_key, offset_sync_value
from failover.model.cluster import LogRange
from failover.model.names import TopicPartition
from failover.translate.segments import Syncs

MOST = 50_000
"""Syncs of one partition kept in memory: 800 kB."""

_UNKNOWN_TOPIC = 3


class Columns:
    """Holds one partition's syncs in arrival order, in bounded memory.

    When there are more than ``MOST``, a sync between two others of the same difference goes: the two spans beside it
    are one to one, so the one that replaces both is, too, and the counting of ``sync_rule`` holds as before. If that
    is not enough the oldest go: who stands before them is then placed by comparing records.
    """

    __slots__ = ("_syncs", "downs", "ups")

    def __init__(self) -> None:
        self.ups: array[int] = array("q")
        self.downs: array[int] = array("q")
        self._syncs: Syncs | None = None

    def append(self, up: int, down: int) -> None:
        """Adds the sync that arrived last; old releases wrote -1 for none (MM2 before 3.3)."""
        if up < 0 or down < 0:
            return
        self.ups.append(up)
        self.downs.append(down)
        self._syncs = None
        if len(self.ups) > MOST:
            self._thin()

    def syncs(self) -> Syncs:
        """Gives what a translation may use; worked out anew only after something arrived."""
        if self._syncs is None:
            self._syncs = Syncs.of(self.ups[:], self.downs[:])
        return self._syncs

    def newest(self) -> tuple[int, int] | None:
        """Gives the sync that arrived last."""
        return (self.ups[-1], self.downs[-1]) if self.ups else None

    def _thin(self) -> None:
        kept = list(_telling(self.ups, self.downs))
        if len(kept) > MOST * 3 // 4:
            kept = kept[-MOST * 3 // 4 :]
        self.ups = array("q", (up for up, _ in kept))
        self.downs = array("q", (down for _, down in kept))


def _telling(ups: array[int], downs: array[int]) -> Iterator[tuple[int, int]]:
    """Yields the syncs at which the difference changes or the order breaks, and the first and the last."""
    last = len(ups) - 1
    for index, (up, down) in enumerate(zip(ups, downs, strict=True)):
        if 0 < index < last and ups[index - 1] < up < ups[index + 1]:
            delta = down - up
            if downs[index - 1] - ups[index - 1] == delta == downs[index + 1] - ups[index + 1]:
                continue
        yield up, down


class FollowedSyncs:
    """Reads an offset-syncs topic from where it was read last; its first look reads all of it.

    ``arrived``: how many were read so far.
    """

    def __init__(self, cluster: WireCluster, topic: str) -> None:
        self.arrived = 0
        self._cluster = cluster
        self._place = TopicPartition(topic, 0)
        self._next: int | None = None
        self._topic_id = b""
        self._columns: dict[tuple[str, int], Columns] = {}
        self._names: dict[bytes | None, tuple[str, int]] = {}

    async def follow(self) -> None:
        """Reads on to the end. A topic that was made anew or cut is read from its start, and what was known is dropped.

        Without a topic there are no syncs. Raises ``NotAuthorized``, ``BrokerError``, ``ClusterUnreachable``; what was
        read until then is kept and the next call goes on behind it.
        """
        state = (await self._cluster.metadata([self._place.topic])).topics[self._place.topic]
        if state.fault is not None:
            if state.fault.number == _UNKNOWN_TOPIC:
                self._forget()
                return
            raise BrokerError(
                f"cluster {self._cluster.alias}: topic {self._place.topic} cannot be read: {state.fault}",
                number=state.fault.number,
                name=state.fault.name,
            )
        log = (await log_ranges(self._cluster, [self._place]))[self._place]
        if state.topic_id != self._topic_id or (isinstance(log, LogRange) and (self._next or 0) > log.end):
            self._forget()
            self._topic_id = state.topic_id
        if isinstance(log, LogRange) and self._next is not None and log.end <= self._next:
            return
        async for rows in read_columns(self._cluster, self._place, start=self._next):
            for offset, _, key, value in rows:
                self._take(key, value)
                self._next = offset + 1
        if isinstance(log, LogRange):
            self._next = max(self._next or 0, log.end)

    def of(self, source: TopicPartition) -> Syncs | None:
        """Gives the usable syncs of a source partition, None where there are none."""
        columns = self._columns.get(source)
        return None if columns is None else columns.syncs()

    def newest(self, source: TopicPartition) -> tuple[int, int] | None:
        """Gives the sync of a source partition that arrived last."""
        columns = self._columns.get(source)
        return None if columns is None else columns.newest()

    # -- inside ----------------------------------------------------------------------------------

    def _take(self, key: bytes | None, value: bytes | None) -> None:
        if value is None:
            return
        try:
            name = self._names.get(key)
            if name is None:
                name = self._names[key] = offset_sync_key(key)
            up, down = offset_sync_value(value)
        except DecodeError:
            return  # skipped here as everywhere; a plan counts them and says so
        columns = self._columns.get(name)
        if columns is None:
            columns = self._columns[name] = Columns()
        columns.append(up, down)
        self.arrived += 1

    def _forget(self) -> None:
        self._columns.clear()
        self._next = None
        self._topic_id = b""
