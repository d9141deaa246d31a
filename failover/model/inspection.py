"""Records of MirrorMaker 2's internal topics, decoded: what ``failover inspect`` shows.

Fields that MM2's own formatters print keep MM2's names, and those that its guides show theirs, so that what was written
for either reads these.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from failover.model.snapshot import InternalTopicReading


class RecordAt(msgspec.Struct, frozen=True):
    """Is where a record stands, and its time (None where it has none)."""

    cluster: str
    topic: str
    partition: int
    offset: int
    timestamp: datetime | None


class CheckpointRow(msgspec.Struct, frozen=True, kw_only=True, tag="checkpoint", rename="camel"):
    """Is one checkpoint. ``offset`` is the downstream offset, ``commit_timestamp`` the record's, epoch milliseconds.

    ``by``: ``mm2``, or ``exact`` for one of this tool's, which alone has ``proof``, ``precision`` and ``reread_max``
    (records that may come again at most, None: unknown).
    """

    group_id: str
    topic: str
    partition: int
    offset: int
    metadata: str
    commit_timestamp: int
    consumer_group_id: str
    topic_partition: str
    upstream_offset: int
    downstream_offset: int
    by: str = "mm2"
    proof: str | None = None
    precision: str | None = None
    reread_max: int | None = None
    record: RecordAt


class OffsetSyncRow(msgspec.Struct, frozen=True, kw_only=True, tag="offset-sync", rename="camel"):
    """Is one offset sync; ``topic`` is the source's name. ``syncs``: how many of the partition were read up to it."""

    topic: str
    partition: int
    topic_partition: str
    upstream_offset: int
    downstream_offset: int
    syncs: int
    record: RecordAt


class HeartbeatRow(msgspec.Struct, frozen=True, kw_only=True, tag="heartbeat", rename="camel"):
    """Is one heartbeat; ``heartbeat_timestamp`` (epoch milliseconds) is what the record itself says."""

    source_cluster_alias: str
    target_cluster_alias: str
    heartbeat_timestamp: int
    record: RecordAt


class PositionRow(msgspec.Struct, frozen=True, kw_only=True, tag="position", rename="camel"):
    """Is how far a source partition is copied: ``offset`` was the last, ``next_offset`` is where copying goes on."""

    connector: str
    cluster: str
    topic: str
    partition: int
    offset: int
    next_offset: int
    record: RecordAt


Row = CheckpointRow | OffsetSyncRow | HeartbeatRow | PositionRow


class UnreadableRecord(msgspec.Struct, frozen=True):
    """Is a record that cannot be decoded, and why."""

    topic: str
    partition: int
    offset: int
    reason: str


class Inspection(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="failover.inspection"):
    """Is what was found in the topics of one kind.

    ``what``: checkpoints, offset-syncs, heartbeats or positions. ``latest``: of each key only the newest record is
    listed. ``unreadable`` names the first of the records that could not be decoded; ``topics`` counts them all.
    ``notes``: what a reader should know, a line each.
    """

    what: str
    source: str
    target: str
    taken: datetime
    latest: bool
    topics: tuple[InternalTopicReading, ...]
    records: tuple[Row, ...]
    unreadable: tuple[UnreadableRecord, ...] = ()
    notes: tuple[str, ...] = ()
