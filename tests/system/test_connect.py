"""The commands for Kafka Connect on a real worker that speaks https and asks for a password."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from failover.config.secret import Secret
from failover.connect.access import ConnectAccess
from failover.connect.client import ConnectClient
from failover.lab import MirrorOptions
from failover.lab.connect import connect_settings
from failover.model.names import TopicPartition
from tests.system.pair import Pair, Ran

IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"


class OnConnect:
    """Is a flow from a to b under aliases of its own, deployed to the Connect worker on b."""

    def __init__(self, pair: Pair, stem: str, **added: str) -> None:
        self.pair = pair
        self.stem = pair.name(stem)
        self.source, self.target = pair.name("ca"), pair.name("cb")
        self.flow = f"{self.source}->{self.target}"
        self.added = {
            f"{self.flow}.topics": rf"{self.stem}\..*",
            f"{self.target}->{self.source}.topics": rf"{self.stem}\..*",
            f"{self.target}.offset.storage.partitions": "3",
            f"{self.source}.offset.storage.partitions": "3",
            "heartbeats.replication.enabled": "false",
            **connect_settings(pair.lab),
            **added,
        }
        self.config = self.written()
        pair.expect_topic(rf"({self.source}\.)?{self.stem}\..*")
        pair.expect_topic(rf"({self.source}|{self.target})\..*")

    def written(self, **added: str) -> Path:
        return self.pair.config_path(
            aliases=(self.source, self.target), options=MirrorOptions(refresh_seconds=1), added=self.added | added
        )

    @property
    def access(self) -> ConnectAccess:
        url, user, password, ca = (self.added[f"failover.connect.{key}"] for key in ("url", "user", "password", "ca"))
        return ConnectAccess((url,), user, Secret(password), ca)

    def run(self, *arguments: str, password: str | None = None) -> Ran:
        named = ("--source", self.source, "--target", self.target)
        environ: dict[str, Any] = {} if password is None else {"FAILOVER_CONNECT_PASSWORD": password}
        return self.pair.run_cli(*arguments, *named, config=self.config, **environ)

    def json(self, *arguments: str, code: int = 0) -> Any:
        ran = self.run(*arguments, "--format", "json")
        assert ran.code == code, ran.err
        return json.loads(ran.out)

    def positions(self) -> dict[TopicPartition, int]:
        rows = self.json("connect", "offsets")["offsets"]
        return {
            TopicPartition(row["partition"]["topic"], row["partition"]["partition"]): row["offset"]["offset"]
            for row in rows
        }

    def wait_positions(self, wanted: dict[TopicPartition, int]) -> None:
        self.pair.b.until(lambda: self.positions() == wanted, what=f"Connect stores {wanted}", seconds=90, every=0.5)


def records(found: dict[int, list[Any]]) -> dict[int, list[Any]]:
    return {number: [(one.key, one.value, one.headers) for one in each] for number, each in found.items()}


@pytest.fixture(scope="module")
def deployed(connect: Pair) -> OnConnect:
    """Is a flow that was deployed, with a topic of 2 × 100 records."""
    flow = OnConnect(connect, "conn")
    topic = connect.create_topic("a", f"{flow.stem}.t", 2)
    connect.produce("a", topic, 200, keys=7)
    shown = flow.run("connect", "deploy", "--dry-run")
    assert shown.code == 0, shown.err
    assert "create" in shown.out
    done = flow.json("connect", "deploy", "--yes")
    assert [step["action"] for step in done["steps"]] == ["create"] * 3
    assert {one["state"] for one in done["states"]} == {"RUNNING"}
    return flow


def test_records_arrive_as_they_are_though_the_worker_has_other_converters(deployed: OnConnect) -> None:
    pair, topic = deployed.pair, f"{deployed.stem}.t"
    remote = pair.wait_mirrored(topic, flow=deployed.source)
    assert records(pair.b.read(remote)) == records(pair.a.read(topic))


def test_status_offsets_stop_and_resume(deployed: OnConnect) -> None:
    pair, topic = deployed.pair, f"{deployed.stem}.t"
    assert deployed.run("connect", "deploy", "--yes").out.count("as it is") == 3
    status = deployed.run("connect", "status")
    assert status.code == 0, status.out + status.err
    assert "3 connectors, all running" in status.out
    deployed.wait_positions({TopicPartition(topic, 0): 99, TopicPartition(topic, 1): 99})

    planned = deployed.run("plan")
    assert planned.code == 0, planned.err
    stop = f"failover connect stop --source {deployed.source} --target {deployed.target}"
    assert f"before execute: {stop}" in planned.err
    weighed = deployed.json("status")
    assert {one["state"] for one in weighed["connectors"]} == {"RUNNING"}
    elsewhere = deployed.run("connect", "status", "--url", "arn:aws:kafkaconnect:eu-west-1:1:connector/c/1")
    assert "aws kafkaconnect describe-connector --region eu-west-1" in elsewhere.out
    assert "READY" in elsewhere.out

    stopped = deployed.json("connect", "stop", "--yes")
    assert stopped["outcome"] == "done"
    assert {(one["state"], len(one["tasks"])) for one in stopped["connectors"]} == {("STOPPED", 0)}
    assert deployed.run("connect", "status").code == 4
    assert "before execute" not in deployed.run("plan").err
    pair.produce("a", topic, 50)
    assert sum(end for _, end in pair.ends("b", f"{deployed.source}.{topic}").values()) == 200
    resumed = deployed.json("connect", "resume", "--yes")
    assert resumed["outcome"] == "done"
    pair.wait_mirrored(topic, flow=deployed.source)
    assert sum(end for _, end in pair.ends("b", f"{deployed.source}.{topic}").values()) == 250
    assert deployed.json("connect", "pause", "--yes")["outcome"] == "done"
    restarted = deployed.json("connect", "restart", "--yes")
    assert restarted["outcome"] == "done"
    assert {one["state"] for one in restarted["connectors"]} == {"PAUSED"}, "a restart leaves what is paused so"
    assert deployed.json("connect", "stop", "--yes")["outcome"] == "done"
    assert deployed.json("connect", "resume", "--yes", "--wait", "0", code=4)["outcome"] == "not-yet"
    assert deployed.json("connect", "resume", "--yes")["outcome"] == "done"


def test_an_operator_that_resumes_what_was_stopped_is_named(deployed: OnConnect) -> None:
    """As Strimzi's does at its next reconciliation; here after some seconds."""
    name = f"{deployed.source}-{deployed.target}-checkpoint"

    def operate() -> None:
        with ConnectClient(deployed.access) as client:
            deployed.pair.b.until(lambda: client.status(name).connector.state == "STOPPED", what="it stops", every=0.2)
            time.sleep(2)  # an operator is slower than two looks at what was stopped
            client.act(name, "resume")

    with ThreadPoolExecutor(1) as operator:
        operating = operator.submit(operate)
        undone = deployed.json("connect", "stop", name, "--yes", "--recheck", "60s", code=6)
        operating.result(timeout=30)
    assert undone["undone"] == [name]
    assert "state: stopped" in undone["snippet"]
    assert deployed.json("connect", "resume", "--yes")["outcome"] == "done"


