"""Files of several flows on clusters of the lab, traffic on them, and whether copies equal their originals."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from failover.lab import MirrorOptions
from failover.lab.side import Side
from tests.system.pair import Pair
from tests.system.replicating import QUICK, Flow, Reading, contents

IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"


class Net(Flow):
    """Is a file of several flows; ``clusters``: alias → side, the first two become ``source`` and ``target``.

    ``flows``: the enabled ones, as ``A->B``. Aliases get a number that nobody else has: ``net["us"]``.
    """

    def __init__(
        self, pair: Pair, topics: str, clusters: Mapping[str, Side | str], flows: list[str], settings: Mapping[str, str]
    ) -> None:
        number = pair.name("n").rpartition("-")[2]
        self._aliases = {alias: f"{alias}{number}" for alias in clusters}
        self.pair = pair
        self.source, self.target = list(self._aliases.values())[:2]
        self.name = f"{self.source}->{self.target}"
        self.enabled = [self.flow(flow) for flow in flows]
        added = QUICK | {"clusters": ", ".join(self._aliases.values()), "emit.heartbeats.enabled": "false"}
        added["sync.topic.acls.enabled"] = "false"
        for alias, side in clusters.items():
            named = self._aliases[alias]
            added[f"{named}.bootstrap.servers"] = side.bootstrap if isinstance(side, Side) else side
            added[f"{named}.offset.storage.partitions"] = "3"
        for flow in (self.name, *self.enabled):
            added |= {
                f"{flow}.enabled": str(flow in self.enabled).lower(),
                f"{flow}.topics": topics,
                f"{flow}.refresh.topics.interval.seconds": "1",
            }
        added |= {self.flow(key): text for key, text in settings.items()}
        self.config = pair.config_path(
            aliases=(self.source, self.target), options=MirrorOptions(topics=topics), added=added
        )
        for alias in self._aliases.values():
            pair.expect_topic(rf"{alias}\..*")
        self._workers = 0

    def __getitem__(self, alias: str) -> str:
        return self._aliases[alias]

    def flow(self, text: str) -> str:
        """Gives a text with aliases as they are in the file."""
        return re.sub("|".join(rf"\b{alias}\b" for alias in self._aliases), lambda m: self._aliases[m[0]], text)


@contextmanager
def traffic(*places: tuple[Side, str]) -> Iterator[None]:
    """Writes about 100 records a second into each topic while the block runs."""
    over = threading.Event()

    def write(side: Side, topic: str) -> None:
        producer, number = side.producer(), 0
        while not over.is_set():
            for _ in range(10):
                producer.produce(topic, f"{side.alias} {topic} {number}", str(number % 7))
                number += 1
            producer.poll(0)
            time.sleep(0.1)
        assert producer.flush(30) == 0

    threads = [threading.Thread(target=write, args=place) for place in places]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join()


def same(source: Side, topic: str, target: Side, copy: str, *, seconds: float = 90) -> int:
    """Waits until a copy equals its original; gives how many records that are."""
    with Reading(source, [topic]) as reading:
        wanted = contents(reading.to_the_end())
    found = {}

    def equal() -> bool:
        with Reading(target, {copy: topic}) as reading:
            found.update(contents(reading.to_the_end()))
        return sum(map(len, found.values())) >= sum(map(len, wanted.values()))

    target.until(equal, what=f"{copy} on {target.alias} equals {topic} on {source.alias}", seconds=seconds)
    assert found == wanted
    return sum(map(len, wanted.values()))


def active_active(pair: Pair, *, seconds: float, kills: int) -> None:
    """Both directions under traffic, the worker killed so often: each record on both sides, once."""
    stem = pair.name("aa")
    net = Net(pair, rf"(.+\.)?{stem}\..*", {"east": pair.a, "west": pair.b}, ["east->west", "west->east"], {})
    east, west, topic, late = net["east"], net["west"], f"{stem}.orders", f"{stem}.late"
    for alias in ("a", "b"):
        pair.create_topic(alias, topic, 3)
    with traffic((pair.a, topic), (pair.b, topic)):
        for _ in range(kills):
            with net.worker() as worker:
                time.sleep(seconds / 2 / kills)
                worker.kill()
        pair.create_topic("a", late, 1)  # as soon as it is seen there it comes along
        with net.worker() as worker:
            with traffic((pair.a, late)):
                time.sleep(seconds / 2)
            worker.says("Skipping topic", f"{east}.{late}")
            log = worker
    with net.worker() as worker:
        counts = [
            same(pair.a, topic, pair.b, f"{east}.{topic}"),
            same(pair.b, topic, pair.a, f"{west}.{topic}"),
            same(pair.a, late, pair.b, f"{east}.{late}"),
        ]
        worker.says("Skipping topic", f"{east}.{late}")
        worker.stop()
    assert min(counts) > 0
    for side, other in ((pair.a, west), (pair.b, east)):
        own = {name for name in side.topics() if stem in name}
        assert own == {topic, f"{other}.{topic}"} | ({late} if side is pair.a else {f"{other}.{late}"})
    for each in (log, worker):
        skipped = [line.split("Skipping topic ")[1] for line in each.lines("Skipping topic ", stem)]
        assert sorted(skipped) == sorted(
            f"{name} (cycle: it came from {target} or from {source} itself)"
            for name, source, target in (
                (f"{west}.{topic}", east, west),
                (f"{east}.{topic}", west, east),
                (f"{east}.{late}", west, east),
            )
        )
        every = [line.partition("] ")[2] for line in each.lines(f"[{east}->{west}]", "Skipping topic")]
        assert len(every) == len(set(every)), "each is said once"
