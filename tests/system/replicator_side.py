"""The replicator under traffic: workers as processes, producers that outlive brokers, logs compared as they grow."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from confluent_kafka import KafkaException

from failover.lab.follower import Follower, Isolation
from failover.lab.process import tail
from failover.lab.side import Side
from failover.model.records import Record
from tests.system.pair import Pair

OLD_MS = 1_577_836_800_000
"""2020-01-01: records so old that brokers forget who wrote them at the next look."""
_names = itertools.count(1)


class Worker:
    """Is one ``failover replicate``, and its log, which outlives the lab."""

    def __init__(self, pair: Pair, config: Path, folder: Path, *arguments: str, name: str = "worker") -> None:
        self.name = f"{name}-{next(_names)}"
        self.log = folder / f"{self.name}.log"
        self._command = [sys.executable, "-X", f"lab={pair.lab.state.marker}", "-m", "failover"]
        self._command += ["--config", str(config), "replicate", *arguments]
        self.process = self._spawn()

    def _spawn(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as out:
            return subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
                env=os.environ | {"PYTHONFAULTHANDLER": "1"},
            )

    def start(self) -> None:
        """Starts it again, after its end."""
        assert self.code is not None, f"{self.name} runs"
        self.process = self._spawn()

    @property
    def code(self) -> int | None:
        """Is the exit code, None while it runs."""
        return self.process.poll()

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self, seconds: float = 60) -> int:
        """Ends it as an operator does; gives the exit code."""
        self.process.terminate()
        return self.ended(seconds)

    def ended(self, seconds: float = 60) -> int:
        """Waits for its end; gives the exit code."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} has not ended after {seconds:g} s:\n{tail(self.log, 20)}") from None

    def close(self) -> None:
        """Ends it however it is, and prints its last words, which pytest shows where a test failed."""
        if self.code is None:
            self.send(signal.SIGCONT)
            self.kill()
        sys.stdout.write(f"--- {self.log} (exit {self.code})\n{tail(self.log, 30)}\n")

    def says(self, text: str) -> bool:
        return text in self.log.read_text(errors="replace")

    def wait_says(self, text: str, *, seconds: float = 90) -> None:
        """Waits until its log holds a text; an end before that is a failure."""
        deadline = time.monotonic() + seconds
        while not self.says(text):
            over = time.monotonic() > deadline
            assert not over, f"{self.name} does not say {text!r}:\n{tail(self.log, 20)}"
            assert self.code is None, f"{self.name} ended with {self.code}:\n{tail(self.log, 20)}"
            time.sleep(0.05)


@contextlib.contextmanager
def working(pair: Pair, config: Path, folder: Path, *arguments: str, name: str = "worker") -> Iterator[Worker]:
    """Is a worker for as long as a test needs it."""
    worker = Worker(pair, config, folder, *arguments, name=name)
    try:
        yield worker
    finally:
        worker.close()


class Load(NamedTuple):
    """Says what one producer writes: ``make`` gives (key, value, timestamp or 0) of its n-th record.

    ``rate``: records a second. ``transaction``: so many records each, every third of them aborted; 0 for none.
    """

    topic: str
    partitions: int
    make: Callable[[int], tuple[bytes | None, bytes, int]]
    rate: float
    transaction: int = 0
    settings: Mapping[str, Any] = MappingProxyType({})


