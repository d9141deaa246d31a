"""Each way in which copying without transactions could lose, double or reorder records, brought about on real brokers.

What the brokers themselves do there is shown in ``test_produce``; here a worker gets into it, and every record is
compared afterwards. On these brokers producers are forgotten after three seconds, transactional ids after eight.
"""

from __future__ import annotations

import contextlib
import itertools
import shutil
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from failover.kafka.wire.logs import describe_producers
from failover.kafka.wire.transactions import Transaction, describe_transactions
from failover.lab import LabOptions, MirrorOptions
from failover.lab.fault import APIS
from failover.model.names import Fault, TopicPartition
from failover.replication.shards import shard_of, transactional_id
from tests.system.pair import Pair
from tests.system.replicator_side import OLD_MS, Compared, Worker, contents
from tests.system.running import running
from tests.system.wire_side import plain

PRODUCE, FETCH = APIS["produce"], APIS["fetch"]
FORGOTTEN_SECONDS, ID_FORGOTTEN_SECONDS = 3, 8
FENCED = 3
_numbers = itertools.count()


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    settings = {
        "producer.id.expiration.ms": str(FORGOTTEN_SECONDS * 1000),
        "producer.id.expiration.check.interval.ms": "300",
        "transactional.id.expiration.ms": str(ID_FORGOTTEN_SECONDS * 1000),
        "transaction.remove.expired.transaction.cleanup.interval.ms": "500",
        "log.retention.ms": "-1",
    }
    options = LabOptions(aliases=("a", "b"), proxy=True, quick=True, settings=settings)
    with running(tmp_path_factory.mktemp("holes"), options) as started:
        yield started


class Scene:
    """Is one topic, mostly of one partition, its copy, and the workers that make it."""

    def __init__(self, pair: Pair, folder: Path, stem: str, config: Mapping[str, str], partitions: int) -> None:
        self.pair, self._folder, self._partitions = pair, folder, partitions
        self.topic = pair.create_topic("a", f"{pair.name(stem)}", partitions, config=config)
        self.copy = f"a.{self.topic}"
        self.source, self.target = TopicPartition(self.topic, 0), TopicPartition(self.copy, 0)
        options = MirrorOptions(
            topics=self.topic,
            refresh_seconds=1,
            settings={"heartbeats.replication.enabled": "false", "sync.topic.configs.enabled": "false"},
        )
        self._config = pair.config_path(listener="proxy", options=options)
        self.compared = Compared(pair, self.topic, self.copy)
        self.workers: list[Worker] = []

    def worker(self, *arguments: str) -> Worker:
        self.workers.append(Worker(self.pair, self._config, self._folder, *arguments))
        return self.workers[-1]

    def close(self) -> None:
        for worker in self.workers:
            worker.close()
        self.compared.close()
        self.pair.lab.proxy.clear()

    def write(self, count: int, *, old: bool = False, alike: bool = False, batch: int = 0) -> None:
        """Writes records with values of their own, or ``alike``, and waits for the broker.

        ``old``: of 2020. ``batch``: so many records each, 0 for as the producer likes.
        """
        producer = self.pair.a.producer(linger_ms=5)
        for at in range(count):
            value = b"alike" if alike else b"%s:%d" % (self.topic.encode(), next(_numbers))
            producer.produce(self.topic, value, None, at % self._partitions, timestamp=OLD_MS if old else 0)
            if batch and at % batch == batch - 1:
                assert not producer.flush(20)
        assert not producer.flush(20)

    def same(self, seconds: float = 40) -> None:
        """Waits until the copy equals the source, and a moment longer."""
        self.compared.until_equal(seconds=seconds)
        time.sleep(0.3)
        self.compared.until_equal(seconds=0)

    def values(self) -> list[bytes | None]:
        return [record.value for record in self.pair.read("b", self.copy).get(0, [])]

    def owner(self) -> tuple[int, int] | None:
        """Gives producer id and epoch of the shard's transactional id; None where the target has forgotten it."""
        name = transactional_id("a", "b", shard_of(self.source))
        with plain(self.pair, "b") as (thread, cluster):
            found = thread.run(describe_transactions(cluster, [name]))[name]
        if isinstance(found, Fault):
            assert found.name == "TRANSACTIONAL_ID_NOT_FOUND"
            return None
        assert isinstance(found, Transaction)
        return found.producer_id, found.epoch

    def producers(self) -> dict[int, int]:
        """Gives epoch by producer id of those that the copy's partition remembers."""
        with plain(self.pair, "b") as (thread, cluster):
            found = thread.run(describe_producers(cluster, [self.target]))[self.target]
        assert not isinstance(found, Fault)
        return {state.producer_id: state.epoch for state in found}

    def forgotten(self) -> None:
        """Waits until the copy's partition has forgotten who wrote it."""
        self.pair.b.until(lambda: not self.producers(), what=f"{self.target} remembers no producer", seconds=90)