def test_a_wrong_password_and_an_unknown_authority_are_told_apart(deployed: OnConnect) -> None:
    refused = deployed.run("connect", "list", password="wrong")
    assert refused.code == 8
    assert "the user or password is refused" in refused.err
    url = deployed.added["failover.connect.url"]
    secret = deployed.added["failover.connect.password"]
    untrusted = deployed.pair.run_cli(
        "connect", "list", "--url", url, "--user", "admin", config=deployed.pair.lab.config,
        FAILOVER_CONNECT_PASSWORD=secret,
    )  # fmt: skip
    assert untrusted.code == 8
    assert "certificate is not trusted" in untrusted.err
    every = deployed.run("connect", "list", "--every", "--format", "json")
    assert every.code == 0
    assert secret not in refused.err + refused.out + untrusted.err + every.out


def test_what_fails_is_shown_with_its_first_line(connect: Pair) -> None:
    flow = OnConnect(connect, "broken")
    broken = flow.written(**{
        f"{flow.source}.security.protocol": "SSL",
        f"{flow.source}.ssl.truststore.location": "/nowhere.jks",
    })  # fmt: skip
    flow.config = broken
    done = flow.run("connect", "deploy", "--yes")
    assert done.code == 4, done.err
    assert "FAILED" in done.out
    assert "KafkaException" in done.out
    assert "\tat " not in done.out
    assert flow.run("connect", "status").code == 3
    assert flow.run("connect", "stop", "--yes").code == 0


