"""A target partition as Kafka keeps it: its log, and what it remembers of the producers that wrote to it."""

from __future__ import annotations

import struct
from collections import deque
from typing import NamedTuple

from crc32c import crc32c

from failover.kafka.wire.batches import decode, split
from failover.replication.batches import next_sequence

EXPIRATION_MS = 1000
OUT_OF_ORDER, DUPLICATE, OLD_EPOCH = 45, 46, 47
_REMEMBERED = 5
_LAST = (1 << 31) - 1


class Stored(NamedTuple):
    """Is one batch of the log. ``values``: of its data records, None each for another writer's; none: a marker."""

    base: int
    values: tuple[bytes | None, ...]
    producer: int
    epoch: int
    sequence: int
    timestamp: int

    @property
    def next_offset(self) -> int:
        return self.base + max(len(self.values), 1)


class Memory:
    """Is what is known of a producer: its epoch, its last batches, the timestamp of what it wrote last."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.batches: deque[Stored] = deque(maxlen=_REMEMBERED)
        self.timestamp = -1


class TargetPartition:
    """Appends as Kafka does (ProducerAppendInfo, ProducerStateManager; measured on Kafka 4.1.1)."""

    def __init__(self) -> None:
        self.log: list[Stored] = []
        self.producers: dict[int, Memory] = {}

    @property
    def end(self) -> int:
        return self.log[-1].next_offset if self.log else 0

    @property
    def values(self) -> list[bytes | None]:
        """Is what its data records hold, in log order."""
        return [value for stored in self.log for value in stored.values]

    def value_at(self, offset: int) -> bytes | None:
        """Gives the value of the data record at an offset; None for another writer's and where none is."""
        for stored in self.log:
            if stored.base <= offset < stored.base + len(stored.values):
                return stored.values[offset - stored.base]
        return None

    def values_below(self, offset: int) -> list[bytes | None]:
        return [value for stored in self.log if stored.next_offset <= offset for value in stored.values]

    def produce(self, data: bytes) -> tuple[int, int]:
        """Gives (error, base offset). An answer of 0 says that the batch is in the log, be it from before."""
        (crc,) = struct.unpack_from(">I", data, 17)
        assert crc == crc32c(data[21:])
        producer, epoch, sequence, count = struct.unpack_from(">qhii", data, 43)
        (newest,) = struct.unpack_from(">q", data, 35)
        [batch] = split(memoryview(data))
        values = tuple(record.value for record in decode(batch))
        assert (batch.base_offset, len(values)) == (0, count)
        memory = self.producers.get(producer)
        if memory is not None:
            if epoch < memory.epoch:
                return OLD_EPOCH, -1
            if epoch > memory.epoch or not memory.batches:
                if sequence != 0:
                    return OUT_OF_ORDER, -1
            else:
                last = memory.batches[-1]
                for known in memory.batches:
                    if (known.sequence, len(known.values)) == (sequence, count):
                        assert known.values == values, "a batch came again with other records"
                        return 0, known.base
                if sequence != (due := next_sequence(last.sequence, len(last.values))):
                    behind = (due - sequence) % (_LAST + 1) < 1 << 30
                    return (DUPLICATE if behind else OUT_OF_ORDER), -1
        self._append(Stored(self.end, values, producer, epoch, sequence, newest))
        return 0, self.log[-1].base

    def fence(self, producer: int, epoch: int, now: int) -> None:
        """Puts the marker of an empty aborted transaction into the log."""
        self._append(Stored(self.end, (), producer, epoch, -1, now))

    def append_foreign(self) -> None:
        """Takes a record of somebody who writes without any producer id."""
        self._append(Stored(self.end, (None,), -1, -1, -1, -1))

    def forget(self, now: int) -> None:
        """Drops the producers that wrote nothing young; from then on any sequence of theirs is taken."""
        for producer, memory in list(self.producers.items()):
            if memory.timestamp < now - EXPIRATION_MS:
                del self.producers[producer]

    def lose(self, batches: int) -> None:
        """Loses the end of the log, and with it what is remembered of it."""
        kept = self.log[: len(self.log) - batches]
        self.log, self.producers = [], {}
        for stored in kept:
            self._append(stored)

    def _append(self, stored: Stored) -> None:
        self.log.append(stored)
        if stored.producer < 0:
            return
        memory = self.producers.get(stored.producer)
        if memory is None or memory.epoch != stored.epoch:
            memory = self.producers[stored.producer] = Memory(stored.epoch)
        memory.timestamp = stored.timestamp
        if stored.values:
            memory.batches.append(stored)
