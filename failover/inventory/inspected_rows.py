"""One record of an internal topic as a row for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from enum import Enum, auto

from failover.mm2.checkpoint import Checkpoint
from failover.mm2.connect_offsets import SourceOffsetKey, decode_offset, decode_offset_key
from failover.mm2.exact_checkpoint import Known, decode_note
from failover.mm2.guide_names import CHECKPOINTS, HEARTBEATS, OFFSET_SYNCS, POSITIONS
from failover.mm2.heartbeat import Heartbeat
from failover.mm2.offset_sync import OffsetSync
from failover.model.inspection import CheckpointRow, HeartbeatRow, OffsetSyncRow, PositionRow, RecordAt, Row
from failover.model.names import TopicPartition
from failover.model.records import Record


class Other(Enum):
    """Says why a record is no row: its key was deleted, or it belongs to somebody else."""

    DELETED = auto()
    FOREIGN = auto()


def row_of(kind: str, alias: str, tp: TopicPartition, record: Record, *, exact: bool = False) -> Row | Other:
    """Decodes a record of a topic of this kind; ``exact``: of this tool's checkpoints. Raises ``DecodeError``."""
    when = datetime.fromtimestamp(record.timestamp / 1000, UTC) if record.timestamp >= 0 else None
    at = RecordAt(alias, tp.topic, tp.partition, record.offset, when)
    if exact:
        return _exact(record, at)
    return _DECODERS[kind](record, at)


def _checkpoint(record: Record, at: RecordAt, known: Known | None = None) -> Row | Other:
    found = Checkpoint.decode(record.key, record.value)
    if found is None:
        return Other.DELETED
    return CheckpointRow(
        group_id=found.group,
        topic=found.topic,
        partition=found.partition,
        offset=found.downstream,
        metadata=found.metadata_text,
        commit_timestamp=record.timestamp,
        consumer_group_id=found.group,
        topic_partition=f"{found.topic}-{found.partition}",
        upstream_offset=found.upstream,
        downstream_offset=found.downstream,
        by="mm2" if known is None else "exact",
        proof=None if known is None else known.proof,
        precision=None if known is None else known.precision,
        reread_max=None if known is None else known.most,
        record=at,
    )


def _exact(record: Record, at: RecordAt) -> Row | Other:
    note = decode_note(record.headers)
    if record.value is not None and not isinstance(note, Known):
        Checkpoint.decode(record.key, record.value)
        return Other.FOREIGN  # where the source ended, when all was looked at, or of a version to come
    return _checkpoint(record, at, note if isinstance(note, Known) else None)


def _offset_sync(record: Record, at: RecordAt) -> Row | Other:
    found = OffsetSync.decode(record.key, record.value)
    if found is None:
        return Other.DELETED
    return OffsetSyncRow(
        topic=found.topic,
        partition=found.partition,
        topic_partition=f"{found.topic}-{found.partition}",
        upstream_offset=found.upstream,
        downstream_offset=found.downstream,
        syncs=1,
        record=at,
    )


def _heartbeat(record: Record, at: RecordAt) -> Row | Other:
    found = Heartbeat.decode(record.key, record.value)
    if found is None:
        return Other.DELETED
    return HeartbeatRow(
        source_cluster_alias=found.source,
        target_cluster_alias=found.target,
        heartbeat_timestamp=found.timestamp,
        record=at,
    )


def _position(record: Record, at: RecordAt) -> Row | Other:
    key = decode_offset_key(record.key)
    if not isinstance(key, SourceOffsetKey):
        return Other.FOREIGN  # the checkpoint and heartbeat connectors keep a zero that nobody reads
    offset = decode_offset(record.value)
    if offset is None:
        return Other.DELETED
    return PositionRow(
        connector=key.connector,
        cluster=key.cluster,
        topic=key.topic,
        partition=key.partition,
        offset=offset,
        next_offset=offset + 1,
        record=at,
    )


_DECODERS: Mapping[str, Callable[[Record, RecordAt], Row | Other]] = {
    CHECKPOINTS: _checkpoint,
    OFFSET_SYNCS: _offset_sync,
    HEARTBEATS: _heartbeat,
    POSITIONS: _position,
}
