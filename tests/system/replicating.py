"""Flows of a test's own on a pair of clusters, copied by ``failover replicate`` as processes of the lab."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from failover.errors import LabError
from failover.lab import MirrorOptions
from failover.lab.follower import Isolation
from failover.lab.process import Process, tail
from failover.lab.side import Side
from failover.model import Record, TopicPartition
from tests.system.pair import Pair

Copy = dict[TopicPartition, list[Record]]

QUICK = {
    "heartbeats.replication.enabled": "false",
    "sync.topic.configs.enabled": "false",  # tests give target topics settings of their own
    "failover.replicator.restart.min": "100ms",
    "failover.replicator.restart.max": "500ms",
}
STOPPED = 143  # 128 + SIGTERM: what a program says that was ended by it in good order


class Flow:
    """Is one flow from ``pair.a`` to ``pair.b`` under aliases nobody else has; ``topics`` is its filter.

    ``settings``: added to its configuration, ``{source}`` and ``{target}`` in keys stand for the aliases.
    """

    def __init__(
        self, pair: Pair, topics: str, settings: Mapping[str, str] | None = None, *, user: str | None = None
    ) -> None:
        self.pair = pair
        self.source, self.target = pair.name("ra"), pair.name("rb")
        self.name = f"{self.source}->{self.target}"
        own = {key.format(source=self.source, target=self.target): text for key, text in (settings or {}).items()}
        few = {f"{self.target}.offset.storage.partitions": "3"}
        options = MirrorOptions(topics=topics, refresh_seconds=1)
        self.config = pair.config_path(
            aliases=(self.source, self.target), user=user, options=options, added=QUICK | few | own
        )
        pair.expect_topic(rf"{re.escape(self.source)}\..*")
        self._workers = 0

    def remote(self, topic: str) -> str:
        """Gives a topic's name on the target."""
        return f"{self.source}.{topic}"

    @contextlib.contextmanager
    def worker(self, *arguments: str) -> Iterator[Worker]:
        """Runs ``failover replicate`` with a log of its own; it is killed at the end if it still runs."""
        self._workers += 1
        name = f"replicator-{self.source}-{self._workers}"
        process = self.pair.lab.start_replicator(self.config, *arguments, name=name)
        worker = Worker(self, name, process, self.pair.lab.folder / f"{name}.log")
        try:
            yield worker
        except BaseException as error:
            error.add_note(tail(self.pair.lab.folder / f"{name}.log", 30))
            raise
        finally:
            if self.pair.lab.running(name) is not None:
                self.pair.lab.kill(name)

    def read(self, topics: Iterable[str], *, isolation: Isolation = "read_uncommitted") -> Copy:
        """Reads source topics to their ends."""
        with Reading(self.pair.a, topics, isolation=isolation) as reading:
            return reading.to_the_end()

    def copy(self, topics: Iterable[str]) -> Copy:
        """Reads the topics' copies to their ends; under the names they have on the source."""
        with Reading(self.pair.b, {self.remote(topic): topic for topic in topics}) as reading:
            return reading.to_the_end()


