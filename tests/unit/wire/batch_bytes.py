"""Batches as a broker would send them, built by aiokafka's codec."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder
from crc32c import crc32c

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


def batch(
    base: int, deltas: Sequence[int], *, codec: str = "none", attributes: int = 0, last: int | None = None
) -> bytes:
    """Builds a batch of records at ``base`` + each delta; ``last``: its last offset delta, where no record has it."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=CODECS[codec],
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 24,
    )
    for delta in deltas:
        offset = base + delta
        headers = [("h", b"%d" % offset), ("n", None)] if offset % 2 else []
        builder.append(delta, 1000 + offset, key_of(offset), value_of(offset), headers)
    data = bytearray(builder.build())
    struct.pack_into(">q", data, 0, base)
    (flags,) = struct.unpack_from(">h", data, 21)
    struct.pack_into(">h", data, 21, flags | attributes)
    if last is not None:
        struct.pack_into(">i", data, 23, last)
    struct.pack_into(">I", data, 17, crc32c(data[21:]))
    return bytes(data)


def old_batch(magic: int, offsets: Sequence[int], *, codec: str = "none") -> bytes:
    """Builds messages of magic 0 or 1; a compressed set has the offset of its last message, as brokers give it."""
    builder = LegacyRecordBatchBuilder(magic, CODECS[codec], 1 << 20)
    for offset in offsets:
        builder.append(offset, 1000 + offset, key_of(offset), value_of(offset))
    data = bytearray(builder.build())
    if codec != "none":
        struct.pack_into(">q", data, 0, offsets[-1])
    return bytes(data)


def key_of(offset: int) -> bytes | None:
    return None if offset % 3 == 0 else b"k%d" % offset


def value_of(offset: int) -> bytes | None:
    return None if offset % 5 == 0 else b"value %d " % offset * 5
