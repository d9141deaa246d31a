"""A shard against a target that answers late, not at all, or that somebody else has taken."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

from failover.errors import ClusterUnreachable, FailoverError, NotAuthorized
from failover.kafka.wire.cluster import Leader
from failover.kafka.wire.producer_ids import Fence, ProducerFenced
from failover.model.names import Fault, TopicPartition
from failover.replication import shard as module
from failover.replication.batches import prepare
from failover.replication.lane import Flight, Lane, State
from failover.replication.route import Room, Route
from failover.replication.shard import Shard
from tests.unit.wire.batch_bytes import batch

UNREACHABLE = ClusterUnreachable("cluster b does not answer", alias="b")
DENIED = NotAuthorized("transactional id failover|a->b|1 may not be used", alias="b")
OVERTAKEN = ProducerFenced("a newer owner", number=90, name="PRODUCER_FENCED")
TOPIC_DENIED = Fault(29, "TOPIC_AUTHORIZATION_FAILED")
TOPIC_ID = b"t" * 16


class Target:
    """Answers what the shard asks; ``failures``: raised first, one a call, by the name of what is asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.failures: dict[str, list[FailoverError]] = {}
        self.left_out: dict[TopicPartition, Fault] = {}
        self.leaderless: set[TopicPartition] = set()
        self.asked: list[str] = []
        self.owned: list[tuple[int, int] | None] = []
        self.ends: dict[TopicPartition, int] = {}
        self._epoch = -1
        for name in ("fence", "fence_again", "new_producer_id"):
            monkeypatch.setattr(module, name, getattr(self, f"_{name}"))

    async def leaders(self, partitions: Iterable[TopicPartition], *, refresh: bool) -> dict[TopicPartition, Any]:
        self._note("leaders")
        leaderless = Fault(5, "LEADER_NOT_AVAILABLE", retriable=True)
        return {tp: leaderless if tp in self.leaderless else Leader(1, 0, TOPIC_ID) for tp in partitions}

    async def _fence(
        self, _: Any, __: str, partitions: list[TopicPartition], *, owned: Any, begun: Callable[[tuple[int, int]], None]
    ) -> Fence:
        self.owned.append(owned)
        self._note("fence")
        self._epoch += 1
        begun((9, self._epoch))
        self._note("markers")
        return self._fenced(partitions)

    async def _fence_again(self, _: Any, __: str, ___: int, epoch: int, partitions: list[TopicPartition]) -> Fence:
        assert epoch == self._epoch
        self._note("fence_again")
        return self._fenced(partitions)

    async def _new_producer_id(self, _: Any) -> tuple[int, int]:
        self._note("new_producer_id")
        return 5, 0

    def _fenced(self, partitions: list[TopicPartition]) -> Fence:
        """Writes a marker to each partition."""
        left_out = {tp: reason for tp, reason in self.left_out.items() if tp in partitions}
        ends = {tp: self.ends.get(tp, 0) for tp in partitions if tp not in left_out}
        self.ends.update({tp: end + 1 for tp, end in ends.items()})
        return Fence(9, self._epoch, left_out, ends)

    def _note(self, name: str) -> None:
        self.asked.append(name)
        if self.failures.get(name):
            raise self.failures[name].pop(0)


class Scene:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "_FIRST_PAUSE", 0.001)
        monkeypatch.setattr(module, "_LONGEST_PAUSE", 0.001)
        self.target = Target(monkeypatch)
        self.failures: list[FailoverError] = []
        self.told: list[str] = []
        self.overtaken: list[ProducerFenced] = []
        self.shard: Shard

    async def start(self, routes: Sequence[Route]) -> None:
        if self.failures:
            raise self.failures.pop(0)
        for route in routes:
            route.lane.start(0, 1)

    def started(self, routes: Iterable[Route]) -> None:
        self.told += [f"{route.lane.source} started" for route in routes]

    def fenced(self, shard: Shard, error: ProducerFenced) -> None:
        self.overtaken.append(error)

    def unguarded(self, error: FailoverError) -> None:
        self.told.append(f"unguarded: {error}")

    def stands_still(self, route: Route, why: str) -> None:
        route.reason = why

    def look_soon(self) -> None:
        self.told.append("look")

    def route(self, number: int) -> Route:
        route = Route(Lane(TopicPartition("t", number), TopicPartition("a.t", number)), self.shard, Room(1))
        route.target_id = TOPIC_ID
        return route

    def run(self, script: Any, *, required: bool = False) -> None:
        async def main() -> None:
            target: Any = self.target
            self.shard = Shard(
                1,
                "failover|a->b|1",
                target,
                start=self.start,
                events=self,
                turns=asyncio.Semaphore(1),
                required=required,
                unused=TopicPartition("positions", 3),
            )
            running = asyncio.create_task(self.shard.run())
            async with asyncio.timeout(20):
                await script()
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

        asyncio.run(main())

    async def until(self, *routes: Route) -> None:
        """Waits until lanes are open and may send."""
        await poll(lambda: self.shard.sending and all(route.lane.state is State.OPEN for route in routes))


