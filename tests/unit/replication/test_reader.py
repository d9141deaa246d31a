"""A reader against brokers that always have more, lanes that take it, and a room that all lanes share."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest

from failover.errors import ClusterError
from failover.kafka.wire.fetch import FetchAnswer, Fetched, FetchPartition
from failover.model.names import TopicPartition
from failover.replication import reader as module
from failover.replication.batches import Outgoing, prepare
from failover.replication.lane import Lane
from failover.replication.rate import Rate
from failover.replication.reader import Reader, ReadSettings
from failover.replication.route import Room, Route
from tests.unit.wire.batch_bytes import batch

LIMIT = 20


class Source:
    """Gives one record a fetch of each partition, or none where it is ``empty``; ``asked``: fetches so far."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "fetch_call", lambda asked, **_: list(asked))
        self.asked = 0
        self.empty = False
        self.cut: int | None = None

    async def send(self, node: int, call: Any, **_: object) -> FetchAnswer:
        await asyncio.sleep(0)
        self.asked += 1
        return FetchAnswer(0, 0, [self._fetched(each) for each in call])

    def _fetched(self, asked: FetchPartition) -> Fetched:
        records = memoryview(bytearray(b"" if self.empty else batch(asked.offset, [0])))[: self.cut]
        return Fetched(asked.topic, asked.partition, 0, 1 << 40, 1 << 40, 0, (), None, records)


class Scene:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.source: Any = Source(monkeypatch)
        self.said: list[str] = []
        self.readers: list[Reader] = []

    def route(self, number: int, room: Room) -> Route:
        shard: Any = None
        route = Route(Lane(TopicPartition("t", number), TopicPartition("a.t", number)), shard, room)
        route.lane.start(0, 0)
        return route

    def reader(self, node: int, room: Room, *routes: Route) -> Reader:
        found = Reader(self.source, node, ReadSettings(), room=room, rate=Rate(0), events=self)
        for route in routes:
            found.add(route)
        self.readers.append(found)
        return found

    def run(self, script: Any) -> None:
        async def main() -> None:
            running: list[asyncio.Task[None]] = []
            try:
                async with asyncio.timeout(LIMIT):
                    await script(lambda: running.extend(asyncio.create_task(each.run()) for each in self.readers))
            finally:
                for task in running:
                    task.cancel()
                await asyncio.gather(*running, return_exceptions=True)

        asyncio.run(main())

    def arrived(self, route: Route) -> None:
        pass

    def unreadable(self, route: Route, fetched: Fetched) -> None:
        self.said.append(f"unreadable {fetched.error}")

    def readable(self, route: Route) -> None:
        self.said.append("readable")

    def damaged(self, route: Route, why: str) -> None:
        self.said.append(f"damaged {why}")

    def heard(self, side: str, node: int) -> None:
        pass

    def source_lost(self, routes: Iterable[Route], error: ClusterError) -> None:
        self.said.append(str(error))


def prepared(offset: int) -> tuple[Outgoing, ...]:
    data = memoryview(bytearray(batch(offset, [0])))
    return prepare(TopicPartition("t", 0), data, offset, now_ms=0).outgoing


def acknowledge(route: Route, reader: Reader) -> None:
    """Has the target take the next batch, as a writer and the engine do."""
    flight = route.lane.next(1, 0, fresh_from=0)
    assert flight is not None
    route.lane.acknowledged(flight, flight.expected)
    route.count()
    reader.freed(route)


async def until(check: Any) -> None:
    while not check():  # noqa: ASYNC110 - what is looked at tells nobody
        await asyncio.sleep(0.001)


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(monkeypatch)


def test_reading_goes_on_as_soon_as_there_is_room_again(scene):
    async def script(start):
        room = Room(1)
        one = scene.route(0, room)
        reader = scene.reader(1, room, one)
        start()
        for offset in range(1, 4):
            await until(lambda offset=offset: one.lane.fetch_offset == offset)
            assert room.full
            await asyncio.sleep(0.01)
            acknowledge(one, reader)
            assert not room.full

    scene.run(script)


def test_a_reader_whose_lanes_hold_nothing_waits_for_the_room_that_others_fill(scene):
    async def script(start):
        room = Room(1)
        one, two = scene.route(0, room), scene.route(1, room)
        first, _ = scene.reader(1, room, one), scene.reader(2, room, two)
        one.lane.offer(prepared(0), 1)
        one.count()
        assert room.full
        start()
        await asyncio.sleep(0.01)
        assert scene.source.asked == 0
        acknowledge(one, first)
        await until(lambda: two.lane.fetch_offset == 1)

    scene.run(script)


@pytest.mark.parametrize("pending", [0, 1])
def test_a_lane_that_is_read_again_stands_still_no_more_unless_the_target_refuses_it(scene, pending):
    async def script(start):
        one = scene.route(0, Room(1 << 20))
        if pending:
            one.lane.offer(prepared(0), 1)
        one.reason = "the source does not give it: TOPIC_AUTHORIZATION_FAILED"
        scene.source.empty = True
        scene.reader(1, one.room, one)
        start()
        await until(lambda: scene.source.asked > 2)
        assert ("readable" in scene.said) is not bool(pending)

    scene.run(script)


def test_a_parked_lane_is_not_read_before_the_target_has_taken_something(scene):
    async def script(start):
        one = scene.route(0, Room(1 << 20))
        one.lane.offer(prepared(0), 1)
        one.parked = True
        reader = scene.reader(1, one.room, one)
        start()
        await asyncio.sleep(0.02)
        assert scene.source.asked == 0
        acknowledge(one, reader)
        await until(lambda: one.lane.fetch_offset > 1)

    scene.run(script)


@pytest.mark.parametrize("cut", [-1, 50, 30, 5])
def test_what_brings_no_whole_batch_is_damaged_and_not_asked_for_again_at_once(scene, cut):
    async def script(start):
        one = scene.route(0, Room(1 << 20))
        scene.source.cut = cut
        scene.reader(1, one.room, one)
        start()
        await until(lambda: scene.said)
        await asyncio.sleep(0.02)
        assert (scene.source.asked, one.lane.fetch_offset) == (1, 0)
        assert scene.said == ["damaged partition t-0: the batch at offset 0 is cut, or of a wrong length"]

    scene.run(script)
