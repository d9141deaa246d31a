"""Rounds of harm done to a replicator under traffic, each followed by a comparison of every record."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from failover.lab import LabOptions, MirrorOptions
from failover.lab.fault import APIS
from failover.lab.process import tail
from tests.system.pair import Pair
from tests.system.replicator_side import OLD_MS, Compared, ComparedCompacted, Load, Traffic, Worker

EXPIRATION_MS = 12_000
SETTINGS = {
    "producer.id.expiration.ms": str(EXPIRATION_MS),
    "producer.id.expiration.check.interval.ms": "1000",
    "log.retention.ms": "-1",
    "leader.imbalance.check.interval.seconds": "5",
    "leader.imbalance.per.broker.percentage": "0",
}
_FENCED, _UNREACHABLE = 3, 8
_COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "3000",
    "min.cleanable.dirty.ratio": "0.01",
}


def lab_options(*, brokers: tuple[int, int] = (1, 1)) -> LabOptions:
    return LabOptions(aliases=("a", "b"), brokers=brokers, proxy=True, quick=True, heap="384m", settings=SETTINGS)


class Chaos:
    """Is a replicator at work, and what may be done to it.

    Every random choice comes from ``seed``. ``frozen``: seconds for which a worker stands still while a second one
    takes over. ``freeze``: the longest freeze of a broker.
    """

    def __init__(
        self, pair: Pair, folder: Path, seed: int, *, frozen: float, freeze: float, say: Callable[[str], object]
    ) -> None:
        self.pair, self.folder, self.seed = pair, folder, seed
        self.random = random.Random(seed)
        self._say = say
        say(f"FAILOVER_CHAOS_SEED={seed}")
        self.frozen, self.freeze = frozen, freeze
        self.history: list[str] = []
        self.gone: list[Worker] = []
        replicas = {alias: min(3, len(pair.lab.state.cluster(alias).brokers)) for alias in ("a", "b")}
        least = "2" if replicas["a"] > 1 else "1"
        for topic, partitions, config in (
            ("c.plain", 3, {}),
            ("c.old", 2, {}),
            ("c.transactions", 2, {}),
            ("c.compacted", 2, _COMPACTED),
            ("c.idle", 1, {}),
        ):
            pair.a.create_topic(
                topic, partitions, replicas=replicas["a"], config={"min.insync.replicas": least, **config}
            )
        factors = {
            "replication.factor": str(replicas["b"]),
            "offset.storage.replication.factor": str(replicas["b"]),
            "offset-syncs.topic.replication.factor": str(replicas["a"]),
        }
        self.workers = {
            "a": Worker(pair, self._config("a", r"c\..*", factors), folder, name="a"),
            "committed": Worker(
                pair,
                self._config(
                    "committed",
                    r"c\.transactions",
                    factors
                    | {
                        "committed.consumer.isolation.level": "read_committed",
                        "failover.replicator.buffer.memory": "16k",  # what piles up in a fault fills it
                    },
                ),
                folder,
                name="committed",
            ),
        }
        self.topics: list[Compared] = [
            Compared(pair, topic, f"a.{topic}") for topic in ("c.plain", "c.old", "c.transactions", "c.idle")
        ]
        self.topics.append(ComparedCompacted(pair, "c.compacted", "a.c.compacted"))
        self.topics.append(Compared(pair, "c.transactions", "committed.c.transactions", isolation="read_committed"))
        self.traffic = Traffic(
            pair.a,
            [
                Load("c.plain", 3, _unique("plain"), 900, settings={"compression_type": "zstd"}),
                Load("c.old", 2, lambda _: (None, b"always the same", OLD_MS), 500),
                Load("c.transactions", 2, _unique("transactions"), 300, 40, {"compression_type": "lz4"}),
                Load("c.compacted", 2, lambda n: (b"k%d" % (n % 31), b"compacted:%d" % n, 0), 200),
            ],
        )

    def _config(self, alias: str, topics: str, added: dict[str, str]) -> Path:
        self._configs = getattr(self, "_configs", {})
        options = MirrorOptions(topics=topics, refresh_seconds=2, settings=added)
        self._configs[alias] = self.pair.config_path(aliases=(alias, "b"), listener="proxy", options=options)
        found: Path = self._configs[alias]
        return found

    # -- running -----------------------------------------------------------------------------------

    def run(self, actions: Sequence[Callable[[Chaos], None]], rounds: int) -> None:
        """Draws rounds from shuffled decks of the actions; raises AssertionError with all that is known."""
        try:
            self.pair.b.until(self._begun, what="every topic is copied", seconds=90)
            deck: list[Callable[[Chaos], None]] = []
            for number in range(1, rounds + 1):
                if not deck:
                    deck = list(actions)
                    self.random.shuffle(deck)
                action = deck.pop()
                began = time.monotonic()
                title = f"round {number}: {action.__name__}"
                self.history.append(title)
                self._say(title)
                action(self)
                done = time.monotonic()
                self._settle(title)
                self.history.append(f"  {done - began:.1f} s, then {time.monotonic() - done:.1f} s to catch up")
                self._say(self.history[-1])
            self.traffic.stop()
            self._settle("the end", to_the_end=True)
            for name, worker in self.workers.items():
                code = worker.stop()
                assert code == 128 + signal.SIGTERM, f"worker {name} ended with {code}"
            time.sleep(0.5)
            self._compare()
            self._say(f"equal: {self.counts()}")
        except Exception as error:
            raise AssertionError(self._report(error)) from error

    def close(self) -> None:
        for worker in (*self.workers.values(), *self.gone):
            if worker.code is None:
                worker.send(signal.SIGCONT)
                worker.kill()
        for topic in self.topics:
            topic.close()
        self.pair.lab.proxy.clear()

    def counts(self) -> str:
        return ", ".join(f"{topic.copy} {sum(topic.equal.values()):,}" for topic in self.topics)

    def _compare(self) -> None:
        found = [difference for topic in self.topics for difference in topic.step()]
        assert not found, "\n".join(found)

    def _settle(self, when: str, *, to_the_end: bool = False, seconds: float = 120) -> None:
        """Compares until the target has what the source had when this began; ``to_the_end``: has everything."""
        deadline = time.monotonic() + seconds
        self._compare()
        wanted = [topic.reached() for topic in self.topics]
        while True:
            self._supervise()
            behind = {
                topic.copy: topic.missing() if to_the_end else _short(topic.equal, reached)
                for topic, reached in zip(self.topics, wanted, strict=True)
            }
            behind = {copy: missing for copy, missing in behind.items() if missing}
            if not behind:
                return
            assert time.monotonic() < deadline, f"{seconds:g} s after {when} still missing: {behind}"
            time.sleep(0.3)
            self._compare()

    def _begun(self) -> bool:
        self._supervise()
        self._compare()
        return all(topic.equal or topic.topic == "c.idle" for topic in self.topics)

    def _supervise(self) -> None:
        """Starts a worker again that found no cluster at its start; any other end is a failure."""
        for name, worker in self.workers.items():
            code = worker.code
            if code is not None:
                assert code == _UNREACHABLE, f"worker {name} ended with {code}"
                self.history.append(f"  worker {name} found no cluster and is started again")
                worker.start()

    def _report(self, error: BaseException) -> str:
        lines = [f"seed {self.seed}", *self.history, str(error), f"equal so far: {self.counts()}"]
        lines += [f"producers: {said}" for said in self.traffic.errors[-3:]]
        for worker in (*self.workers.values(), *self.gone):
            lines += [f"--- {worker.log} (exit {worker.code})", tail(worker.log, 25)]
        return "\n".join(lines)

    # -- choices -----------------------------------------------------------------------------------

    def wait(self, least: float, most: float) -> None:
        time.sleep(self.random.uniform(least, most))

    def pick(self) -> str:
        return self.random.choice(sorted(self.workers))

    def broker(self, alias: str) -> Any:
        return self.random.choice(self.pair.lab.state.cluster(alias).brokers)

    def second(self, name: str) -> Worker:
        """Starts a further worker of the same flow, which from now on is the flow's."""
        self.gone.append(self.workers[name])
        self.workers[name] = Worker(self.pair, self._configs[name], self.folder, name=name)
        return self.workers[name]

    def pushed_out(self, worker: Worker) -> None:
        code = worker.ended(60)
        assert code == _FENCED, f"{worker.name} ended with {code} instead of {_FENCED}"
        assert worker.says("another worker has taken over"), f"{worker.name} does not say why it ended"

    def settle(self) -> None:
        self._settle(self.history[-1])


