"""Records and stretches of a partition's log, as read for translation and inspection."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from failover.model.names import Fault, TopicPartition


class Record(NamedTuple):
    """Is one data record. ``timestamp``: epoch milliseconds, -1 when the record has none."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class WindowRequest(NamedTuple):
    """Asks for the data records of ``tp`` whose offset is in [start, stop).

    ``side`` is ``"source"`` or ``"target"``.
    """

    side: str
    tp: TopicPartition
    start: int
    stop: int


class Window(msgspec.Struct, frozen=True):
    """Is the answer to a window request.

    ``records``: the data records (no control records; those of aborted transactions included, as
    a read_uncommitted consumer sees them) in [start, covered_to), in offset order. ``covered_to``
    is ``stop`` unless the log ends before it or the reader gave up early. ``log_start`` and
    ``log_end`` are the partition's when the answer was made (log_end: high watermark).
    ``log_append_time``: the broker set the timestamps of at least one record itself. ``fault``:
    the partition could not be read; then ``records`` is empty.
    """

    records: tuple[Record, ...]
    covered_to: int
    log_start: int
    log_end: int
    log_append_time: bool = False
    fault: Fault | None = None
