"""Where the copying of a partition goes on, on real logs."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence

import pytest

from failover.config.clients import ClientSettings
from failover.kafka.wire.cluster import WireCluster
from failover.kafka.wire.logs import log_ranges
from failover.kafka.wire.metadata import NO_TOPIC_ID
from failover.kafka.wire.producer_ids import fence
from failover.kafka.wire.thread import WireThread
from failover.model.cluster import LogRange
from failover.model.names import Fault, TopicPartition
from failover.model.records import Record
from failover.replication.anchor import Anchor
from failover.replication.locate import Located, Place, locate
from tests.system.pair import Pair
from tests.system.wire_side import address

LIST_OFFSETS, FETCH = 2, 1
COMPACT = {"cleanup.policy": "compact", "segment.ms": "200", "min.cleanable.dirty.ratio": "0.01"}
_ids = itertools.count(1)


class CountingCluster(WireCluster):
    """Counts the requests sent, by API."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.sent: Counter[int] = Counter()

    async def _send(self, node, call, *rest):
        self.sent[call.key] += 1
        return await super()._send(node, call, *rest)


class Scene:
    """Copies by hand what a test tells it to, record by record, and asks where the copying stands."""

    def __init__(self, pair: Pair, thread: WireThread) -> None:
        self.pair = pair
        self.thread = thread
        self.a, self.b = (
            CountingCluster(ClientSettings(address(pair.bootstrap(alias))), alias=alias, silence=10)
            for alias in (pair.source, pair.target)
        )
        for cluster in (self.a, self.b):
            thread.run(cluster.open())
        self._producer = pair.b.producer(enable_idempotence=True)

    def close(self) -> None:
        for cluster in (self.a, self.b):
            self.thread.run(cluster.close())

    def topics(self, stem, partitions=1, *, source=None, target=None):
        """Makes a topic on both sides."""
        name = self.pair.name(f"locate.{stem}")
        self.pair.create_topic("a", name, partitions, config=source)
        self.pair.create_topic("b", f"a.{name}", partitions, config=target)
        return name

    def copy(self, records: Sequence[Record], topic, partition=0):
        """Appends copies of these records, in order; returns the offset behind them."""
        producer = self._producer
        offsets = []
        for record in records:
            producer.produce(
                f"a.{topic}",
                record.value,
                record.key,
                partition,
                timestamp=record.timestamp,
                headers=list(record.headers),
                on_delivery=lambda error, message: offsets.append(message.offset() if error is None else error),
            )
        assert producer.flush(30) == 0
        assert offsets == sorted(offsets)
        return offsets[-1] + 1 if offsets else self.end(topic, partition)

    def end(self, topic, partition=0):
        return self.pair.ends("b", f"a.{topic}")[partition][1]

    def fence(self, topic, partitions=1):
        """Puts a marker behind what is there, as every new owner does."""
        tps = [TopicPartition(f"a.{topic}", number) for number in range(partitions)]
        done = self.thread.run(fence(self.b, f"locate-{next(_ids)}", tps))
        assert done.left_out == {}

    def anchor(self, topic, upstream, downstream, *, epoch=-1):
        """An anchor as our worker records it."""
        source, target = (
            self.thread.run(cluster.metadata([name])).topics[name].topic_id
            for cluster, name in ((self.a, topic), (self.b, f"a.{topic}"))
        )
        return Anchor(upstream, downstream, source, target, epoch)

    def place(self, topic, anchors, partition=0):
        source, target = self.a.topic(topic), self.b.topic(f"a.{topic}")
        return Place(
            source=TopicPartition(topic, partition),
            target=TopicPartition(f"a.{topic}", partition),
            anchors=tuple(anchors),
            source_topic_id=NO_TOPIC_ID if source is None else source.topic_id,
            target_topic_id=NO_TOPIC_ID if target is None else target.topic_id,
        )

    def locate(self, places, *, read_committed=False, start="earliest"):
        """Asks, and counts the requests of this question alone."""
        self.a.sent.clear()
        self.b.sent.clear()
        return self.thread.run(locate(self.a, self.b, places, read_committed=read_committed, start=start))

    def where(self, topic, anchors, *, read_committed=False):
        [answer] = self.locate([self.place(topic, anchors)], read_committed=read_committed).values()
        assert isinstance(answer, Located), answer
        [target] = self.thread.run(log_ranges(self.b, [TopicPartition(f"a.{topic}", 0)])).values()
        assert isinstance(target, LogRange)
        assert answer.downstream == target.end
        return answer


