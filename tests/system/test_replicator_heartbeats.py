"""Heartbeats of the replicator: MirrorMaker 2's records, on both clusters of a flow, copied by it, and healing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from failover.kafka.wire.cluster import WireCluster
from failover.kafka.wire.topics import NewTopic
from failover.lab import APP
from failover.lab.internal_records import heartbeat_of
from failover.lab.side import Side
from failover.model import Record
from failover.replication.heartbeats import Heartbeats, HeartbeatSettings
from tests.system.pair import Pair
from tests.system.replicating import Flow, Worker
from tests.system.test_plan_rights import Scene
from tests.system.wire_side import secured

CONSOLE = "org.apache.kafka.tools.consumer.ConsoleConsumer"
FORMATTER = "org.apache.kafka.connect.mirror.formatters.HeartbeatFormatter"
COPIED = {"heartbeats.replication.enabled": "true"}
AliasPair = tuple[str, str]


def beats(side: Side, topic: str, flow: AliasPair) -> list[Record]:
    """Gives the records of one flow in a heartbeats topic."""
    if topic not in side.topics():
        return []
    return [record for record in side.read(topic).get(0, ()) if heartbeat_of(record)[:2] == flow]


@pytest.fixture(scope="module")
def flow(pair: Pair) -> Iterator[tuple[Flow, Worker]]:
    """Is a flow of one topic with its worker, and heartbeats on both sides."""
    topic = pair.create_topic("a", pair.name("beat"))
    flow = Flow(pair, topic, COPIED)
    with flow.worker() as worker:
        yield flow, worker
        worker.stop()


def test_the_copy_of_the_sources_heartbeats_arrives(pair: Pair, flow: tuple[Flow, Worker]) -> None:
    """A->B alone is enabled; B->A writes on A, as with MirrorMaker 2, and A->B copies that."""
    one, worker = flow
    back = (one.target, one.source)
    worker.until(lambda: len(beats(pair.b, f"{one.source}.heartbeats", back)) >= 2, what="copies of two heartbeats")
    written = {record.value for record in beats(pair.a, "heartbeats", back)}
    assert {record.value for record in beats(pair.b, f"{one.source}.heartbeats", back)} <= written
    assert not worker.lines("heartbeats of", "cannot")


def test_the_records_are_mirror_makers(mm2: Pair, flow: tuple[Flow, Worker]) -> None:
    one, worker = flow
    ours, theirs = (one.source, one.target), ("a", "b")
    worker.until(lambda: len(beats(mm2.b, "heartbeats", ours)) >= 3, what="three heartbeats", seconds=90)
    mm2.b.until(lambda: beats(mm2.b, "heartbeats", theirs), what="a heartbeat of MirrorMaker 2", seconds=90)
    found = beats(mm2.b, "heartbeats", ours)
    stamps = [heartbeat_of(record).timestamp for record in found]
    assert stamps == sorted(stamps)
    for record in [*found, *beats(mm2.b, "heartbeats", theirs)]:
        beat = heartbeat_of(record)
        assert (record.timestamp, record.headers) == (beat.timestamp, ())
        source, target = beat.source.encode(), beat.target.encode()
        assert record.key == len(source).to_bytes(2, "big") + source + len(target).to_bytes(2, "big") + target
        assert record.value == b"\0\0" + beat.timestamp.to_bytes(8, "big")
    assert mm2.b.topic_config("heartbeats") == {"cleanup.policy": "compact"}
    assert mm2.b.partitions("heartbeats") == [0]


def test_javas_formatter_prints_them(pair: Pair, flow: tuple[Flow, Worker]) -> None:
    one, worker = flow
    ours = (one.source, one.target)
    worker.until(lambda: beats(pair.b, "heartbeats", ours), what="a heartbeat")
    records = pair.b.read("heartbeats")[0]
    place = next(at for at, record in enumerate(records) if heartbeat_of(record)[:2] == ours)
    printed = pair.lab.run_tool(
        *(CONSOLE, "--bootstrap-server", pair.bootstrap("b"), "--topic", "heartbeats", "--partition", "0"),
        *("--offset", str(records[place].offset), "--formatter", FORMATTER, "--max-messages", "1"),
        *("--timeout-ms", "20000"),
    )
    beat = heartbeat_of(records[place])
    assert printed.splitlines() == [
        f"Heartbeat{{sourceClusterAlias={beat.source}, targetClusterAlias={beat.target}, timestamp={beat.timestamp}}}"
    ]


def test_off_means_off(pair: Pair) -> None:
    topic = pair.create_topic("a", pair.name("quiet"))
    pair.produce("a", topic, 10)
    one = Flow(pair, topic, {"emit.heartbeats.enabled": "false"})
    with one.worker() as worker:
        worker.copied(topic)
        worker.says("10 records copied in 10 s")  # ten intervals of heartbeats
        worker.stop()
    for side in (pair.a, pair.b):
        written = {heartbeat_of(record)[:2] for record in side.read("heartbeats").get(0, ())}
        assert not {(one.source, one.target), (one.target, one.source)} & written


def test_the_flow_into_a_named_target_beats_alone(pair: Pair) -> None:
    """``--clusters`` takes the flows into a cluster, their heartbeats, and no others, as MirrorMaker 2's does."""
    topic = pair.create_topic("a", pair.name("quiet"))
    pair.produce("a", topic, 10)
    one = Flow(pair, topic)
    with one.worker("--clusters", one.target) as worker:
        worker.until(lambda: len(beats(pair.b, "heartbeats", (one.source, one.target))) >= 3, what="three heartbeats")
        worker.stop()
    assert beats(pair.a, "heartbeats", (one.target, one.source)) == []


def test_a_right_that_is_missing_is_told_once_and_heals(pair: Pair, caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene(pair, pair.lab.config, ("", ""), ("", ""))
    topic = pair.name("beats")
    pair.expected["b"].add(topic)
    password = secured(pair, "b", user=APP, mechanism="SCRAM-SHA-512")
    where = HeartbeatSettings("x", "y", NewTopic(topic, 1, 1, {"cleanup.policy": "compact"}), 0.1)

    async def scenario() -> None:
        async with WireCluster(password, alias="y", silence=5) as cluster:
            beating = asyncio.create_task(Heartbeats(cluster, cluster, where).run())
            with scene.allowed(("TOPIC", topic, "DESCRIBE"), ("TOPIC", topic, "CREATE")):
                await said(caplog, f"heartbeats of x->y cannot be written to topic {topic} of y: TOPIC_AUTHORIZATION")
                await asyncio.sleep(1)
            with scene.allowed(("TOPIC", topic, "WRITE")):
                await said(caplog, "heartbeats of x->y are written again")
            beating.cancel()

    asyncio.run(scenario())
    [first] = [line for line in lines(caplog) if "cannot be written" in line]
    assert f"; grant WRITE on topic {topic} of y, or set x->y.emit.heartbeats.enabled=false" in first
    found = [heartbeat_of(record) for record in pair.b.read(topic)[0]]
    assert {beat[:2] for beat in found} == {("x", "y")}


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


async def said(caplog: pytest.LogCaptureFixture, text: str, *, seconds: float = 30) -> None:
    async with asyncio.timeout(seconds):
        while not any(text in line for line in lines(caplog)):  # noqa: ASYNC110 - the log tells nobody
            await asyncio.sleep(0.05)