class Worker:
    """Is one run of ``failover replicate``."""

    def __init__(self, flow: Flow, name: str, process: Process, path: Path) -> None:
        self.flow = flow
        self.name = name
        self._process = process
        self._path = path
        self._code: int | None = None

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def log(self) -> str:
        return self._path.read_text(errors="replace")

    def lines(self, *words: str) -> list[str]:
        """Gives the lines of the log that hold all of these words."""
        return [line for line in self.log.splitlines() if all(word in line for word in words)]

    def says(self, *words: str, times: int = 1, seconds: float = 90) -> list[str]:
        """Waits for so many lines that hold all of these words."""
        found: list[str] = self.until(
            lambda: lines if len(lines := self.lines(*words)) >= times else None,
            what=f"{times} lines with {words}",
            seconds=seconds,
        )
        return found

    def until(self, check: Callable[[], Any], *, what: str, seconds: float = 90) -> Any:
        """Polls until ``check()`` gives something true; raises LabError with the log's end when it ends before."""

        def either() -> Any:
            value = check()
            if not value and self.code() is not None:
                raise LabError(f"{self.name} ended with {self._code}, {what}: {tail(self._path)}")
            return value

        try:
            return self.flow.pair.b.until(either, what=what, seconds=seconds)
        except LabError as error:
            raise LabError(f"{error}\n{tail(self._path, 20)}") from error

    def copied(self, *topics: str, isolation: Isolation = "read_uncommitted", seconds: float = 90) -> tuple[Copy, Copy]:
        """Waits until the target holds as many records of each partition as the source; gives both sides' records."""
        wanted = self.flow.read(topics, isolation=isolation)
        names = {self.flow.remote(topic): topic for topic in topics}
        deadline = time.monotonic() + seconds
        with Reading(self.flow.pair.b, names) as reading:
            while lacking := [tp for tp, records in wanted.items() if len(reading.records.get(tp, ())) < len(records)]:
                if self.code() is not None or time.monotonic() > deadline:
                    counts = {str(tp): (len(reading.records.get(tp, ())), len(wanted[tp])) for tp in lacking[:5]}
                    raise LabError(f"{len(lacking)} partitions lack records: {counts}\n{tail(self._path, 20)}")
                reading.take()
            return wanted, reading.to_the_end()

    def code(self) -> int | None:
        """Gives the exit code, None while it runs; a signal's number is negative."""
        if self._code is None:
            # looked at without reaping, so that it is there however often the lab looks
            found = os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if found is not None:
                self._code = found.si_status if found.si_code == os.CLD_EXITED else -found.si_status
        return self._code

    def ended(self, *, seconds: float = 90) -> int:
        """Waits until it has ended by itself; gives its exit code."""
        self.flow.pair.b.until(lambda: self.code() is not None, what=f"{self.name} ends", seconds=seconds)
        return self._code or 0

    def terminate(self) -> None:
        """Asks it to end."""
        if self.code() is None:
            os.kill(self._process.pid, signal.SIGTERM)

    def stop(self) -> None:
        """Ends it in good order."""
        self.terminate()
        assert self.ended() == STOPPED, self.log

    def kill(self) -> None:
        self.flow.pair.lab.kill(self.name)
        self._code = -signal.SIGKILL


class Scene:
    """Is a flow of topics that begin with ``stem``, with one worker for many tests; what they compared is kept."""

    def __init__(self, pair: Pair, stem: str, settings: Mapping[str, str] | None = None) -> None:
        self.pair = pair
        self.stem = pair.name(stem)
        self.flow = Flow(pair, rf"{self.stem}\..*", settings)
        self.worker: Worker
        self._compared: dict[str, bool] = {}

    @contextlib.contextmanager
    def working(self) -> Iterator[Scene]:
        """Runs the worker; at its end, in good order, all that was compared is compared again: nothing came behind."""
        with self.flow.worker() as self.worker:
            yield self
            self.worker.stop()
            self._compare_again()

    def topic(self, what: str) -> str:
        return f"{self.stem}.{what}"

    def create(self, what: str, partitions: int = 1, **config: str) -> str:
        """Makes a topic on the source; keywords are settings with ``_`` for ``.``."""
        settings = {key.replace("_", "."): value for key, value in config.items()}
        return self.pair.create_topic("a", self.topic(what), partitions, config=settings)

    def same(self, *topics: str, timestamps: bool = True) -> Copy:
        """Waits for the copies of topics, compares them and gives what the source holds."""
        source, target = self.worker.copied(*topics)
        assert contents(target, timestamps=timestamps) == contents(source, timestamps=timestamps)
        self._compared |= dict.fromkeys(topics, timestamps)
        return source

    def forget(self, topic: str) -> None:
        """Compares a topic no more."""
        self._compared.pop(topic, None)

    def _compare_again(self) -> None:
        for timestamps in (True, False):
            topics = [topic for topic, with_them in self._compared.items() if with_them is timestamps]
            copies = contents(self.flow.copy(topics), timestamps=timestamps)
            assert copies == contents(self.flow.read(topics), timestamps=timestamps)


