"""Writes record batches of version 2 with aiokafka's C codec, and walks through many small ones."""

from __future__ import annotations

from functools import cache
from typing import Any


def builder(codec: int, batch_bytes: int) -> Any:
    """Makes an empty batch without a producer.

    ``codec``: Kafka's number (0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd). Its ``append(delta, timestamp, key, value,
    headers)`` gives None and adds nothing where the batch would exceed ``batch_bytes`` before compression; the first
    record always fits. ``build()`` ends it; what compression would make larger is left uncompressed.
    """
    return _library()[0](2, codec, 0, -1, -1, -1, batch_bytes)


def walk(batches: bytes) -> Any:
    """Goes through whole batches of version 2; ``next_batch()`` gives one after the other, None at the end."""
    return _library()[1](batches)


# Looked up once and not at import: aiokafka's package loads its whole client.
@cache
def _library() -> tuple[Any, Any]:
    from aiokafka.record.default_records import DefaultRecordBatchBuilder
    from aiokafka.record.memory_records import MemoryRecords

    return DefaultRecordBatchBuilder, MemoryRecords