async def poll(check: Callable[[], object]) -> None:
    while not check():  # noqa: ASYNC110 - what is looked at tells nobody
        await asyncio.sleep(0.001)


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(monkeypatch)


@pytest.mark.parametrize("what", ["leaders", "fence", "start"])
@pytest.mark.parametrize("owned", [False, True], ids=["at the start", "in doubt"])
def test_what_fails_while_it_is_taken_is_done_again(scene, what, owned):
    async def script():
        one = scene.route(0)
        failures = scene.failures if what == "start" else scene.target.failures.setdefault(what, [])
        if not owned:
            failures += [UNREACHABLE] * 2
        scene.shard.add([one])
        await scene.until(one)
        if owned:
            failures += [UNREACHABLE] * 2
            scene.shard.doubt("lost")
            await poll(lambda: not failures)
            await scene.until(one)
        assert one.generation == scene.shard.generation

    scene.run(script)
    assert scene.overtaken == []


@pytest.mark.parametrize("what", ["leaders", "fence_again", "start"])
def test_lanes_that_come_later_are_not_forgotten(scene, what):
    async def script():
        one, two = scene.route(0), scene.route(1)
        scene.shard.add([one])
        await scene.until(one)
        (scene.failures if what == "start" else scene.target.failures.setdefault(what, [])).append(UNREACHABLE)
        scene.shard.add([two])
        await scene.until(one, two)

    scene.run(script)
    assert scene.target.asked.count("fence") == 1
    assert scene.told == ["t-0 started", "t-1 started"]


def test_a_partition_that_may_not_be_written_holds_up_no_other(scene):
    async def script():
        one, two = scene.route(0), scene.route(1)
        scene.target.left_out = {two.lane.target: TOPIC_DENIED}
        scene.shard.add([one, two])
        await scene.until(one)
        assert two.lane.state is State.CLOSED
        assert "TOPIC_AUTHORIZATION_FAILED" in two.reason
        scene.target.left_out = {}
        await scene.until(one, two)

    scene.run(script)
    assert scene.target.asked.count("fence") == 1


def test_one_without_a_leader_is_not_named_to_the_coordinator(scene):
    async def script():
        one, two = scene.route(0), scene.route(1)
        scene.target.leaderless = {two.lane.target}
        scene.shard.add([one, two])
        await scene.until(one)
        assert "LEADER_NOT_AVAILABLE" in two.reason
        scene.target.leaderless = set()
        await scene.until(one, two)

    scene.run(script)


def test_an_overtaken_one_ends(scene):
    async def script():
        one = scene.route(0)
        scene.shard.add([one])
        await scene.until(one)
        scene.target.failures["fence"] = [OVERTAKEN]
        scene.shard.doubt("epoch refused")
        await poll(lambda: scene.overtaken)
        assert not scene.shard.sending

    scene.run(script)
    assert scene.target.asked.count("fence") == 2


@pytest.mark.parametrize("overtaken", [False, True])
def test_an_id_that_was_forgotten_is_taken_again_unless_it_is_anothers(scene, overtaken):
    async def script():
        one, two = scene.route(0), scene.route(1)
        scene.shard.add([one])
        await scene.until(one)
        scene.target.failures["fence_again"] = [
            ProducerFenced("forgotten", number=49, name="INVALID_PRODUCER_ID_MAPPING")
        ]
        scene.target.failures["fence"] = [OVERTAKEN] if overtaken else []
        scene.shard.add([two])
        if overtaken:
            await poll(lambda: scene.overtaken)
        else:
            await scene.until(one, two)

    scene.run(script)
    assert scene.target.asked.count("fence") == 2
    assert scene.overtaken == ([OVERTAKEN] if overtaken else [])


def test_without_the_right_one_worker_is_exact(scene):
    async def script():
        one = scene.route(0)
        scene.target.failures["fence"] = [DENIED]
        scene.shard.add([one])
        await scene.until(one)
        assert (scene.shard.guarded, scene.shard.producer_id) == (False, 5)

    scene.run(script)
    assert scene.told == [f"unguarded: {DENIED}", "t-0 started"]


def test_where_the_fence_is_required_it_waits_for_the_right_and_says_so_once(scene, caplog):
    async def script():
        one = scene.route(0)
        scene.target.failures["fence"] = [DENIED] * 3
        scene.shard.add([one])
        await scene.until(one)
        assert scene.shard.guarded

    scene.run(script, required=True)
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [
        (logging.WARNING, f"shard 1: {DENIED}")
    ]
    assert "new_producer_id" not in scene.target.asked


