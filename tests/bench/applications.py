"""A hundred consumer groups and their producers in one process, moved by a hook, who note when they are served.

Light on purpose: what is measured shares the machine's cores with them. A few threads poll all consumers in turn.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from failover.lab.clients import SILENT

HOOK = """
import pathlib, sys, time
folder, action, what, alias = pathlib.Path(sys.argv[1]), *sys.argv[2:]
(folder / f"wanted.{what}.{alias}.{action}").touch()
done = folder / f"done.{what}.{alias}.{action}"
end = time.monotonic() + 120
while not done.exists():
    if time.monotonic() > end:
        sys.exit(f"{what} on {alias} do not {action}")
    time.sleep(0.02)
"""
_POLLERS = 4
_TURN = 0.02
"""Seconds between two looks at every consumer: how exact the times are."""


class Applications:
    """Is producers, one a topic, and consumer groups, each of one topic, on one of two clusters.

    ``settings``: of clients, by (what, alias). ``written`` and ``read``: by alias, topic or group → monotonic times of
    the first and the last record that was acknowledged or consumed there.
    """

    def __init__(
        self, folder: Path, settings: Mapping[tuple[str, str], dict[str, Any]], groups: Mapping[str, str]
    ) -> None:
        self.hook = folder / "hook.py"
        self.hook.write_text(HOOK)
        self.groups = groups
        self.topics = sorted(set(groups.values()))
        self.written: dict[str, dict[str, tuple[float, float]]] = {}
        self.read: dict[str, dict[str, tuple[float, float]]] = {}
        self.called: dict[str, tuple[float, float]] = {}
        self.faults: list[str] = []
        self._folder, self._settings = folder, settings
        self._source = next(alias for what, alias in settings)
        self._end = threading.Event()
        self._running: dict[str, threading.Event] = {}
        self._threads: dict[str, list[threading.Thread]] = {}
        self._watcher = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._watcher.join(30)
        for what in list(self._running):
            self.stop(what)

    def _watch(self) -> None:
        """Does what the hook asks for."""
        while not self._end.is_set():
            for wanted in self._folder.glob("wanted.*"):
                _, what, alias, action = wanted.name.split(".")
                wanted.unlink()
                began = time.monotonic()
                try:
                    self.start(what, alias) if action == "start" else self.stop(what)
                except Exception as error:  # noqa: BLE001 - a thread's failure is the benchmark's
                    self.faults.append(f"{action} {what} on {alias}: {error!r}")
                self.called[f"{action} {what}"] = began, time.monotonic()
                (self._folder / f"done.{what}.{alias}.{action}").touch()
            time.sleep(_TURN)

    def start(self, what: str, alias: str) -> None:
        """Starts producers or consumers on a cluster; returns when they are made."""
        end = self._running[what] = threading.Event()
        work = self._producers(alias, end) if what == "producers" else self._consumers(alias, end)
        self._threads[what] = [threading.Thread(target=each, daemon=True) for each in work]
        for thread in self._threads[what]:
            thread.start()

    def stop(self, what: str) -> None:
        """Stops them; returns when their last commits and records are in and they have left."""
        self._running.pop(what).set()
        for thread in self._threads.pop(what):
            thread.join(60)

    def _producers(self, alias: str, end: threading.Event) -> list[Callable[[], None]]:
        from confluent_kafka import KafkaException, Producer

        times = self.written.setdefault(alias, {})
        made = [(topic, Producer(self._settings["producers", alias], logger=SILENT)) for topic in self.topics]

        def work() -> None:
            number = 0
            while not end.is_set():
                for topic, producer in made:

                    def told(error: Any, _: Any, topic: str = topic) -> None:
                        if error is None:
                            _seen(times, topic)

                    with suppress(KafkaException):  # shut out: it tries again, as applications do
                        producer.produce(topic, b"record %d" % number, on_delivery=told)
                for _ in range(5):
                    for _, producer in made:
                        producer.poll(0)
                    time.sleep(_TURN)
                number += 1
            for _, producer in made:
                producer.purge()  # what is shut out is not waited for
                producer.flush(5)

        return [work]

    def _consumers(self, alias: str, end: threading.Event) -> list[Callable[[], None]]:
        from confluent_kafka import Consumer

        times = self.read.setdefault(alias, {})
        made = []
        for group, topic in self.groups.items():
            consumer = Consumer({**self._settings["consumers", alias], "group.id": group}, logger=SILENT)
            consumer.subscribe([topic] if alias == self._source else [f"{self._source}.{topic}", topic])
            made.append((group, consumer))

        def work(mine: list[tuple[str, Any]]) -> None:
            while not end.is_set():
                for group, consumer in mine:
                    if any(message.error() is None for message in consumer.consume(500, 0)):
                        _seen(times, group)
                time.sleep(_TURN)
            with ThreadPoolExecutor(25) as pool:
                list(pool.map(lambda each: each[1].close(), mine))

        return [lambda mine=made[first::_POLLERS]: work(mine) for first in range(_POLLERS)]  # type: ignore[misc]

    def served(self, alias: str) -> tuple[int, int]:
        """Counts the groups that consumed something on a cluster, and the topics that took something."""
        return len(self.read.get(alias, {})), len(self.written.get(alias, {}))

    def without(self, what: Mapping[str, Mapping[str, tuple[float, float]]], target: str) -> list[float]:
        """Gives for each group or topic the seconds from its last record on the source to its first on the target."""
        return [what[target][name][0] - last for name, (_, last) in what[self._source].items()]


def _seen(times: dict[str, tuple[float, float]], name: str) -> None:
    now = time.monotonic()
    times[name] = (times[name][0] if name in times else now, now)


def middle_and_longest(seconds: list[float]) -> tuple[float, float]:
    """Gives the median and the longest."""
    return statistics.median(seconds), max(seconds)
