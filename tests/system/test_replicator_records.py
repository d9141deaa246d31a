"""What arrives: every record of every kind, key, value, headers, timestamp, partition and order alike.

One process copies all topics of the first scenes at once, 200 small ones among them, from its first start on.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from typing import Any

import pytest

from failover.lab import ADMIN
from failover.lab.traffic import Load, write
from failover.model import TopicPartition
from failover.model.records import Record
from tests.system.pair import Pair
from tests.system.replicating import Copy, Flow, Scene, contents, send, set_config

CODECS = ("zstd", "lz4", "snappy", "gzip")
MANY = 200
BIG = 10 << 20
IN_2020 = 1_577_836_800_000
FOR_EVER = {"retention.ms": "-1"}


def only(copy: Copy) -> list[Record]:
    [records] = copy.values()
    return records


@pytest.fixture(scope="module")
def scene(pair: Pair) -> Iterator[Scene]:
    scene = Scene(pair, "rec")
    create_many(scene)
    scene.create("plain", 3)
    pair.produce("a", scene.topic("plain"), 6_000, keys=50, size=200)
    for codec in CODECS:
        scene.create(codec, 2)
        pair.produce("a", scene.topic(codec), 4_000, keys=50, size=200, compression_type=codec, linger_ms=50)
    scene.create("transactions", 2)
    pair.produce("a", scene.topic("transactions"), 400, transactions=[(10, True), (7, False), (1, True), (1, False)])
    create_appended(scene)
    scene.create("big", max_message_bytes=str(BIG + 1_000))
    big = [(scene.topic("big"), os.urandom(BIG), b"k%d" % at, 0, 0, None) for at in range(3)]
    send(pair, big, message_max_bytes=BIG + 1_000)
    scene.create("single", 2)
    for partition in range(2):
        pair.produce("a", scene.topic("single"), 300, partition=partition, batch_num_messages=1, linger_ms=0)
    send(pair, odd(scene.create("odd", 2, retention_ms="-1")), linger_ms=20)
    create_compacted(scene)
    with scene.working():
        yield scene


def create_many(scene: Scene) -> None:
    from confluent_kafka.admin import NewTopic

    many = [scene.topic(f"many.{number}") for number in range(MANY)]
    made = scene.pair.a.admin.create_topics([NewTopic(topic, 1, 1) for topic in many], request_timeout=30)
    for future in made.values():
        future.result(timeout=30)
    scene.pair.expected["a"].update(many)
    send(scene.pair, [(topic, b"%d" % at, b"k", 0, 0, None) for at in range(5) for topic in many])


def create_compacted(scene: Scene) -> None:
    """Makes a topic with holes and tombstones, which stay for a day; in the end it is compacted no further."""
    topic = scene.create("compacted", cleanup_policy="compact", segment_ms="100", min_cleanable_dirty_ratio="0.01")
    write(scene.pair.a, Load(topic=topic, rate=10_000, count=3_000, keys=500, size=50))
    send(scene.pair, [(topic, None, b"k%d" % at, 0, 0, None) for at in range(0, 500, 7)])

    def compact() -> bool:
        # a segment ends with the first record behind its time
        send(scene.pair, [(topic, b"last", b"last", 0, 0, None)])
        return len(scene.pair.a.read(topic)[0]) < 1_000

    scene.pair.a.until(compact, what="compaction", seconds=90, every=0.3)
    set_config(scene.pair.a, topic, "cleanup.policy", "delete")


def create_appended(scene: Scene) -> None:
    """Makes a topic whose source, and one whose target, sets timestamps itself; records are of 2020."""
    by_the_source = scene.create("appended", message_timestamp_type="LogAppendTime", retention_ms="-1")
    by_the_target = scene.create("appended-there", retention_ms="-1")
    there = scene.flow.remote(by_the_target)
    scene.pair.create_topic("b", there, config={"message.timestamp.type": "LogAppendTime", **FOR_EVER})
    for topic in (by_the_source, by_the_target):
        send(scene.pair, [(topic, b"%d" % at, b"k%d" % at, 0, IN_2020 + at, [("h", b"v")]) for at in range(200)])


def odd(topic: str) -> list[tuple[Any, ...]]:
    """Gives records of every shape a producer can make."""
    headers: list[Any] = [
        None,
        [("h", None)],
        [("h", b"")],
        [("", b"no name")],
        [("twice", b"1"), ("twice", b"2"), ("ümläut", bytes(range(256)))],
    ]
    shapes = itertools.product([None, b"", b"k"], [None, b"", b"v"], headers, [1, IN_2020, 0])
    return [
        (topic, value, key, number % 2, moment, header) for number, (key, value, header, moment) in enumerate(shapes)
    ]


# -- record by record -----------------------------------------------------------------------------


@pytest.mark.timeout(300)
def test_two_hundred_topics(scene: Scene) -> None:
    source = scene.same(*(scene.topic(f"many.{number}") for number in range(MANY)))
    assert [len(records) for records in source.values()] == [5] * MANY


def test_plain_records_of_three_partitions(scene: Scene) -> None:
    assert [len(records) for records in scene.same(scene.topic("plain")).values()] == [2_000] * 3


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec(scene: Scene, codec: str) -> None:
    assert [len(records) for records in scene.same(scene.topic(codec)).values()] == [2_000] * 2


def test_aborted_records_are_copied_too_where_the_mirror_reads_uncommitted(scene: Scene) -> None:
    topic = scene.topic("transactions")
    source = scene.same(topic)
    assert sum(len(records) for records in source.values()) == 400
    assert sum(len(records) for records in scene.flow.read([topic], isolation="read_committed").values()) < 300


def test_a_compacted_source_with_holes_and_tombstones(scene: Scene) -> None:
    records = only(scene.same(scene.topic("compacted")))
    assert len(records) < records[-1].offset - records[0].offset, "holes"
    assert sum(record.value is None for record in records) == len(range(0, 500, 7))


def test_times_the_source_set_itself(scene: Scene) -> None:
    """MM2 (MirrorSourceTask): a record carries on the timestamp the consumer saw."""
    records = only(scene.same(scene.topic("appended")))
    assert (len(records), min(record.timestamp for record in records) > IN_2020 + 200) == (200, True)


def test_times_the_target_sets_itself(scene: Scene) -> None:
    topic = scene.topic("appended-there")
    source = only(scene.same(topic, timestamps=False))
    assert [record.timestamp for record in source] == list(range(IN_2020, IN_2020 + 200))
    assert min(record.timestamp for record in only(scene.flow.copy([topic]))) > IN_2020 + 200


def test_records_of_ten_megabytes(scene: Scene) -> None:
    """The copy is made with its source's limit; nothing else is to be set."""
    topic = scene.topic("big")
    assert [len(record.value or b"") for record in only(scene.same(topic))] == [BIG] * 3
    assert scene.pair.b.topic_config(scene.flow.remote(topic)) == {"max.message.bytes": str(BIG + 1_000)}