@pytest.fixture
def scene(pair: Pair, tmp_path: Path) -> Iterator[Any]:
    with contextlib.ExitStack() as stack:

        def make(stem: str, partitions: int = 1, **config: str) -> Scene:
            settings = {name.replace("_", "."): value for name, value in config.items()}
            made = Scene(pair, tmp_path, stem, settings, partitions)
            stack.callback(made.close)
            return made

        yield make


# -- who may write ------------------------------------------------------------------------------------


def test_h1_a_worker_is_shut_out_before_its_successor_writes_anything(scene: Any) -> None:
    it = scene("h1")
    first = it.worker()
    it.write(20)
    it.same()
    first.send(signal.SIGSTOP)
    second = it.worker()
    it.same()
    second.wait_says("from source offset 20 on")
    second.kill()  # it has written nothing
    it.write(20)
    first.send(signal.SIGCONT)
    assert first.ended() == FENCED
    assert first.says("another worker has taken over")
    assert len(it.values()) == 20
    it.worker()
    it.same()


@pytest.mark.parametrize("old", [False, True], ids=["young", "old"])
def test_h2_h6_a_worker_that_slept_until_everyone_forgot_it_writes_nothing(scene: Any, old: bool) -> None:
    """Neither the partition nor the coordinator knows the sleeper when it wakes up with records to be sent."""
    it = scene("asleep")
    first = it.worker()
    it.write(200, old=old, alike=old)
    it.same()
    before = it.owner()
    it.pair.lab.proxy.delay(0.4, api=PRODUCE, times=20)
    it.write(300, old=old, alike=old, batch=10)
    first.send(signal.SIGSTOP)
    it.pair.b.until(lambda: it.owner() is None, what="the transactional id is forgotten", seconds=90)
    it.forgotten()
    second = it.worker()
    it.same()
    assert before is not None
    owner = it.owner()
    assert owner is not None
    assert owner[0] != before[0]
    first.send(signal.SIGCONT)
    it.write(100, old=old, alike=old)
    assert first.ended() == FENCED
    it.same()
    assert second.code is None


def test_h2_an_answer_lost_after_the_producer_was_forgotten(scene: Any) -> None:
    it = scene("h2")
    worker = it.worker()
    it.write(10, old=True, alike=True)
    it.same()
    for skip in (0, 1, 0):
        it.forgotten()
        cut = it.pair.lab.proxy.cut("answer", api=PRODUCE, skip=skip)
        it.write(30, old=True, alike=True, batch=10)
        it.pair.b.until(lambda cut=cut: it.pair.lab.proxy.hits(cut) == 1, what="the answer is cut")
        it.same()
    assert worker.says("fencing anew")


def test_h3_h4_h5_what_was_in_flight_comes_again_as_it_was(scene: Any) -> None:
    """Requests and answers break with as many batches on their way as a partition may have."""
    it = scene("h3")
    it.worker()
    it.write(1)
    it.same()
    proxy = it.pair.lab.proxy
    for number in range(6):
        proxy.delay(0.5, where="answer", api=PRODUCE, times=6)
        if number % 2:
            proxy.cut("request", api=PRODUCE, skip=number, after_bytes=60)
        it.write(4000, batch=200)
        time.sleep(0.3)
        proxy.cut_now()
        proxy.clear()
        it.same()


@pytest.mark.parametrize("old", [False, True], ids=["young", "old"])
def test_h5_the_first_batch_is_lost_on_its_way(scene: Any, old: bool) -> None:
    it = scene("h5")
    it.write(3000, old=old, batch=100)
    it.pair.lab.proxy.cut("request", api=PRODUCE, after_bytes=40, times=2)
    it.worker()
    it.same()


