"""One test for each rule by which MM2's dedicated driver makes settings of a file."""

from __future__ import annotations

import pytest

from failover.config import mm2
from failover.config.settings import Origin, Setting, make_setting


def given(text: str) -> dict[str, Setting]:
    settings = {}
    for number, line in enumerate(text.splitlines(), 1):
        key, _, value = line.partition("=")
        settings[key] = make_setting(key, value, Origin("file", key, "f", number))
    return settings


def values(settings: dict[str, Setting]) -> dict[str, str]:
    return {key: setting.text for key, setting in settings.items()}


class TestClusterProperties:
    def test_prefixed_keys_lose_their_prefix_whatever_they_are(self):
        assert values(
            mm2.cluster_properties(given("A.producer.batch.size=1\nA.offset.flush.interval.ms=2\nB.x=3"), "A")
        ) == {
            "producer.batch.size": "1",
            "offset.flush.interval.ms": "2",
        }

    def test_connection_settings_become_the_roles_defaults(self):
        properties = values(
            mm2.cluster_properties(given("A.bootstrap.servers=a:1\nA.admin.bootstrap.servers=a:2"), "A")
        )
        assert properties == {
            "bootstrap.servers": "a:1",
            "producer.bootstrap.servers": "a:1",
            "consumer.bootstrap.servers": "a:1",
            "admin.bootstrap.servers": "a:2",
        }

    def test_other_settings_do_not_become_the_roles_defaults(self):
        assert values(mm2.cluster_properties(given("A.request.timeout.ms=1"), "A")) == {"request.timeout.ms": "1"}

    def test_top_level_connection_settings_are_the_lowest_default(self):
        properties = values(
            mm2.cluster_properties(
                given("security.protocol=SSL\nA.security.protocol=PLAINTEXT\nssl.key.password=p\nretries=1"), "A"
            )
        )
        assert properties["security.protocol"] == properties["consumer.security.protocol"] == "PLAINTEXT"
        assert properties["ssl.key.password"] == properties["admin.ssl.key.password"] == "p"
        assert "retries" not in properties

    def test_the_origin_is_the_key_as_written(self):
        properties = mm2.cluster_properties(given("x=1\nA.sasl.mechanism=PLAIN"), "A")
        assert properties["consumer.sasl.mechanism"].origin == Origin("file", "A.sasl.mechanism", "f", 2)


class TestWorkerProperties:
    def test_they_are_the_targets(self):
        worker = values(
            mm2.worker_properties(given("A.x=1\nB.offset.flush.interval.ms=2\nB.producer.acks=1"), "A", "B")
        )
        assert "x" not in worker
        assert worker["offset.flush.interval.ms"] == "2"
        assert worker["producer.acks"] == "1"

    def test_some_top_level_keys_come_over_the_targets(self):
        text = "B.offset.storage.topic=low\noffset.storage.topic=high\ntasks.max=4\nreplication.policy.separator=_"
        worker = values(mm2.worker_properties(given(text), "A", "B"))
        assert worker["offset.storage.topic"] == "high"
        assert worker["tasks.max"] == "4"
        assert worker["replication.policy.separator"] == "_"

    def test_other_top_level_keys_do_not_reach_it(self):
        assert "offset.flush.interval.ms" not in mm2.worker_properties(given("offset.flush.interval.ms=1"), "A", "B")

    def test_flow_keys_do_not_reach_it(self):
        assert "offset.flush.interval.ms" not in mm2.worker_properties(
            given("A->B.offset.flush.interval.ms=1"), "A", "B"
        )

    def test_the_driver_fills_in_the_rest(self):
        worker = mm2.worker_properties(given("B.group.id=mine"), "A", "B")
        assert worker["group.id"].text == "mine"
        assert worker["offset.storage.topic"].text == "mm2-offsets.A.internal"
        assert worker["client.id"].text == "A->B"
        assert worker["key.converter"].text.endswith(".ByteArrayConverter")
        assert worker["client.id"].origin.kind == "driver"


def connector(text: str) -> dict[str, str]:
    return values(mm2.connector_properties(given(text), "A", "B", "source"))


