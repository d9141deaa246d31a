"""A flow that several workers share, under traffic: who has which part, and whether the copy is true to the source."""

from __future__ import annotations

import contextlib
import os
import re
import signal
from collections.abc import Iterator, Sequence

from failover.mm2.connect_offsets import SourceOffsetKey, decode_offset, decode_offset_key
from failover.replication.positions import DEDICATED_CONNECTOR
from failover.replication.shards import SHARDS
from tests.system.pair import Pair
from tests.system.replicating import Flow, Worker
from tests.system.replicator_side import Compared, Load, Traffic

SESSION_SECONDS = 6  # the least that brokers allow
RATE = 200.0
_SAID = re.compile(r"this worker has (\d+) of 64 shards( and leads)?")


class Shared:
    """Is a flow of topics ``<stem>.<number>`` with traffic on each; every record of a topic is another."""

    def __init__(self, pair: Pair, stem: str, *, topics: int = 3, partitions: int = 4) -> None:
        self.pair, self.stem = pair, pair.name(stem)
        self.flow = Flow(
            pair,
            rf"{self.stem}\..*",
            {
                "failover.replicator.session.timeout": f"{SESSION_SECONDS}s",
                "{source}->{target}.sync.topic.configs.enabled": "true",
            },
        )
        self.partitions = partitions
        self.topics = [pair.create_topic("a", f"{self.stem}.{number}", partitions) for number in range(topics)]
        self._traffic: list[Traffic] = []
        self._compared: dict[str, Compared] = {}

    def begin(self, topics: Sequence[str] | None = None) -> None:
        """Begins to write to topics."""
        loads = [
            Load(topic, self.partitions, lambda n: (f"k{n % 7}".encode(), f"v{n}".encode(), 0), RATE)
            for topic in topics or self.topics
        ]
        self._traffic.append(Traffic(self.pair.a, loads))

    def end(self) -> None:
        for traffic in self._traffic:
            traffic.stop()
        self._traffic.clear()

    @contextlib.contextmanager
    def under_traffic(self) -> Iterator[None]:
        self.begin()
        try:
            yield
        finally:
            self.end()
            for compared in self._compared.values():
                compared.close()

    def same(self, *, seconds: float = 90) -> None:
        """Compares each topic with its copy record by record until the copy holds all that the source does."""
        for compared in self._comparing():
            compared.until_equal(seconds=seconds)

    def so_far(self) -> None:
        """Compares what the copies hold now: each is a beginning of its source."""
        for compared in self._comparing():
            assert compared.step() == []

    def _comparing(self) -> list[Compared]:
        for topic in self.topics:
            if topic not in self._compared:
                self._compared[topic] = Compared(self.pair, topic, self.flow.remote(topic))
        return list(self._compared.values())

    def grows(self, *, records: int = 20) -> None:
        """Waits until every partition's copy has grown: each has an owner."""
        before = self._ends()

        def done() -> bool:
            ends = self._ends()
            grown = [place for place, end in ends.items() if end >= before.get(place, 0) + records]
            return len(grown) == len(self.topics) * self.partitions

        self.pair.b.until(done, what="every partition is copied", seconds=90)

    def _ends(self) -> dict[tuple[str, int], int]:
        return {
            (topic, partition): end
            for topic in self.topics
            for partition, (_, end) in self.pair.ends("b", self.flow.remote(topic)).items()
        }

    def positions(self) -> dict[tuple[str, int], int]:
        """Reads the next source offset of each partition as Kafka Connect would."""
        found = {}
        for records in self.pair.read("b", f"mm2-offsets.{self.flow.source}.internal").values():
            for record in records:
                key = decode_offset_key(record.key)
                offset = decode_offset(record.value)
                if isinstance(key, SourceOffsetKey) and key.connector == DEDICATED_CONNECTOR and offset is not None:
                    found[key.topic, key.partition] = offset + 1
        return found

    def source_ends(self) -> dict[tuple[str, int], int]:
        return {
            (topic, partition): end
            for topic in self.topics
            for partition, (_, end) in self.pair.ends("a", topic).items()
        }


def part(worker: Worker) -> tuple[int, bool]:
    """Gives how many shards a worker said last that it has, and whether it leads."""
    said = _SAID.findall(worker.log)
    return (int(said[-1][0]), bool(said[-1][1])) if said else (0, False)


def settled(pair: Pair, *workers: Worker) -> None:
    """Waits until these workers have all shards among them, each some, and one leads."""

    def done() -> bool:
        parts = [part(worker) for worker in workers]
        assert all(worker.code() is None for worker in workers), [worker.log[-2000:] for worker in workers]
        return (
            sum(shards for shards, _ in parts) == SHARDS
            and all(shards for shards, _ in parts)
            and sum(leads for _, leads in parts) == 1
        )

    pair.b.until(done, what=f"{len(workers)} workers share {SHARDS} shards", seconds=90)


def freeze(worker: Worker) -> None:
    os.kill(worker.pid, signal.SIGSTOP)


def wake(worker: Worker) -> None:
    os.kill(worker.pid, signal.SIGCONT)
