"""The primitive fields MirrorMaker 2's records are made of, and what makes a record unreadable.

Everything is big-endian and concatenated without tags. A string is a signed 16-bit byte length and
UTF-8. Bytes after the last field are ignored, as Java's readers do (Kafka: protocol.types.Type).
"""

from __future__ import annotations

import struct
from enum import StrEnum
from typing import ClassVar

from failover.errors import FailoverError

MAX_STRING_BYTES = 0x7FFF

LENGTH = struct.Struct(">h")
VERSION = struct.Struct(">h")


class Unreadable(StrEnum):
    """Names why a record cannot be decoded; findings count by it."""

    NO_KEY = "no-key"
    TRUNCATED = "truncated"
    NEGATIVE_LENGTH = "negative-length"
    UNKNOWN_VERSION = "unknown-version"
    NOT_JSON = "not-json"
    NOT_AN_OFFSET = "not-an-offset"


class DecodeError(FailoverError):
    """Says that a record of one of MirrorMaker 2's topics cannot be decoded; ``why`` classifies it."""

    code: ClassVar[str] = "record-unreadable"

    def __init__(self, message: str, why: Unreadable) -> None:
        super().__init__(message, hint="the record is skipped and counted; find out which program wrote it")
        self.why = why


class UnknownVersion(DecodeError):
    """Says that a record was written in a version this tool does not know, ``version``."""

    def __init__(self, message: str, version: int) -> None:
        super().__init__(message, Unreadable.UNKNOWN_VERSION)
        self.version = version


def string_bytes(data: bytes, at: int, what: str) -> tuple[bytes, int]:
    """Gives the bytes of the string field that starts at ``at`` and the offset behind it.

    Raises DecodeError when the length is negative or the data end early; ``what`` names the field.
    """
    start = at + 2
    if start > len(data):
        raise DecodeError(f"{what}: the data end before its length", Unreadable.TRUNCATED)
    (length,) = LENGTH.unpack_from(data, at)
    if length < 0:
        raise DecodeError(f"{what}: its length is {length}", Unreadable.NEGATIVE_LENGTH)
    end = start + length
    if end > len(data):
        raise DecodeError(f"{what}: {length} bytes announced, {len(data) - start} there", Unreadable.TRUNCATED)
    return data[start:end], end


def string(data: bytes, at: int, what: str) -> tuple[str, int]:
    """Gives the text of the string field at ``at`` and the offset behind it.

    Malformed UTF-8 becomes U+FFFD, as in Java. Raises DecodeError as string_bytes does.
    """
    raw, end = string_bytes(data, at, what)
    return raw.decode("utf-8", "replace"), end


def numbers(layout: struct.Struct, data: bytes, at: int, what: str) -> tuple[int, ...]:
    """Unpacks fixed-size numbers at ``at``; raises DecodeError when the data end early."""
    if len(data) - at < layout.size:
        raise DecodeError(f"{what}: {layout.size} bytes expected, {len(data) - at} there", Unreadable.TRUNCATED)
    return layout.unpack_from(data, at)


def encode_string(text: str | bytes) -> bytes:
    """Encodes a string field; raises ValueError beyond 32,767 bytes."""
    raw = text.encode() if isinstance(text, str) else text
    if len(raw) > MAX_STRING_BYTES:
        raise ValueError(f"a string of {len(raw)} bytes does not fit: {MAX_STRING_BYTES} is the most")
    return LENGTH.pack(len(raw)) + raw


def required_key(key: bytes | None, what: str) -> bytes:
    """Gives the key back; raises DecodeError when the record has none."""
    if key is None:
        raise DecodeError(f"{what}: the record has no key", Unreadable.NO_KEY)
    return key