class TestConnectorProperties:
    def test_top_level_keys_of_the_connectors_are_kept(self):
        settings = connector("topics=a\ngroups=b\ntasks.max=3\nemit.heartbeats.enabled=false\nssl.protocol=TLSv1.3")
        assert (
            settings.items()
            >= {
                "topics": "a",
                "groups": "b",
                "tasks.max": "3",
                "emit.heartbeats.enabled": "false",
                "ssl.protocol": "TLSv1.3",
            }.items()
        )

    @pytest.mark.parametrize(
        "key",
        [
            "use.defaults.from",
            "consumer.isolation.level",
            "producer.batch.size",
            "producer.override.batch.size",
            "exactly.once.support",
            "transaction.boundary",
            "my.filter.key",
        ],
    )
    def test_other_top_level_keys_are_dropped(self, key):
        assert key not in connector(f"{key}=x")
        assert connector(f"{key}=x\nA->B.{key}=y")[key] == "y"

    def test_policy_and_providers_are_kept_whatever_their_name(self):
        settings = connector("replication.policy.my.own=1\nconfig.providers.file.class=F")
        assert settings["replication.policy.my.own"] == "1"
        assert settings["config.providers.file.class"] == "F"

    def test_cluster_properties_come_in_below_source_and_target(self):
        settings = connector(
            "A.bootstrap.servers=a:1\nA.consumer.isolation.level=read_committed\nB.bootstrap.servers=b:1\nB.x=1"
        )
        assert settings["source.cluster.bootstrap.servers"] == "a:1"
        assert settings["source.admin.bootstrap.servers"] == "a:1"
        assert settings["source.consumer.isolation.level"] == "read_committed"
        assert settings["target.cluster.bootstrap.servers"] == "b:1"
        assert settings["target.cluster.x"] == "1"
        assert "target.x" not in settings

    def test_the_driver_fills_in_names_and_aliases_only_where_absent(self):
        settings = connector("name=mine")
        assert settings["name"] == "mine"
        assert settings["connector.class"] == "org.apache.kafka.connect.mirror.MirrorSourceConnector"
        assert (settings["source.cluster.alias"], settings["target.cluster.alias"]) == ("A", "B")

    def test_flow_keys_win_over_all(self):
        settings = connector(
            "topics=low\nA.bootstrap.servers=low:1\nA->B.topics=high\nA->B.source.cluster.bootstrap.servers=high:1"
        )
        assert settings["topics"] == "high"
        assert settings["source.cluster.bootstrap.servers"] == "high:1"

    def test_another_flows_keys_do_not_count(self):
        assert "topics" not in connector("B->A.topics=x")

    def test_disabled_unless_said_otherwise(self):
        assert connector("x=1")["enabled"] == "false"
        assert connector("enabled=true")["enabled"] == "true"
        assert connector("enabled=true\nA->B.enabled=false")["enabled"] == "false"


class TestClientProperties:
    def client(self, text: str, side: mm2.Side = "source", role: mm2.Role = "consumer") -> dict[str, str]:
        return values(mm2.client_properties(mm2.connector_properties(given(text), "A", "B", "source"), side, role))

    def test_cluster_settings_reach_clients_only_if_they_concern_the_connection(self):
        client = self.client("A->B.source.cluster.bootstrap.servers=a:1\nA->B.source.cluster.fetch.min.bytes=1")
        assert client == {"bootstrap.servers": "a:1"}

    def test_a_role_wins_over_the_cluster(self):
        client = self.client("A->B.source.cluster.bootstrap.servers=low:1\nA->B.consumer.bootstrap.servers=high:1")
        assert client["bootstrap.servers"] == "high:1"

    def test_a_sides_role_wins_over_the_role(self):
        client = self.client(
            "A->B.consumer.isolation.level=read_uncommitted\nA.consumer.isolation.level=read_committed"
        )
        assert client["isolation.level"] == "read_committed"

    def test_a_clusters_own_settings_are_its_roles_and_so_win_over_the_flows_cluster_settings(self):
        client = self.client("A.bootstrap.servers=high:1\nA->B.source.cluster.bootstrap.servers=low:1")
        assert client["bootstrap.servers"] == "high:1"

    def test_sides_and_roles_do_not_mix(self):
        text = "A.admin.x=1\nA.consumer.x=2\nB.consumer.x=3"
        assert self.client(text)["x"] == "2"
        assert self.client(text, role="admin")["x"] == "1"
        assert self.client(text, side="target")["x"] == "3"
        assert "x" not in self.client(text, side="target", role="admin")


class TestFlows:
    @pytest.mark.parametrize(
        ("text", "exists"),
        [
            ("A->B.enabled=true", True),
            ("x=1", True),
            ("emit.heartbeats.enabled=false", False),
            ("emit.heartbeats.enabled=false\nA->B.enabled=TRUE", True),
            ("emit.heartbeats.enabled=false\nA->B.enabled=true ", False),
            ("emit.heartbeats.enabled=false\nA->B.emit.heartbeats.enabled=true", True),
            ("A->B.emit.heartbeats.enabled=false", False),
            ("B->A.emit.heartbeats.enabled=false", True),
        ],
    )
    def test_a_flow_exists_if_enabled_or_for_its_heartbeats(self, text, exists):
        assert mm2.flow_exists(given(text), "A", "B") is exists

    def test_every_ordered_pair_once(self):
        assert mm2.pairs(["a", "b", "a"]) == [("a", "b"), ("b", "a")]
        assert len(mm2.pairs("abcd")) == 12


class TestAliases:
    def test_an_old_name_counts_until_four(self):
        old = given("groups.blacklist=x")
        assert mm2.apply_aliases(old, (3, 9))["groups.exclude"].text == "x"
        assert mm2.apply_aliases(old, (3, 9))["groups.exclude"].origin.key == "groups.blacklist"
        assert "groups.exclude" not in mm2.apply_aliases(old, (4, 0))

    def test_the_new_name_wins(self):
        both = given("topics.blacklist=old\ntopics.exclude=new")
        assert mm2.apply_aliases(both, (3, 9))["topics.exclude"].text == "new"
