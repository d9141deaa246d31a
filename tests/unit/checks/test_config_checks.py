"""What `config check` finds in a configuration by itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from failover.checks.access_checks import Access, check_access
from failover.checks.config_checks import by_severity, check_config
from failover.config.findings import SEVERITIES, note_findings, value_findings
from failover.config.flow import Config
from failover.config.load import load_config
from failover.model.cluster import TopicInfo
from failover.model.groups import GroupInfo, GroupType
from failover.model.names import Fault
from failover.model.plan import Finding, Severity
from failover.report.explain import entries
from tests.unit.config.build import PAIR, load
from tests.unit.config.test_connectors import CHECKPOINT, HEARTBEAT, SOURCE
from tests.unit.config.test_strimzi import V1BETA2

IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"


def found(config: Config) -> dict[str, Finding]:
    findings = [*note_findings(config.notes, config.path), *value_findings(config), *check_config(config)]
    return {finding.code: finding for finding in findings if finding.code != "offset-syncs-on-source"}


def connectors(tmp_path: Path, *documents: dict[str, Any]) -> Config:
    path = tmp_path / "c.json"
    path.write_text(json.dumps(list(documents)))
    return load_config(path)


def test_a_good_configuration_has_one_remark(tmp_path):
    config = load(tmp_path, f"{PAIR}topics = orders, pay.*\\\\.v1, [a-z]*\ngroups = app-.+\n")
    assert found(config) == {}
    (remark,) = check_config(config)
    assert (remark.code, remark.severity, remark.subject) == ("offset-syncs-on-source", Severity.INFO, "A->B")
    assert check_config(load(tmp_path, f"{PAIR}offset-syncs.topic.location = target")) == ()


@pytest.mark.parametrize(
    ("key", "glob", "meant"),
    [
        ("groups", "customer-*", "customer-.*"),
        ("topics", "a|b-*", "a|b-.*"),
        ("topics.exclude", "*", ".*"),
        ("A->B.topics", "orders*", "orders.*"),
    ],
)
def test_a_glob_is_recognised_and_explained(tmp_path, key, glob, meant):
    finding = found(load(tmp_path, f"{PAIR}{key} = x.*, {glob}"))["glob-pattern"]
    assert (finding.severity, finding.subject, finding.remedy) == (
        Severity.WARNING,
        f"{key} (line 6)",
        f"write {meant}",
    )
    assert f"'{glob}' looks like a shell pattern" in finding.message
    assert f"does not match '{glob.rpartition('|')[2].replace('*', 'x')}'" in finding.message


def test_values_that_mm2_refuses_are_all_named_at_once(tmp_path):
    text = f"""{PAIR}
        tasks.max = 4  # four
        sync.group.offsets.enabled = yes
        offset-syncs.topic.location = here
        topics = orders(
        failover.cluster.B.security.protocol = TLS
    """
    findings = [
        *value_findings(load(tmp_path, text)),
        *check_config(load(tmp_path, text)),
    ]
    errors = [(one.code, one.subject.partition(" ")[0]) for one in findings if one.severity is Severity.ERROR]
    assert errors == [
        ("invalid-value", "tasks.max"),
        ("invalid-value", "offset-syncs.topic.location"),
        ("invalid-value", "sync.group.offsets.enabled"),
        ("config-invalid", "B"),
        ("pattern-invalid", "topics"),
    ]


class TestConnectors:
    def test_three_alike_agree(self, tmp_path):
        assert found(connectors(tmp_path, SOURCE, CHECKPOINT, HEARTBEAT)) == {}

    @pytest.mark.parametrize(
        ("key", "value", "severity", "words"),
        [
            ("replication.policy.class", IDENTITY, Severity.ERROR, "records go to one topic, checkpoints name another"),
            ("replication.policy.separator", "_", Severity.ERROR, "is '_' for the source connector and '.'"),
            ("offset-syncs.topic.location", "target", Severity.ERROR, "it writes no checkpoints"),
            ("topics.exclude", "tmp.*", Severity.WARNING, "only for topics that both take"),
            ("topics", "orders", Severity.WARNING, "is 'orders' for the source connector and 'orders,pay.*'"),
        ],
    )
    def test_what_only_one_has_is_named(self, tmp_path, key, value, severity, words):
        finding = found(connectors(tmp_path, {**SOURCE, key: value}, CHECKPOINT, HEARTBEAT))["connectors-disagree"]
        assert (finding.severity, finding.subject) == (severity, "us->eu")
        assert words in finding.message
        both = {**SOURCE, key: value}, {**CHECKPOINT, key: value}
        assert "connectors-disagree" not in found(connectors(tmp_path, *both))

    def test_a_policy_on_one_connector_of_a_strimzi_resource(self, tmp_path):
        once = "          replication.factor: -1\n"
        path = tmp_path / "mirror.yaml"
        path.write_text(V1BETA2.replace(once, f"{once}          replication.policy.class: {IDENTITY}\n"))
        finding = found(load_config(path))["connectors-disagree"]
        assert (finding.severity, finding.subject) == (Severity.ERROR, "primary->standby")
        assert finding.remedy == "give all connectors the same replication.policy.class"

    def test_the_order_of_topics_is_no_difference(self, tmp_path):
        assert found(connectors(tmp_path, {**SOURCE, "topics": "pay.*, orders"}, CHECKPOINT, HEARTBEAT)) == {}

    def test_a_connector_that_is_not_there_disagrees_with_nobody(self, tmp_path):
        config = connectors(tmp_path, {**SOURCE, "offset-syncs.topic.location": "target"})
        assert set(found(config)) == {"connector-missing"}

    def test_one_alias_for_two_clusters(self, tmp_path):
        other = {**CHECKPOINT, "target.cluster.bootstrap.servers": "asia:9092"}
        finding = found(connectors(tmp_path, SOURCE, other, HEARTBEAT))["one-alias-two-clusters"]
        assert (finding.severity, finding.subject) == (Severity.ERROR, "eu")
        assert "'eu' is eu:9092 to the source connector of us->eu and asia:9092 to the checkpoint" in finding.message
        more = {**CHECKPOINT, "target.cluster.bootstrap.servers": "asia:9092, EU:9092"}
        assert found(connectors(tmp_path, SOURCE, more, HEARTBEAT)) == {}


def test_two_aliases_for_one_cluster(tmp_path):
    config = load(tmp_path, PAIR.replace("B.bootstrap.servers = b:9092", "B.bootstrap.servers = b:9092,a:9092"))
    finding = found(config)["same-cluster"]
    assert (finding.severity, finding.subject) == (Severity.ERROR, "A and B")
    assert "both have a:9092" in finding.message


def test_identical_names_both_ways_go_round(tmp_path):
    both = f"{PAIR}B->A.enabled = true\nreplication.policy.class = {IDENTITY}\n"
    assert found(load(tmp_path, both))["identity-loop"].severity is Severity.ERROR
    assert "identity-loop" not in found(
        load(tmp_path, both.replace(IDENTITY, "").replace("replication.policy.class =", "#"))
    )
    apart = f"{both}A->B.topics = orders\nB->A.topics = bills\n"
    assert "identity-loop" not in found(load(tmp_path, apart))


def test_a_policy_of_somebody_elses(tmp_path):
    config = load(tmp_path, f"{PAIR}replication.policy.class = com.acme.Policy")
    assert "com.acme.Policy" in found(config)["policy-unknown"].message


@pytest.mark.parametrize("kind", ["topic", "group", "config.property"])
def test_a_filter_of_somebody_elses(tmp_path, kind):
    lines = f"{PAIR}{kind}.filter.class = com.acme.Filter\n"
    finding = found(load(tmp_path, lines))["filter-unknown"]
    assert finding.severity == (Severity.WARNING if kind == "config.property" else Severity.ERROR)
    assert "com.acme.Filter" in finding.message
    assert "(line " in finding.subject
    # what the remedy offers is known, and settles it
    assert f"failover.{kind}.filter.class=default" in finding.remedy
    assert found(load(tmp_path, f"{lines}failover.{kind}.filter.class = default\n")) == {}


def test_no_flow_and_no_checkpoints(tmp_path):
    assert "no-flow" in found(load(tmp_path, PAIR.replace(".enabled", ".enable")))
    off = f"{PAIR}emit.checkpoints.enabled = false\n"
    assert "sync.group.offsets" not in found(load(tmp_path, off))["checkpoints-off"].message
    assert "sync.group.offsets.enabled is true" in (
        found(load(tmp_path, f"{off}sync.group.offsets.enabled = true"))["checkpoints-off"].message
    )


@pytest.mark.parametrize(
    ("lines", "codes"),
    [
        ("emit.offset-syncs.enabled = false", {"checkpoints-off"}),
        ("emit.offset-syncs.enabled = false\nfailover.mm2.version = 3.8", set()),
        (
            "emit.offset-syncs.enabled = false\noffset-syncs.topic.replication.factor = 1",
            {"checkpoints-off", "invalid-value"},
        ),
        ("A->B.exactly.once.support = required", {"invalid-value"}),
        ("A->B.exactly.once.support = required\nA.consumer.isolation.level = read_committed", {"invalid-value"}),
        (
            "A->B.exactly.once.support = required\nA.consumer.isolation.level = read_committed\n"
            "B.exactly.once.source.support = enabled",
            set(),
        ),
        ("A->B.exactly.once.support = required\nfailover.mm2.version = 3.4", set()),
    ],
)
def test_settings_that_mm2_does_not_take_together(tmp_path, lines, codes):
    findings = found(load(tmp_path, PAIR + lines))
    assert set(findings) == codes
    for finding in findings.values():
        assert "(line " in finding.subject


def test_findings_are_sorted_by_weight_then_line():
    lines = [("a (line 9)", "warning"), ("b (line 10)", "error"), ("c", "warning"), ("d (line 2)", "warning")]
    findings = [Finding("x", Severity(severity), subject, "", "") for subject, severity in lines]
    assert [one.subject[0] for one in by_severity([*findings, findings[0]])] == ["b", "d", "a", "c"]


def test_every_code_is_explained():
    assert set(SEVERITIES) <= set(entries())


CLOSED = TopicInfo("t", 1, operations=frozenset({"DESCRIBE"}))


class TestAccess:
    GOOD = frozenset({"READ", "DESCRIBE", "DELETE"})

    def access(self, **given: Any) -> Access:
        return Access(alias="b", side="target", flow="a->b", cluster_id="B", brokers=3, **given)

    def group(self, *operations: str, fault: Fault | None = None) -> GroupInfo:
        return GroupInfo("g", True, GroupType.CLASSIC, "Empty", operations=frozenset(operations), fault=fault)

    def test_nothing_to_remark(self):
        topic = TopicInfo("t", 1, operations=self.GOOD)
        access = self.access(internal={"t": ("x", topic)}, topics={"t": topic}, groups={"g": self.group("ALL")})
        assert check_access([access]) == ()

    @pytest.mark.parametrize(
        ("given", "code", "words"),
        [
            ({"unreachable": 1}, "brokers-unreachable", "1 of 3 brokers of b do not answer"),
            ({"internal": {"t": ("offset syncs", None)}}, "internal-topic-missing", "b has no topic t (offset syncs)"),
            (
                {"internal": {"t": ("x", Fault(29, "TOPIC_AUTHORIZATION_FAILED"))}},
                "not-authorized",
                "t on b cannot be read",
            ),
            (
                {"internal": {"t": ("x", CLOSED)}},
                "not-authorized",
                "read",
            ),
            (
                {"topics": {"t": CLOSED}},
                "not-authorized",
                "on 1 topic: t",
            ),
            ({"listing_denied": True}, "not-authorized", "cannot be listed"),
        ],
    )
    def test_what_is_missing(self, given, code, words):
        (finding,) = check_access([self.access(**given)])
        assert finding.code == code
        assert words in finding.message
        assert finding.remedy

    def test_only_where_syncs_are_is_a_matter_of_the_location(self):
        topics = {"s": ("MM2's offset syncs", None), "c": ("MM2's checkpoints", None)}
        said = {one.subject: one.remedy for one in check_access([self.access(internal=topics)])}
        assert "offset-syncs.topic.location" in said["s"]
        assert "offset-syncs.topic.location" not in said["c"]
        assert all(remedy.startswith("nothing, if the mirror never ran yet") for remedy in said.values())

    def test_groups(self):
        assert [one.code for one in check_access([self.access(groups={"g": self.group("READ")})])] == [
            "rollback-limited"
        ]
        for group in (self.group("DESCRIBE"), self.group(fault=Fault(30, "GROUP_AUTHORIZATION_FAILED"))):
            (finding,) = check_access([self.access(groups={"g": group})])
            assert (finding.code, finding.severity) == ("not-authorized", Severity.ERROR)
            assert "refuse commits for 1 group: g" in finding.message

    def test_records_of_the_source_that_cannot_be_compared_are_a_warning(self):
        (finding,) = check_access([Access(alias="a", side="source", flow="a->b", topics={"t": CLOSED})])
        assert (finding.code, finding.severity) == ("not-authorized", Severity.WARNING)
        assert "records of 1 topic of a cannot be compared: t" in finding.message

    def test_equal_ids_are_one_cluster(self):
        source = Access(alias="a", side="source", flow="a->b", cluster_id="B")
        (finding,) = check_access([source, self.access()])
        assert (finding.code, finding.subject) == ("same-cluster", "a and b")
        assert "both have the id B" in finding.message
