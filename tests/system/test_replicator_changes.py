"""What happens to topics while they are copied: made, enlarged, deleted, made anew, emptied, too small for a record."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from failover.model import TopicPartition
from tests.system.pair import Pair
from tests.system.replicating import Flow, Scene, Worker, contents, send, set_config


@pytest.fixture(scope="module")
def scene(pair: Pair) -> Iterator[Scene]:
    scene = Scene(pair, "chg")
    with scene.working():
        yield scene


def set_limit(pair: Pair, topic: str, size: int) -> None:
    """Sets how large a batch a topic of the target takes."""
    set_config(pair.b, topic, "max.message.bytes", str(size))


def values(flow: Flow, topic: str, partition: int = 0) -> list[bytes | None]:
    return [record.value for record in flow.copy([topic]).get(TopicPartition(topic, partition), [])]


# -- topics come and go ---------------------------------------------------------------------------


def test_a_topic_made_and_enlarged_while_it_runs(scene: Scene) -> None:
    from confluent_kafka.admin import NewPartitions

    topic = scene.create("later", 2)
    scene.pair.produce("a", topic, 100)
    scene.same(topic)
    admin = scene.pair.a.admin
    admin.create_partitions([NewPartitions(topic, 4)], request_timeout=10)[topic].result(timeout=15)
    scene.pair.a.until(lambda: len(scene.pair.a.partitions(topic)) == 4, what="four partitions")
    scene.pair.produce("a", topic, 100)
    assert [len(records) for records in scene.same(topic).values()] == [75, 75, 25, 25]


def test_a_deleted_source_topic_leaves_its_copy(scene: Scene) -> None:
    topic = scene.create("gone", 2)
    scene.pair.produce("a", topic, 60)
    before = scene.same(topic)
    scene.forget(topic)
    scene.pair.a.delete_topic(topic)
    scene.worker.says(f"{topic}-", "ends: the source does not have it any more", times=2)
    scene.create("gone", 2)
    scene.pair.produce("a", topic, 40)
    after = scene.flow.read([topic])
    wanted = {tp: before[tp] + after[tp] for tp in before}
    scene.worker.until(lambda: sum(map(len, scene.flow.copy([topic]).values())) >= 100, what="old and new records")
    assert contents(scene.flow.copy([topic])) == contents(wanted)
    assert scene.worker.lines(topic, "source-recreated")


def test_a_source_topic_made_anew_is_copied_behind_the_old_one(scene: Scene) -> None:
    topic = scene.create("anew", 2)
    scene.pair.produce("a", topic, 60)
    before = scene.same(topic)
    scene.forget(topic)
    scene.pair.a.recreate_topic(topic)
    scene.pair.produce("a", topic, 100)
    after = scene.flow.read([topic])
    wanted = {tp: before[tp] + after[tp] for tp in before}
    scene.worker.until(lambda: sum(map(len, scene.flow.copy([topic]).values())) >= 160, what="old and new records")
    assert contents(scene.flow.copy([topic])) == contents(wanted)
    scene.worker.says(topic, "source-recreated", times=2)
    # offset syncs of the old topic lie before those of the new one, and tell nothing about it
    group = scene.pair.name("group")
    scene.pair.commit("a", group, {(topic, 0): 15})
    ran = scene.pair.run_cli("plan", "--group", group, "--format", "json", config=scene.flow.config)
    [planned] = [part for part in ran.json()["groups"][0]["partitions"] if part["action"] == "commit"]
    copies = scene.flow.copy([topic])[TopicPartition(topic, 0)]
    unread = after[TopicPartition(topic, 0)][15].value
    assert next(record.value for record in copies if record.offset >= planned["offset"]) == unread
    assert (planned["precision"], planned["skipped"]) == ("exact", 0)


@pytest.mark.parametrize("made_anew", [True, False], ids=["made anew", "deleted"])
def test_a_lost_target_topic_is_filled_anew(scene: Scene, made_anew: bool) -> None:
    topic = scene.create(f"lost.{made_anew}", 2)
    scene.pair.produce("a", topic, 60)
    scene.same(topic)
    if made_anew:
        scene.pair.b.recreate_topic(scene.flow.remote(topic))
    else:
        scene.pair.b.delete_topic(scene.flow.remote(topic))
    scene.pair.produce("a", topic, 20)
    scene.same(topic)
    scene.worker.says(topic, "the target's topic was made anew")


# -- a target that refuses ------------------------------------------------------------------------


def fill(pair: Pair, flow: Flow, topic: str) -> None:
    """Puts a record of 10 KB at offset 5 of partition 0, where the target takes 2 KB."""
    pair.create_topic("b", flow.remote(topic), 2, config={"max.message.bytes": "2000"})
    send(pair, [(topic, b"%d" % at, None, 0, 0, None) for at in range(5)])
    send(pair, [(topic, b"large".ljust(10_000), None, 0, 0, None)])
    send(pair, [(topic, b"%d" % at, None, partition, 0, None) for partition in (0, 1) for at in range(6, 16)])


def stands_still(worker: Worker, topic: str) -> None:
    worker.says(f"{topic}-0 ->", "stands still", "MESSAGE_TOO_LARGE")
    worker.until(lambda: len(values(worker.flow, topic, 1)) >= 10, what="the other partition goes on")
    assert values(worker.flow, topic) == [b"%d" % at for at in range(5)]


def test_what_the_target_refuses_holds_up_its_partition_alone(scene: Scene) -> None:
    """Meanwhile records are deleted on the source that it has not come to."""
    flow, worker, topic = scene.flow, scene.worker, scene.topic("refused")
    pair = scene.pair
    fill(pair, flow, scene.create("refused", 2))
    stands_still(worker, topic)
    assert worker.lines(f"{topic}-0 ->", "source offset 5", f"max.message.bytes of {flow.remote(topic)} allows less")
    pair.produce("a", topic, 30, partition=1)
    worker.until(lambda: len(values(flow, topic, 1)) == 40, what="the other partition goes on")
    pair.a.delete_records(topic, 0, 10)
    assert len(worker.lines(f"{topic}-0 ->", "stands still")) == 1, "said once"
    assert values(flow, topic) == [b"%d" % at for at in range(5)]
    worker.says(f"{topic}-0 ->", "5 records were removed from the source before they were copied (offsets 5 to 9)")
    send(pair, [(topic, b"large".ljust(10_000), None, 0, 0, None)])
    worker.says(f"{topic}-0 ->", "stands still", "MESSAGE_TOO_LARGE", times=2)
    set_limit(pair, flow.remote(topic), 20_000)
    worker.until(lambda: len(values(flow, topic)) >= 12, what="the rest")
    wanted = [b"%d" % at for at in (*range(5), *range(10, 16))]
    assert values(flow, topic) == [*wanted, b"large".ljust(10_000)]
    assert len(worker.says(f"{topic}-0 ->", "goes on", times=2)) == 2


def test_records_older_than_the_target_takes_hold_up_their_partition_alone(scene: Scene) -> None:
    """A copy keeps its record's timestamp, and a topic may be set to take no old ones."""
    flow, worker, topic = scene.flow, scene.worker, scene.create("aged", 2)
    day = 86_400_000
    remote = scene.pair.create_topic("b", flow.remote(topic), 2, config={"message.timestamp.before.max.ms": str(day)})
    old = int(time.time() * 1000) - 400 * day
    for partition, timestamps in ((0, [0, 0, old, 0]), (1, [0] * 4)):
        for number, timestamp in enumerate(timestamps):
            send(scene.pair, [(topic, b"%d" % number, None, partition, timestamp, None)])
    [line] = worker.says(f"{topic}-0 ->", "stands still", "INVALID_TIMESTAMP")
    assert f"(source offset 2; message.timestamp.before.max.ms and .after.max.ms of {remote} allow other" in line
    worker.until(lambda: len(values(flow, topic, 1)) == 4, what="the other partition goes on")
    assert values(flow, topic) == [b"0", b"1"]
    set_config(scene.pair.b, remote, "message.timestamp.before.max.ms", str(1000 * day))
    scene.same(topic)


