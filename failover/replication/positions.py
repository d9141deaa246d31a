"""The positions of a flow in Kafka Connect's offsets topic on the target: all read at a start, then written again."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import socket
from collections import defaultdict
from collections.abc import Mapping

from failover.config.settings import Settings
from failover.errors import BrokerError, ClusterUnreachable, NotAuthorized, Refused
from failover.kafka.wire.append import NewRecord, append
from failover.kafka.wire.cluster import WireCluster
from failover.kafka.wire.columns import read_records
from failover.kafka.wire.topics import NewTopic, describe_topic_configs
from failover.mm2.connect_offsets import OFFSETS_TOPIC_PARTITIONS, offset_partition
from failover.mm2.fields import DecodeError
from failover.mm2.internal_topics import InternalTopics
from failover.model.names import Fault, TopicPartition
from failover.model.records import Record
from failover.replication.anchor import (
    Anchor,
    anchor_key,
    anchored_partition,
    decode_anchor,
    encode_anchor,
    writer_of,
)
from failover.replication.internal_topic import ensure_topic
from failover.replication.shards import Slice, shard_of

DEDICATED_CONNECTOR = "MirrorSourceConnector"
"""The connector's name in dedicated mode; on plain Connect it is the one it was deployed under."""

_log = logging.getLogger(__name__)
_UNKNOWN_TOPIC = 3
_DENIED = frozenset({29, 31})  # TOPIC_AUTHORIZATION_FAILED, CLUSTER_AUTHORIZATION_FAILED
_PREFIX = "offset.storage."
_FACTOR = 3  # Connect's default
_SEGMENT_BYTES = 4 << 20
_LARGE_SEGMENT = 64 << 20
_PLAIN_VALUE = re.compile(rb'\{"offset":-?[0-9]{1,18}\}')


def positions_topic(internal: InternalTopics, worker: Settings) -> NewTopic:
    """Gives the topic as Connect would make it by a flow's worker settings (Kafka: DistributedConfig).

    ``offset.storage.partitions``, ``.replication.factor`` (-1: the brokers' default) and any topic setting below
    ``offset.storage.``; it is compacted whatever they say. Segments are smaller than the brokers' default: a position
    is written every second where records flow, the open segment is never compacted, and each start reads it all.
    Raises ConfigError.
    """

    def number(key: str, default: int) -> int:
        return worker.integer(_PREFIX + key) if _PREFIX + key in worker else default

    named = {key.removeprefix(_PREFIX): setting.trimmed for key, setting in worker.items() if key.startswith(_PREFIX)}
    for key in ("topic", "partitions", "replication.factor"):
        named.pop(key, None)
    return NewTopic(
        internal.connect_offsets,
        number("partitions", OFFSETS_TOPIC_PARTITIONS),
        number("replication.factor", _FACTOR),
        {"segment.bytes": str(_SEGMENT_BYTES), **named, "cleanup.policy": "compact"},
    )


