"""One offset sync: a source record and its copy on the target."""

from __future__ import annotations

import struct

import msgspec

from failover.mm2.fields import encode_string, numbers, required_key, string

_PARTITION = struct.Struct(">i")
_OFFSETS = struct.Struct(">qq")


class OffsetSync(msgspec.Struct, frozen=True):
    """Says that the source record at ``upstream`` is the target record at ``downstream``.

    ``topic`` is the SOURCE topic. Both are offsets of the record itself, not next-to-read
    positions. The record has no version field (MM2: OffsetSync).
    """

    topic: str
    partition: int
    upstream: int
    downstream: int

    @classmethod
    def decode(cls, key: bytes | None, value: bytes | None) -> OffsetSync | None:
        """Reads one record of the offset-syncs topic; None for a tombstone. Raises DecodeError."""
        topic, partition = offset_sync_key(key)
        if value is None:
            return None
        upstream, downstream = offset_sync_value(value)
        return cls(topic, partition, upstream, downstream)

    def encode_key(self) -> bytes:
        """Gives the record key; raises ValueError when the topic is too long."""
        return encode_string(self.topic) + _PARTITION.pack(self.partition)

    def encode_value(self) -> bytes:
        """Gives the record value."""
        return _OFFSETS.pack(self.upstream, self.downstream)


def offset_sync_key(key: bytes | None) -> tuple[str, int]:
    """Gives (source topic, partition) of a record key; raises DecodeError."""
    key = required_key(key, "offset sync")
    topic, at = string(key, 0, "offset sync key, topic")
    return topic, numbers(_PARTITION, key, at, "offset sync key, partition")[0]


def offset_sync_value(value: bytes) -> tuple[int, int]:
    """Gives (upstream, downstream) of a record value, cheaply, as millions are read; raises DecodeError."""
    if len(value) == 16:
        upstream, downstream = _OFFSETS.unpack(value)
    else:
        upstream, downstream = numbers(_OFFSETS, value, 0, "offset sync value")
    return upstream, downstream