def test_the_way_back_is_seeded_while_its_connector_is_stopped(connect: Pair) -> None:
    """Records went from b to a under one name; now a has new ones, and Connect on b is to copy only these."""
    pair = connect
    flow = OnConnect(pair, "back", **{"replication.policy.class": IDENTITY})
    there = flow.written(**{f"{flow.target}->{flow.source}.enabled": "true", f"{flow.flow}.enabled": "false"})
    topic = pair.create_topic("b", f"{flow.stem}.t", 2)
    empty = pair.create_topic("b", f"{flow.stem}.empty")
    pair.produce("b", topic, 120, transactions=[(20, True), (10, False)])
    name = f"replicator-{flow.source}"
    pair.lab.start_replicator(there, "--source", flow.target, "--target", flow.source, name=name)
    count = sum(map(len, pair.b.read(topic).values()))
    pair.a.until(
        lambda: {topic, empty} <= pair.a.topics() and sum(map(len, pair.a.read(topic).values())) == count,
        what="the copies are there",
        seconds=90,
        every=0.3,
    )
    pair.lab.stop(name)
    before = records(pair.b.read(topic))
    pair.produce("a", topic, 30)
    new = {number: each[len(before[number]) :] for number, each in records(pair.a.read(topic)).items()}
    assert sum(map(len, new.values())) == 30

    made = flow.json("connect", "deploy", "--stopped", "--yes")
    assert {one["state"] for one in made["states"]} == {"STOPPED"}
    url = ("--url", flow.added["failover.connect.url"])
    seeded = flow.json("seed", "--from-inverse", "--yes", "--settle", "0", *url)
    assert {one["status"] for one in seeded["partitions"]} <= {"written", "unchanged"}
    assert {one["topic"] for one in seeded["partitions"]} == {topic, empty}
    begins = {TopicPartition(one["topic"], one["partition"]): one["offset"] for one in seeded["partitions"]}
    assert len(begins) == 3
    # Connect takes no -1: where nothing was copied there is no position
    assert flow.positions() == {tp: offset - 1 for tp, offset in begins.items() if offset}
    assert {one["status"] for one in flow.json("seed", "--from-inverse", "--yes", *url)["partitions"]} == {"unchanged"}

    assert flow.json("connect", "resume", "--yes")["outcome"] == "done"
    running = flow.run("seed", "--from-inverse", "--yes", *url)
    assert running.code == 3
    assert "is RUNNING" in running.err
    wanted = {number: before[number] + new[number] for number in before}
    pair.b.until(lambda: records(pair.b.read(topic)) == wanted, what="only the new records came", seconds=90, every=0.3)
    flow.json("connect", "stop", "--yes")
    assert records(pair.b.read(topic)) == wanted