class Positions:
    """Reads and writes the positions of one connector for one source.

    ``topic``: see ``positions_topic``; ``source``: the source's alias; ``part``: of the flow that this worker has.
    ``worker``: its name, as it stands in what it writes. ``unreadable``: records of ours, found by the
    last ``read``, whose value holds no offset; the one before such a record counts (MM2 itself would begin anew).
    """

    def __init__(
        self,
        target: WireCluster,
        topic: NewTopic,
        *,
        source: str,
        connector: str = DEDICATED_CONNECTOR,
        part: Slice | None = None,
    ) -> None:
        self.topic = topic.name
        self.unreadable = 0
        self._wanted = topic
        self._target = target
        self._source = source
        self._connector = connector
        # Every key of this connector and source begins so, in the only spelling under which Connect finds it.
        self._prefix = anchor_key(connector, source, TopicPartition("", 0)).removesuffix(b'0,"topic":""}]')
        self._places: dict[TopicPartition, tuple[bytes, int]] = {}
        self._count = 0
        self._flush = asyncio.Lock()
        self.worker = f"{socket.gethostname()} (process {os.getpid()}{f', shard {part}' if part is not None else ''})"

    async def open(self) -> None:
        """Makes the topic if there is none; one that is there keeps its partitions and settings.

        Raises ``Refused`` for a topic that is not compacted, as Connect does: its positions are deleted in time.
        ``NotAuthorized``, ``BrokerError`` where it cannot be made or used, ``ClusterUnreachable``.
        """
        fault, existed = await ensure_topic(self._target, self._wanted)
        if fault is not None:
            raise self._error("cannot be used for positions", fault)
        if existed:
            await self._check_settings()

    def partition_of(self, number: int) -> TopicPartition:
        """Gives one of the topic's partitions, by any number: a place to use a transactional id without data."""
        return TopicPartition(self.topic, number % max(self._known(), 1))

    async def read(self) -> dict[TopicPartition, Anchor]:
        """Reads every position by source partition, the newest record of each key; {} where there is no topic.

        Raises ``NotAuthorized`` without READ, ``BrokerError`` for a damaged log, ``ClusterUnreachable``.
        """
        self.unreadable = 0
        newest: dict[bytes, Record] = {}
        misplaced: set[bytes] = set()
        count = await self._partitions(refresh=True)
        for number in range(count):
            for key, record in (await self._newest_of(number)).items():
                other = newest.get(key)
                if other is not None:
                    misplaced.add(key)
                    # Between two partitions only the clock tells; equal, the one Connect writes to.
                    here = offset_partition(key, count) == number
                    if (other.timestamp, not here) > (record.timestamp, here):
                        continue
                newest[key] = record
        if misplaced:
            _log.warning(
                "topic %s keeps %d positions in two of its partitions, such as %s; the newest counts here,"
                " MirrorMaker 2 takes the one it happens to read last",
                self.topic,
                len(misplaced),
                min(misplaced).decode(errors="replace"),
            )
        found: dict[TopicPartition, Anchor] = {}
        for key, record in newest.items():
            tp = anchored_partition(key, self._connector, self._source)
            anchor = decode_anchor(record.value, record.headers)
            if tp is not None and anchor is not None:
                found[tp] = anchor
        return found

    async def write(self, anchors: Mapping[TopicPartition, Anchor]) -> dict[TopicPartition, Fault]:
        """Writes positions by source partition; gives a fault for each that was not acknowledged by all replicas.

        One call at a time writes, the next waits. What passes by itself is tried again as long as the target may be
        silent. Repeating a write is harmless. Raises ``ClusterError`` when the target cannot be asked at all.
        """
        async with self._flush:
            count = await self._partitions()
            if not count:
                missing = Fault(_UNKNOWN_TOPIC, "UNKNOWN_TOPIC_OR_PARTITION", f"topic {self.topic} does not exist")
                return dict.fromkeys(anchors, missing)
            records: dict[TopicPartition, list[NewRecord]] = defaultdict(list)
            members: dict[TopicPartition, list[TopicPartition]] = defaultdict(list)
            for tp, anchor in anchors.items():
                key, number = self._place(tp, count)
                place = TopicPartition(self.topic, number)
                records[place].append(NewRecord(key, *encode_anchor(anchor, self.worker)))
                members[place].append(tp)
            faults = await append(self._target, records, purpose="positions")
            return {tp: fault for place, fault in faults.items() for tp in members[place]}

    async def other_writer(self, since_ms: int, *, shard: int | None = None) -> str:
        """Names the worker that wrote last, if it was another one, since a time (epoch ms); "" where none did or tells.

        ``shard``: only what belongs to it counts. Raises what ``read`` raises.
        """
        newest, found = since_ms, ""
        for number in range(await self._partitions(refresh=True)):
            async for records in read_records(self._target, TopicPartition(self.topic, number)):
                for record in records:
                    if record.timestamp >= newest and (record.key or b"").startswith(self._prefix):
                        writer = writer_of(record.headers)
                        if writer not in ("", self.worker) and self._is_of(record.key, shard):
                            newest, found = record.timestamp, writer
        return found

    # -- inside ----------------------------------------------------------------------------------

    def _is_of(self, key: bytes | None, shard: int | None) -> bool:
        tp = anchored_partition(key, self._connector, self._source)
        return shard is None or (tp is not None and shard_of(tp) == shard)

    async def _partitions(self, *, refresh: bool = False) -> int:
        """Counts the topic's partitions: an existing one may have another number than a new one would."""
        state = self._target.topic(self.topic)
        if refresh or state is None or state.fault is not None:
            state = (await self._target.metadata([self.topic])).topics[self.topic]
        if state.fault is not None and state.fault.number != _UNKNOWN_TOPIC:
            raise self._error("cannot be looked at", state.fault)
        return self._known()

    def _known(self) -> int:
        state = self._target.topic(self.topic)
        return len(state.partitions) if state is not None and state.fault is None else 0

    async def _check_settings(self) -> None:
        found = (await describe_topic_configs(self._target, [self.topic], ["cleanup.policy", "segment.bytes"]))[
            self.topic
        ]
        # Who may not read the settings is not kept from working.
        settings = {} if isinstance(found, Fault) else {entry.name: entry.value for entry in found}
        alter = f"kafka-configs.sh --alter --entity-type topics --entity-name {self.topic} --add-config"
        policy = settings.get("cleanup.policy")
        if policy is not None and policy != "compact":
            raise Refused(
                f"cluster {self._target.alias}: topic {self.topic} has cleanup.policy={policy}: positions in it are"
                " deleted in time, and everything would be copied again",
                hint=f"{alter} cleanup.policy=compact",
            )
        if int(settings.get("segment.bytes") or 0) > _LARGE_SEGMENT:
            _log.info(
                "topic %s is compacted late, so that each start reads more of it: %s segment.bytes=%d",
                self.topic,
                alter,
                _SEGMENT_BYTES,
            )

    def _error(self, what: str, fault: Fault) -> Exception:
        where = f"cluster {self._target.alias}: topic {self.topic} {what}: {fault}"
        if fault.number in _DENIED:
            return NotAuthorized(
                where,
                alias=self._target.alias,
                hint=f"grant READ, WRITE and DESCRIBE on topic {self.topic}, and CREATE if it is to be made",
            )
        if fault.number < -1:
            return ClusterUnreachable(where, alias=self._target.alias)
        return BrokerError(
            where,
            number=fault.number,
            name=fault.name,
            hint="offset.storage.replication.factor says how many replicas it is to have",
        )

    async def _newest_of(self, number: int) -> dict[bytes, Record]:
        """Reads one partition; a tombstone counts as a record, one that Connect could not read does not."""
        newest: dict[bytes, Record] = {}
        prefix = self._prefix
        async for records in read_records(self._target, TopicPartition(self.topic, number)):
            for record in records:
                key, value = record.key, record.value
                if key is None or not key.startswith(prefix):
                    continue
                if value is not None and _PLAIN_VALUE.fullmatch(value) is None and not self._readable(record):
                    continue
                newest[key] = record
        return newest

    def _readable(self, record: Record) -> bool:
        try:
            decode_anchor(record.value)
        except DecodeError as error:
            if not self.unreadable:
                _log.warning("topic %s, offset %d: %s; the position before it counts", self.topic, record.offset, error)
            self.unreadable += 1
            return False
        return True

    def _place(self, tp: TopicPartition, count: int) -> tuple[bytes, int]:
        """Gives key and partition of a source partition's record; the hash is costly enough to be kept."""
        if count != self._count:
            self._places.clear()
            self._count = count
        place = self._places.get(tp)
        if place is None:
            key = anchor_key(self._connector, self._source, tp)
            place = self._places[tp] = key, offset_partition(key, count)
        return place
