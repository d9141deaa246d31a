"""`health` on real brokers: a flow of MirrorMaker 2 that is well, and one on Kafka Connect that is ill in many ways."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions, ResourceType

from failover.lab import MirrorOptions
from failover.lab.clients import SILENT
from failover.lab.connect import connect_settings
from failover.mm2.checkpoint import Checkpoint
from failover.model.names import TopicPartition
from failover.model.rights import AclBinding
from tests.system.inventory_side import cluster
from tests.system.pair import Pair, Ran

MINUTE, DAY = 60_000, 86_400_000


def results(health: Any) -> dict[str, str]:
    return {point["name"]: point["result"] for point in health["points"]}


def found(health: Any, code: str) -> dict[str, Any]:
    [finding] = [finding for finding in health["findings"] if finding["code"] == code]
    return dict(finding)


def ago(milliseconds: int) -> int:
    return int(time.time() * 1000) - milliseconds


# MirrorMaker 2 runs as all tests use it; of its topics and groups only these are looked at
ONLY = MirrorOptions(topics=r"t\.health.*", groups=r"health\..*")


@pytest.fixture(scope="module")
def topic(mm2: Pair) -> str:
    topic = mm2.create_topic("a", mm2.name("t.health"), 2, config={"retention.ms": "7200000"})
    group = mm2.name("health.g")
    mm2.produce("a", topic, 200)
    ends = {(topic, partition): end for partition, (_, end) in mm2.ends("a", topic).items()}
    mm2.commit("a", group, ends)
    mm2.wait_mirrored(topic)
    for partition in (0, 1):
        mm2.wait_checkpoint(group, topic, partition, upstream=ends[topic, partition])
    return topic


@pytest.fixture(scope="module")
def config(mm2: Pair, topic: str) -> Path:
    return mm2.config_path(options=ONLY)


def test_a_flow_that_is_well_is_so_at_every_point_and_by_each_way_of_measuring_lag(mm2, config):
    health: Any = {}

    def well() -> bool:
        health.update(mm2.run_cli("health", "weekly", "--format", "json", config=config).json())
        by = {lag["by"]: lag["records"] for lag in health["lags"]}
        beats = results(health)["heartbeat"] == "ok"
        return by["offsets"] == 0 and by["connect-offsets"] == 0 and beats and bool(health["readiness"] == "ready")

    mm2.b.until(well, what="the flow is well", seconds=120)
    assert results(health) | {"offsets": "-"} == {
        "connectors": "ok",
        "lag": "ok",
        "heartbeat": "ok",
        "checkpoints": "ok",
        "groups": "ok",
        "new-topics": "ok",
        "stuck-groups": "ok",
        "acls": "ok",
        "configs": "ok",
        "partitions": "ok",
        "offsets": "-",
        "unused": "ok",
        "disk": "ok",
        "versions": "ok",
    }
    assert {finding["severity"] for finding in health["findings"]} <= {"info"}
    versions = next(point for point in health["points"] if point["name"] == "versions")
    assert versions["detail"] == "a: Kafka 4.1 or newer, b: Kafka 4.1 or newer"
    ran = mm2.run_cli("health", "daily", config=config)
    assert (ran.code, ran.out.startswith("WELL")) == (0, True)
    assert all(len(line) <= 100 for line in ran.out.splitlines())
    assert "| connectors | ok |" in mm2.run_cli("health", "weekly", "--format", "markdown", config=config).out


def test_the_list_as_a_playbook_is_kept_with_its_answers(mm2, config, tmp_path):
    previewed = mm2.run_cli("run", "health-weekly", "--dry-run", config=config, state=tmp_path)
    assert previewed.code == 0, previewed.out
    assert "Nothing seen now stands in the way." in previewed.out
    ran = mm2.run_cli("run", "health-weekly", "--format", "json", config=config, state=tmp_path)
    assert ran.code == 0, ran.out + ran.err
    record = ran.json()
    assert {step["status"] for step in record["steps"]} == {"done"}
    answers = [answer for step in record["steps"][:-1] for answer in step["result"]["answers"]]
    assert "lag: ok, 0 records, 0 s" in answers
    assert sorted(answer.partition(":")[0] for answer in answers) == sorted(
        answer.partition(":")[0] for answer in record["steps"][-1]["result"]["answers"]
    )
    assert len(answers) == 14
    listed = mm2.run_cli("history", "--local", "--format", "json", config=config, state=tmp_path).json()
    assert [run["id"] for run in listed["playbook_runs"]] == [record["id"]]
    assert all(step["seconds"] is not None for step in record["steps"])


def test_brokers_tell_disks_newest_timestamps_and_what_they_speak(mm2, topic):
    place, empty = TopicPartition(topic, 0), mm2.create_topic("a", mm2.name("health.empty"))
    newest = max(record.timestamp for record in mm2.read("a", topic)[0])
    with cluster(mm2, "a") as source:
        sizes = source.log_bytes([topic, empty, "nowhere"])
        assert isinstance(sizes, dict)
        assert sizes[topic] > 200
        assert (sizes[empty], sizes["nowhere"]) == (0, 0)
        nothing = TopicPartition(empty, 0)
        assert source.last_times([place, nothing]) == {place: newest, nothing: None}
        spoken = source.api_versions()
        assert isinstance(spoken, dict)
        assert {versions[1] for versions in spoken.values()} == {18}


class Ward:
    """Is a flow under aliases of its own on Kafka Connect: its only task fails, then it is stopped and neglected."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self.stem = pair.name("ill")
        self.source, self.target = pair.name("ha"), pair.name("hb")
        pair.expect_topic(rf"({self.source}|{self.target})\..*")
        self.checkpoints = f"{self.source}.checkpoints.internal"
        options = MirrorOptions(
            topics=rf"{self.stem}\..*", groups=rf"{self.stem}\..*", checkpoint_seconds=1, refresh_seconds=1, tasks=1
        )
        # what is set on a copy stays as it is
        kept = {f"{self.source}->{self.target}.sync.topic.configs.interval.seconds": "600"}
        self.config = pair.config_path(
            aliases=(self.source, self.target), options=options, added=connect_settings(pair.lab) | kept
        )
        self.t = self.topic("t", 100, retention_ms="7200000")
        self.cut, self.grown = self.topic("cut", 100), self.topic("grown", 10)
        self.dusty = self.topic("dusty", 10, at=ago(30 * DAY), retention_ms="-1")
        self.g = self.group("g", self.t, 100)

    def run(self, *arguments: str) -> Ran:
        named = ("--source", self.source, "--target", self.target)
        return self.pair.run_cli(*arguments, *named, config=self.config)

    def asked(self, period: str) -> tuple[int, Any]:
        ran = self.run("health", period, "--format", "json")
        return ran.code, ran.json()

    def heartbeat_age(self) -> float:
        return float(self.run("status", "--format", "json").json()["heartbeat"]["age_seconds"])

    def topic(self, name: str, count: int, *, partitions: int = 1, at: int | None = None, **config: str) -> str:
        topic = self.pair.create_topic(
            "a", f"{self.stem}.{name}", partitions, config={key.replace("_", "."): each for key, each in config.items()}
        )
        self.write(topic, count, at=at)
        return topic

    def write(self, topic: str, count: int, *, at: int | None = None, value: bytes = b"v") -> None:
        producer = self.pair.a.producer()
        for number in range(count):
            producer.produce(topic, value, partition=0, timestamp=number + (ago(0) if at is None else at))
        producer.flush(30)

    def copy(self, topic: str) -> str:
        return f"{self.source}.{topic}"

    def alter(self, topic: str, settings: Mapping[str, str]) -> None:
        """Sets settings of a topic on the target."""
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in settings.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        for future in self.pair.admin("b").incremental_alter_configs([resource]).values():
            future.result(20)

    def group(self, name: str, topic: str, at: int) -> str:
        group = f"{self.stem}.{name}"
        self.pair.commit("a", group, {(topic, 0): at})
        return group

    def checkpoint(self, group: str, topic: str, at: int, *, age: int) -> None:
        """Writes a checkpoint as MirrorMaker 2 would have written it ``age`` milliseconds ago."""
        record = Checkpoint(group, self.copy(topic), 0, at, at)
        producer = self.pair.b.producer()
        producer.produce(
            self.checkpoints, key=record.encode_key(), value=record.encode_value(), partition=0, timestamp=ago(age)
        )
        producer.flush(30)

    @contextlib.contextmanager
    def reading(self, group: str, topic: str) -> Iterator[None]:
        """Has a member in a group on the source that commits nothing."""
        settings = {**self.pair.a.settings, "group.id": group, "enable.auto.commit": False}
        consumer = Consumer(settings, logger=SILENT)
        consumer.subscribe([topic])
        try:
            self.pair.a.until(lambda: consumer.poll(0.2) and consumer.assignment(), what=f"{group} has a member")
            yield
        finally:
            consumer.close()

    @contextlib.contextmanager
    def allowed(self, principal: str, group: str) -> Iterator[None]:
        """Has an ACL on the source that the target lacks."""
        acl = AclBinding("group", "literal", group, principal, "*", "ALLOW", "READ")
        with cluster(self.pair, "a") as source:
            assert source.create_acls([acl]) == {acl: None}
            try:
                yield
            finally:
                assert source.delete_acls([acl]) == {acl: None}


