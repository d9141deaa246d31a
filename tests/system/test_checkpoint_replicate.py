"""The tracker inside ``failover replicate``: exact checkpoints, MirrorMaker 2's, and group offset sync."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from failover.model.names import TopicPartition
from tests.system.checkpointing import EVERY_SECOND, wait_kept
from tests.system.pair import Pair
from tests.system.remote_cluster_utils import java_translates
from tests.system.replicating import Flow, Worker
from tests.system.typed import by_name, offsets, plan


class Running:
    """Is a flow being copied, with one topic of 2,000 records."""

    def __init__(self, pair: Pair, flow: Flow, worker: Worker, topic: str) -> None:
        self.pair, self.flow, self.topic = pair, flow, topic
        self.workers = [worker]
        self.restart: Callable[[], None]
        self.remote = flow.remote(topic)
        self.place = TopicPartition(self.remote, 0)

    def commit(self, group: str, upstream: int) -> None:
        self.pair.commit("a", group, {(self.topic, 0): upstream})

    def kept(self, group: str, upstream: int) -> int:
        place = (self.remote, 0)
        return wait_kept(self.pair, group, place, upstream, source=self.flow.source).downstream

    def standing(self, group: str) -> int | None:
        return self.pair.committed("b", group).get(self.place)

    def stands(self, group: str, offset: int) -> None:
        self.pair.b.until(lambda: self.standing(group) == offset, what=f"{group} stands at {offset}", every=0.2)


@pytest.fixture(scope="module")
def copying(pair: Pair) -> Iterator[Running]:
    stem = pair.name("tracked")
    flow = Flow(pair, rf"{stem}\..*", EVERY_SECOND)
    topic = pair.create_topic("a", f"{stem}.orders")
    pair.produce("a", topic, 2000)
    with contextlib.ExitStack() as stack:
        worker = stack.enter_context(flow.worker())
        worker.copied(topic)
        running = Running(pair, flow, worker, topic)
        running.restart = lambda: running.workers.append(stack.enter_context(flow.worker()))
        yield running
        running.workers[-1].stop()


def test_positions_are_kept_checkpointed_and_synced_exactly(copying: Running, tmp_path: Path) -> None:
    pair, flow = copying.pair, copying.flow
    group = pair.name("group")
    copying.commit(group, 777)
    # a marker of the fence lies at the target's start, so the offsets differ
    where = copying.kept(group, 777)
    values = [record.value for record in pair.b.read(copying.remote)[0] if record.offset >= where]
    assert values[0] == pair.a.read(copying.topic)[0][777].value
    assert pair.wait_checkpoint(group, copying.topic, upstream=777, flow=flow.source).downstream == where
    assert java_translates(pair.bootstrap("b"), flow.source, [group]) == {group: {(copying.remote, 0): (where, "")}}
    copying.stands(group, where)
    # the source is not asked: all of it comes from the target
    made = plan(pair, group, state=tmp_path, config=flow.config, more=("--source-down",), code=None)
    [only] = by_name(made)[group]["partitions"]
    assert (only["proof"], only["precision"], only["reason"]) == ("tracked", "exact", "already-there")
    assert offsets(by_name(made)[group], "target_committed") == {(copying.remote, 0): where}
    # set back on the source: the record goes back, the commit on the target does not
    copying.commit(group, 40)
    assert copying.kept(group, 40) < where
    pair.b.until(
        lambda: pair.wait_checkpoint(group, copying.topic, flow=flow.source).upstream == 40,
        what="a checkpoint that goes back",
        every=0.2,
    )
    assert copying.standing(group) == where


def test_groups_that_consume_on_the_target_are_left_to_it(copying: Running) -> None:
    pair = copying.pair
    active, left = pair.name("active"), pair.name("left")
    with pair.b.member(active, [copying.remote]) as consumer:
        copying.commit(active, 500)
        copying.commit(left, 100)
        copying.stands(left, copying.kept(left, 100))
        copying.kept(active, 500)
        assert copying.standing(active) is None
        from confluent_kafka import TopicPartition as Place

        consumer.commit(offsets=[Place(copying.remote, 0, 30)], asynchronous=False)
    # consumers read a little on the target and leave; on the source the group goes on
    pair.commit("b", left, {(copying.remote, 0): 130})
    copying.commit(left, 900)
    copying.kept(left, 900)
    other = pair.name("other")
    copying.commit(other, 5)
    copying.stands(other, copying.kept(other, 5))  # so a round has passed
    assert copying.standing(left) == 130


def test_a_worker_that_was_killed_leaves_no_group_behind(copying: Running) -> None:
    """MirrorMaker 2 translates nothing for groups that stand before its start; here the next commit is placed."""
    pair = copying.pair
    lagging, resting = pair.name("lagging"), pair.name("resting")
    places = {}
    for group in (lagging, resting):
        copying.commit(group, 300)
        places[group] = copying.kept(group, 300)
        copying.stands(group, places[group])
    copying.workers[-1].kill()
    pair.produce("a", copying.topic, 500)
    copying.commit(lagging, 700)
    copying.restart()
    moved = copying.kept(lagging, 700)
    assert moved == places[lagging] + 400
    assert pair.wait_checkpoint(lagging, copying.topic, upstream=700, flow=copying.flow.source).downstream == moved
    assert copying.kept(resting, 300) == places[resting]
    assert copying.standing(resting) == places[resting]
