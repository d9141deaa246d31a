"""One checkpoint: where a group's committed source offset lies on the target."""

from __future__ import annotations

import struct

import msgspec

from failover.mm2.fields import (
    MAX_STRING_BYTES,
    VERSION,
    UnknownVersion,
    encode_string,
    numbers,
    required_key,
    string,
    string_bytes,
)

_LENGTH_AT = struct.Struct(">H").unpack_from
_PARTITION = struct.Struct(">i")
_PARTITION_AT = _PARTITION.unpack_from
_VERSION_0 = struct.Struct(">hqq")
_OFFSETS = struct.Struct(">qq")


class Checkpoint(msgspec.Struct, frozen=True):
    """Says that a group which committed ``upstream`` on the source may start at ``downstream`` on the target.

    ``topic`` is the target's name of the topic. Both offsets are next-to-read positions.
    ``metadata``: the group's commit metadata, byte for byte (MM2: Checkpoint, version 0).
    """

    group: str
    topic: str
    partition: int
    upstream: int
    downstream: int
    metadata: bytes = b""

    @property
    def metadata_text(self) -> str:
        """Shows the metadata as text; bytes that are no UTF-8 become U+FFFD."""
        return self.metadata.decode("utf-8", "replace")

    @classmethod
    def decode(cls, key: bytes | None, value: bytes | None) -> Checkpoint | None:
        """Reads one record of a checkpoints topic; None for a tombstone.

        Raises DecodeError, and UnknownVersion for a version other than 0.
        """
        group, topic, partition = checkpoint_key(required_key(key, "checkpoint"))
        if value is None:
            return None
        version = numbers(VERSION, value, 0, "checkpoint value, version")[0]
        if version != 0:
            raise UnknownVersion(f"checkpoint of group {group}, {topic}-{partition}: version {version}", version)
        upstream, downstream = numbers(_OFFSETS, value, VERSION.size, "checkpoint value, offsets")
        metadata, _ = string_bytes(value, _VERSION_0.size, "checkpoint value, metadata")
        return cls(group, topic, partition, upstream, downstream, metadata)

    def encode_key(self) -> bytes:
        """Gives the record key; raises ValueError when the group or topic is too long."""
        return encode_string(self.group) + encode_string(self.topic) + _PARTITION.pack(self.partition)

    def encode_value(self) -> bytes:
        """Gives the record value; raises ValueError when the metadata are too long."""
        return _VERSION_0.pack(0, self.upstream, self.downstream) + encode_string(self.metadata)


def checkpoint_key(key: bytes) -> tuple[str, str, int]:
    """Splits a record key into (group, target topic, partition); raises DecodeError.

    A topic of millions of checkpoints has few distinct keys: keep the last value under the raw key
    bytes, and split and decode what is left when the end is reached.
    """
    if len(key) > MAX_STRING_BYTES:
        return _checkpoint_key_exactly(key)
    try:
        # Unsigned, so that a negative length points behind the end and is left to the exact reader.
        group_end = 2 + _LENGTH_AT(key)[0]
        topic_end = group_end + 2 + _LENGTH_AT(key, group_end)[0]
        partition: int = _PARTITION_AT(key, topic_end)[0]
        return key[2:group_end].decode(), key[group_end + 2 : topic_end].decode(), partition
    except (struct.error, UnicodeDecodeError):
        # Either one of the rare keys Java still reads, or one that is refused: the exact reader tells.
        return _checkpoint_key_exactly(key)


def _checkpoint_key_exactly(key: bytes) -> tuple[str, str, int]:
    group, at = string(key, 0, "checkpoint key, group")
    topic, at = string(key, at, f"checkpoint key of group {group}, topic")
    return group, topic, numbers(_PARTITION, key, at, f"checkpoint key of group {group}, {topic}, partition")[0]
