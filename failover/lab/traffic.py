"""Traffic with known content: producers that are bounded by count or time, groups that lag where they are told to."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import msgspec

from failover.errors import LabError, LabUsageError
from failover.lab.side import Protocol, Side
from failover.model import TopicPartition

_TICK_SECONDS = 0.05


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """Says what a producer writes, and until when.

    ``rate``: records a second, 0 for as fast as it goes. ``count``, ``seconds``: ends at the
    first that is reached, 0 for no such bound; one must be given. ``keys``: so many distinct
    keys, 0 for none. ``size``: bytes a value. ``transaction``: records a transaction, 0 for
    none; ``aborts``: the share of transactions that is aborted. ``seed`` makes keys and aborts
    the same each time.
    """

    topic: str
    partitions: int = 3
    rate: float = 100.0
    count: int = 0
    seconds: float = 0.0
    keys: int = 100
    size: int = 100
    compression: Literal["none", "gzip", "snappy", "lz4", "zstd"] = "none"
    transaction: int = 0
    aborts: float = 0.0
    seed: int = 1

    def __post_init__(self) -> None:
        if self.count <= 0 and self.seconds <= 0:
            raise LabUsageError("traffic without an end", hint="give a count or a duration")


class Written(msgspec.Struct, frozen=True):
    """Is what a producer wrote: records in all, those in aborted transactions, seconds it took."""

    topic: str
    records: int
    aborted: int
    seconds: float


def write(side: Side, load: Load, *, stop: threading.Event | None = None) -> Written:
    """Writes records with values unique in the lab, evenly over time; the topic is created when missing.

    ``stop`` ends it early. Raises LabError when a record cannot be written.
    """
    if not side.partitions(load.topic):
        side.create_topic(load.topic, load.partitions)
    stop = stop or threading.Event()
    settings: dict[str, Any] = {"compression_type": load.compression, "linger_ms": 20}
    if load.transaction:
        settings["transactional_id"] = f"lab-{load.topic}-{time.monotonic_ns()}"
    producer = side.producer(**settings)
    if load.transaction:
        producer.init_transactions(30)
    choice, faults, prefix = random.Random(load.seed), [], f"{load.topic}:{time.time_ns()}"
    begun = time.monotonic()
    records = aborted = 0

    def delivered(error: Any, _message: Any) -> None:
        if error is not None:
            faults.append(str(error))

    def one(index: int) -> None:
        key = b"k%d" % choice.randrange(load.keys) if load.keys else None
        value = f"{prefix}:{index}".encode().ljust(load.size, b".")
        while True:
            try:
                producer.produce(load.topic, value, key, on_delivery=delivered)
                return
            except BufferError:
                producer.poll(0.1)

    while not stop.is_set() and not faults:
        elapsed = time.monotonic() - begun
        if load.seconds and elapsed >= load.seconds:
            break
        due = int(load.rate * elapsed) + 1 if load.rate else records + 10_000
        due = min(due, load.count) if load.count else due
        if load.transaction:
            due = min(due, records + load.transaction)
        if due > records:
            kept = not load.transaction or choice.random() >= load.aborts
            if load.transaction:
                producer.begin_transaction()
            for index in range(records, due):
                one(index)
            if load.transaction:
                producer.flush(30)
                (producer.commit_transaction if kept else producer.abort_transaction)(30)
            aborted += 0 if kept else due - records
            records = due
        producer.poll(0)
        if load.count and records >= load.count:
            break
        if load.rate:
            stop.wait(_TICK_SECONDS)
    left = producer.flush(30)
    if faults or left:
        raise LabError(f"{side.alias}: {len(faults) + left} records of {load.topic} not written: {faults[:1]}")
    return Written(load.topic, records, aborted, time.monotonic() - begun)


def lag_behind(
    side: Side,
    group: str,
    topics: Sequence[str],
    behind: int | Mapping[TopicPartition, int],
    *,
    protocol: Protocol = "classic",
) -> dict[TopicPartition, int]:
    """Makes a group that stands so many offsets before the end of each partition and has no members; returns where.

    A group never stands before the log's start.
    """
    offsets = {}
    for topic in topics:
        for partition, (start, end) in side.ends(topic).items():
            tp = TopicPartition(topic, partition)
            offsets[tp] = max(start, end - (behind if isinstance(behind, int) else behind.get(tp, 0)))
    if not offsets:
        raise LabUsageError(f"{side.alias}: none of these topics exists: {', '.join(topics)}")
    side.place(group, offsets, protocol=protocol)
    return offsets


def consume(
    side: Side,
    group: str,
    topics: Sequence[str],
    *,
    stop: threading.Event,
    rate: float = 0.0,
    protocol: Protocol = "classic",
    seen: Callable[[Any], None] = lambda _: None,
) -> int:
    """Consumes as a member of a group until ``stop``, commits every half second, and returns how many records came.

    ``rate``: records a second, 0 for as fast as they come. ``seen`` receives each message.
    """
    count = 0
    with side.member(group, topics, protocol=protocol) as consumer:
        begun = committed = time.monotonic()
        while not stop.is_set():
            now = time.monotonic()
            if rate and count > rate * (now - begun):
                stop.wait(_TICK_SECONDS)
                continue
            message = consumer.poll(_TICK_SECONDS)
            if message is not None and message.error() is None:
                count += 1
                seen(message)
            if count and now - committed > 0.5:
                consumer.commit(asynchronous=True)
                committed = now
        if count:
            consumer.commit(asynchronous=False)
    return count


def run(
    side: Side, loads: Sequence[Load], *, live: Sequence[str] = (), protocol: Protocol = "classic"
) -> list[Written]:
    """Writes all loads at the same time while the ``live`` groups consume what comes; returns what was written."""
    for load in loads:
        if not side.partitions(load.topic):
            side.create_topic(load.topic, load.partitions)
    stop = threading.Event()
    topics = [load.topic for load in loads]
    with ThreadPoolExecutor(len(loads) + len(live)) as pool:
        members = [pool.submit(consume, side, group, topics, stop=stop, protocol=protocol) for group in live]
        try:
            writers = [pool.submit(write, side, load, stop=stop) for load in loads]
            written = [writer.result() for writer in writers]
        finally:
            stop.set()
        for member in members:
            member.result()
    return written