@pytest.fixture(scope="module")
def scene(pair):
    with WireThread() as thread:
        scene = Scene(pair, thread)
        yield scene
        scene.close()


def test_plain_records_wherever_the_copying_was_killed(pair, scene):
    topic = scene.topics("plain")
    pair.produce("a", topic, 4_000, size=200, compression_type="lz4", batch_num_messages=300)
    records = pair.read("a", topic)[0]
    assert scene.where(topic, []).how == "start"
    anchors = [scene.anchor(topic, 0, 0)]
    reached = 0
    for step, anchored in ((1, True), (700, False), (1, False), (900, True), (33, False), (1_500, False)):
        reached += step
        end = scene.copy(records[reached - step : reached], topic)
        scene.fence(topic)
        for kept in (anchors, [Anchor(anchors[0].upstream)]):
            found = scene.where(topic, kept)
            assert (found.upstream, found.lost, found.leader_epoch) == (reached, 0, 0)
        if anchored:
            anchors.insert(0, scene.anchor(topic, reached, end))
            assert scene.where(topic, anchors).how == "anchor"


def test_identical_records_with_old_timestamps(pair, scene):
    forever = {"retention.ms": "-1"}
    topic = scene.topics("same", source=forever, target=forever)
    same = Record(0, 1_577_836_800_000, None, b"same")
    producer = pair.a.producer()
    for _ in range(500):
        producer.produce(topic, same.value, same.key, 0, timestamp=same.timestamp)
    assert producer.flush(30) == 0
    scene.copy([same] * 100, topic)
    anchor = scene.anchor(topic, 100, 100)
    scene.fence(topic)
    scene.copy([same] * 70, topic)
    scene.fence(topic)
    assert scene.where(topic, [anchor]).upstream == 170
    [answer] = scene.locate([scene.place(topic, [Anchor(100)])]).values()
    assert "fit the source" in answer.reason


