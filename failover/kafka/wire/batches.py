"""Record batches as they lie in a log: taken apart without copying, checked, decoded by aiokafka's C codec."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from functools import cache
from struct import Struct
from typing import Any, NamedTuple

from failover.model.records import Record

_PLACE = Struct(">qi")  # base offset, length of what follows
_HEAD = Struct(">ibIhi")  # leader epoch, magic, CRC, attributes, last offset delta
_MAGIC_AT = 16
_LENGTH_V2 = 49
_LENGTH_OLD = 14  # CRC, magic, attributes, sizes of key and value: the least of magic 0
_SMALLEST = _PLACE.size + _LENGTH_OLD
_CRC_FROM = 21

LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20


class UnreadableBatch(Exception):
    """Says that a batch's bytes are damaged or use a codec that is not there."""


class Batch(NamedTuple):
    """Is one whole batch: its place in the log and its bytes.

    ``next_offset``: the offset after its last record, also where compaction removed that record. ``leader_epoch``
    is -1 and ``attributes`` cover the outermost message only for magic 0 and 1.
    """

    base_offset: int
    next_offset: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    data: memoryview

    @property
    def control(self) -> bool:
        """Says whether it holds a transaction marker, which is no data."""
        return self.magic >= 2 and bool(self.attributes & CONTROL)

    @property
    def log_append_time(self) -> bool:
        """Says whether the broker set the timestamps."""
        return self.magic >= 1 and bool(self.attributes & LOG_APPEND_TIME)


def split(records: memoryview) -> Iterator[Batch]:
    """Takes the whole batches of a fetch answer apart; a cut one at the end is left out (Kafka sends such)."""
    at, end = 0, len(records)
    while at + _SMALLEST <= end:
        base, length = _PLACE.unpack_from(records, at)
        stop = at + _PLACE.size + length
        if stop > end:
            return
        magic = records[at + _MAGIC_AT]
        if length < (_LENGTH_V2 if magic >= 2 else _LENGTH_OLD):
            raise UnreadableBatch(f"a batch of {length} bytes at offset {base}")
        data = records[at:stop]
        if magic >= 2:
            epoch, _, crc, attributes, last_delta = _HEAD.unpack_from(records, at + _PLACE.size)
            yield Batch(base, base + last_delta + 1, epoch, magic, crc, attributes, data)
        else:
            # Offset and size as above, then CRC-32, magic, attributes. Of a compressed set the offset is that of its
            # last message, so the next one follows it in either case.
            yield Batch(base, base + 1, -1, magic, int.from_bytes(data[12:16], "big"), data[17], data)
        at = stop


def check(batch: Batch) -> None:
    """Compares the batch's bytes with its CRC. Raises ``UnreadableBatch``."""
    actual = _crc32c()(batch.data[_CRC_FROM:]) if batch.magic >= 2 else zlib.crc32(batch.data[16:])
    if actual != batch.crc:
        raise UnreadableBatch(f"the batch at offset {batch.base_offset} fails its CRC check")


def decode(batch: Batch, start: int = 0, stop: int = 1 << 63) -> list[Record]:
    """Decodes the records of a checked data batch whose offset is in [start, stop). Raises ``UnreadableBatch``."""
    records = []
    try:
        for record in records_of(batch):
            offset = record.offset
            if offset >= stop:
                break
            if offset >= start:
                timestamp = record.timestamp
                records.append(
                    Record(
                        offset,
                        -1 if timestamp is None else timestamp,
                        record.key,
                        record.value,
                        tuple(record.headers),
                    )
                )
    except decoding_errors() as error:
        raise _unreadable(batch, error) from error
    return records


def decode_columns(batch: Batch) -> list[tuple[int, int, bytes | None, bytes | None]]:
    """Decodes a checked data batch into (offset, timestamp, key, value). Raises ``UnreadableBatch``."""
    try:
        return [(record.offset, record.timestamp, record.key, record.value) for record in records_of(batch)]
    except decoding_errors() as error:
        raise _unreadable(batch, error) from error


def records_of(batch: Batch) -> Any:
    """Gives the codec's own iterator over a batch's records; iterating raises one of ``decoding_errors``."""
    if batch.magic >= 2:
        return _codec()(batch.data)
    from aiokafka.record.legacy_records import LegacyRecordBatch

    return LegacyRecordBatch(batch.data, batch.magic)


# Looked up once and not at import: aiokafka's package loads its whole client, and an import statement that runs for
# each batch costs as much as decoding a small one.


@cache
def _codec() -> Any:
    from aiokafka.record.default_records import DefaultRecordBatch

    return DefaultRecordBatch


@cache
def _crc32c() -> Callable[[memoryview], int]:
    from crc32c import crc32c

    return crc32c


def decoding_errors() -> tuple[type[Exception], ...]:
    """Names what the codec raises for damaged bytes, evaluated only when something was raised."""
    from aiokafka.errors import KafkaError
    from cramjam import DecompressionError

    return KafkaError, DecompressionError, zlib.error, ValueError, IndexError, EOFError, OSError, RuntimeError


def _unreadable(batch: Batch, error: Exception) -> UnreadableBatch:
    return UnreadableBatch(f"the batch at offset {batch.base_offset} cannot be decoded: {error}")
