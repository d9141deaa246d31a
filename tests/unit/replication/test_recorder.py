from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace
from typing import Any

import pytest

from failover.errors import ClusterUnreachable
from failover.kafka.wire.encode import builder
from failover.model.names import Fault, TopicPartition
from failover.replication import recorder as module
from failover.replication.anchor import Anchor
from failover.replication.batches import Kind, Outgoing
from failover.replication.lane import Lane
from failover.replication.recorder import Recorder, anchor_of, anchors_of
from failover.replication.route import Room, Route

DENIED = Fault(29, "TOPIC_AUTHORIZATION_FAILED")
UNREACHABLE = ClusterUnreachable("cluster b does not answer", alias="b")


class Store:
    """Keeps what is written, as positions and as syncs do, or answers as it is told to."""

    def __init__(self) -> None:
        self.written: list[Any] = []
        self.failure: Exception | None = None
        self.refused: dict[TopicPartition, Fault] = {}
        self.waits: Fault | None = None
        self._waiting: list[Any] = []


class AnchorFake(Store):
    async def write(self, anchors: dict[TopicPartition, Anchor]) -> dict[TopicPartition, Fault]:
        if self.failure is not None:
            raise self.failure
        self.written.append({tp: anchor for tp, anchor in anchors.items() if tp not in self.refused})
        return {tp: reason for tp, reason in self.refused.items() if tp in anchors}


class SyncFake(Store):
    async def write(self, rows: list[tuple[TopicPartition, int, int]]) -> Fault | None:
        self._waiting += rows
        if self.failure is not None:
            raise self.failure
        if self.waits is None:
            self.written.append(list(self._waiting))
            self._waiting.clear()
        return self.waits


class Scene:
    def __init__(self) -> None:
        self.positions, self.syncs = AnchorFake(), SyncFake()
        self.alive = True
        self.recorder = Recorder(self.positions, self.syncs, alive=lambda: self.alive)

    def flush(self) -> None:
        asyncio.run(self.recorder.flush())


@pytest.fixture
def scene() -> Scene:
    return Scene()


def route(number: int, upstream: int = 10, downstream: int = 20) -> Route:
    shard: Any = SimpleNamespace(unproven=False)
    made = Route(Lane(TopicPartition("t", number), TopicPartition("A.t", number)), shard, Room(1 << 20))
    made.source_id, made.target_id = b"s" * 16, b"t" * 16
    made.generation = 1
    made.lane.start(upstream, downstream, leader_epoch=3)
    return made


def outgoing(first: int, records: int) -> Outgoing:
    data = builder(0, 1 << 16)
    for at in range(records):
        data.append(at, 1, None, b"v", [])
    return Outgoing(first, first + records - 1, first + records, records, 1, data.build(), Kind.PASSED)


def copy(route: Route, records: int, *, leader_epoch: int = 4) -> None:
    """Lets a lane's next records arrive."""
    lane = route.lane
    first = lane.fetch_offset
    following = first + records
    lane.offer([outgoing(first, records)], following, leader_epoch)
    flight = lane.next(1, 0, fresh_from=0)
    assert flight is not None
    lane.acknowledged(flight, flight.expected)


def anchor(upstream: int, downstream: int, leader_epoch: int = 4) -> Anchor:
    return Anchor(upstream, downstream, b"s" * 16, b"t" * 16, leader_epoch)


def test_what_moved_is_written_once(scene):
    one, two = route(0), route(1)
    copy(one, 5)
    for each in (one, one, two):
        scene.recorder.moved(each, 0)
    scene.flush()
    scene.flush()
    assert scene.positions.written == [{one.lane.source: anchor(15, 25), two.lane.source: anchor(10, 20, 3)}]
    assert scene.syncs.written == [[(one.lane.source, 10, 20), (one.lane.source, 14, 24)]]
    assert list(one.anchors) == [anchor(15, 25)]


def test_an_anchor_without_a_moment_of_rest_knows_no_epoch(scene):
    one = route(0)
    one.lane.offer([outgoing(10, 5)], 15, 4)
    assert anchor_of(one) == anchor(10, 20, -1)


