"""Reads MM2's internal topics once, for all groups and partitions at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from failover.errors import BrokerError, ClusterUnreachable, NotAuthorized
from failover.kafka.faults import fault, fault_of_loss
from failover.kafka.port import Cluster
from failover.mm2.checkpoint import Checkpoint, checkpoint_key
from failover.mm2.connect_offsets import SourceOffsetKey, decode_offset, decode_offset_key
from failover.mm2.fields import DecodeError
from failover.mm2.heartbeat import Heartbeat
from failover.mm2.offset_sync import offset_sync_key, offset_sync_value
from failover.model.cluster import LogRange, TopicInfo
from failover.model.names import Fault, TopicPartition
from failover.model.records import Record, WindowRequest
from failover.model.snapshot import InternalTopicReading, SeenCheckpoint
from failover.translate.history import SyncHistory
from failover.translate.segments import Syncs

CheckpointsByGroup: TypeAlias = dict[str, dict[TopicPartition, SeenCheckpoint]]
Advance: TypeAlias = Callable[[int], None]

_NO_RIGHT = 29  # Kafka: TOPIC_AUTHORIZATION_FAILED
_LAST_BEATS = 50
_VERSION_0 = b"\x00\x00"


class _Tally:
    """Counts the records of one topic, readable and not."""

    def __init__(self, topic: str, cluster: str) -> None:
        self.topic, self.cluster = topic, cluster
        self.records = self.unreadable = 0
        self.first_unreadable = ""
        self.newest: int | None = None
        self.fault: Fault | None = None

    def skip(self, offset: int, why: str) -> None:
        self.unreadable += 1
        if not self.first_unreadable:
            self.first_unreadable = f"offset {offset}: {why}"

    def took(self, chunk: Sequence[Record], advance: Advance | None) -> None:
        self.records += len(chunk)
        if chunk:
            self.newest = chunk[-1].timestamp
        if advance is not None:
            advance(self.records)

    def reading(self, *, exists: bool = True) -> InternalTopicReading:
        return InternalTopicReading(
            topic=self.topic,
            cluster=self.cluster,
            exists=exists,
            records=self.records,
            unreadable=self.unreadable,
            first_unreadable=self.first_unreadable,
            newest=self.newest,
            fault=self.fault,
        )


class _Seen(NamedTuple):
    """Is the newest value under one key, with the one before it: both stay bytes until the end is reached."""

    value: bytes
    timestamp: int
    before: bytes | None


def read_checkpoints(
    cluster: Cluster, topic: str, *, exists: bool, advance: Advance | None = None
) -> tuple[CheckpointsByGroup, InternalTopicReading]:
    """Reads a checkpoints topic in one pass; the newest checkpoint by log order counts, not the highest.

    Memory goes with the number of keys, not of records. A tombstone takes its checkpoint away.
    Records that cannot be decoded are skipped and counted. Without READ, and where the log is
    damaged, the reading has a fault and no checkpoint counts: a later one may have gone back.
    """
    tally = _Tally(topic, cluster.alias)
    if not exists:
        return {}, tally.reading(exists=False)
    newest: dict[bytes, _Seen] = {}
    unreadable_keys: dict[bytes, str] = {}
    try:
        for chunk in cluster.read(TopicPartition(topic, 0)):
            for offset, timestamp, key, value, _ in chunk:
                if key is None:
                    tally.skip(offset, "the record has no key")
                    continue
                seen = newest.get(key)
                if seen is None and not _key_is_readable(key, unreadable_keys):
                    tally.skip(offset, unreadable_keys[key])
                elif value is None:
                    newest.pop(key, None)
                elif not _value_is_readable(value):
                    tally.skip(offset, _why_unreadable(key, value))
                else:
                    newest[key] = _Seen(value, timestamp, None if seen is None else seen.value)
            tally.took(chunk, advance)
    except NotAuthorized as error:
        tally.fault = fault(_NO_RIGHT, error.message)
    except BrokerError as error:
        tally.fault = fault(error.number, error.message)
    found: CheckpointsByGroup = {}
    if tally.fault is not None:
        return found, tally.reading()
    for key, seen in newest.items():
        checkpoint = Checkpoint.decode(key, seen.value)
        assert checkpoint is not None
        tp = TopicPartition(checkpoint.topic, checkpoint.partition)
        earlier = _upstream(seen.before) if seen.before is not None else -1
        found.setdefault(checkpoint.group, {})[tp] = SeenCheckpoint(
            upstream=checkpoint.upstream,
            downstream=checkpoint.downstream,
            timestamp=seen.timestamp,
            metadata=checkpoint.metadata,
            earlier_upstream=earlier if earlier > checkpoint.upstream else None,
        )
    return found, tally.reading()


def read_offset_syncs(
    cluster: Cluster, topic: str, *, exists: bool, advance: Advance | None = None
) -> tuple[dict[TopicPartition, Syncs], InternalTopicReading]:
    """Reads a whole offset-syncs topic into columns, by source partition.

    Records that cannot be decoded are skipped and counted. A cluster that falls silent or gives no
    READ leaves a fault in the reading and no syncs: half of a history could translate wrongly.
    """
    tally = _Tally(topic, cluster.alias)
    if not exists:
        return {}, tally.reading(exists=False)
    history = SyncHistory()
    names: dict[bytes | None, tuple[str, int]] = {}
    try:
        for chunk in cluster.read(TopicPartition(topic, 0)):
            for offset, _, key, value, _ in chunk:
                if value is None:
                    continue
                try:
                    name = names.get(key)
                    if name is None:
                        name = names[key] = offset_sync_key(key)
                    up, down = offset_sync_value(value)
                except DecodeError as error:
                    tally.skip(offset, error.message)
                    continue
                history.append(*name, up, down)
            tally.took(chunk, advance)
    except NotAuthorized as error:
        tally.fault = fault(_NO_RIGHT, error.message)
    except BrokerError as error:
        tally.fault = fault(error.number, error.message)
    except ClusterUnreachable as error:
        tally.fault = fault_of_loss(error)
    return ({} if tally.fault is not None else history.freeze()), tally.reading()


def newest_heartbeat(cluster: Cluster, side: str, info: TopicInfo | None) -> int | None:
    """Finds when the newest mirrored heartbeat was written (epoch milliseconds); None when there is none.

    Only the last records of each partition are read: the topic gets one a second and is compacted late.
    """
    if info is None:
        return None
    partitions = [TopicPartition(info.name, number) for number in range(info.partitions)]
    ranges = cluster.log_ranges(partitions)
    requests = [
        WindowRequest(side, tp, max(log.start, log.end - _LAST_BEATS), log.end)
        for tp, log in ranges.items()
        if isinstance(log, LogRange) and log.end > log.start
    ]
    newest: int | None = None
    for window in cluster.windows(requests).values() if requests else ():
        for record in window.records:
            try:
                beat = Heartbeat.decode(record.key, record.value)
            except DecodeError:
                continue  # a heartbeat more or less: health is the matter of other commands
            if beat is not None and (newest is None or beat.timestamp > newest):
                newest = beat.timestamp
    return newest


def topics_of_connect_offsets(cluster: Cluster, info: TopicInfo | None, source: str) -> set[str]:
    """Finds the source topics for which a dedicated MM2 keeps positions: what it mirrors or mirrored."""
    found: set[str] = set()
    if info is None:
        return found
    try:
        for number in range(info.partitions):
            for chunk in cluster.read(TopicPartition(info.name, number)):
                for record in chunk:
                    try:
                        key = decode_offset_key(record.key)
                        mirrors = isinstance(key, SourceOffsetKey) and decode_offset(record.value) is not None
                    except DecodeError:
                        continue  # other connectors may keep anything here
                    if mirrors and isinstance(key, SourceOffsetKey) and key.cluster == source:
                        found.add(key.topic)
    except (NotAuthorized, BrokerError):
        return found
    return found


def _key_is_readable(key: bytes, unreadable: dict[bytes, str]) -> bool:
    if key in unreadable:
        return False
    try:
        checkpoint_key(key)
    except DecodeError as error:
        unreadable[key] = error.message
        return False
    return True


def _value_is_readable(value: bytes) -> bool:
    # Version 0, both offsets there and not negative, and metadata no longer than the rest of the value.
    return (
        len(value) >= 20
        and value[:2] == _VERSION_0
        and value[2] < 0x80
        and value[10] < 0x80
        and (value[18] << 8 | value[19]) <= len(value) - 20
    )


def _why_unreadable(key: bytes, value: bytes) -> str:
    try:
        Checkpoint.decode(key, value)
    except DecodeError as error:
        return error.message
    group, topic, partition = checkpoint_key(key)
    return f"checkpoint of group {group}, {topic}-{partition}: an offset is negative"


def _upstream(value: bytes) -> int:
    return int.from_bytes(value[2:10], "big")
