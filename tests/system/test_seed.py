"""The way back with one topic name on both clusters: seeded, the reverse flow copies the new records and no other."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from failover.errors import LabError
from failover.lab import MirrorOptions
from failover.lab.process import tail
from failover.lab.side import Side
from tests.system.pair import Pair, Ran
from tests.system.replicating import QUICK, Flow, Reading

IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
PARTITIONS = 3


class There(Flow):
    """Is a pair of aliases with both directions under kept names; ``there``, ``back``: a configuration each."""

    def __init__(self, pair: Pair, topics: str, *, heartbeats: bool = False) -> None:
        self.pair = pair
        self.source, self.target = pair.name("sa"), pair.name("sb")
        self.name = f"{self.source}->{self.target}"
        self._topics, self._heartbeats = topics, heartbeats
        self.there = self._written({self.name: "true", f"{self.target}->{self.source}": "false"})
        self.back = self._written({self.name: "false", f"{self.target}->{self.source}": "true"})
        self.config = self.there
        self._workers = 0

    def _written(self, enabled: Mapping[str, str]) -> Path:
        added = QUICK | {
            "replication.policy.class": IDENTITY,
            "sync.topic.acls.enabled": "false",
            "emit.heartbeats.enabled": str(self._heartbeats).lower(),
        }
        for flow, on in enabled.items():
            added |= {
                f"{flow}.enabled": on,
                f"{flow}.topics": self._topics,
                f"{flow}.refresh.topics.interval.seconds": "1",
                f"{flow}.emit.heartbeats.enabled": "true",  # so that the flow exists; its interval decides
                f"{flow}.emit.heartbeats.interval.seconds": "1" if self._heartbeats else "-1",
            }
        for alias in (self.source, self.target):
            added[f"{alias}.offset.storage.partitions"] = "3"
        options = MirrorOptions(topics=self._topics)
        return self.pair.config_path(aliases=(self.source, self.target), options=options, added=added)

    def remote(self, topic: str) -> str:
        return topic

    def seed(self, *arguments: str, config: Path | None = None, direction: str = "back") -> Ran:
        ends = (self.target, self.source) if direction == "back" else (self.source, self.target)
        named = ("--source", ends[0], "--target", ends[1])
        return self.pair.run_cli("seed", "--from-inverse", *named, *arguments, config=config or self.back)


def values(side: Side, topic: str) -> dict[int, list[bytes | None]]:
    with Reading(side, [topic]) as reading:
        return {tp.partition: [record.value for record in records] for tp, records in reading.to_the_end().items()}


def wait_for(side: Side, topic: str, count: int) -> dict[int, list[bytes | None]]:
    side.until(
        lambda: sum(map(len, values(side, topic).values())) >= count, what=f"{count} records in {topic}", seconds=120
    )
    return values(side, topic)


def made(pair: Pair, flow: There, stem: str, count: int = 300) -> str:
    """Makes a topic on the source, with transactions, and mirrors it in order."""
    topic = pair.create_topic("a", f"{stem}.t", PARTITIONS)
    pair.expect_topic(rf"{stem}\..*")
    pair.produce("a", topic, count, transactions=[(count // 3, True), (count // 3, False), (count // 3, True)])
    with flow.worker() as worker:
        worker.copied(topic)
        worker.stop()
    return topic


def joined(first: Mapping[int, list[Any]], *more: Mapping[int, list[Any]]) -> dict[int, list[Any]]:
    return {number: sum((each.get(number, []) for each in more), first[number]) for number in first}


def new_records(before: Mapping[int, list[Any]], after: Mapping[int, list[Any]]) -> dict[int, list[Any]]:
    assert all(after[number][: len(records)] == records for number, records in before.items())
    return {number: after[number][len(records) :] for number, records in before.items()}


def test_there_and_back_and_there_again(pair: Pair) -> None:
    stem = pair.name("seed")
    flow = There(pair, rf"{stem}\..*")
    topic = made(pair, flow, stem)
    originals = values(pair.a, topic)
    pair.produce("b", topic, 120)  # the applications have moved
    there = values(pair.b, topic)
    assert sum(map(len, new_records(originals, there).values())) == 120

    shown = flow.seed("--dry-run", "--format", "json")
    assert shown.code == 0, shown.err
    found = {one["partition"]: one for one in shown.json()["partitions"]}
    assert {one["action"] for one in found.values()} == {"write"}
    assert {one["tail"] for one in found.values()} == {0}
    assert flow.seed("--dry-run").out.count("to write") >= PARTITIONS
    body = {each["partition"]["partition"]: each["offset"]["offset"] for each in shown.json()["connect"]["offsets"]}
    assert body == {number: one["offset"] - 1 for number, one in found.items()}

    state = pair.folder / f"seeds-{stem}"
    done = pair.run_cli(
        "seed",
        "--from-inverse",
        "--source",
        flow.target,
        "--target",
        flow.source,
        "--yes",
        config=flow.back,
        state=state,
    )
    assert done.code == 0, done.err
    events = [json.loads(line) for line in (state / "seeds.ndjson").read_text().splitlines()]
    assert [event["event"] for event in events] == ["intent", "done"]
    assert {one["status"] for one in events[1]["seed"]["partitions"]} == {"written"}
    again = flow.seed("--yes")
    assert (again.code, "unchanged" in again.out) == (0, True)

    flow.config = flow.back
    with flow.worker() as worker:
        assert wait_for(pair.a, topic, 420) == joined(originals, new_records(originals, there))
        pair.produce("b", topic, 60)
        back = wait_for(pair.a, topic, 480)
        assert back == values(pair.b, topic)
        worker.stop()
    assert [len(records) for records in values(pair.a, topic).values()] == [160] * PARTITIONS

    pair.produce("a", topic, 30)
    seeded = flow.seed("--yes", config=flow.there, direction="there")
    assert seeded.code == 0, seeded.err
    flow.config = flow.there
    with flow.worker() as worker:
        assert wait_for(pair.b, topic, 510) == values(pair.a, topic)
        worker.stop()


def test_the_real_mirror_maker_goes_back_from_it(pair: Pair) -> None:
    """The offsets topic has the bytes that Connect looks for."""
    stem = pair.name("seedmm")
    flow = There(pair, rf"{stem}\..*")
    topic = made(pair, flow, stem)
    pair.produce("b", topic, 90)
    done = flow.seed("--yes")
    assert done.code == 0, done.err
    name = f"mm2-{flow.target}"
    pair.lab.start_mirror(flow.back, name=name)
    try:
        found = wait_for(pair.a, topic, 390)
    except LabError as error:
        raise LabError(f"{error}\n{tail(pair.lab.folder / f'{name}.log', 60)}") from error
    finally:
        pair.lab.kill(name)
    assert found == values(pair.b, topic)


@pytest.mark.parametrize("keep", [False, True])
def test_what_the_source_alone_has_is_refused_unless_kept(pair: Pair, keep: bool) -> None:
    stem = pair.name("tail")
    flow = There(pair, rf"{stem}\..*")
    topic = made(pair, flow, stem)
    pair.produce("a", topic, 45)  # never mirrored
    pair.produce("b", topic, 30)
    before, new = values(pair.a, topic), values(pair.b, topic)
    new = {number: records[100:] for number, records in new.items()}
    if not keep:
        refused = flow.seed("--yes")
        assert refused.code == 3
        assert "unreplicated-tail" in refused.out
        assert "15 records" in refused.out
        assert f"mm2-offsets.{flow.target}.internal" not in pair.a.topics()
        return
    done = flow.seed("--yes", "--keep-tail")
    assert done.code == 0, done.err
    flow.config = flow.back
    with flow.worker() as worker:
        assert wait_for(pair.a, topic, 375) == joined(before, new)
        worker.stop()


def test_it_refuses_while_something_mirrors(pair: Pair) -> None:
    stem = pair.name("busy")
    flow = There(pair, rf"{stem}\..*", heartbeats=True)
    topic = made(pair, flow, stem)
    pair.produce("b", topic, 30)
    with flow.worker() as worker:
        worker.says(f"{topic}-0", "from source offset")
        refused = flow.seed("--yes")
        assert refused.code == 3, refused.err
        assert f"heartbeats of {flow.source}->{flow.target}" in refused.err
        worker.stop()
    assert f"mm2-offsets.{flow.target}.internal" not in pair.a.topics()
    assert flow.seed("--yes").code == 0


def test_names_that_differ_have_nothing_to_seed(pair: Pair) -> None:
    stem = pair.name("plainseed")
    flow = Flow(pair, rf"{stem}\..*", {"{target}->{source}.enabled": "true", "{target}->{source}.topics": f"{stem}.*"})
    pair.create_topic("b", f"{stem}.t", 1)
    ran = pair.run_cli(
        "seed", "--from-inverse", "--source", flow.target, "--target", flow.source, "--dry-run", config=flow.config
    )
    assert ran.code == 0, ran.err
    assert "nothing comes back" in ran.out