def test_a_connector_goes_on_where_the_flow_s_mirror_stood(connect: Pair) -> None:
    pair = connect
    flow = OnConnect(pair, "moved")
    topic = pair.create_topic("a", f"{flow.stem}.t", 2)
    untouched = pair.create_topic("a", f"{flow.stem}.none")
    pair.produce("a", topic, 80, transactions=[(15, True), (5, False)])
    name = f"replicator-{flow.source}"
    pair.lab.start_replicator(flow.config, "--source", flow.source, "--target", flow.target, name=name)
    remote = pair.wait_mirrored(topic, flow=flow.source)
    made = flow.json("connect", "deploy", "--stopped", "--yes")
    assert {one["state"] for one in made["states"]} == {"STOPPED"}
    url = ("--url", flow.added["failover.connect.url"])
    refused = flow.run("seed", "--from-positions", "--yes", "--settle", "6s", *url)
    assert refused.code == 3, refused.out
    pair.lab.stop(name)

    pair.produce("a", topic, 40)
    seeded = flow.json("seed", "--from-positions", "--yes", "--settle", "0", *url)
    written = {TopicPartition(one["topic"], one["partition"]): one for one in seeded["partitions"]}
    assert {written[TopicPartition(topic, number)]["status"] for number in (0, 1)} == {"written"}
    assert {one["status"] for one in flow.json("seed", "--from-positions", "--yes", *url)["partitions"]} == {
        "unchanged"
    }
    assert flow.json("connect", "resume", "--yes")["outcome"] == "done"
    pair.produce("a", untouched, 5)
    pair.wait_mirrored(untouched, flow=flow.source)
    pair.wait_mirrored(topic, flow=flow.source)
    flow.json("connect", "stop", "--yes")
    assert records(pair.b.read(remote)) == records(pair.a.read(topic))


TURN = """
name: turn
description: Turns a mirror round on Kafka Connect.
steps:
  - {{id: turn, title: Turn it round, uses: reverse-replication, timeout: 2m, with: {{part: {part}}}}}
{more}"""
FAILS = "  - {id: fails, title: Fails, uses: command, with: {run: [no-such-program]}}\n"


def test_a_mirror_is_turned_round_by_a_playbook_and_back_where_the_run_fails(connect: Pair, tmp_path: Path) -> None:
    pair = connect
    flow = OnConnect(pair, "turn")
    topic = pair.create_topic("a", f"{flow.stem}.t")
    pair.produce("a", topic, 30)
    both = flow.written(**{f"{flow.target}->{flow.source}.enabled": "true"})
    back = ("--source", flow.target, "--target", flow.source)

    def states(*named: str) -> set[str]:
        shown = pair.run_cli("connect", "status", *named, "--format", "json", config=both)
        return {one["state"] for one in json.loads(shown.out).get("connectors", [])}

    def turned(part: str, code: int, more: str = "") -> dict[str, Any]:
        book = tmp_path / "turn.yaml"
        book.write_text(TURN.format(part=part, more=more))
        return dict(flow.json("run", str(book), "--yes", code=code))

    heartbeats = {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorHeartbeatConnector",
        "source.cluster.alias": flow.target,
        "target.cluster.alias": flow.source,
        "source.cluster.bootstrap.servers": pair.bootstrap("b"),
        "target.cluster.bootstrap.servers": pair.bootstrap("a"),
    }
    with ConnectClient(flow.access) as where:  # not by deploy, which would tell that this worker writes to b
        where.put_config(f"{flow.target}-{flow.source}-heartbeat", heartbeats)
    pair.b.until(lambda: states(*back) == {"RUNNING"}, what="the mirror that is turned round runs", every=0.3)
    undone = turned("both", 4, FAILS)
    assert [step["status"] for step in undone["steps"]] == ["undone", "failed"], undone
    here = ("--source", flow.source, "--target", flow.target)
    assert (states(*back), states(*here)) == ({"RUNNING"}, {"STOPPED"})

    record = turned("both", 0)
    result = record["steps"][0]["result"]
    assert (len(result["stopped"]), len(result["started"])) == (1, 3)
    assert (states(*back), states(*here)) == ({"STOPPED"}, {"RUNNING"})
    pair.wait_mirrored(topic, flow=flow.source)
    turned("finish", 0)
    assert states(*here) == {"STOPPED"}
