"""Copying as fast as it goes, and idling: the replicator beside the real MirrorMaker 2 and a confluent-kafka loop."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterator
from typing import NamedTuple

import msgspec
import pytest

from failover.lab import LabOptions
from tests.bench.conftest import OPTIONS
from tests.bench.copying import Copy, cpu_seconds, loop, measure, mirror_maker, peak_bytes, replicator
from tests.bench.figures import Figures
from tests.system.pair import Pair
from tests.system.running import running

pytestmark = pytest.mark.timeout(1500)

PARTITIONS = 8
HEADER = ("load", "program", "records/s", "MB/s", "CPU s/GB", "CPU s/M records", "peak MB")
IDLE_PARTITIONS, TRICKLE_PARTITIONS = 1_000, 2_000


class Load(NamedTuple):
    """Is what is copied, and what is asked of the replicator: times MirrorMaker 2's speed, share of its CPU."""

    name: str
    records: int
    size: int
    settings: tuple[str, ...]
    faster: float
    cpu: float


LOADS = (
    Load("1 KB records in 256 KB batches", 1_500_000, 1_000, ("batch.size=262144", "linger.ms=100"), 5, 1 / 8),
    Load(
        "100 B records in 16 KB batches, zstd",
        4_000_000,
        100,
        ("batch.size=16384", "linger.ms=100", "compression.type=zstd"),
        6,
        1 / 15,
    ),
    Load("100 B records, one a batch", 300_000, 100, ("batch.size=0", "linger.ms=0"), 2, 1 / 4),
)


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    options: LabOptions = msgspec.structs.replace(OPTIONS, sasl=True)
    with running(tmp_path_factory.mktemp("secure"), options) as started:
        yield started


def test_speed(secure: Pair) -> None:
    pair = secure
    figures = Figures("replicator-speed", "Copying, beside MirrorMaker 2 and a confluent-kafka loop")
    rows: list[tuple[object, ...]] = []
    for load in LOADS:
        topic = pair.name("load")
        fill(pair, topic, load)
        mm2 = measure(pair, topic, mirror_maker(pair, topic))
        rows.append(row(load, "MirrorMaker 2", mm2))
        rows.append(row(load, "confluent-kafka loop", measure(pair, topic, loop(pair, topic))))
        ours = [measure(pair, topic, replicator(pair, topic)) for _ in range(3)]
        rows += [row(load, "failover replicate", copy) for copy in ours]
        if load is LOADS[0]:
            secured = measure(pair, topic, replicator(pair, topic, alias="tls", listener="sasl", user="admin"))
            rows.append(row(load, "failover replicate, SASL_SSL on both sides", secured))
        name = load.name
        figures.add(f"{name}: times MirrorMaker 2's speed", [c.rate / mm2.rate for c in ours], goal=f">= {load.faster}")
        shares = [(c.cpu / c.records) / (mm2.cpu / mm2.records) for c in ours]
        figures.add(f"{name}: share of its CPU", shares, goal=f"< {load.cpu:.3f}")
        figures.add(f"{name}: share of its memory", [c.peak / mm2.peak for c in ours], goal="< 0.25")
        pair.a.delete_topic(topic)
    figures.table(HEADER, rows)
    figures.note(
        f"{PARTITIONS} partitions, one broker on each side, all on one machine: the brokers share its cores. Measured"
        " from 3 % of the records on; CRC checks and stamping are included."
    )
    figures.publish()


def test_latency(pair: Pair) -> None:
    """End to end at 1,000 records a second: from just before a record is handed to a producer until it is consumed."""
    figures = Figures("replicator-latency", "Latency at 1,000 records a second")
    topic = pair.create_topic(pair.source, pair.name("latency"), PARTITIONS)
    with replicator(pair, topic, alias="latency") as program:
        pair.b.until(lambda: pair.b.partitions(program.remote), what="the remote topic is there", seconds=60)
        pair.a.produce(topic, PARTITIONS)
        pair.b.until(
            lambda: sum(end for _, end in pair.b.ends(program.remote).values()) >= 2 * PARTITIONS, what="it copies"
        )
        latencies(pair, topic, program.remote, rate=1_000, seconds=30)  # brokers that have just started compile
        taken = sorted(latencies(pair, topic, program.remote, rate=1_000, seconds=20))
    for share in (0.5, 0.99, 0.999):
        value = taken[int(len(taken) * share)] * 1000
        figures.add(f"{100 * share:g} % arrive within, ms", [value], goal="< 20" if share == 0.99 else "")
    figures.note("After half a minute at the same rate, in which the JVMs of the brokers have compiled.")
    figures.publish()