def test_h6_data_alone_does_not_keep_an_id_the_worker_does(scene: Any) -> None:
    it = scene("h6")
    first = it.worker()
    it.write(1)
    it.same()
    before = it.owner()
    assert before is not None
    end = time.monotonic() + 2 * ID_FORGOTTEN_SECONDS
    while time.monotonic() < end:
        it.write(10)
        assert it.owner() == before
        time.sleep(0.5)
    it.worker()
    assert first.ended() == FENCED
    it.same()
    after = it.owner()
    assert after is not None
    assert (after[0], after[1] > before[1]) == (before[0], True)


def test_h11_h12_of_workers_that_start_together_one_remains(scene: Any) -> None:
    """Each takes some of two dozen shards from the others; the one that took the leading shard last gets them all."""
    it = scene("h12", 40)
    it.write(500)
    workers = [it.worker() for _ in range(3)]
    it.pair.b.until(lambda: sum(worker.code is None for worker in workers) == 1, what="one remains", seconds=90)
    it.write(500)
    it.same()
    time.sleep(3)
    assert sorted(worker.code or 0 for worker in workers) == [0, FENCED, FENCED]
    assert [worker.code for worker in workers].count(None) == 1


# -- where the source is --------------------------------------------------------------------------------


def test_h7_records_that_were_compacted_away_since_they_were_copied(scene: Any) -> None:
    it = scene("h7", cleanup_policy="compact", segment_ms="300", min_cleanable_dirty_ratio="0.01")
    # the copy keeps all, so that what lies there twice is seen
    it.pair.create_topic("b", it.copy, 1)
    worker = it.worker()
    sent = [record.value for record in it.pair.produce("a", it.topic, 900, keys=7)]
    it.pair.b.until(lambda: len(it.values()) == 900, what="all are copied")
    worker.kill()
    rolled = it.pair.produce("a", it.topic, 50, keys=7)
    time.sleep(0.5)
    rolled += it.pair.produce("a", it.topic, 1, keys=1)
    it.pair.a.until(lambda: len(it.pair.read("a", it.topic)[0]) < 100, what="the source is compacted")
    it.worker()
    it.pair.b.until(lambda: it.values()[-1] == rolled[-1].value, what="the copy goes on")
    rolled += it.pair.produce("a", it.topic, 20, keys=7)
    it.pair.b.until(lambda: it.values()[-1] == rolled[-1].value, what="the copy goes on")
    values = it.values()
    assert values[:900] == sent
    more = set(values[900:])
    assert values[900:] == [record.value for record in rolled if record.value in more]
    assert more >= {record.value for record in it.pair.read("a", it.topic)[0]} - set(sent)


@pytest.mark.parametrize("when", ["at once", "after a while", "at a start"])
def test_h9_a_source_topic_made_anew_is_copied_from_its_start(scene: Any, when: str) -> None:
    it = scene("h9")
    worker = it.worker()
    it.write(300)
    it.same()
    before = it.values()
    if when == "at a start":
        worker.stop()
    it.pair.a.delete_topic(it.topic)
    if when == "after a while":
        worker.wait_says("the source does not have it any more")
    it.pair.a.create_topic(it.topic, 1)
    it.write(100)
    if when == "at a start":
        worker = it.worker()
    for count in (100, 105):
        wanted = before + [record.value for record in it.pair.read("a", it.topic)[0]]
        assert len(wanted) == 300 + count
        it.pair.b.until(lambda wanted=wanted: len(it.values()) >= len(wanted), what="the new topic is copied")
        assert it.values() == wanted
        it.write(5)
    assert worker.says("source-recreated")


@pytest.mark.parametrize("again", [False, True], ids=["running", "at a start"])
def test_h9_a_source_log_that_lost_its_end(scene: Any, tmp_path: Path, again: bool) -> None:
    it = scene("h9")
    worker = it.worker()
    it.write(300)
    it.same()
    with rewound(it.pair, "a", it.source, tmp_path / "copy"):
        it.write(200)
        it.same()
        if again:
            worker.stop()
    before = it.values()
    if again:
        worker = it.worker()
    it.write(100)
    wanted = before + [record.value for record in it.pair.read("a", it.topic)[0]][300:]
    it.pair.b.until(lambda: len(it.values()) >= len(wanted), what="what came later is copied")
    assert it.values() == wanted
    assert worker.says("source-truncated")
    assert worker.says("200 records")


