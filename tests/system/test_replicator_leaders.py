"""The replicator where leaders move: a target of three brokers, of which some stop, freeze, or come back with less."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from failover.lab import LabOptions, MirrorOptions
from tests.system.pair import Pair
from tests.system.replicator_side import Compared, Load, Traffic, contents, working
from tests.system.running import running


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    options = LabOptions(
        aliases=("a", "b"),
        brokers=(1, 3),
        quick=True,
        heap="384m",
        settings={"replica.lag.time.max.ms": "3000", "min.insync.replicas": "1"},
    )
    with running(tmp_path_factory.mktemp("leaders"), options) as started:
        yield started


def replicas(pair: Pair, topic: str) -> list[int]:
    """Gives the nodes of partition 0, its leader first; a broker that has just come back may not know it yet."""
    found: Any = pair.b.until(
        lambda: (known := pair.b.admin.list_topics(timeout=5).topics.get(topic)) and known.partitions.get(0),
        what=f"{topic} is known",
    )
    return sorted(found.replicas, key=lambda node: node != found.leader)


def start(pair: Pair, topic: str, folder: Path, *, factor: int) -> Any:
    settings = {
        "replication.factor": str(factor),
        "offset.storage.replication.factor": "3",
        "heartbeats.replication.enabled": "false",
    }
    options = MirrorOptions(topics=topic, refresh_seconds=1, settings=settings)
    return working(pair, pair.config_path(options=options), folder)


@pytest.mark.parametrize("harm", ["stop", "kill", "freeze"])
def test_the_targets_leader_moves_under_traffic(pair: Pair, tmp_path: Path, harm: str) -> None:
    topic = pair.create_topic("a", pair.name("moves"), 3)
    compared = Compared(pair, topic, f"a.{topic}")
    traffic = Traffic(pair.a, [Load(topic, 3, lambda n: (None, b"%d" % n, 0), 800)])
    with start(pair, topic, tmp_path, factor=3) as worker:
        pair.b.until(lambda: f"a.{topic}" in pair.b.topics() and pair.b.partitions(f"a.{topic}"), what="it is made")
        for node in replicas(pair, f"a.{topic}")[:2]:
            name = f"b/{node}"
            if harm == "freeze":
                pair.lab.freeze(name)
                time.sleep(8)
                pair.lab.thaw(name)
            else:
                (pair.lab.stop if harm == "stop" else pair.lab.kill)(name)
                time.sleep(3)
                pair.lab.restart(name)
        traffic.stop()
        compared.until_equal()
        assert worker.code is None
    compared.close()


def test_h8_what_was_appended_and_is_not_replicated_yet_is_seen(pair: Pair, tmp_path: Path) -> None:
    """A worker dies while its batches wait for frozen followers; its successor must not write them again."""
    topic = pair.create_topic("a", pair.name("h8"), 1)
    compared = Compared(pair, topic, f"a.{topic}")
    pair.produce("a", topic, 100)
    with start(pair, topic, tmp_path, factor=3) as first:
        compared.until_equal()
        followers = [f"b/{node}" for node in replicas(pair, f"a.{topic}")[1:]]
        for name in followers:
            pair.lab.freeze(name)
        pair.produce("a", topic, 500)
        time.sleep(0.7)  # appended by the leader, acknowledged by nobody
        first.kill()
    with start(pair, topic, tmp_path, factor=3) as second:
        time.sleep(1.0)
        for name in followers:
            pair.lab.thaw(name)
        compared.until_equal()
        pair.produce("a", topic, 100)
        compared.until_equal()
        assert second.code is None
    compared.close()


def test_h10_an_unclean_election_on_the_target(pair: Pair, tmp_path: Path) -> None:
    """A replica that missed the end becomes the leader: acknowledged records are gone there and are copied again."""
    topic = pair.create_topic("a", pair.name("h10"), 1)
    copy = f"a.{topic}"
    pair.b.create_topic(copy, 1, replicas=2, config={"unclean.leader.election.enable": "true"})
    with start(pair, topic, tmp_path, factor=2) as worker:
        pair.produce("a", topic, 300)
        held(pair, copy, 300)
        time.sleep(1.5)  # where it stands is on record
        leader, follower = replicas(pair, copy)
        pair.lab.kill(f"b/{follower}")
        pair.produce("a", topic, 400)
        held(pair, copy, 700)
        pair.lab.kill(f"b/{leader}")
        pair.lab.restart(f"b/{follower}")
        pair.produce("a", topic, 50)
        held(pair, copy, 750, seconds=90)
        pair.lab.restart(f"b/{leader}")
        assert worker.code is None
        assert worker.says("target-truncated") or worker.says("fencing anew")
    ours, theirs = pair.read("a", topic)[0], pair.read("b", copy)[0]
    assert [contents(record) for record in theirs] == [contents(record) for record in ours]


def held(pair: Pair, copy: str, count: int, *, seconds: float = 60) -> None:
    def enough() -> bool:
        return len(pair.read("b", copy).get(0, [])) >= count

    pair.b.until(enough, what=f"{copy} has {count} records", seconds=seconds, every=0.3)