def _unique(prefix: str) -> Callable[[int], tuple[bytes | None, bytes, int]]:
    def make(number: int) -> tuple[bytes | None, bytes, int]:
        return b"k%d" % (number % 97), b"%s:%d" % (prefix.encode(), number) + b"." * (number % 120), 0

    return make


def _short(equal: dict[int, int], wanted: dict[int, int]) -> dict[int, int]:
    return {
        partition: count - equal.get(partition, 0)
        for partition, count in wanted.items()
        if equal.get(partition, 0) < count
    }


# -- what is done in a round ----------------------------------------------------------------------------


def kill_worker(chaos: Chaos) -> None:
    """kill -9, and a new start."""
    worker = chaos.workers[chaos.pick()]
    chaos.wait(0.2, 2)
    worker.kill()
    chaos.wait(0, 2)
    worker.start()
    if chaos.random.random() < 0.4:  # and again before it has come far
        chaos.wait(0.2, 1.5)
        worker.kill()
        worker.start()


def stop_worker(chaos: Chaos) -> None:
    """SIGTERM, and a new start."""
    worker = chaos.workers[chaos.pick()]
    code = worker.stop()
    assert code == 128 + signal.SIGTERM, f"{worker.name} ended with {code}"
    worker.start()


def replace_frozen_worker(chaos: Chaos) -> None:
    """A worker stands still, a second takes over, the first wakes up."""
    name = chaos.pick()
    first = chaos.workers[name]
    chaos.wait(0, 1)
    first.send(signal.SIGSTOP)
    woken = time.monotonic() + chaos.frozen
    chaos.second(name)
    chaos.settle()
    time.sleep(max(0.0, woken - time.monotonic()))
    first.send(signal.SIGCONT)
    chaos.pushed_out(first)


