"""Lanes brought back, against clusters that say one thing after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any

import pytest

from failover.kafka.wire.cluster import Leader
from failover.kafka.wire.fetch import Fetched
from failover.model.cluster import LogRange
from failover.model.names import Fault, TopicPartition
from failover.replication import mending as module
from failover.replication.batches import prepare
from failover.replication.lane import Flight, Lane, State
from failover.replication.mending import Mender
from failover.replication.options import ReplicateOptions
from failover.replication.route import Room, Route
from tests.unit.wire.batch_bytes import batch

OLD, NEW, NEWEST = b"o" * 16, b"n" * 16, b"m" * 16
MOVED = Fault(6, "NOT_LEADER_OR_FOLLOWER")
LOST = Fault(-185, "NO_ANSWER")
TOO_LARGE = Fault(10, "MESSAGE_TOO_LARGE")


class Shard:
    generation = 1
    doubts: list[str]

    def doubt(self, why: str) -> None:
        self.doubts.append(why)


class Scene:
    """Is the engine of one lane, whose clusters give ``source_id`` and ``log``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "_FIRST_PAUSE", 0.001)
        monkeypatch.setattr(module, "_LONGEST_PAUSE", 0.001)
        monkeypatch.setattr(module, "_QUIET_POLL", 0.001)
        monkeypatch.setattr(module, "log_ranges", self._ranges)
        shard: Any = Shard()
        shard.doubts = []
        self.lane = Lane(TopicPartition("t", 0), TopicPartition("a.t", 0))
        self.route = Route(self.lane, shard, Room(1 << 20))
        self.route.source_id, self.route.target_id = OLD, OLD
        self.lane.start(100, 50, leader_epoch=3)
        self.routes = {self.lane.source: self.route}
        self.options = ReplicateOptions()
        self.source_leaders = self.target_leaders = self.recorder = self
        self.source_id = OLD
        self.log = LogRange(0, 200)
        self.told: list[str] = []
        self.tasks: list[asyncio.Task[None]] = []
        engine: Any = self
        self.mender = Mender(engine, engine, engine)

    def run(self, script: Callable[[], Awaitable[None]]) -> None:
        async def main() -> None:
            async with asyncio.timeout(20):
                await script()
            for task in self.tasks:
                task.cancel()
            for ended in await asyncio.gather(*self.tasks, return_exceptions=True):
                assert ended is None or isinstance(ended, asyncio.CancelledError)

        asyncio.run(main())

    def send(self, count: int = 1) -> Flight:
        at = self.lane.fetch_offset
        data = memoryview(bytearray(batch(at, range(count))))
        self.lane.offer(prepare(self.lane.source, data, at, now_ms=0).outgoing, at + count)
        flight = self.lane.next(1, 0, fresh_from=0)
        assert flight is not None
        return flight

    async def find(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Leader | Fault]:
        ids = {self.lane.source: self.source_id, self.lane.target: self.route.target_id}
        return {tp: Leader(1, 4, ids[tp]) for tp in partitions}

    async def _ranges(self, _: object, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, LogRange | Fault]:
        return dict.fromkeys(partitions, self.log)

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.append(task)
        return task

    def touch(self, _: Route) -> None:
        self.told.append("touch")

    def place(self, _: Route, **__: Leader) -> None:
        self.told.append("place")

    def moved(self, _: Route, __: int) -> None:
        self.told.append("moved")

    def look_soon(self) -> None:
        self.told.append("look")

    def fresh_from(self) -> int:
        return 0


async def poll(check: Callable[[], object]) -> None:
    while not check():  # noqa: ASYNC110 - what is looked at tells nobody
        await asyncio.sleep(0.001)


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(monkeypatch)


@pytest.mark.parametrize("newest", [NEW, NEWEST], ids=["once", "twice"])
def test_a_source_made_anew_while_a_batch_is_sent_again_is_copied_from_its_start_afterwards(scene, newest):
    async def script():
        flight = scene.send()
        scene.lane.failed(flight, MOVED, fresh_from=0)
        assert scene.lane.state is State.DRAINED
        scene.mender.source_recreated(scene.route, NEW)
        await asyncio.sleep(0.02)
        assert (scene.route.source_id, scene.lane.upstream) == (OLD, 100)
        if newest != NEW:
            scene.mender.source_recreated(scene.route, newest)
        scene.source_id = newest
        assert scene.lane.retry(fresh_from=0)
        again = scene.lane.next(1, 0, fresh_from=0)
        scene.lane.acknowledged(again, 50)
        await poll(lambda: scene.route.source_id == newest)
        assert (scene.lane.upstream, scene.lane.fetch_offset, scene.lane.downstream) == (0, 0, 51)

    scene.run(script)


def test_a_lane_that_was_started_with_the_new_topic_meanwhile_is_left_alone(scene):
    async def script():
        scene.lane.close()
        scene.mender.source_recreated(scene.route, NEW)
        await asyncio.sleep(0.01)
        scene.route.source_id = NEW  # as the start found
        scene.lane.start(7, 57)
        await asyncio.sleep(0.01)
        assert scene.lane.upstream == 7
        assert all(task.done() for task in scene.tasks)

    scene.run(script)


def out_of_range() -> Fetched:
    return Fetched("t", 0, 1, -1, -1, -1, (), None, memoryview(b""))


def test_an_offset_that_another_topic_does_not_have_is_not_taken_for_a_truncation(scene):
    async def script():
        scene.source_id, scene.log = NEW, LogRange(0, 20)
        scene.mender.unreadable(scene.route, out_of_range())
        await poll(lambda: scene.route.source_id == NEW)
        assert scene.lane.fetch_offset == 0

    scene.run(script)


def test_an_epoch_that_the_source_does_not_know_is_not_asked_for_again(scene):
    async def script():
        scene.mender.unreadable(scene.route, out_of_range())
        await poll(lambda: "touch" in scene.told)
        assert (scene.lane.fetch_offset, scene.lane.leader_epoch) == (100, -1)
        scene.told.clear()
        scene.mender.unreadable(scene.route, out_of_range())
        await poll(lambda: scene.route.reason)
        assert "does not give offset 100, though it has 0 to 200" in scene.route.reason
        assert "touch" not in scene.told  # only after a pause

    scene.run(script)


def test_a_refused_batch_behind_a_lost_answer_is_looked_up_and_cut_then(scene):
    async def script():
        first = scene.send(8)
        scene.lane.failed(first, LOST, fresh_from=0)
        assert scene.lane.retry(fresh_from=0)
        again = scene.lane.next(1, 0, fresh_from=0)
        assert scene.lane.failed(again, TOO_LARGE, fresh_from=0)
        scene.mender.drained(scene.route)
        await poll(lambda: scene.route.shard.doubts)
        # behind a new fence nothing of it is on its way
        scene.lane.start(100, 50)
        first = scene.send(8)
        assert scene.lane.failed(first, TOO_LARGE, fresh_from=0)
        scene.mender.drained(scene.route)
        await poll(lambda: scene.route.limits is not None)
        assert scene.lane.state is State.OPEN
        assert len(scene.route.shard.doubts) == 1

    scene.run(script)