@pytest.mark.parametrize("read_committed", [False, True])
def test_transactions_with_aborts(pair, scene, read_committed):
    topic = scene.topics("transactions")
    pair.produce("a", topic, 900, transactions=[(20, True), (15, False), (1, True), (1, False)], partition=0)
    isolation = "read_committed" if read_committed else "read_uncommitted"
    records = pair.a.read(topic, isolation=isolation)[0]
    assert len(records) == (900 if not read_committed else 900 // 37 * 21 + 12), "the isolation tells what is copied"
    first, second = records[:170], records[170:333]
    end = scene.copy(first, topic)
    anchor = scene.anchor(topic, first[-1].offset + 1, end)
    scene.fence(topic)
    scene.copy(second, topic)
    scene.fence(topic)
    for anchors in ([anchor], [Anchor(anchor.upstream)], [Anchor(first[40].offset), Anchor(first[-1].offset, end - 1)]):
        found = scene.where(topic, anchors, read_committed=read_committed)
        assert second[-1].offset < found.upstream <= records[333].offset, anchors


def test_a_source_compacted_before_and_after_the_copying(pair, scene):
    topic = scene.topics("compacted", source=COMPACT)

    def written(rounds):
        for _ in range(rounds):
            pair.produce("a", topic, 100, keys=40, partition=0)
        return pair.read("a", topic)[0]

    def compacted(before):
        # A segment is rolled by the next record after its time, and only closed ones are compacted.
        pair.produce("a", topic, 1, keys=1, partition=0)
        return len(pair.read("a", topic)[0]) < before

    before = len(written(8))
    pair.a.until(lambda: compacted(before), what="the source is compacted", seconds=90, every=0.3)
    records = pair.read("a", topic)[0]
    half = len(records) // 2
    end = scene.copy(records[:half], topic)
    anchor = scene.anchor(topic, records[half - 1].offset + 1, end)
    scene.fence(topic)
    scene.copy(records[half:], topic)
    scene.fence(topic)
    last = records[-1].offset
    assert scene.where(topic, [anchor]).upstream > last
    held = {record.offset for record in records}
    written(5)

    def gone():
        compacted(0)
        return len(held - {record.offset for record in pair.read("a", topic)[0]}) > 20

    pair.a.until(gone, what="copied records are compacted away", seconds=90, every=0.3)
    left = [record.offset for record in pair.read("a", topic)[0]]
    following = min(offset for offset in left if offset > last)
    below = max([offset for offset in left if offset <= last], default=-1)
    assert below < scene.where(topic, [anchor]).upstream <= following


def test_a_target_that_sets_its_own_timestamps(pair, scene):
    topic = scene.topics("appended", target={"message.timestamp.type": "LogAppendTime"})
    pair.produce("a", topic, 300)
    records = pair.read("a", topic)[0]
    end = scene.copy(records[:120], topic)
    anchor = scene.anchor(topic, 120, end)
    scene.fence(topic)
    assert (scene.where(topic, [anchor]).upstream, scene.where(topic, [anchor]).how) == (120, "anchor")
    scene.copy(records[120:131], topic)
    scene.fence(topic)
    assert scene.where(topic, [anchor]).upstream == 131
    found = scene.where(topic, [Anchor(100)])
    assert (found.upstream, found.how) == (131, "content")


def test_retention_on_both_sides_and_a_target_made_anew(pair, scene):
    topic = scene.topics("retained")
    pair.produce("a", topic, 400)
    records = pair.read("a", topic)[0]
    end = scene.copy(records[:200], topic)
    anchor = scene.anchor(topic, 200, end)
    scene.copy(records[200:260], topic)
    pair.b.delete_records(f"a.{topic}", 0, 260)
    scene.fence(topic)
    assert scene.where(topic, [anchor]).upstream == 260
    pair.a.delete_records(topic, 0, 300)
    found = scene.where(topic, [anchor])
    assert (found.upstream, found.lost) == (260, 40)
    pair.b.recreate_topic(f"a.{topic}")
    scene.thread.run(scene.b.metadata([f"a.{topic}"]))
    scene.fence(topic)
    found = scene.where(topic, [anchor])
    assert (found.upstream, found.downstream, found.how) == (300, 1, "start")


def test_two_hundred_exact_anchors_cost_a_handful_of_requests(pair, scene):
    topic = scene.topics("many", 200)
    pair.produce("a", topic, 200 * 50)
    for partition, records in pair.read("a", topic).items():
        scene.copy(records[: partition % 50], topic, partition)
    anchor = scene.anchor(topic, 0, 0)
    places = [
        scene.place(
            topic, [Anchor(upto, upto, anchor.source_topic_id, anchor.target_topic_id, 0 if upto else -1)], partition
        )
        for partition in range(200)
        for upto in [partition % 50]
    ]
    scene.fence(topic, 200)
    found = scene.locate(places)
    assert {tp.partition: answer.upstream for tp, answer in found.items()} == {
        partition: partition % 50 for partition in range(200)
    }
    assert {answer.how for answer in found.values()} == {"anchor"}
    for cluster in (scene.a, scene.b):
        assert cluster.sent[LIST_OFFSETS] == 2
        assert cluster.sent[FETCH] <= 2
        assert sum(cluster.sent.values()) <= 5, cluster.sent


def test_a_partition_that_is_not_there_holds_up_no_other(pair, scene):
    topic = scene.topics("there")
    pair.produce("a", topic, 10)
    found = scene.locate([scene.place(topic, []), scene.place(topic, [], partition=7)])
    assert isinstance(found[TopicPartition(topic, 7)], Fault)
    assert isinstance(found[TopicPartition(topic, 0)], Located)
