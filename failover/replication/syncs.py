"""The offset-syncs topic of a flow: where one record lies on both sides, for translation and as further anchors."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Collection, Iterable

from failover.config.settings import Settings
from failover.errors import NotAuthorized
from failover.kafka.wire.append import NewRecord, append
from failover.kafka.wire.cluster import WireCluster
from failover.kafka.wire.columns import read_columns
from failover.kafka.wire.topics import NewTopic
from failover.mm2.fields import DecodeError
from failover.mm2.internal_topics import InternalTopics
from failover.mm2.offset_sync import OffsetSync, offset_sync_value
from failover.model.names import Fault, TopicPartition
from failover.replication.anchor import Anchor
from failover.replication.internal_topic import ensure_topic

KEPT = 64
"""Syncs of one partition that ``read_last`` gives at most."""

Row = tuple[TopicPartition, int, int]
"""(source partition, source offset, target offset) of one record."""

_log = logging.getLogger(__name__)
_UNKNOWN_TOPIC = 3
_WAITING = 5_000


def syncs_topic(internal: InternalTopics, connector: Settings) -> NewTopic:
    """Gives the topic as MirrorMaker 2 would make it by the source connector's settings; raises ConfigError."""
    factor = connector.integer("offset-syncs.topic.replication.factor")
    return NewTopic(internal.offset_syncs, 1, factor, {"cleanup.policy": "compact"})


class Syncs:
    """Writes and reads the offset syncs of one flow.

    ``cluster``: the side that holds them. ``topic``: see ``syncs_topic``. ``enabled``: ``emit.offset-syncs.enabled``;
    False writes and makes nothing. Without syncs only translation is less precise, so no fault here stops the copying:
    rows that could not be written wait for the next call, the newest 5,000 of them.
    """

    def __init__(self, cluster: WireCluster, topic: NewTopic, *, enabled: bool = True) -> None:
        self.topic = topic.name
        self.enabled = enabled
        self._wanted = topic
        self._cluster = cluster
        self._waiting: deque[Row] = deque(maxlen=_WAITING)

    @property
    def waiting(self) -> int:
        """Is the number of rows that could not be written so far."""
        return len(self._waiting)

    async def open(self) -> None:
        """Makes the topic if there is none; where that is refused, it is logged and nothing more.

        Raises ``ClusterUnreachable``, ``CredentialsRefused``.
        """
        if not self.enabled:
            return
        fault, _ = await ensure_topic(self._cluster, self._wanted)
        if fault is not None:
            _log.warning(
                "cluster %s: topic %s cannot be used for offset syncs: %s; copying goes on without them, and committed"
                " offsets are translated less precisely",
                self._cluster.alias,
                self.topic,
                fault,
            )

    async def write(self, rows: Iterable[Row]) -> Fault | None:
        """Appends syncs in their order; gives why they wait, None when all are acknowledged. One call at a time.

        Raises ``ClusterError`` when the cluster cannot be asked at all; the rows wait then, too.
        """
        if not self.enabled:
            return None
        self._waiting.extend(rows)
        records = []
        for tp, upstream, downstream in self._waiting:
            sync = OffsetSync(*tp, upstream, downstream)
            records.append(NewRecord(sync.encode_key(), sync.encode_value()))
        place = TopicPartition(self.topic, 0)
        fault = (await append(self._cluster, {place: records}, purpose="syncs")).get(place)
        if fault is None:
            self._waiting.clear()
        return fault

    async def read_last(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, tuple[Anchor, ...]]:
        """Reads for each source partition its last syncs as anchors, the newest last, at most ``KEPT``; others miss.

        An anchor stands behind the sync's record on both sides and knows no topic ids. Only the newest history of a
        partition is given: where a sync goes back on either side, a mirror began anew and copied records again, so
        that from an older sync to the end nothing can be counted any more. Records that cannot be decoded are left
        out. {} where there is no topic or no right to read it, which is logged. Raises ``BrokerError`` for a damaged
        log, ``ClusterUnreachable``.
        """
        wanted = {OffsetSync(*tp, 0, 0).encode_key(): tp for tp in partitions}
        found: dict[TopicPartition, deque[Anchor]] = {}
        place = TopicPartition(self.topic, 0)
        if not wanted or not await self._exists():
            return {}
        try:
            async for rows in read_columns(self._cluster, place):
                for _, _, key, value in rows:
                    tp = wanted.get(key) if key is not None else None
                    if tp is None or value is None:
                        continue
                    try:
                        upstream, downstream = offset_sync_value(value)
                    except DecodeError:
                        continue
                    anchors = found.setdefault(tp, deque(maxlen=KEPT))
                    _add(anchors, Anchor(upstream + 1, downstream + 1))
        except NotAuthorized as error:
            _log.warning("%s; going on without the anchors that offset syncs are", error.message)
            return {}
        return {tp: tuple(anchors) for tp, anchors in found.items()}

    # -- inside ----------------------------------------------------------------------------------

    async def _exists(self) -> bool:
        fault = (await self._cluster.metadata([self.topic])).topics[self.topic].fault
        if fault is not None and fault.number != _UNKNOWN_TOPIC:
            _log.warning("cluster %s: topic %s cannot be read: %s", self._cluster.alias, self.topic, fault)
        return fault is None


def _add(anchors: deque[Anchor], anchor: Anchor) -> None:
    """Adds the anchor of the next sync of a partition to those of its newest history."""
    if anchors:
        last = anchors[-1]
        if anchor == last:
            return
        assert last.downstream is not None
        assert anchor.downstream is not None
        if anchor.upstream <= last.upstream or anchor.downstream <= last.downstream:
            anchors.clear()
    anchors.append(anchor)