def replace_running_worker(chaos: Chaos) -> None:
    """A second worker is started beside the first."""
    name = chaos.pick()
    first = chaos.workers[name]
    chaos.second(name)
    chaos.pushed_out(first)


def freeze_worker(chaos: Chaos) -> None:
    """A worker stands still and goes on, alone."""
    worker = chaos.workers[chaos.pick()]
    worker.send(signal.SIGSTOP)
    chaos.wait(1, chaos.freeze)
    worker.send(signal.SIGCONT)


def _freeze(chaos: Chaos, alias: str) -> None:
    broker = chaos.broker(alias)
    chaos.pair.lab.freeze(broker.name)
    chaos.wait(0.5, chaos.freeze)
    chaos.pair.lab.thaw(broker.name)


def freeze_source(chaos: Chaos) -> None:
    """A source broker stands still for a while."""
    _freeze(chaos, "a")


def freeze_target(chaos: Chaos) -> None:
    """A target broker stands still for a while."""
    _freeze(chaos, "b")


def restart_source(chaos: Chaos) -> None:
    """A source broker ends in order and comes back."""
    chaos.pair.lab.restart(chaos.broker("a").name)


def restart_target(chaos: Chaos) -> None:
    """A target broker ends in order and comes back."""
    chaos.pair.lab.restart(chaos.broker("b").name)


def _kill_broker(chaos: Chaos, alias: str) -> None:
    broker = chaos.broker(alias)
    chaos.pair.lab.kill(broker.name)
    chaos.wait(0, 2)
    chaos.pair.lab.restart(broker.name)


def kill_source(chaos: Chaos) -> None:
    """A source broker is killed and comes back."""
    _kill_broker(chaos, "a")


def kill_target(chaos: Chaos) -> None:
    """A target broker is killed and comes back."""
    _kill_broker(chaos, "b")


def kill_target_and_worker(chaos: Chaos) -> None:
    """Both are killed at one moment."""
    broker, worker = chaos.broker("b"), chaos.workers[chaos.pick()]
    chaos.pair.lab.kill(broker.name)
    worker.kill()
    worker.start()
    chaos.wait(0, 2)
    chaos.pair.lab.restart(broker.name)