def contents(copy: Copy, *, timestamps: bool = True) -> dict[TopicPartition, list[tuple[Any, ...]]]:
    """Gives what must be alike: all but offsets, and but timestamps where the target sets its own."""
    return {
        tp: [(*([record.timestamp] * timestamps), record.key, record.value, record.headers) for record in records]
        for tp, records in copy.items()
    }


def send(pair: Pair, records: Iterable[tuple[Any, ...]], **settings: Any) -> None:
    """Writes records on the source, each (topic, value, key, partition, timestamp, headers), timestamp 0: now."""
    faults: list[str] = []

    def delivered(error: Any, _: Any) -> None:
        if error is not None:
            faults.append(str(error))

    producer = pair.a.producer(**settings)
    for topic, value, key, partition, timestamp, headers in records:
        producer.produce(topic, value, key, partition, timestamp=timestamp, headers=headers, on_delivery=delivered)
        producer.poll(0)
    assert (producer.flush(30), faults) == (0, [])


def set_config(side: Side, topic: str, name: str, value: str) -> None:
    """Sets one setting of a topic."""
    from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    asked = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    side.admin.incremental_alter_configs([asked], request_timeout=10)[asked].result(timeout=15)


class Reading:
    """Reads several topics from their starts with one consumer; partitions that come later are read too.

    ``topics``: names, or names → how they are called in ``records``.
    """

    def __init__(
        self, side: Side, topics: Iterable[str] | Mapping[str, str], *, isolation: Isolation = "read_uncommitted"
    ) -> None:
        self._names = dict(topics) if isinstance(topics, Mapping) else {topic: topic for topic in topics}
        self._consumer = side.consumer(isolation_level=isolation, enable_partition_eof=True)
        self._open: set[TopicPartition] = set()
        self.records: Copy = {}
        self._look()

    def __enter__(self) -> Reading:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def take(self) -> None:
        """Takes what is there, or waits a little for it."""
        messages = self._consumer.consume(1000, 0.1)
        if not messages:
            self._look()
        for message in messages:
            tp = TopicPartition(self._names[str(message.topic())], int(message.partition() or 0))
            error = message.error()
            if error is None:
                self._open.add(tp)
                headers: Any = tuple(message.headers() or ())
                key, value = message.key(), message.value()
                self.records[tp].append(Record(int(message.offset() or 0), message.timestamp()[1], key, value, headers))
            elif error.name() == "_PARTITION_EOF":
                self._open.discard(tp)
            elif not (error.retriable() or error.name() == "UNKNOWN_TOPIC_OR_PART"):
                raise LabError(f"reading {tp} failed: {error}")

    def to_the_end(self, *, seconds: float = 90) -> Copy:
        """Reads on to the end of every partition that is there."""
        deadline = time.monotonic() + seconds
        while self._open:
            if time.monotonic() > deadline:
                raise LabError(f"{len(self._open)} partitions, such as {min(self._open)}, not read to their ends")
            self.take()
        return self.records

    def _look(self) -> None:
        from confluent_kafka import OFFSET_BEGINNING
        from confluent_kafka import TopicPartition as Place

        known = self._consumer.list_topics(timeout=10).topics
        fresh = []
        for name, own in self._names.items():
            for number in known[name].partitions if name in known else ():
                tp = TopicPartition(own, number)
                if tp not in self.records:
                    fresh.append(Place(name, number, OFFSET_BEGINNING))
                    self.records[tp] = []
                    self._open.add(tp)
        if fresh:
            self._consumer.incremental_assign(fresh)