def test_a_lane_that_was_never_started_has_no_anchor(scene):
    one = route(0)
    one.generation = 0
    scene.recorder.moved(one, 0)
    scene.flush()
    assert (scene.positions.written, scene.syncs.written) == ([], [])
    assert anchors_of(one, [anchor(1, 2)]) == (anchor(1, 2),)


def test_anchors_come_newest_first_and_once(scene):
    one = route(0)
    for _ in range(2):
        copy(one, 5)
        scene.recorder.moved(one, 0)
        scene.flush()
    assert anchors_of(one, [anchor(15, 25), anchor(1, 2)]) == (anchor(20, 30), anchor(15, 25), anchor(1, 2))


def test_positions_that_cannot_be_written_come_again_as_they_stand_then(scene, caplog):
    one, two = route(0), route(1)
    for each in (one, two):
        copy(each, 5)
        scene.recorder.moved(each, 0)
    scene.positions.refused = {one.lane.source: DENIED}
    scene.flush()
    scene.flush()
    copy(one, 5)
    scene.positions.refused = {}
    scene.flush()
    assert scene.positions.written == [{two.lane.source: anchor(15, 25)}, {}, {one.lane.source: anchor(20, 30)}]
    said = [(record.levelno, record.getMessage()) for record in caplog.records]
    assert said == [
        (logging.ERROR, f"1 positions cannot be written; of t-0: {DENIED}"),
        (logging.WARNING, "positions are written again"),
    ]


def test_a_cluster_that_does_not_answer_costs_neither_positions_nor_syncs(scene, caplog):
    one = route(0)
    copy(one, 5)
    scene.recorder.moved(one, 0)
    scene.positions.failure = scene.syncs.failure = UNREACHABLE
    scene.flush()
    assert (scene.positions.written, scene.syncs.written) == ([], [])
    scene.positions.failure = scene.syncs.failure = None
    scene.flush()  # though nothing moved since
    assert scene.positions.written == [{one.lane.source: anchor(15, 25)}]
    assert scene.syncs.written == [[(one.lane.source, 10, 20), (one.lane.source, 14, 24)]]
    assert [record.getMessage() for record in caplog.records][2:] == [
        "positions are written again",
        "offset syncs are written again",
    ]
    scene.flush()
    assert len(scene.positions.written) == len(scene.syncs.written) == 1


def test_syncs_that_wait_are_written_though_nothing_moves(scene):
    one = route(0)
    copy(one, 5)
    scene.recorder.moved(one, 0)
    scene.syncs.waits = DENIED
    scene.flush()
    scene.syncs.waits = None
    scene.flush()
    assert scene.syncs.written == [[(one.lane.source, 10, 20), (one.lane.source, 14, 24)]]
    assert len(scene.positions.written) == 1


class Told(list[Any]):
    """Is a list that tells of what is appended."""

    def __init__(self, event: asyncio.Event) -> None:
        super().__init__()
        self._event = event

    def append(self, item: Any) -> None:
        super().append(item)
        self._event.set()


def test_many_bytes_do_not_wait_for_the_second(scene, monkeypatch):
    monkeypatch.setattr(module, "_EVERY_SECONDS", 3_600.0)
    monkeypatch.setattr(module, "_EVERY_BYTES", 100)

    async def run() -> None:
        written = asyncio.Event()
        monkeypatch.setattr(scene.positions, "written", Told(written))
        task = asyncio.create_task(scene.recorder.run())
        one = route(0)
        scene.recorder.moved(one, 99)
        for _ in range(5):
            await asyncio.sleep(0)
        assert scene.positions.written == []
        scene.recorder.moved(one, 1)
        async with asyncio.timeout(10):
            await written.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())


def test_what_may_be_another_workers_by_now_is_not_written(scene: Scene) -> None:
    """A frozen worker that wakes would put positions back that its successor has moved on."""
    ours, lost, back = route(0), route(1), route(2)
    for each in (ours, lost, back):
        each.generation = 1
        scene.recorder.moved(each, 1)
    scene.alive = False
    scene.flush()
    assert scene.positions.written == []
    scene.alive = True
    lost.shard.unproven = back.shard.unproven = True
    scene.flush()
    assert [list(each) for each in scene.positions.written] == [[ours.lane.source]]
    scene.recorder.forget([lost])
    back.shard.unproven = False
    scene.flush()
    assert [list(each) for each in scene.positions.written[1:]] == [[back.lane.source]]