def cut_produce(chaos: Chaos) -> None:
    """Connections break after the broker has appended, its answer lost; some break within it, some within a request."""
    proxy = chaos.pair.lab.proxy
    for _ in range(chaos.random.randint(3, 8)):
        where: Literal["answer", "request"] = "answer" if chaos.random.random() < 0.7 else "request"
        after = chaos.random.choice((0, 0, 8, 40))
        proxy.cut(where, api=APIS["produce"], after_bytes=after, skip=chaos.random.randrange(30))
        chaos.wait(0, 0.7)
    chaos.wait(1, 2)
    proxy.clear()


def cut_fetch(chaos: Chaos) -> None:
    """Connections break where the source's records come in."""
    proxy = chaos.pair.lab.proxy
    for _ in range(chaos.random.randint(3, 8)):
        proxy.cut(
            "answer", api=APIS["fetch"], after_bytes=chaos.random.randrange(3000), skip=chaos.random.randrange(20)
        )
        chaos.wait(0, 0.7)
    chaos.wait(0.5, 1)
    proxy.clear()


def delay_everything(chaos: Chaos) -> None:
    """Answers and requests take long."""
    proxy = chaos.pair.lab.proxy
    for api in ("produce", "fetch", "init-producer-id", "metadata"):
        proxy.delay(
            chaos.random.uniform(0.05, 1.0),
            where=chaos.random.choice(("answer", "request")),
            api=APIS[api],
            times=chaos.random.randint(1, 20),
        )
    chaos.wait(2, 5)
    proxy.clear()


def hold_produce(chaos: Chaos) -> None:
    """An answer does not come at all, and then the connection ends."""
    proxy = chaos.pair.lab.proxy
    proxy.hold("answer", api=APIS["produce"], skip=chaos.random.randrange(10))
    chaos.wait(1, chaos.freeze)
    proxy.cut_now()
    proxy.clear()


def close_network(chaos: Chaos) -> None:
    """One side, or both, cannot be reached for a while."""
    proxy = chaos.pair.lab.proxy
    aliases = chaos.random.choice((("a",), ("b",), ("a", "b")))
    ports = [broker.proxy for alias in aliases for broker in chaos.pair.lab.state.cluster(alias).brokers]
    proxy.close(*ports)
    chaos.wait(0.5, chaos.freeze)
    proxy.open(*ports)


def cut_fence(chaos: Chaos) -> None:
    """A worker is started again, and the connections of its fence break."""
    proxy, worker = chaos.pair.lab.proxy, chaos.workers[chaos.pick()]
    worker.kill()
    for api in ("init-producer-id", "end-txn"):
        proxy.cut("answer", api=APIS[api], skip=chaos.random.randrange(4), times=chaos.random.randint(1, 3))
    worker.start()
    chaos.wait(2, 4)
    proxy.clear()


def write_to_the_idle(chaos: Chaos) -> None:
    """A partition whose producer the target has forgotten gets old records, and the answer is lost."""
    for _ in range(2):
        chaos.pair.a.produce("c.idle", 3, partition=0)  # values are unique; these are fresh
        write_old(chaos.pair, "c.idle", chaos.random.randint(1, 40))
        chaos.settle()
        time.sleep(EXPIRATION_MS / 1000 + 2)
    chaos.pair.lab.proxy.cut("answer", api=APIS["produce"], skip=chaos.random.randrange(3), times=2)
    write_old(chaos.pair, "c.idle", 40)
    chaos.wait(1, 2)
    chaos.pair.lab.proxy.clear()


def write_old(pair: Pair, topic: str, count: int) -> None:
    """Writes identical records of 2020."""
    producer = pair.a.producer(linger_ms=0)
    for at in range(count):
        producer.produce(topic, b"idle", None, 0, timestamp=OLD_MS)
        if at % 7 == 0:
            producer.flush(20)
    left = producer.flush(20)
    assert not left


WORKER = (
    kill_worker,
    stop_worker,
    freeze_worker,
    replace_frozen_worker,
    replace_running_worker,
    cut_fence,
)
NETWORK = (cut_produce, cut_fetch, delay_everything, hold_produce, close_network, write_to_the_idle)
BROKERS = (
    freeze_source,
    freeze_target,
    restart_source,
    restart_target,
    kill_source,
    kill_target,
    kill_target_and_worker,
)
