"""A writer and what it tells of answers, also of those that nobody waits for any more."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from failover.errors import ClusterError
from failover.kafka.wire.produce import ProduceAnswer, ProduceBatch, Produced
from failover.model.names import TopicPartition
from failover.replication import writer as module
from failover.replication.batches import prepare
from failover.replication.lane import Flight, Lane, State
from failover.replication.route import Room, Route
from failover.replication.writer import Writer, WriteSettings
from tests.unit.wire.batch_bytes import batch

SHARD: Any = SimpleNamespace(producer_id=7, epoch=3, sending=True)


class Sent:
    def __init__(self, batches: Sequence[ProduceBatch]) -> None:
        self.raw: asyncio.Future[memoryview] = asyncio.get_running_loop().create_future()
        self._batches = batches
        self.base = 0

    def answer(self, base: int) -> None:
        self.base = base
        self.raw.set_result(memoryview(b""))

    def read(self, _: memoryview) -> ProduceAnswer:
        return ProduceAnswer(
            [Produced(each.topic, each.partition, None, self.base, -1, 0) for each in self._batches], 0
        )


class Scene:
    """Is a broker to which everything is sent, and whoever is told what became of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "submit_produce", self._submit)
        self.sent: list[Sent] = []
        self.told: list[str] = []
        self.route = Route(Lane(TopicPartition("t", 0), TopicPartition("a.t", 0)), SHARD, Room(1))
        self.route.target_node = 1
        self.route.lane.start(100, 50)
        data = memoryview(bytearray(batch(100, [0, 1])))
        self.route.lane.offer(prepare(self.route.lane.source, data, 100, now_ms=0).outgoing, 102)

    def _submit(self, _: object, batches: Sequence[ProduceBatch], *, timeout_ms: int) -> Sent:
        assert timeout_ms
        self.sent.append(Sent(batches))
        return self.sent[-1]

    async def connection(self, node: int, purpose: str) -> SimpleNamespace:
        async def ready() -> None:
            pass

        return SimpleNamespace(ready=ready)

    def run(self, script: Any) -> None:
        async def main() -> None:
            cluster: Any = self
            writer = Writer(cluster, 1, WriteSettings(), events=self, fresh_from=lambda: 0, alive=lambda: True)
            running = asyncio.create_task(writer.run())
            writer.wake(self.route)
            async with asyncio.timeout(20):
                while not self.sent:  # noqa: ASYNC110 - nobody tells
                    await asyncio.sleep(0)
                await script()
                await asyncio.sleep(0)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

        asyncio.run(main())

    def accepted(self, route: Route, flight: Flight) -> None:
        self.told.append(f"accepted {flight.outgoing.records} at {route.lane.upstream}")

    def heard(self, side: str, node: int) -> None:
        pass

    def drained(self, route: Route) -> None:
        self.told.append("drained")

    def target_lost(self, node: int, error: ClusterError) -> None:
        self.told.append(str(error))

    async def reconnected(self, node: int) -> None:
        self.told.append("reconnected")


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(monkeypatch)


def test_what_the_target_has_is_told(scene):
    async def script():
        scene.sent[0].answer(50)

    scene.run(script)
    assert scene.told == ["accepted 2 at 102"]


def test_an_answer_that_comes_after_the_lane_was_let_go_says_nothing(scene):
    """Another worker may have the partition by then, and have come further on record."""

    async def script():
        scene.route.lane.close()
        scene.sent[0].answer(50)

    scene.run(script)
    assert scene.told == []


def test_what_lies_elsewhere_is_not_taken_for_copied(scene):
    async def script():
        scene.sent[0].answer(51)

    scene.run(script)
    assert (scene.told, scene.route.lane.state) == (["drained"], State.DRAINED)
