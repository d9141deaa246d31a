"""Batches written anew from the records of others."""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import Any

import msgspec

from failover.kafka.wire.encode import builder
from failover.replication.batches.outgoing import Kind, Outgoing

_NEWEST = Struct(">q")
_NEWEST_AT = 35
_NO_TIMESTAMP = -1


class Limits(msgspec.Struct, frozen=True):
    """Says how large batches become.

    ``small_bytes``, ``small_records``: batches up to this size are taken together with their neighbours; larger ones
    cost less to send by themselves than to decode (some 50 µs a batch against 1 µs a record). ``batch_bytes`` (before
    compression) and ``batch_records`` end a batch that is written anew; a record larger than that goes alone.
    ``batch_bytes`` belongs below the target's max.message.bytes.
    """

    small_bytes: int = 4 << 10
    small_records: int = 64
    batch_bytes: int = 512 << 10
    batch_records: int = 10_000


class Assembly:
    """Collects records of consecutive source batches into batches of one codec, which it adds to ``finished``.

    Order, keys, values, headers and timestamps stay; offsets are closed up. A record without a timestamp gets
    ``now_ms`` (MM2 (MirrorSourceTask, WorkerSourceTask): -1 becomes null, and the producer then takes its clock).
    """

    def __init__(self, codec: int, kind: Kind, limits: Limits, now_ms: int, finished: list[Outgoing]) -> None:
        self.codec = codec
        self._kind = kind
        self._limits = limits
        self._now_ms = now_ms
        self._finished = finished
        self._builder: Any = None
        self._append: Any = None
        self._count = 0
        self._first = self._last = 0

    def add(self, records: Iterable[Any]) -> None:
        """Adds further records of the log.

        Raises what the codec raises for damaged bytes; then nothing made since the last ``finish`` may be sent.
        """
        append, count = self._append or _full, self._count
        now, most = self._now_ms, self._limits.batch_records
        previous: Any = None
        for record in records:
            timestamp = record.timestamp
            if timestamp == _NO_TIMESTAMP:
                timestamp = now
            if count >= most or append(count, timestamp, record.key, record.value, record.headers) is None:
                self._count = count
                if previous is not None:
                    self._last = previous.offset
                self.finish(record.offset)
                append = self._begin(record, timestamp)
                count = 0
            count += 1
            previous = record
        self._count = count
        if previous is not None:
            self._last = previous.offset

    def finish(self, following: int) -> None:
        """Ends the batch under way, if there is one; the source is read on at ``following``."""
        if self._append is None:
            return
        data: bytearray = self._builder.build()
        (newest,) = _NEWEST.unpack_from(data, _NEWEST_AT)
        self._finished.append(Outgoing(self._first, self._last, following, self._count, newest, data, self._kind))
        self._append, self._count = None, 0

    def _begin(self, record: Any, timestamp: int) -> Any:
        self._builder = builder(self.codec, self._limits.batch_bytes)
        self._append = self._builder.append
        self._append(0, timestamp, record.key, record.value, record.headers)
        self._first = record.offset
        return self._append


def _full(*_: Any) -> None:
    """Stands for the batch that is not begun."""