def test_keeping_the_id_waits_for_a_new_epoch(scene):
    """Asked for at the present epoch meanwhile, the coordinator would refuse this worker as an old owner."""

    async def script():
        one = scene.route(0)
        scene.shard.add([one])
        await scene.until(one)
        scene.target.failures["fence"] = [UNREACHABLE] * 3
        scene.shard.doubt("lost")
        scene.shard.keep()
        await poll(lambda: scene.target.asked.count("fence") == 5)
        await scene.until(one)
        assert "fence_again" not in scene.target.asked  # the fence was a use of the id
        scene.target.failures["fence_again"] = [UNREACHABLE]
        scene.shard.keep()
        await poll(lambda: scene.target.asked.count("fence_again") == 2)

    scene.run(script)
    assert scene.overtaken == []


def test_a_doubt_that_comes_while_it_fences_is_of_the_new_epoch_too(scene, monkeypatch):
    """This process stood still then, and another may own the shard by now."""
    sending = []

    async def script():
        one = scene.route(0)
        fence = scene.target._fence

        async def slow(*arguments, **options):
            monkeypatch.setattr(module, "fence", fence)
            scene.shard.sending = False
            scene.shard.doubt("silent")
            return await fence(*arguments, **options)

        monkeypatch.setattr(module, "fence", slow)
        start = scene.start

        async def starting(routes):
            sending.append(scene.shard.sending)
            await start(routes)

        scene.shard._start = starting
        scene.shard.add([one])
        await scene.until(one)

    scene.run(script)
    assert sending == [False, True]


def test_a_partition_that_comes_back_begins_at_another_epoch(scene):
    """Its sequences begin at 0 again, and this epoch's first batches lie there already."""

    async def script():
        one = scene.route(0)
        scene.shard.add([one])
        await scene.until(one)
        scene.shard.remove(one)
        again = scene.route(0)
        scene.shard.add([again])
        await scene.until(again)

    scene.run(script)
    assert scene.target.asked.count("fence") == 2


def test_a_target_topic_that_is_another_waits_for_the_look_at_topics(scene):
    async def script():
        one = scene.route(0)
        one.target_id = b"o" * 16
        scene.shard.add([one])
        await poll(lambda: "look" in scene.told)
        assert one.lane.state is State.CLOSED
        one.target_id = TOPIC_ID
        await scene.until(one)

    scene.run(script)


def test_a_lane_that_ends_while_its_answers_are_waited_for_holds_up_no_other(scene):
    async def script():
        one, two = scene.route(0), scene.route(1)
        scene.shard.add([one, two])
        await scene.until(one, two)
        send(one)
        scene.shard.doubt("lost")
        await poll(lambda: one.lane.state is State.DRAINING)
        scene.shard.remove(one)
        await poll(lambda: two.generation == 2)
        await scene.until(two)

    scene.run(script)


def test_what_was_on_the_way_takes_no_room_once_a_lane_begins_anew(scene):
    async def script():
        one = scene.route(0)
        scene.shard.add([one])
        await scene.until(one)
        flight = send(one)
        one.count()
        assert one.room.full
        assert one.lane.failed(flight, Fault(59, "UNKNOWN_PRODUCER_ID"), fresh_from=0)
        scene.shard.doubt("unknown producer")
        await poll(lambda: one.generation == 2)
        assert one.room.used == 0

    scene.run(script)


def test_a_fence_that_is_cut_short_is_done_again_from_its_own_epoch(scene):
    async def script():
        one = scene.route(0)
        scene.target.failures["markers"] = [UNREACHABLE]
        scene.shard.add([one])
        await scene.until(one)
        scene.target.failures["markers"] = [UNREACHABLE] * 2
        scene.shard.doubt("lost")
        await poll(lambda: one.generation == 2)
        scene.shard.doubt("lost")
        await poll(lambda: one.generation == 3)

    scene.run(script)
    assert scene.target.owned == [None, None, (9, 1), (9, 2), (9, 3), (9, 4)]


def test_where_a_log_ended_is_what_it_was_before_the_first_fence(scene):
    """A start that fails is repeated behind another fence, whose marker is no record either."""

    async def script():
        one = scene.route(0)
        scene.target.ends[one.lane.target] = 100
        scene.failures += [UNREACHABLE] * 3
        scene.shard.add([one])
        await scene.until(one)
        assert scene.target.ends[one.lane.target] == 104
        assert one.whole == 100

    scene.run(script)


def send(route: Route) -> Flight:
    data = memoryview(bytearray(batch(0, [0])))
    route.lane.offer(prepare(route.lane.source, data, 0, now_ms=0).outgoing, 1)
    flight = route.lane.next(9, 0, fresh_from=0)
    assert flight is not None
    return flight
