"""Applications of ordinary users that a playbook moves from one cluster to the other by a hook."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

from failover.lab import APP
from failover.lab.clients import SILENT
from failover.model.rights import AclBinding
from tests.system.inventory_side import cluster
from tests.system.pair import Pair

PATIENCE = 120
HOOK = """
import pathlib, sys, time
folder, action, what, alias = pathlib.Path(sys.argv[1]), *sys.argv[2:]
wanted, runs = folder / f"wanted.{what}.{alias}", folder / f"runs.{what}.{alias}"
with (folder / "called").open("a") as log:
    log.write(f"{action} {what} {alias}\\n")
if action == "start":
    wanted.touch()
else:
    wanted.unlink(missing_ok=True)
end = time.monotonic() + 40
while runs.exists() != (action == "start"):
    if time.monotonic() > end:
        sys.exit(f"{what} on {alias} do not {action}")
    time.sleep(0.05)
"""


@contextmanager
def rights(pair: Pair, topics: Sequence[str], group: str, *, on: Sequence[str] = ("a",)) -> Iterator[None]:
    """Gives the applications' user what it needs on clusters; takes away every ACL that came on either meanwhile."""
    wanted = [("topic", topic, right) for topic in topics for right in ("READ", "WRITE", "DESCRIBE")]
    wanted += [("group", group, "READ"), ("transactional-id", group, "WRITE"), ("transactional-id", group, "DESCRIBE")]
    bindings = [AclBinding(kind, "literal", name, f"User:{APP}", "*", "ALLOW", right) for kind, name, right in wanted]
    with cluster(pair, "a") as a, cluster(pair, "b") as b:
        before = [side.acls() for side in (a, b)]
        for side in (a, b):
            if side.alias in on:
                assert set(side.create_acls(bindings).values()) == {None}
        try:
            yield
        finally:
            for side, there in zip((a, b), before, strict=True):
                now = side.acls()
                assert isinstance(now, tuple)
                assert isinstance(there, tuple)
                side.delete_acls([acl for acl in now if acl not in there])


class Applications:
    """Is a transactional producer and a consumer group, started and stopped by files as the hook says.

    ``written``: values of committed transactions, ``aborted``: of others; ``read``: what the group consumed, wherever
    that was. ``aliases``: what the flow calls the pair's two clusters; ``remote``: what the topic's copy is called.
    """

    def __init__(
        self,
        pair: Pair,
        folder: Path,
        topic: str,
        group: str,
        *,
        aliases: tuple[str, str] = ("a", "b"),
        remote: str = "",
    ) -> None:
        self.written: list[bytes] = []
        self.aborted: list[bytes] = []
        self.read: Counter[bytes] = Counter()
        self.faults: list[str] = []
        self.hook = folder / "hook.py"
        self.hook.write_text(HOOK)
        self.aliases, self.folder = aliases, folder
        self.pair, self.topic, self.group = pair, topic, group
        self._subscribed: Mapping[str, Sequence[str]] = {
            aliases[0]: [topic],
            aliases[1]: [*{remote or f"{aliases[0]}.{topic}", topic}],
        }
        self._end = threading.Event()
        self._next = 0
        work: dict[str, Callable[[str], None]] = {"producers": self._produce, "consumers": self._consume}
        self._threads = [
            threading.Thread(target=self._watch, args=(what, alias, work[what]), daemon=True)
            for what in work
            for alias in aliases
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join(30)

    def start(self, what: str, alias: str) -> None:
        (self.folder / f"wanted.{what}.{alias}").touch()

    def stop(self, what: str, alias: str) -> None:
        (self.folder / f"wanted.{what}.{alias}").unlink()
        while (self.folder / f"runs.{what}.{alias}").exists():
            time.sleep(0.02)

    def wait(self, check: Callable[[], Any], what: str, *, seconds: float = PATIENCE) -> None:
        """Waits for something; a thread's failure ends it."""
        self.pair.b.until(lambda: check() or self.faults, what=what, seconds=seconds)
        assert self.faults == []

    @property
    def called(self) -> list[str]:
        """Is how the hook was called."""
        return (self.folder / "called").read_text().splitlines()

    def _settings(self, alias: str) -> dict[str, Any]:
        name = self.pair.source if alias == self.aliases[0] else self.pair.target
        return self.pair.lab.client_settings(name, user=APP, mechanism="SCRAM-SHA-512")

    def _watch(self, what: str, alias: str, work: Callable[[str], None]) -> None:
        runs = self.folder / f"runs.{what}.{alias}"
        while not self._end.is_set():
            if self._wanted(what, alias):
                runs.touch()
                try:
                    work(alias)
                except Exception as error:  # noqa: BLE001 - a thread's failure is the test's
                    self.faults.append(f"{what} on {alias}: {error!r}")
                runs.unlink()
            time.sleep(0.02)

    def _wanted(self, what: str, alias: str) -> bool:
        return not self._end.is_set() and (self.folder / f"wanted.{what}.{alias}").exists()

    def _produce(self, alias: str) -> None:
        from confluent_kafka import KafkaException, Producer

        settings = {**self._settings(alias), "transactional.id": self.group, "transaction.timeout.ms": 10_000}
        producer = Producer(settings, logger=SILENT)
        producer.init_transactions(30)
        while self._wanted("producers", alias):
            values = [b"value %d" % (self._next + number) for number in range(5)]
            self._next += 5
            producer.begin_transaction()
            try:
                for value in values:
                    producer.produce(self.topic, value, value)
                producer.flush(10)
                if self._next % 25 == 0:
                    self.aborted += values
                    producer.abort_transaction(10)
                    continue
                producer.commit_transaction(10)
            except KafkaException:
                # Shut out in the middle of a transaction, which is lost: as applications do, begin with a new producer.
                self.aborted += values
                time.sleep(0.5)
                return
            else:
                self.written += values
            time.sleep(0.02)

    def _consume(self, alias: str) -> None:
        from confluent_kafka import Consumer

        settings = {
            **self._settings(alias),
            "group.id": self.group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "topic.metadata.refresh.interval.ms": 1000,
        }
        consumer = Consumer(settings, logger=SILENT)
        consumer.subscribe(list(self._subscribed[alias]))
        while self._wanted("consumers", alias):
            batch = [message for message in consumer.consume(100, 0.1) if message.error() is None]
            self.read.update(bytes(message.value() or b"") for message in batch)
            if batch:
                consumer.commit(asynchronous=False)
        consumer.close()
