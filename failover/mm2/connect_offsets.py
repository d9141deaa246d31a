"""Source offsets as Kafka Connect stores them for MirrorMaker 2's three connectors.

Connect finds an offset by the exact bytes of its key, so field order, spacing and escapes are those
of Java: JSON from Jackson without spaces, fields in the order in which a HashMap yields them.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from failover.mm2.fields import DecodeError, Unreadable

OFFSETS_TOPIC_PARTITIONS = 25
"""Partitions of the offsets topic in dedicated mode (Kafka: ``offset.storage.partitions``)."""

# Jackson escapes these and surrogates (below), and nothing else: DEL, U+2028 and all of the first plane else stand as
# they are. Its hexadecimal digits are upper case.
_SHORT_ESCAPES = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
_ESCAPES = {ord(c): e for c, e in ({chr(i): f"\\u{i:04X}" for i in range(0x20)} | _SHORT_ESCAPES).items()}


class SourceOffsetKey(msgspec.Struct, frozen=True):
    """Names a source partition's position, as MirrorSourceConnector stores it."""

    connector: str
    cluster: str
    topic: str
    partition: int

    def encode(self) -> bytes:
        """Gives the exact key bytes."""
        return _key(self.connector, cluster=self.cluster, partition=self.partition, topic=self.topic)


class CheckpointOffsetKey(msgspec.Struct, frozen=True):
    """Names what MirrorCheckpointConnector stores per group and partition; its offset is always 0."""

    connector: str
    group: str
    topic: str
    partition: int

    def encode(self) -> bytes:
        """Gives the exact key bytes."""
        return _key(self.connector, partition=self.partition, topic=self.topic, group=self.group)


class HeartbeatOffsetKey(msgspec.Struct, frozen=True):
    """Names what MirrorHeartbeatConnector stores; its offset is always 0."""

    connector: str
    source: str
    target: str

    def encode(self) -> bytes:
        """Gives the exact key bytes."""
        return _key(self.connector, sourceClusterAlias=self.source, targetClusterAlias=self.target)


OffsetKey: TypeAlias = SourceOffsetKey | CheckpointOffsetKey | HeartbeatOffsetKey


def decode_offset_key(key: bytes | None) -> OffsetKey | None:
    """Reads a key of Connect's offsets topic; None when it belongs to a connector that is not MirrorMaker 2's.

    Connect only finds keys whose bytes equal ``decode_offset_key(key).encode()``. Raises DecodeError.
    """
    if key is None:
        raise DecodeError("Connect offset: the record has no key", Unreadable.NO_KEY)
    try:
        connector, fields = msgspec.json.decode(key, type=tuple[str, dict[str, Any]])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DecodeError(f"Connect offset key: {error}", Unreadable.NOT_JSON) from error
    match fields:
        case {"cluster": str(cluster), "topic": str(topic), "partition": int(partition), **rest} if not rest:
            return SourceOffsetKey(connector, cluster, topic, partition)
        case {"group": str(group), "topic": str(topic), "partition": int(partition), **rest} if not rest:
            return CheckpointOffsetKey(connector, group, topic, partition)
        case {"sourceClusterAlias": str(source), "targetClusterAlias": str(target), **rest} if not rest:
            return HeartbeatOffsetKey(connector, source, target)
    return None


def encode_offset(offset: int) -> bytes:
    """Gives the value bytes. For a source partition ``offset`` is the last record copied: reading resumes behind it."""
    return b'{"offset":%d}' % offset


def decode_offset(value: bytes | None) -> int | None:
    """Reads a value of Connect's offsets topic; None when there is no offset (a tombstone). Raises DecodeError."""
    if value is None:
        return None
    try:
        fields = msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DecodeError(f"Connect offset value: {error}", Unreadable.NOT_JSON) from error
    match fields:
        case None | {"offset": None}:
            return None
        case {"offset": int(offset)} if not isinstance(offset, bool):
            return offset
    raise DecodeError("Connect offset value: no integer field 'offset'", Unreadable.NOT_AN_OFFSET)


def offset_partition(key: bytes, partitions: int = OFFSETS_TOPIC_PARTITIONS) -> int:
    """Gives the partition of the offsets topic to which Java's default partitioner sends ``key``."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def murmur2(data: bytes) -> int:
    """Gives Java's 32-bit murmur2 hash, unsigned (Kafka: Utils.murmur2)."""
    m, mask = 0x5BD1E995, 0xFFFFFFFF
    h = 0x9747B28C ^ len(data)
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        k = int.from_bytes(data[at : at + 4], "little") * m & mask
        k = (k ^ k >> 24) * m & mask
        h = (h * m & mask) ^ k
    if whole < len(data):
        h = (h ^ int.from_bytes(data[whole:], "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    return h ^ h >> 15


def _key(connector: str, **fields: str | int) -> bytes:
    body = ",".join(f'"{name}":{_json(value)}' for name, value in fields.items())
    return f"[{_json(connector)},{{{body}}}]".encode()


def _json(value: str | int) -> str:
    if not isinstance(value, str):
        return str(value)
    text = value.translate(_ESCAPES)
    return f'"{text if text.isascii() else "".join(map(_utf16, text))}"'


def _utf16(character: str) -> str:
    """Gives a character as Jackson's UTF8JsonGenerator does: one beyond U+FFFF as escapes of its two surrogates."""
    code = ord(character)
    if code > 0xFFFF:
        high, low = divmod(code - 0x10000, 0x400)
        return f"\\u{0xD800 + high:04X}\\u{0xDC00 + low:04X}"
    return f"\\u{code:04X}" if 0xD800 <= code <= 0xDFFF else character