@pytest.fixture(scope="module")
def ward(mm2: Pair, connect: Pair) -> Ward:
    ward = Ward(connect)  # MirrorMaker 2 beside it writes the heartbeats on a
    deployed = ward.run("connect", "deploy", "--yes")
    assert deployed.code == 0, deployed.err
    for topic in (ward.t, ward.cut, ward.grown, ward.dusty):
        connect.wait_mirrored(topic, flow=ward.source, seconds=120)
    connect.wait_checkpoint(ward.g, ward.t, upstream=100, flow=ward.source, seconds=120)
    return ward


def test_a_flow_on_connect_is_well_first(ward):
    told: list[Any] = []

    def well() -> bool:
        told[:] = ward.asked("weekly")
        return results(told[1])["heartbeat"] == "ok" and results(told[1])["lag"] == "ok"

    ward.pair.b.until(well, what="the flow is well", seconds=120)
    code, health = told
    assert code == 0, health["findings"]
    # only what is wrong from the beginning is remarked
    assert found(health, "topic-unused")["subject"] == ward.dusty
    point = next(point for point in health["points"] if point["name"] == "connectors")
    assert (point["result"], point["detail"]) == ("ok", "3 connectors and 3 tasks run")


def test_a_task_that_failed_is_named_with_its_reason_and_what_it_stands_at(ward):
    ward.alter(ward.copy(ward.t), {"max.message.bytes": "2000"})
    ward.write(ward.t, 1, at=ago(20 * MINUTE), value=b"x" * 5_000)
    told: list[Any] = []

    def failed() -> bool:
        told[:] = ward.asked("daily")
        return any(finding["code"] == "connector-not-running" for finding in told[1]["findings"])

    ward.pair.b.until(failed, what="the task fails", seconds=120, every=0.5)
    code, health = told
    assert code == 3
    finding = found(health, "connector-not-running")
    assert finding["severity"] == "error"
    assert "its tasks FAILED: " in finding["message"]
    assert finding["remedy"] == f"failover connect restart {finding['subject']}"
    assert finding["subject"] == f"{ward.source}-{ward.target}-source"
    stalled = found(health, "mirror-stalled")
    assert f"{ward.copy(ward.t)} takes 2,000 (max.message.bytes)" in stalled["message"]
    assert stalled["remedy"].startswith(f"raise max.message.bytes of {ward.copy(ward.t)}")
    gate = ward.run("run", "health-daily")
    assert gate.code == 3
    assert "max.message.bytes" in gate.out