def test_records_small_enough_for_the_target_arrive_in_smaller_batches(scene: Scene) -> None:
    """MM2's producer makes batches of its own; the source's are larger than the target's topic takes."""
    topic = scene.create("smaller", 2)
    scene.pair.create_topic("b", scene.flow.remote(topic), 2, config={"max.message.bytes": "5000"})
    for partition, codec in enumerate(("none", "zstd")):
        noise = [os.urandom(1_000) for _ in range(200)]
        records = [(topic, value, None, partition, 0, None) for value in noise]
        send(scene.pair, records, linger_ms=100, compression_type=codec)
    scene.same(topic)
    assert len(scene.worker.lines(topic, "smaller ones from here on")) == 2
    scene.pair.produce("a", topic, 2_000, size=20, batch_num_messages=1)
    scene.same(topic)
    assert not scene.worker.lines(topic, "stands still")


def test_what_is_not_to_be_tried_again_stands_still_until_the_next_start(pair: Pair) -> None:
    stem = pair.name("nev")
    topic, later = pair.create_topic("a", f"{stem}.refused", 2), f"{stem}.later"
    flow = Flow(pair, rf"{stem}\..*", {"failover.replicator.restart": "never"})
    fill(pair, flow, topic)
    with flow.worker() as worker:
        stands_still(worker, topic)
        set_limit(pair, flow.remote(topic), 20_000)
        pair.create_topic("a", later)
        pair.produce("a", later, 10)
        worker.copied(later)  # a look at the topics and a start later
        assert values(flow, topic) == [b"%d" % at for at in range(5)]
        worker.stop()
    pair.produce("a", later, 40)
    pair.a.delete_records(later, 0, 25)
    with flow.worker() as worker:
        source, target = worker.copied(topic)
        assert contents(target) == contents(source)
        worker.says(f"{later}-0 ->", "15 records of the source are gone before they were copied")
        worker.until(lambda: len(values(flow, later)) >= 35, what="what was left")
        assert values(flow, later)[10:] == [record.value for record in flow.read([later])[TopicPartition(later, 0)]]
        worker.stop()