# -- where the target is --------------------------------------------------------------------------------


@pytest.mark.parametrize("old", [False, True], ids=["young", "old"])
def test_h10_a_target_log_that_lost_its_end_gets_it_again(scene: Any, tmp_path: Path, old: bool) -> None:
    it = scene("h10")
    worker = it.worker()
    it.write(300, old=old)
    it.same()
    time.sleep(1.5)  # where it stands is on record
    with rewound(it.pair, "b", it.target, tmp_path / "copy"):
        it.write(200, old=old)
        it.same()
        time.sleep(1.5)
    it.write(50, old=old)
    wanted = [contents(record) for record in it.pair.read("a", it.topic)[0]]
    it.pair.b.until(lambda: len(it.values()) >= len(wanted), what="the copy is whole again", seconds=90)
    assert [contents(record) for record in it.pair.read("b", it.copy)[0]] == wanted
    assert worker.code is None


def test_h10_a_target_topic_made_anew_gets_everything_again(scene: Any) -> None:
    it = scene("h10")
    it.worker()
    it.write(200)
    it.same()
    it.pair.b.recreate_topic(it.copy)
    it.write(10)
    wanted = [contents(record) for record in it.pair.read("a", it.topic)[0]]
    it.pair.b.until(lambda: len(it.values()) >= len(wanted), what="the copy is whole again", seconds=90)
    assert [contents(record) for record in it.pair.read("b", it.copy)[0]] == wanted


def test_h13_another_writer_is_named_and_its_partition_stops(scene: Any) -> None:
    it = scene("h13")
    worker = it.worker()
    it.write(100)
    it.same()
    stranger = it.pair.b.producer()
    for record in it.pair.read("a", it.topic)[0][-7:]:  # as MirrorMaker 2 would, it copies what is copied already
        stranger.produce(it.copy, record.value, record.key, 0, timestamp=record.timestamp)
    assert not stranger.flush(20)
    it.write(10)
    worker.wait_says("two-writers")
    assert worker.says("7 records that this worker did not write")
    before = it.values()
    it.write(10)
    time.sleep(3)
    assert it.values() == before
    assert worker.code is None
    worker.kill()
    it.worker()  # whoever it was has been stopped: the copy goes on where it is, without another double
    wanted = [record.value for record in it.pair.read("a", it.topic)[0]]
    it.pair.b.until(lambda: it.values()[-1] == wanted[-1], what="the copy goes on")
    values = it.values()
    assert [value for value in values if values.count(value) > 1] == wanted[93:100] * 2
    assert list(dict.fromkeys(values)) == wanted


def test_h14_positions_lie_where_connect_looks_for_them(scene: Any) -> None:
    """librdkafka's own murmur2 says where Kafka Connect's producer would have put each key."""
    it = scene("h14")
    worker = it.worker()
    it.write(10)
    it.same()
    worker.stop()
    kept = it.pair.read("b", "mm2-offsets.a.internal")
    keys = {record.key: number for number, records in kept.items() for record in records}
    assert any(it.topic.encode() in key for key in keys)
    placed: dict[bytes | None, int] = {}
    probe = it.pair.create_topic("b", it.pair.name("h14-probe"), 25)
    producer = it.pair.b.producer(partitioner="murmur2_random")
    for key in keys:
        producer.produce(probe, b"", key, on_delivery=lambda _, sent: placed.update({sent.key(): sent.partition()}))
    assert not producer.flush(20)
    assert placed == keys


@contextlib.contextmanager
def rewound(pair: Pair, alias: str, tp: TopicPartition, kept: Path) -> Iterator[None]:
    """Gives a partition the log it has now again at the end, as an unclean election does: what came since is gone."""
    [broker] = pair.lab.state.cluster(alias).brokers
    log = broker.folder / "data" / f"{tp.topic}-{tp.partition}"
    pair.lab.stop(broker.name)
    shutil.copytree(log, kept)
    pair.lab.restart(broker.name)
    yield
    pair.lab.stop(broker.name)
    shutil.rmtree(log)
    shutil.copytree(kept, log)
    pair.lab.restart(broker.name)
