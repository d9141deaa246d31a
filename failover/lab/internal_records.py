"""MirrorMaker 2's internal records taken apart, independently of the rest of the package.

The lab judges what the package reads and writes, so it has a reader of its own: big-endian
fields, strings as an int16 length and UTF-8 (MM2: OffsetSync, Checkpoint, Heartbeat).
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from failover.model import Record


class Sync(NamedTuple):
    """Says that source record ``upstream`` is target record ``downstream``."""

    topic: str
    partition: int
    upstream: int
    downstream: int


class Checkpoint(NamedTuple):
    """Is a group's source commit and its translation; ``topic`` is the topic's name on the target."""

    group: str
    topic: str
    partition: int
    upstream: int
    downstream: int
    metadata: str


class Heartbeat(NamedTuple):
    """Is a sign of life of one flow, epoch milliseconds."""

    source: str
    target: str
    timestamp: int


def sync_of(record: Record) -> Sync:
    """Returns the offset sync in a record; raises struct.error when it holds none."""
    topic, at = _string(record.key or b"", 0)
    (partition,) = struct.unpack_from(">i", record.key or b"", at)
    return Sync(topic, partition, *struct.unpack(">qq", record.value or b""))


def checkpoint_of(record: Record) -> Checkpoint:
    """Returns the checkpoint in a record; raises struct.error when it holds none."""
    key, value = record.key or b"", record.value or b""
    group, at = _string(key, 0)
    topic, at = _string(key, at)
    (partition,) = struct.unpack_from(">i", key, at)
    _version, upstream, downstream = struct.unpack_from(">hqq", value)
    metadata, _ = _string(value, 18)
    return Checkpoint(group, topic, partition, upstream, downstream, metadata)


def heartbeat_of(record: Record) -> Heartbeat:
    """Returns the heartbeat in a record; raises struct.error when it holds none."""
    key = record.key or b""
    source, at = _string(key, 0)
    target, _ = _string(key, at)
    _version, timestamp = struct.unpack(">hq", record.value or b"")
    return Heartbeat(source, target, timestamp)


def _string(data: bytes, at: int) -> tuple[str, int]:
    (length,) = struct.unpack_from(">h", data, at)
    end = at + 2 + length
    return data[at + 2 : end].decode(), end