def test_many_partitions(pair: Pair) -> None:
    figures = Figures("replicator-partitions", "Many partitions")
    idle = pair.create_topic(pair.source, pair.name("idle"), IDLE_PARTITIONS)
    with replicator(pair, idle, alias="idle") as program:
        wait_started(pair, program.remote, IDLE_PARTITIONS)
        time.sleep(3)
        before = cpu_seconds(program.pid)
        time.sleep(20)
        share = (cpu_seconds(program.pid) - before) / 20
        figures.add(f"{IDLE_PARTITIONS:,} idle partitions, % of a core", [100 * share], goal="< 2")
        figures.add("its peak memory, MB", [peak_bytes(program.pid) / 1e6], goal="< 150")
    trickle = pair.create_topic(pair.source, pair.name("trickle"), TRICKLE_PARTITIONS)
    with replicator(pair, trickle, alias="trickle") as program:
        wait_started(pair, program.remote, TRICKLE_PARTITIONS)
        before, began = cpu_seconds(program.pid), time.monotonic()
        taken = sorted(latencies(pair, trickle, program.remote, rate=200, seconds=20, partitions=TRICKLE_PARTITIONS))
        share = (cpu_seconds(program.pid) - before) / (time.monotonic() - began)
        figures.add(
            f"{TRICKLE_PARTITIONS:,} partitions, 200 records/s: the slowest of {len(taken)}, s", taken[-1:], goal="< 1"
        )
        figures.add("the median, ms", [1000 * statistics.median(taken)])
        figures.add("% of a core", [100 * share])
        figures.add("its peak memory, MB", [peak_bytes(program.pid) / 1e6])
    figures.publish()


def fill(pair: Pair, topic: str, load: Load) -> None:
    pair.create_topic(pair.source, topic, PARTITIONS)
    pair.lab.run_tool(
        "org.apache.kafka.tools.ProducerPerformance",
        "--topic",
        topic,
        "--num-records",
        str(load.records),
        "--record-size",
        str(load.size),
        "--throughput",
        "-1",
        "--producer-props",
        f"bootstrap.servers={pair.a.bootstrap}",
        *load.settings,
        seconds=300,
    )


def row(load: Load, program: str, copy: Copy) -> tuple[object, ...]:
    size = copy.records * load.size
    return (
        load.name,
        program,
        f"{copy.rate:,.0f}",
        f"{size / copy.seconds / 1e6:.1f}",
        f"{copy.cpu / size * 1e9:.2f}",
        f"{copy.cpu / copy.records * 1e6:.2f}",
        f"{copy.peak / 1e6:.0f}",
    )


def wait_started(pair: Pair, remote: str, partitions: int) -> None:
    """Waits until each partition has its fence's marker."""
    pair.b.until(lambda: len(pair.b.partitions(remote)) == partitions, what=f"{remote} is there", seconds=120)
    pair.b.until(
        lambda: all(end >= 1 for _, end in pair.b.ends(remote).values()), what="every partition is fenced", seconds=120
    )


def latencies(
    pair: Pair, topic: str, remote: str, *, rate: int, seconds: int, partitions: int = PARTITIONS
) -> list[float]:
    """Writes records at a rate, each with its time, and gives how old each was when it was consumed from the copy."""
    from confluent_kafka import TopicPartition

    wanted = rate * seconds
    taken: list[float] = []
    consumer = pair.b.consumer(fetch_wait_max_ms=5)
    ends = pair.b.ends(remote)
    consumer.assign([TopicPartition(remote, partition, ends[partition][1]) for partition in range(partitions)])
    consumer.poll(1)

    def consume() -> None:
        end = time.monotonic() + seconds + 30
        while len(taken) < wanted and time.monotonic() < end:
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                taken.append(time.time() - float(message.value() or b""))

    reading = threading.Thread(target=consume)
    reading.start()
    producer = pair.a.producer(linger_ms=0)
    began = time.monotonic()
    for number in range(wanted):
        time.sleep(max(began + number / rate - time.monotonic(), 0))
        producer.produce(topic, repr(time.time()).encode(), partition=number * 7 % partitions)
        producer.poll(0)
    assert producer.flush(30) == 0
    reading.join()
    consumer.close()
    assert len(taken) == wanted
    return taken