def test_each_illness_of_a_mirror_that_stands_still_is_found_with_its_remedy(ward, tmp_path):
    pair = ward.pair
    assert ward.run("connect", "stop", "--yes").code == 0
    ward.write(ward.t, 12_000, at=ago(15 * MINUTE))
    ward.write(ward.cut, 100)
    pair.a.delete_records(ward.cut, 0, 150)
    fresh = ward.topic("fresh", 1)
    for future in pair.admin("a").create_partitions([NewPartitions(ward.grown, 2)]).values():
        future.result(20)
    ward.alter(ward.copy(ward.t), {"retention.ms": "3600000"})
    late = ward.group("late", ward.t, 80)
    idle, stuck, gone_on = (ward.group(name, ward.t, 90) for name in ("idle", "stuck", "gone-on"))
    ward.checkpoint(idle, ward.t, 90, age=6 * DAY)
    ward.checkpoint(stuck, ward.t, 90, age=120 * MINUTE)
    ward.checkpoint(gone_on, ward.t, 40, age=120 * MINUTE)
    ward.alter(ward.checkpoints, {"cleanup.policy": "delete", "retention.ms": "-1"})
    pair.b.until(lambda: ward.heartbeat_age() > 10, what="the newest heartbeat is ten intervals old", every=0.5)
    with ward.reading(stuck, ward.t), ward.allowed("User:app", ward.g):
        code, health = ward.asked("weekly")
        text = ward.run("health", "weekly").out
        markdown = ward.run("health", "weekly", "--format", "markdown")
        played = ward.run("run", "health-weekly", "--format", "json")
    wanted: dict[str, tuple[str, str, str, str]] = {
        # code: severity, point, in its subject, in its remedy
        "replication-lag": ("error", "lag", f"{ward.t}-0", "tasks.max"),
        "heartbeat-stale": ("warning", "heartbeat", ward.target, "nothing is mirrored any more"),
        "mirror-stalled": ("warning", "connectors", f"{ward.t}-0", "max.message.bytes"),
        "source-truncated": ("error", "lag", f"{ward.cut}-0", "raise retention.ms"),
        "groups-not-ready": ("warning", "groups", late, "failover plan --source-down --group"),
        "checkpoint-stale": ("warning", "checkpoints", gone_on, "MirrorCheckpointConnector"),
        "topic-not-mirrored": ("warning", "new-topics", fresh, "refresh.topics.interval.seconds"),
        "partition-count-differs": ("warning", "partitions", ward.copy(ward.grown), "kafka-topics.sh"),
        "config-drift": ("warning", "configs", ward.t, "kafka-configs.sh"),
        "acl-missing": ("warning", "acls", "User:app", "failover plan --format kafka-acls"),
        "group-stuck": ("warning", "stuck-groups", stuck, "consumers' logs"),
        "offsets-expiring": ("warning", "offsets", idle, "offsets.retention.minutes"),
        "internal-topic-policy": ("error", "disk", ward.checkpoints, "--add-config cleanup.policy=compact"),
        "topic-unused": ("info", "unused", ward.dusty, "topics.exclude"),
    }
    told = {finding["code"]: finding for finding in health["findings"]}
    assert sorted(set(wanted) - set(told)) == []
    for name, (severity, point, subject, remedy) in wanted.items():
        finding = found(health, name)
        assert finding["severity"] == severity, finding
        assert subject in finding["subject"], finding
        assert remedy in finding["remedy"], finding
        # a point has the weight of its heaviest finding
        assert results(health)[point] in ({"info": "remark"}.get(severity, severity), "error"), point
        assert f"`{name}`: " in markdown.out, name
    halted = found(health, "connector-not-running")
    assert halted["message"].startswith("3 connectors are STOPPED, with no tasks: ")
    assert halted["remedy"].startswith("failover connect resume ")
    assert code == markdown.code == played.code == 3
    assert results(health)["versions"] == "ok"
    lags = {lag["by"]: lag["records"] for lag in health["lags"]}
    assert lags["offsets"] >= 12_000
    assert lags["connect-offsets"] >= 12_000  # by Connect's REST
    assert all(len(line) <= 100 for line in text.splitlines())
    assert text.startswith("NOT WELL: ")
    steps = {step["id"]: step["status"] for step in played.json()["steps"]}
    assert set(steps.values()) == {"failed"}
