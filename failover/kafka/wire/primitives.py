"""Kafka's wire types, for the messages that are coded by hand.

Classic messages carry int16 string and int32 array lengths, flexible ones (Kafka: KIP-482) unsigned varints of
length + 1 and a section of tagged fields behind every structure. Reader and writer know both; the message says
which it speaks.
"""

from __future__ import annotations

from collections.abc import Collection
from struct import Struct, unpack_from

_INT8, _INT16, _INT32, _INT64 = Struct(">b"), Struct(">h"), Struct(">i"), Struct(">q")


def uvarint(value: int) -> bytes:
    """Encodes an unsigned varint."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


class Writer:
    """Builds one message body; ``flexible`` chooses the encoding of strings, bytes and arrays."""

    __slots__ = ("data", "flexible")

    def __init__(self, *, flexible: bool) -> None:
        self.data = bytearray()
        self.flexible = flexible

    def int8(self, value: int) -> None:
        self.data += _INT8.pack(value)

    def int16(self, value: int) -> None:
        self.data += _INT16.pack(value)

    def int32(self, value: int) -> None:
        self.data += _INT32.pack(value)

    def int64(self, value: int) -> None:
        self.data += _INT64.pack(value)

    def raw(self, value: bytes) -> None:
        self.data += value

    def string(self, value: str | bytes | None) -> None:
        """Writes a string; bytes go out as they are, whether UTF-8 or not."""
        if value is None:
            self.data += b"\0" if self.flexible else _INT16.pack(-1)
            return
        encoded = value.encode() if isinstance(value, str) else value
        self.data += uvarint(len(encoded) + 1) if self.flexible else _INT16.pack(len(encoded))
        self.data += encoded

    def sized(self, value: bytes) -> None:
        """Writes a byte array."""
        self.data += uvarint(len(value) + 1) if self.flexible else _INT32.pack(len(value))
        self.data += value

    def array(self, length: int | None) -> None:
        """Writes the length of an array; None is the null array."""
        if self.flexible:
            self.data += uvarint(0 if length is None else length + 1)
        else:
            self.data += _INT32.pack(-1 if length is None else length)

    def strings(self, values: Collection[str] | None) -> None:
        """Writes an array of strings."""
        self.array(None if values is None else len(values))
        for value in values or ():
            self.string(value)

    def int32s(self, values: Collection[int]) -> None:
        """Writes an array of int32."""
        self.array(len(values))
        for value in values:
            self.int32(value)

    def tags(self) -> None:
        """Ends a structure: without tagged fields, where the encoding has a place for them."""
        if self.flexible:
            self.data.append(0)


class Reader:
    """Reads one message body front to back. Raises ``ValueError`` or ``struct.error`` where it ends too early."""

    __slots__ = ("at", "data", "flexible")

    def __init__(self, data: memoryview, *, flexible: bool, at: int = 0) -> None:
        self.data = data
        self.flexible = flexible
        self.at = at

    def int8(self) -> int:
        value: int = _INT8.unpack_from(self.data, self.at)[0]
        self.at += 1
        return value

    def int16(self) -> int:
        value: int = _INT16.unpack_from(self.data, self.at)[0]
        self.at += 2
        return value

    def int32(self) -> int:
        value: int = _INT32.unpack_from(self.data, self.at)[0]
        self.at += 4
        return value

    def int64(self) -> int:
        value: int = _INT64.unpack_from(self.data, self.at)[0]
        self.at += 8
        return value

    def uvarint(self) -> int:
        value = shift = 0
        while True:
            if self.at >= len(self.data) or shift > 63:
                raise ValueError("the message ends inside a number")
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def take(self, length: int) -> memoryview:
        """Takes the next ``length`` bytes without copying them."""
        end = self.at + length
        if length < 0 or end > len(self.data):
            raise ValueError("the message ends inside a field")
        piece = self.data[self.at : end]
        self.at = end
        return piece

    def raw_string(self) -> bytes | None:
        """Reads a nullable string as the bytes it consists of."""
        length = self.uvarint() - 1 if self.flexible else self.int16()
        return None if length < 0 else bytes(self.take(length))

    def nullable_string(self) -> str | None:
        """Reads a nullable string; bytes that are no UTF-8 come out as surrogates, so that nothing is lost."""
        raw = self.raw_string()
        return None if raw is None else raw.decode("utf-8", "surrogateescape")

    def string(self) -> str:
        return self.nullable_string() or ""

    def sized(self) -> memoryview:
        """Reads a byte array without copying it; null comes out empty."""
        length = self.uvarint() - 1 if self.flexible else self.int32()
        return self.take(max(length, 0))

    def array(self) -> int:
        """Reads the length of an array; null comes out as 0."""
        return max(self.uvarint() - 1 if self.flexible else self.int32(), 0)

    def int32s(self) -> tuple[int, ...]:
        """Reads an array of int32."""
        length = self.array()
        values = unpack_from(f">{length}i", self.data, self.at)
        self.at += 4 * length
        return values

    def strings(self) -> tuple[str, ...]:
        """Reads an array of strings."""
        return tuple([self.string() for _ in range(self.array())])

    def tags(self) -> dict[int, memoryview]:
        """Ends a structure and returns its tagged fields, undecoded."""
        found: dict[int, memoryview] = {}
        if self.flexible:
            for _ in range(self.uvarint()):
                tag = self.uvarint()
                found[tag] = self.take(self.uvarint())
        return found
