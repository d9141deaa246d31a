"""The tracker inside ``failover replicate``: exact checkpoints, MirrorMaker 2's, and group offset sync."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from failover.model.names import TopicPartition
from tests.system.checkpointing import kept, wait_kept
from tests.system.pair import Pair
from tests.system.replicating import Flow, Worker
from tests.system.typed import by_name, offsets, plan

EVERY_SECOND = {
    "failover.checkpoint.interval.seconds": "1",
    "{source}->{target}.emit.checkpoints.interval.seconds": "1",
    "{source}->{target}.sync.group.offsets.enabled": "true",
    "{source}->{target}.sync.group.offsets.interval.seconds": "1",
}


class Running:
    """Is a flow being copied, with one topic of 2,000 records."""

    def __init__(self, pair: Pair, flow: Flow, worker: Worker, topic: str) -> None:
        self.pair, self.flow, self.worker, self.topic = pair, flow, worker, topic
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
    with flow.worker() as worker:
        worker.copied(topic)
        yield Running(pair, flow, worker, topic)
        worker.stop()


def test_positions_are_kept_checkpointed_and_synced_exactly(copying: Running, tmp_path: Path) -> None:
    pair, flow = copying.pair, copying.flow
    group = pair.name("group")
    copying.commit(group, 777)
    # a marker of the fence lies at the target's start, so the offsets differ
    where = copying.kept(group, 777)
    values = [record.value for record in pair.b.read(copying.remote)[0] if record.offset >= where]
    assert values[0] == pair.a.read(copying.topic)[0][777].value
    assert pair.wait_checkpoint(group, copying.topic, upstream=777, flow=flow.source).downstream == where
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


def test_one_of_three_source_brokers_is_down(three: Pair) -> None:
    stem = three.name("tracked")
    flow = Flow(three, rf"{re.escape(stem)}\..*", EVERY_SECOND)
    topic = f"{stem}.spread"
    three.expected["a"].add(topic)
    three.a.create_topic(topic, 3, replicas=1)
    three.produce("a", topic, 3000)
    leaders = three.a.admin.list_topics(topic, timeout=10).topics[topic].partitions
    down = next(number for number, state in leaders.items() if state.leader == leader_of(three, "a/2"))
    alive = [number for number in leaders if number != down]
    groups = [three.name("group") for _ in range(12)]
    remote = flow.remote(topic)
    with flow.worker() as worker:
        worker.copied(topic)
        for group in groups:
            three.commit("a", group, {(topic, number): 100 for number in leaders})
        for group in groups:
            for number in leaders:
                wait_kept(three, group, (remote, number), 100, source=flow.source)
        three.lab.kill("a/2")
        try:
            for group in groups:
                three.commit("a", group, dict.fromkeys([(topic, number) for number in alive], 200))
            for group in groups:
                for number in alive:
                    wait_kept(three, group, (remote, number), 200, source=flow.source, seconds=60)
            place = (remote, down)
            three.b.until(
                lambda: (beat := kept(three, flow.source).beat) is not None and place in beat.ends_older,
                what="the partition whose end cannot be read is told",
            )
        finally:
            three.lab.restart("a/2")
        for group in groups:
            three.commit("a", group, {(topic, down): 300})
            wait_kept(three, group, (remote, down), 300, source=flow.source, seconds=60)
        three.b.until(
            lambda: (beat := kept(three, flow.source).beat) is not None and not (beat.older or beat.ends_older),
            what="all of it holds again",
        )
        worker.stop()


def leader_of(pair: Pair, name: str) -> int:
    [broker] = pair.lab.brokers(name)
    return broker.node