class Traffic:
    """Writes loads until it is stopped. What a producer could not finish, a new one goes on behind."""

    def __init__(self, side: Side, loads: list[Load]) -> None:
        self._side = side
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=(load,), daemon=True) for load in loads]
        self.errors: list[str] = []
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(120)
            assert not thread.is_alive(), "a producer does not end"

    def _write(self, load: Load) -> None:
        numbers = itertools.count()
        while not self._stop.is_set():
            try:
                self._produce(load, numbers)
            except (KafkaException, BufferError) as error:
                self.errors.append(f"{load.topic}: {error}")
                self._stop.wait(0.3)

    def _produce(self, load: Load, numbers: Iterator[int]) -> None:
        settings: dict[str, Any] = {"linger_ms": 15, "enable_idempotence": True, **load.settings}
        if load.transaction:
            settings |= {"transactional_id": f"traffic-{load.topic}", "transaction_timeout_ms": 20_000}
        producer = self._side.producer(**settings)
        try:
            if load.transaction:
                producer.init_transactions(20)
            begun, sent = time.monotonic(), 0
            while not self._stop.is_set():
                due = load.transaction or int(load.rate * (time.monotonic() - begun)) - sent
                number = 0
                if load.transaction:
                    producer.begin_transaction()
                for _ in range(min(due, 500)):
                    number = next(numbers)
                    key, value, timestamp = load.make(number)
                    producer.produce(load.topic, value, key, number % load.partitions, timestamp=timestamp)
                if load.transaction:
                    aborts = (number // load.transaction) % 3 == 2
                    producer.flush(20)
                    (producer.abort_transaction if aborts else producer.commit_transaction)(20)
                    self._stop.wait(load.transaction / load.rate)
                sent += due
                producer.poll(0)
                self._stop.wait(0.02)
        finally:
            producer.purge()
            producer.flush(5)


def contents(record: Record) -> tuple[Any, ...]:
    return record.key, record.value, record.headers, record.timestamp


class Compared:
    """Compares a topic with its copy record by record, from the start and then on as both grow."""

    def __init__(self, pair: Pair, topic: str, copy: str, *, isolation: Isolation = "read_uncommitted") -> None:
        self._pair = pair
        self.topic, self.copy = topic, copy
        self._source = Follower(pair.a, topic, isolation=isolation)
        self._target = Follower(pair.b, copy)
        self.equal: dict[int, int] = {}

    def close(self) -> None:
        self._source.close()
        self._target.close()

    def step(self) -> list[str]:
        """Reads both; gives the first difference of each partition, [] while the copy is a beginning of the source."""
        copies = self._target.catch_up()
        records = self._source.catch_up()
        found = []
        for partition, theirs in copies.items():
            ours = records.get(partition, [])
            done = self.equal.get(partition, 0)
            for at, copied in enumerate(theirs):
                if at >= len(ours):
                    found.append(self._tell(partition, done + at, None, copied, ours))
                    break
                if contents(ours[at]) != contents(copied):
                    found.append(self._tell(partition, done + at, ours[at], copied, ours))
                    break
            else:
                self.equal[partition] = done + len(theirs)
                del ours[: len(theirs)]
                theirs.clear()
        return found

    def until_equal(self, *, seconds: float = 60) -> None:
        """Compares until the copy holds all that the source does."""

        def done() -> bool:
            found = self.step()
            assert not found, "\n".join(found)
            return bool(self.equal) and not self.missing()

        self._pair.b.until(done, what=f"{self.copy} equals {self.topic}", seconds=seconds)

    def missing(self) -> dict[int, int]:
        """Counts, by partition, the source's records that are not on the target yet, as last read."""
        return {partition: len(records) for partition, records in self._source.records.items() if records}

    def reached(self) -> dict[int, int]:
        """Counts, by partition, the source's records as last read."""
        read = self._source.records.items()
        return {partition: self.equal.get(partition, 0) + len(records) for partition, records in read}

    def _tell(self, partition: int, at: int, ours: Record | None, theirs: Record, rest: list[Record]) -> str:
        place = next((record.offset for record in rest if contents(record) == contents(theirs)), None)
        if place is None:
            where = "it is not among the source's records from here on: doubled, or not the source's"
        else:
            where = f"the source has it at offset {place}: those before are missing"
        wanted = "nothing" if ours is None else f"source offset {ours.offset}: {contents(ours)}"
        return (
            f"{self.topic}-{partition} -> {self.copy}-{partition}: record {at}: wanted {wanted}, "
            f"found target offset {theirs.offset}: {contents(theirs)}; {where}"
        )


class ComparedCompacted(Compared):
    """Compares a compacted topic with its copy, of both of which records may be gone by now: values are unique."""

    def step(self) -> list[str]:
        with Follower(self._pair.b, self.copy) as target, Follower(self._pair.a, self.topic) as source:
            copies, records = target.catch_up(), source.catch_up()
        self._source.records = {}
        found = []
        for partition, ours in records.items():
            theirs = copies.get(partition, [])
            self.equal[partition] = len(theirs)
            difference, left = compacted_difference(ours, theirs)
            self._source.records[partition] = left
            if difference:
                found.append(f"{self.topic}-{partition} -> {self.copy}-{partition}: {difference}")
        return found

    def reached(self) -> dict[int, int]:
        return {}


def compacted_difference(ours: list[Record], theirs: list[Record]) -> tuple[str, list[Record]]:
    """Compares what compaction left of a log (``ours``) and of its copy; gives the first difference, and what is due.

    What one side lacks must be superseded there by a later record of the key; what the source has behind the copy's
    last record is due.
    """
    place = {contents(record): at for at, record in enumerate(ours)}
    if len({contents(record) for record in theirs}) != len(theirs):
        return "a record is there twice", []
    shared = [place[contents(record)] for record in theirs if contents(record) in place]
    if shared != sorted(shared):
        return "the order differs", []
    last = shared[-1] if shared else -1
    copied = {contents(record) for record in theirs}
    here = {record.key: at for at, record in enumerate(ours)}
    there = {record.key: contents(record) for record in theirs}
    for record in theirs:
        if contents(record) not in place and record.key not in here:
            return f"target offset {record.offset}: {contents(record)} is not the source's", []
    for at, record in enumerate(ours[: last + 1]):
        newest = there.get(record.key)
        if contents(record) not in copied and (newest is None or place.get(newest, len(ours)) < at):
            return f"source offset {record.offset}: {contents(record)} is missing", []
    return "", ours[last + 1 :]