def test_batches_of_one_record(scene: Scene) -> None:
    assert [len(records) for records in scene.same(scene.topic("single")).values()] == [300] * 2


def test_null_and_empty_keys_values_and_headers(scene: Scene) -> None:
    records = [record for part in scene.same(scene.topic("odd")).values() for record in part]
    assert len(records) == 3 * 3 * 5 * 3
    assert {record.key for record in records} == {None, b"", b"k"}
    assert {record.value for record in records} == {None, b"", b"v"}
    assert len({record.headers for record in records}) == 5


# -- read_committed -------------------------------------------------------------------------------


def test_read_committed_over_tls(pair: Pair) -> None:
    """An open transaction holds up what lies behind it; what is aborted never arrives."""
    stem = pair.name("rc")
    topic = pair.create_topic("a", f"{stem}.transactions", 2)
    isolation = {"{source}->{target}.source.consumer.isolation.level": "read_committed"}
    flow = Flow(pair, rf"{stem}\..*", isolation, user=ADMIN)
    pair.produce("a", topic, 400, transactions=[(10, True), (7, False), (1, True), (1, False)])
    with flow.worker() as worker:
        source, target = worker.copied(topic, isolation="read_committed")
        assert contents(target) == contents(source)
        assert sum(len(records) for records in source.values()) < 300
        producer = pair.a.producer(transactional_id=stem)
        producer.init_transactions(10)
        producer.begin_transaction()
        producer.produce(topic, b"open", partition=0)
        assert producer.flush(10) == 0
        pair.produce("a", topic, 100)
        source, target = worker.copied(topic, isolation="read_committed")
        assert contents(target) == contents(source)
        assert [record.value for record in source[TopicPartition(topic, 0)]].count(b"open") == 0
        producer.commit_transaction(10)
        source, target = worker.copied(topic, isolation="read_committed")
        assert contents(target) == contents(source)
        assert [record.value for record in source[TopicPartition(topic, 0)]].count(b"open") == 1
        worker.stop()
    assert contents(flow.copy([topic])) == contents(source)
