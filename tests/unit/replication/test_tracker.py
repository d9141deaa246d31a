"""The tracker's cycles on clusters in memory."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from failover.errors import BrokerError, ClusterUnreachable
from failover.mm2.exact_checkpoint import Exact
from failover.model.groups import Commit, GroupType, ListedGroup
from failover.model.names import TopicPartition
from failover.replication.tracker import Tracker
from tests.unit.inventory.scene import flow
from tests.unit.replication.tracked_world import World

PLACE = TopicPartition("a.orders", 0)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> World:
    found = World(monkeypatch, flow(tmp_path), brokers=3)
    found.mirror("orders", 2, records=100)
    return found


def cycles(tracker: Tracker, *between: Callable[[], None]) -> None:
    """Opens the tracker and runs a cycle, then one after each of these changes."""

    async def run() -> None:
        await tracker.open()
        await tracker.cycle()
        for change in between:
            change()
            await tracker.cycle()
        await tracker.close()

    asyncio.run(run())


def recorded(world: World) -> Exact:
    return world.kept.found()


def placed(world: World, group: str) -> dict[TopicPartition, tuple[int, int, str]]:
    found = recorded(world).positions.get(group, {})
    return {place: (p.upstream, p.downstream, p.known.precision) for place, p in found.items()}


def test_commits_are_put_on_record_exactly(world: World) -> None:
    world.commit("g", "orders", 33)
    world.commit("g", "orders", 100, partition=1)
    cycles(world.tracker())
    assert placed(world, "g") == {PLACE: (33, 33, "exact"), TopicPartition("a.orders", 1): (100, 100, "exact")}


def test_only_what_the_flow_takes_is_tracked(world: World) -> None:
    world.mirror("mm2-status.a.internal", records=9)
    for group, topic in {"console-consumer-1": "orders", "failover.checkpoint.a-b": "orders", "g": "__own"}.items():
        world.commit(group, topic, 5)
    world.commit("h", "mm2-status.a.internal", 5)
    world.commit("workers", "orders", 5)
    world.rows["workers"] = ListedGroup("workers", GroupType.CLASSIC, "Stable", "connect")
    world.commit("shared", "orders", 5)
    world.rows["shared"] = ListedGroup("shared", GroupType.SHARE, "Stable", "share")
    cycles(world.tracker())
    assert recorded(world).positions == {}


def test_a_cycle_without_news_asks_five_questions_whatever_the_number_of_groups(world: World) -> None:
    for number in range(1000):
        world.commit(f"g{number}", "orders", number % 100)
    tracker = world.tracker()
    cycles(tracker, world.forget)
    assert world.asked == {"list": 1, "commits": 1, "groups": 1000, "ends": 1}
    before = len(world.kept.records)
    cycles(tracker)
    assert len(world.kept.records) - before == 1, "only that it still holds"


def test_what_moves_alone_is_asked_about(world: World) -> None:
    for number in range(50):
        world.commit(f"g{number}", "orders", number)
    tracker = world.tracker()
    size = 0

    def move() -> None:
        nonlocal size
        size = len(world.kept.records)
        world.commit("g7", "orders", 88)

    cycles(tracker, move)
    assert placed(world, "g7") == {PLACE: (88, 88, "exact")}
    assert len(world.kept.records) - size == 2


def test_after_a_start_nothing_that_is_on_record_is_translated_again(world: World) -> None:
    world.commit("g", "orders", 33)
    cycles(world.tracker())
    world.forget()
    cycles(world.tracker())
    assert "windows" not in world.asked
    assert "ranges" not in world.asked


def test_new_groups_and_those_that_are_set_back(world: World) -> None:
    tracker = world.tracker()
    world.commit("g", "orders", 50)
    cycles(tracker, lambda: world.commit("new", "orders", 20), lambda: world.commit("g", "orders", 10))
    assert placed(world, "new") == {PLACE: (20, 20, "exact")}
    assert placed(world, "g") == {PLACE: (10, 10, "exact")}


def test_new_groups_can_be_left_out(world: World) -> None:
    world.commit("g", "orders", 50)
    cycles(world.tracker(new_groups=False), lambda: world.commit("new", "orders", 20))
    assert recorded(world).positions.keys() == {"g"}


def test_what_the_mirror_has_not_copied_is_bounded_until_it_has(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for partition in range(2):
        world.a.grow(TopicPartition("orders", partition), 50)
    world.commit("g", "orders", 120)
    tracker = world.tracker(interval=0.01)
    seen = []

    def copied() -> None:
        seen.append(placed(world, "g")[PLACE])
        world.b.grow(PLACE, 50)

    async def run() -> None:
        await tracker.open()
        await tracker.cycle()
        copied()
        await asyncio.sleep(0.05)
        await tracker.cycle()
        await tracker.close()

    asyncio.run(run())
    [(upstream, downstream, precision)] = seen
    assert (upstream, downstream, precision) == (120, 100, "bounded")
    assert placed(world, "g") == {PLACE: (120, 120, "exact")}


def test_groups_without_mirrored_topics_are_asked_seldom_until_their_state_changes(world: World) -> None:
    world.commit("g", "orders", 5)
    for number in range(20):
        world.commit(f"other{number}", "__own", 5)
    asked: list[int] = []

    def note() -> None:
        asked.append(world.asked["groups"])
        world.forget()

    def wake() -> None:
        note()
        world.rows["other3"] = ListedGroup("other3", GroupType.CLASSIC, "Stable")
        world.commit("other3", "orders", 7)

    cycles(world.tracker(), note, wake, note)
    assert asked == [21, 1, 2]
    assert placed(world, "other3") == {PLACE: (7, 7, "exact")}


def test_a_broker_that_is_down_costs_its_own_groups_alone(world: World, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(9):
        world.commit(f"g{number}", "orders", 10, home=1 + number % 3)
    tracker = world.tracker()

    def fall() -> None:
        world.down = {2}
        for number in range(9):
            world.commit(f"g{number}", "orders", 60)

    def stay() -> None:
        assert placed(world, "g0") == {PLACE: (60, 60, "exact")}
        assert placed(world, "g1") == {PLACE: (10, 10, "exact")}
        beat = recorded(world).beat
        assert beat is not None
        assert beat.older == ("g1", "g4", "g7")
        world.commit("g0", "orders", 61)

    def rise() -> None:
        assert placed(world, "g0") == {PLACE: (61, 61, "exact")}
        world.down = set()

    async def run() -> None:
        await tracker.open()
        await tracker.cycle()
        for change in (fall, stay, rise):
            change()
            await tracker.cycle()
            await asyncio.sleep(0.01)
        for _ in range(2):
            await tracker.cycle()
            await asyncio.sleep(0.01)
        await tracker.close()

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())
    assert {placed(world, f"g{number}")[PLACE] for number in range(1, 9)} == {(60, 60, "exact")}
    beat = recorded(world).beat
    assert beat is not None
    assert (beat.older, beat.whole) == ((), True)


def test_a_source_that_is_gone_ends_no_cycle_quietly_and_the_record_says_until_when(world: World) -> None:
    world.commit("g", "orders", 10)
    tracker = world.tracker()
    cycles(tracker)
    last = recorded(world).beat
    world.down = {1, 2, 3}
    with pytest.raises(ClusterUnreachable):
        cycles(tracker)
    assert recorded(world).beat == last


def test_an_answer_that_could_not_be_written_is_written_later(world: World) -> None:
    world.commit("g", "orders", 10)
    tracker = world.tracker()
    world.kept.failing = BrokerError("no", number=19, name="NOT_ENOUGH_REPLICAS")
    with pytest.raises(BrokerError):
        cycles(tracker)
    assert recorded(world).positions == {}
    cycles(tracker)
    assert placed(world, "g") == {PLACE: (10, 10, "exact")}


def test_ends_of_the_source_are_kept_as_they_grow(world: World) -> None:
    tracker = world.tracker()
    world.syncs.last = {TopicPartition("orders", 0): (99, 99)}
    cycles(tracker, lambda: world.a.grow(TopicPartition("orders", 1), 5))
    ends = recorded(world).ends
    assert {place.partition: (end.end, end.sync) for place, end in ends.items()} == {0: (100, (99, 99)), 1: (105, None)}
    assert ends[TopicPartition("a.orders", 1)].at >= ends[PLACE].at


def test_syncs_that_cannot_be_read_any_more_hinder_nobody(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.commit("g", "orders", 10)
    tracker = world.tracker()

    def fail() -> None:
        world.syncs.failing = ClusterUnreachable("its broker is silent", alias="a")
        world.commit("g", "orders", 11)

    cycles(tracker, fail)
    assert placed(world, "g") == {PLACE: (11, 11, "exact")}
    assert "its broker is silent" in caplog.text
    with pytest.raises(ClusterUnreachable):  # but without any history nothing is translated
        cycles(world.tracker())


def test_a_target_topic_made_anew_does_not_hold_a_position_up(world: World) -> None:
    world.commit("g", "orders", 80)
    tracker = world.tracker()

    def anew() -> None:
        world.b.topic("a.orders", 2, records=0)
        world.b.ids["a.orders"] = bytes(range(16))
        world.b.grow(PLACE, 100)
        world.groups["g"][TopicPartition("orders", 0)] = Commit(81)
        # the mirror began anew at 40
        world.b.logs[PLACE] = [
            record._replace(offset=number)
            for number, record in enumerate(world.a.logs[TopicPartition("orders", 0)][40:])
        ]

    cycles(tracker, anew)
    assert placed(world, "g") == {PLACE: (81, 41, "exact")}


def test_run_goes_on_after_errors_and_leads_only_when_it_may(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.commit("g", "orders", 10)
    tracker = world.tracker(interval=0.01)
    may = False

    async def until(check: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not check():  # noqa: ASYNC110 - what is waited for tells nobody
                await asyncio.sleep(0.005)

    async def run() -> None:
        nonlocal may
        task = asyncio.ensure_future(tracker.run(lambda: may))
        await asyncio.sleep(0.05)
        assert not tracker.leads
        assert world.kept.records == []
        world.kept.failing = BrokerError("no", number=19, name="NOT_ENOUGH_REPLICAS")
        may = True
        await until(lambda: tracker.leads and bool(world.kept.records))
        may = False
        await until(lambda: not tracker.leads)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())
    assert placed(world, "g") == {PLACE: (10, 10, "exact")}
    assert [text for text in caplog.messages if "tried again" in text]
    assert [text for text in caplog.messages if "go on" in text]


def test_without_the_rights_for_the_topic_positions_are_known_all_the_same(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    world.commit("g", "orders", 10)
    world.kept.denied = True
    tracker = world.tracker(interval=0.01)

    async def until(check: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not check():  # noqa: ASYNC110 - what is waited for tells nobody
                await asyncio.sleep(0.005)

    async def run() -> None:
        task = asyncio.ensure_future(tracker.run())
        await until(lambda: tracker.leads and PLACE in tracker.positions.get("g", {}))
        assert world.kept.records == []
        world.kept.denied = False
        monkeypatch.setattr(tracker, "_again", 0.0)
        await until(lambda: bool(placed(world, "g")))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())
    [denied, over] = [text for text in caplog.messages if "kept" in text]
    assert "grant WRITE" in denied
    assert "are kept now" in over


def test_it_knows_since_when_groups_are_exact(world: World) -> None:
    world.commit("still", "orders", 33)
    world.commit("ahead", "orders", 100)
    world.commit("elsewhere", "__other", 1)
    tracker = world.tracker()
    seen = []

    def look() -> None:
        seen.append((dict(tracker.exact_at), tracker.cycled, set(tracker.open_groups), set(tracker.tracked)))

    def run_ahead() -> None:
        look()
        world.a.grow(TopicPartition("orders", 0), 50)
        world.commit("ahead", "orders", 140)  # beyond what is copied

    def end() -> None:
        del world.groups["still"], world.rows["still"]

    cycles(tracker, run_ahead, end)
    look()
    (first, began, none, both), (second, ended, behind, one) = seen
    assert (set(first), none, both) == ({"still", "ahead"}, set(), {"still", "ahead"})
    assert (behind, one) == ({"ahead"}, {"ahead"})
    assert second == {"ahead": first["ahead"]}  # exact as of then, and not since
    assert ended >= began > 0
    assert tracker.source_end(PLACE) == 150
