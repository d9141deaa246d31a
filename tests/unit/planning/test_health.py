"""The checklists on a healthy flow in memory and on broken ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import pytest

from failover.checks.health_checks import DRIFT, LARGE_BYTES, release
from failover.checks.status_checks import Limits
from failover.inventory.health import internal_topics, read_sides
from failover.inventory.status import read_beside
from failover.model.groups import Member
from failover.model.health import Health, HealthFacts, Sides
from failover.model.names import Fault, TopicPartition
from failover.model.status import ConnectorState
from failover.planning.health import make_health
from failover.planning.status import Looks, make_status
from failover.report.encode import to_json
from failover.report.health_text import health_markdown, health_text
from tests.unit.planning.test_status import AT, Flow, planned

DAY = 86_400_000
MEMBERS = (Member("app", "/10.0.0.1", "m-1"),)
SAME = {
    "cleanup.policy": "delete",
    "retention.ms": "604800000",
    "retention.bytes": "-1",
    "max.message.bytes": "1048588",
}


class Patient(Flow):
    """Is a flow in which everything is well: topics, groups with members, positions, settings, versions."""

    def __init__(self, folder: Path, settings: dict[str, str] | None = None) -> None:
        super().__init__(folder, settings)
        self.copied()
        self.a.group("g", {TopicPartition("orders", 0): 100}, state="Stable", members=MEMBERS)
        self.checkpoint("g", "a.orders", 100, 100, timestamp=AT - 30_000)
        self.copied("pay")
        self.a.group("payer", {TopicPartition("pay", 0): 100}, state="Stable", members=MEMBERS)
        self.checkpoint("payer", "a.pay", 100, 100, timestamp=AT - 30_000)
        self.position(100)
        self.b.group("a-mm2", state="Stable", members=MEMBERS, protocol_type="connect")
        self.a.bindings, self.b.bindings = [], []
        for cluster, topic in ((self.a, "orders"), (self.b, "a.orders")):
            cluster.topic_configs[topic] = dict(SAME)
        for topic in ("a.checkpoints.internal", "mm2-offsets.a.internal"):
            self.b.topic_configs[topic] = {"cleanup.policy": "compact"}
        self.a.topic_configs["mm2-offset-syncs.b.internal"] = {"cleanup.policy": "compact"}

    def health(
        self, period: Literal["daily", "weekly"] = "weekly", connectors: tuple[ConnectorState, ...] = ()
    ) -> Health:
        both = self.look()
        alone = self.look(source_down=True) if both.source.status.answers else both
        clusters = {"a": self.a, "b": self.b}
        both, beside = read_beside(self.flow, both, clusters.__getitem__)
        looks = Looks(both, planned(both), alone, planned(alone), beside, heartbeats=True, connectors=connectors)
        sides = read_sides(self.flow, both, clusters.__getitem__) if period == "weekly" else (Sides(), Sides())
        return make_health(
            HealthFacts(
                period=period,
                status=make_status(looks, Limits(heartbeat_seconds=10)),
                snapshot=both,
                source=sides[0],
                target=sides[1],
                internal=internal_topics(self.flow),
                last_records=beside.source_times,
            )
        )


@pytest.fixture
def well(tmp_path: Path) -> Patient:
    return Patient(tmp_path)


def result(health: Health, name: str) -> str:
    return next(point.result for point in health.points if point.name == name)


def test_a_healthy_flow_is_well_at_every_point(well):
    health = well.health()
    assert {point.name: point.result for point in health.points if point.result != "ok"} == {"offsets": "remark"}
    assert health.exit_code == 0
    assert [(lag.by, lag.records, lag.seconds) for lag in health.lags] == [
        ("offsets", 0, 0.0),
        ("heartbeats", None, 2.0),
        ("connect-offsets", 0, 1.0),
    ]
    text = health_text(health)
    assert text.startswith("WELL   a -> b   weekly")
    assert all(len(line) <= 100 for line in text.splitlines())
    assert len(well.health("daily").points) == 5


@pytest.mark.parametrize(
    ("code", "severity", "point"),
    [
        ("replication-lag", "warning", "lag"),
        ("heartbeat-stale", "warning", "heartbeat"),
        ("connector-not-running", "error", "connectors"),
        ("groups-not-ready", "error", "groups"),
        ("topic-not-mirrored", "warning", "new-topics"),
        ("group-stuck", "warning", "stuck-groups"),
        ("offsets-expiring", "warning", "offsets"),
        ("config-drift", "warning", "configs"),
        ("partition-count-differs", "warning", "partitions"),
        ("internal-topic-large", "warning", "disk"),
        ("internal-topic-policy", "error", "disk"),
        ("version-skew", "warning", "versions"),
        ("topic-unused", "info", "unused"),
    ],
)
def test_each_way_of_being_ill_is_found_with_a_remedy(tmp_path, code, severity, point):
    ill = Patient(tmp_path)
    connectors: tuple[ConnectorState, ...] = ()
    match code:
        case "replication-lag":
            ill.records(ill.a, "orders", 1500, age=120)
        case "heartbeat-stale":
            ill.b.log[TopicPartition("a.heartbeats", 0)].clear()
            ill.beat(30)
        case "connector-not-running":
            connectors = (ConnectorState("src", "source", "RUNNING", ("FAILED",), "boom"),)
        case "groups-not-ready":
            ill.b.log[TopicPartition("a.checkpoints.internal", 0)].clear()
        case "topic-not-mirrored":
            ill.a.topic("fresh", end=5)
        case "group-stuck":
            ill.b.log[TopicPartition("a.checkpoints.internal", 0)].clear()
            ill.a.group("g", {TopicPartition("orders", 0): 50}, state="Stable", members=MEMBERS)
            ill.checkpoint("g", "a.orders", 50, 50, timestamp=AT - 7_200_000)
        case "offsets-expiring":
            ill.a.group("idle", {TopicPartition("orders", 0): 100})
            ill.checkpoint("idle", "a.orders", 100, 100, timestamp=AT - 6 * DAY)
        case "config-drift":
            ill.b.topic_configs["a.orders"]["retention.ms"] = "86400000"
        case "partition-count-differs":
            ill.b.topic("a.orders", 3, end=100)
        case "internal-topic-large":
            ill.b.sizes["a.checkpoints.internal"] = 3 * LARGE_BYTES
        case "internal-topic-policy":
            ill.b.topic_configs["mm2-offsets.a.internal"]["cleanup.policy"] = "delete"
        case "version-skew":
            ill.b.speaks[1] = {1: 16}
        case "topic-unused":
            ill.records(ill.a, "dusty", 3, age=30 * 86_400)
            ill.records(ill.b, "a.dusty", 3, age=30 * 86_400)
    health = ill.health(connectors=connectors)
    found = [finding for finding in health.findings if finding.code == code]
    assert [finding.severity for finding in found] == [severity]
    assert found[0].remedy
    assert result(health, point) == {"info": "remark"}.get(severity, severity)
    assert health.exit_code == {"info": 0, "warning": 4, "error": 3}[severity]
    assert found[0].message[:40] in health_markdown(health).replace("\\", "")


def test_differences_that_take_nothing_away_are_remarks(well):
    well.b.topic_configs["a.orders"]["retention.ms"] = "-1"
    well.b.topic_configs["a.orders"]["max.message.bytes"] = "9999999"
    health = well.health()
    assert [f.severity for f in health.findings if f.code == "config-drift"] == ["info"]
    assert health.exit_code == 0


def test_brokers_of_one_cluster_that_differ_are_an_unfinished_upgrade(tmp_path):
    ill = Patient(tmp_path)
    ill.b.brokers = (*ill.b.brokers, ill.b.brokers[0]._replace(id=2))
    ill.b.speaks[2] = {1: 17}
    messages = [finding.message for finding in ill.health().findings if finding.code == "version-skew"]
    assert messages[0] == "brokers of b are of different releases (broker 1: 4.1 or newer, broker 2: 3.9 or 4.0)"


def test_what_nobody_tells_is_unknown_and_no_fault(well):
    well.b.faults["log_bytes", None] = Fault(31, "CLUSTER_AUTHORIZATION_FAILED")
    well.a.faults["api_versions", None] = Fault(-1, "NO_ANSWER")
    well.a.bindings = None
    health = well.health()
    assert [result(health, name) for name in ("disk", "versions", "acls")] == ["unknown"] * 3
    assert health.exit_code == 0
    assert "DESCRIBE on the cluster" in health_text(health)


def test_with_the_source_dead_the_list_is_answered_as_far_as_it_can_be(well):
    well.a.down = "no answer"
    health = well.health()
    assert result(health, "new-topics") == "unknown"
    assert result(health, "lag") == "unknown"
    assert health_text(health).endswith("next: failover plan\n")
    assert "source-silent" in {finding.code for finding in health.findings}
    assert health.exit_code == 4


def test_the_lags_contradict_each_other_where_one_of_them_is_fooled(well):
    """Positions are an hour old while everything is there: only the third way sees a lag."""
    well.b.log[TopicPartition("mm2-offsets.a.internal", 0)].clear()
    well.position(10, age=3600)
    by = {lag.by: (lag.records, lag.seconds) for lag in well.health("daily").lags}
    assert by == {"offsets": (0, 0.0), "heartbeats": (None, 2.0), "connect-offsets": (90, 3600.0)}


@pytest.mark.parametrize(
    ("fetch", "said"), [(18, "4.1 or newer"), (25, "4.1 or newer"), (17, "3.9 or 4.0"), (4, "older than 2.3")]
)
def test_releases_are_told_by_what_brokers_speak(fetch, said):
    assert release(fetch) == said


def test_few_requests_are_made_for_many_topics(tmp_path):
    patient = Patient(tmp_path)
    for number in range(200):
        patient.a.topic(f"t{number}", 2, end=1)
        patient.b.topic(f"a.t{number}", 2, end=1)
    patient.a.calls.clear()
    patient.b.calls.clear()
    patient.health()
    assert len(patient.a.calls) <= 25
    assert len(patient.b.calls) <= 45
    settings = [size for name, size in patient.b.calls if name == "topic_settings"]
    assert max(settings) >= 200


def test_every_form_is_inert_and_json_says_its_kind(well):
    well.a.topic("<b>\x1b[2J", end=1)
    health = well.health()
    for text in (health_text(health, verbosity=1), health_markdown(health), to_json(health)):
        assert "\x1b" not in text
    document: Any = json.loads(to_json(health))
    assert (document["kind"], document["period"]) == ("failover.health", "weekly")
    assert {point["result"] for point in document["points"]} <= {"ok", "remark", "warning", "error", "unknown"}


def test_the_settings_compared_are_asked_of_both_clusters(well):
    well.health()
    assert set(SAME) == set(DRIFT)
    for cluster in (well.a, well.b):
        assert "topic_settings" in {name for name, _ in cluster.calls}
