"""Reads a topic to its end, again and again."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Literal

from failover.errors import LabError
from failover.model import Record

if TYPE_CHECKING:
    from confluent_kafka import Consumer

    from failover.lab.side import Side

Isolation = Literal["read_uncommitted", "read_committed"]


class Follower:
    """Reads a topic from its start and goes on where it stopped at each call."""

    def __init__(self, side: Side, topic: str, *, isolation: Isolation = "read_uncommitted") -> None:
        self._side = side
        self._topic = topic
        self._isolation = isolation
        self._consumer: Consumer | None = None
        self._next: dict[int, int] = {}
        self.records: dict[int, list[Record]] = {}

    def __enter__(self) -> Follower:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the consumer."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def catch_up(self, *, seconds: float = 60) -> dict[int, list[Record]]:
        """Reads up to the end as of now and returns everything read so far; an unknown topic is empty.

        Raises LabError after ``seconds``.
        """
        from confluent_kafka import TopicPartition as Place

        ends = self._side.ends(self._topic, isolation=self._isolation)
        fresh = [
            Place(self._topic, partition, start)
            for partition, (start, _) in ends.items()
            if partition not in self._next
        ]
        if self._consumer is None:
            if not fresh:
                return self.records
            self._consumer = self._side.consumer(isolation_level=self._isolation, enable_partition_eof=True)
        if fresh:
            self._next |= {place.partition: place.offset for place in fresh}
            self._consumer.incremental_assign(fresh)
            self.records |= {place.partition: [] for place in fresh}
        # control records carry offsets but are never delivered: the end-of-partition event, not
        # the last record, says how far the consumer has read
        deadline = time.monotonic() + seconds
        behind = {partition for partition, (_, end) in ends.items() if self._next[partition] < end}
        while behind:
            if time.monotonic() > deadline:
                raise LabError(
                    f"{self._side.alias}: {self._topic} {sorted(behind)} not read to its end in {seconds:.0f} s"
                )
            message = self._consumer.poll(0.1)
            if message is None:
                continue
            error, partition = message.error(), int(message.partition() or 0)
            if error is None:
                self.records[partition].append(_record(message))
            elif error.name() == "_PARTITION_EOF":
                self._next[partition] = max(self._next[partition], int(message.offset() or 0))
                if self._next[partition] >= ends[partition][1]:
                    behind.discard(partition)
            elif not error.retriable():
                raise LabError(f"{self._side.alias}: reading {self._topic}-{partition} failed: {error}")
        return self.records


def _record(message: Any) -> Record:
    headers = tuple((name, value) for name, value in message.headers() or ())
    return Record(message.offset(), message.timestamp()[1], message.key(), message.value(), headers)
