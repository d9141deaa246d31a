from __future__ import annotations

import msgspec
import pytest

from failover.config.load import find_config, load_config, select_flow
from failover.config.settings import Origin, Settings, make_setting, split_list
from failover.errors import ConfigError, ConfigNotFound, FlowAmbiguous, UnknownAlias, UsageError
from tests.unit.config.build import PAIR, load


class TestFinding:
    def test_the_option_then_the_environment_then_the_folder(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        (tmp_path / "mm2.properties").write_text("")
        assert find_config(["x"], {"FAILOVER_CONFIG": "y"}) == ("x",)
        assert find_config([], {"FAILOVER_CONFIG": "y"}) == ("y",)
        assert find_config([], {"FAILOVER_CONFIG": ""}) == ("mm2.properties",)

    def test_none_is_an_error_with_the_way_to_give_one(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        with pytest.raises(ConfigNotFound) as caught:
            find_config([], {})
        assert caught.value.exit_code == 2
        assert "--config" in caught.value.hint

    def test_an_address_is_asked_or_said_to_be_no_file(self):
        with pytest.raises(ConfigError) as caught:
            load_config("https://me:hunter2@h:8083")
        assert "hunter2" not in caught.value.message + caught.value.hint
        assert caught.value.hint == "write connect+https://h:8083"
        with pytest.raises(ConfigError, match=r"connect\+https://h:8083: cannot be asked here"):
            load_config("connect+https://h:8083")

    def test_two_properties_files_are_refused(self, tmp_path):
        for name in ("a.properties", "b"):
            (tmp_path / name).write_text(PAIR)
        with pytest.raises(ConfigError, match="2 configurations were given"):
            load_config([str(tmp_path / "a.properties"), str(tmp_path / "b")])

    def test_a_byte_order_mark_that_hides_the_clusters_is_named(self, tmp_path):
        (tmp_path / "x.properties").write_bytes(b"\xef\xbb\xbf" + PAIR.lstrip().encode())
        with pytest.raises(ConfigError) as caught:
            load_config(tmp_path / "x.properties")
        assert "byte order mark" in caught.value.hint

    def test_a_path_alone(self, tmp_path):
        (tmp_path / "x").write_text(PAIR)
        assert load_config(tmp_path / "x").path == load_config(str(tmp_path / "x")).path == str(tmp_path / "x")


class TestFlow:
    def test_defaults(self, tmp_path):
        flow = select_flow(load(tmp_path, PAIR)).flow
        assert str(flow) == flow.name == "A->B"
        assert flow.topics == flow.groups == (".*",)
        assert flow.topics_exclude == (r"mm2.*\.internal", r".*\.replica", "__.*")
        assert flow.groups_exclude == ("console-consumer-.*", "connect-.*", "__.*")
        assert flow.replication_policy_class == "org.apache.kafka.connect.mirror.DefaultReplicationPolicy"
        assert flow.separator == "."
        assert flow.topic_filter_class.endswith(".DefaultTopicFilter")
        assert flow.group_filter_class.endswith(".DefaultGroupFilter")
        assert flow.offset_syncs_location == "source"
        assert flow.isolation_level == "read_uncommitted"
        assert flow.offset_lag_max == 100
        assert (flow.emit_offset_syncs_enabled, flow.emit_checkpoints_enabled, flow.emit_heartbeats_enabled) == (
            True,
        ) * 3
        assert (flow.emit_checkpoints_interval_seconds, flow.emit_heartbeats_interval_seconds) == (60, 1)
        assert (flow.sync_group_offsets_enabled, flow.sync_group_offsets_interval_seconds) == (False, 60)
        assert (flow.refresh_groups_interval_seconds, flow.refresh_topics_interval_seconds) == (600, 600)
        assert flow.heartbeats_replication_enabled

    def test_what_is_written_wins_over_defaults(self, tmp_path):
        text = """
            topics = orders , pay.* ,
            A->B.groups = g
            A->B.offset-syncs.topic.location = target
            sync.group.offsets.enabled = TRUE
            emit.checkpoints.interval.seconds = 10
            replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy
            A.consumer.isolation.level = read_committed
        """
        flow = select_flow(load(tmp_path, PAIR + text)).flow
        assert flow.topics == ("orders", "pay.*", "")
        assert flow.groups == ("g",)
        assert flow.offset_syncs_location == "target"
        assert flow.sync_group_offsets_enabled
        assert flow.emit_checkpoints_interval_seconds == 10
        assert flow.replication_policy_class.endswith(".IdentityReplicationPolicy")
        assert flow.isolation_level == "read_committed"

    @pytest.mark.parametrize(
        ("text", "separator"),
        [
            ("replication.policy.separator=_", "_"),
            ("A->B.replication.policy.separator=-", "-"),
            ("replication.policy.separator=_ ", "_ "),
        ],
    )
    def test_the_separator_is_taken_as_written(self, tmp_path, text, separator):
        assert select_flow(load(tmp_path, PAIR + text)).flow.separator == separator

    @pytest.mark.parametrize(
        ("version", "expected"),
        [("3.9.1", r".*[\-\.]internal"), ("4.0", r"mm2.*\.internal")],
    )
    def test_filter_defaults_follow_the_version(self, tmp_path, version, expected):
        config = load(tmp_path, PAIR + f"failover.mm2.version = {version}")
        assert select_flow(config).flow.topics_exclude[0] == expected
        assert config.mm2_version == tuple(map(int, version.split(".")[:2]))

    def test_old_filter_names_count_until_four(self, tmp_path):
        old = PAIR + "topics.blacklist=x\nA->B.groups.blacklist=y\nfailover.mm2.version="
        assert select_flow(load(tmp_path, old + "3.9")).flow.topics_exclude == ("x",)
        assert select_flow(load(tmp_path, old + "3.9")).flow.groups_exclude == ("y",)
        assert select_flow(load(tmp_path, old + "4.1")).flow.topics_exclude != ("x",)

    @pytest.mark.parametrize(
        ("text", "name", "words"),
        [
            (
                "sync.group.offsets.enabled = yes",
                "sync_group_offsets_enabled",
                "mm2.properties:6): 'yes' is not a boolean",
            ),
            ("offset.lag.max = 100 # small", "offset_lag_max", "'100 # small' is not a whole number"),
            ("offset-syncs.topic.location = Target", "offset_syncs_location", "'Target' is not one of source, target"),
        ],
    )
    def test_a_value_that_mm2_refuses_is_an_error_where_it_is_used(self, tmp_path, text, name, words):
        flow = select_flow(load(tmp_path, PAIR + text)).flow
        with pytest.raises(ConfigError) as caught:
            getattr(flow, name)
        assert words in caught.value.message
        assert caught.value.hint

    def test_enabled_must_be_a_boolean(self, tmp_path):
        with pytest.raises(ConfigError) as caught:
            load(tmp_path, PAIR.replace("= true", "= true # yes"))
        assert "A->B.enabled" in caught.value.message

    def test_the_drivers_flows_are_all_pairs_unless_heartbeats_are_off(self, tmp_path):
        assert [(flow.name, flow.enabled) for flow in load(tmp_path, PAIR).flows] == [("A->B", True), ("B->A", False)]
        flows = load(tmp_path, PAIR + "emit.heartbeats.enabled=false").flows
        assert [flow.name for flow in flows] == ["A->B"]

    def test_worker_settings_are_the_targets(self, tmp_path):
        flow = select_flow(load(tmp_path, PAIR + "B.offset.flush.interval.ms=1")).flow
        assert flow.worker.integer("offset.flush.interval.ms") == 1
        assert flow.worker.text("offset.storage.topic") == "mm2-offsets.A.internal"


class TestClients:
    def test_each_side_and_role_has_its_own(self, tmp_path):
        selected = select_flow(
            load(tmp_path, PAIR + "A.consumer.bootstrap.servers=a2:1\nA->B.target.admin.bootstrap.servers=b2:1")
        )
        assert selected.source_client().bootstrap == (("a", 9092),)
        assert selected.source_client("consumer").bootstrap == (("a2", 1),)
        assert selected.target_client("admin").bootstrap == (("b2", 1),)
        assert selected.target_client("consumer").bootstrap == (("b", 9092),)

    def test_a_cluster_alone(self, tmp_path):
        cluster = load(tmp_path, PAIR + "A.admin.bootstrap.servers=a2:1").clusters["A"]
        assert cluster.client("admin").bootstrap == (("a2", 1),)
        assert cluster.client("consumer").bootstrap == (("a", 9092),)

    def test_our_own_credentials_lie_over_those_of_mm2(self, tmp_path):
        text = """
            A.security.protocol = SASL_SSL
            A.sasl.mechanism = AWS_MSK_IAM
            A.sasl.client.callback.handler.class = software.amazon.msk.auth.iam.IAMClientCallbackHandler
            A.admin.bootstrap.servers = a2:1
            failover.cluster.A.bootstrap.servers = own:1
            failover.cluster.A.sasl.mechanism = PLAIN
            failover.cluster.A.sasl.client.callback.handler.class =
            failover.cluster.A.ssl.endpoint.identification.algorithm =
            failover.cluster.A.sasl.jaas.config = x.PlainLoginModule required username="tool" password="hunter2";
        """
        selected = select_flow(load(tmp_path, PAIR + text))
        for role in ("admin", "consumer", "producer"):
            client = selected.source_client(role)
            assert client.bootstrap == (("own", 1),)
            assert client.sasl is not None
            assert client.sasl.username == "tool"
            assert client.tls is not None
            assert not client.tls.verify_hostname
        assert selected.target_client().sasl is None

    def test_settings_are_checked_only_when_their_cluster_is_needed(self, tmp_path):
        selected = select_flow(load(tmp_path, PAIR + "A.security.protocol=SASL_SSL\nA.sasl.mechanism=GSSAPI"))
        assert selected.target_client().security_protocol == "PLAINTEXT"
        with pytest.raises(ConfigError, match="GSSAPI"):
            selected.source_client()

    @pytest.mark.parametrize("key", ["config.providers", "A.config.providers"])
    def test_providers_are_declared_at_top_level_or_for_a_cluster(self, tmp_path, key):
        text = f"{key} = env, file\n"
        text += "A.security.protocol=SASL_SSL\nA.sasl.mechanism=PLAIN\nA.sasl.jaas.config=${file:/s:j}"
        with pytest.raises(ConfigError, match="configuration provider 'file'"):
            select_flow(load(tmp_path, PAIR + text)).source_client()


class TestSelecting:
    BOTH = PAIR + "B->A.enabled=true"
    FAN_IN = "clusters=us, eu, hub\nus->hub.enabled=true\neu->hub.enabled=true"

    def test_the_only_enabled_flow_needs_no_name(self, tmp_path):
        selected = select_flow(load(tmp_path, PAIR))
        assert (selected.source, selected.target, selected.reversed, selected.name) == ("A", "B", False, "A->B")

    def test_several_are_named(self, tmp_path):
        with pytest.raises(FlowAmbiguous) as caught:
            select_flow(load(tmp_path, self.FAN_IN))
        assert caught.value.exit_code == 2
        assert "us->hub, eu->hub" in caught.value.message

    def test_one_alias_is_enough_if_only_one_flow_fits(self, tmp_path):
        assert select_flow(load(tmp_path, self.FAN_IN), source="eu").name == "eu->hub"
        assert select_flow(load(tmp_path, self.BOTH), target="A").name == "B->A"
        with pytest.raises(FlowAmbiguous, match="us->hub, eu->hub"):
            select_flow(load(tmp_path, self.FAN_IN), target="hub")

    @pytest.mark.parametrize("given", [("B", "A"), ("B", None), (None, "A")])
    def test_the_reverse_is_taken_where_allowed_and_said(self, tmp_path, given):
        config = load(tmp_path, PAIR)
        selected = select_flow(config, *given, allow_reverse=True)
        assert (selected.name, selected.reversed, selected.flow.name) == ("B->A", True, "A->B")
        assert selected.source_client().bootstrap == (("b", 9092),)
        assert selected.target_client().bootstrap == (("a", 9092),)
        with pytest.raises(FlowAmbiguous) as caught:
            select_flow(config, *given)
        assert "--source A --target B" in caught.value.hint

    def test_an_enabled_flow_is_never_taken_for_the_reverse_of_another(self, tmp_path):
        assert not select_flow(load(tmp_path, self.BOTH), "B", "A", allow_reverse=True).reversed

    def test_unknown_aliases_get_near_names(self, tmp_path):
        config = load(tmp_path, "clusters = primary, standby\nprimary->standby.enabled=true")
        with pytest.raises(UnknownAlias) as caught:
            select_flow(config, "primry")
        assert "did you mean primary?" in caught.value.hint
        with pytest.raises(UnknownAlias) as caught:
            select_flow(config, target="zzz")
        assert caught.value.hint == "clusters: primary, standby"

    def test_nothing_enabled_nothing_fitting_and_the_same_twice(self, tmp_path):
        with pytest.raises(FlowAmbiguous, match="no flow is enabled") as caught:
            select_flow(load(tmp_path, PAIR.replace("true", "false")))
        assert caught.value.hint == "set A->B.enabled=true"
        with pytest.raises(FlowAmbiguous, match=r"no enabled flow fits us->eu; enabled: us->hub, eu->hub"):
            select_flow(load(tmp_path, self.FAN_IN), "us", "eu")
        with pytest.raises(FlowAmbiguous):
            select_flow(load(tmp_path, PAIR), "A", "A")


class TestLoading:
    @pytest.mark.parametrize("text", ["a=1", "clusters=", "clusters = , "])
    def test_clusters_are_required(self, tmp_path, text):
        with pytest.raises(ConfigError, match="'clusters' is missing or empty"):
            load(tmp_path, text)

    def test_set_counts_as_written_last(self, tmp_path):
        config = load(tmp_path, PAIR + "topics=x", "topics=a,b=c", " failover.state.dir = /s")
        setting = select_flow(config).flow.connectors["source"]["topics"]
        assert (setting.text, str(setting.origin), setting.described()) == ("a,b=c", "--set", "topics (--set)")
        assert config.failover.text("state.dir") == "/s"

    @pytest.mark.parametrize("text", ["topics", "=hunter2", ""])
    def test_set_without_a_key_or_value_is_refused_unseen(self, tmp_path, text):
        with pytest.raises(UsageError) as caught:
            load(tmp_path, PAIR, text)
        assert "hunter2" not in caught.value.message

    def test_own_settings_come_without_their_prefix_and_without_credentials(self, tmp_path):
        config = load(tmp_path, PAIR + "failover.state.dir=/s\nfailover.cluster.A.sasl.jaas.config=hunter2")
        assert list(config.failover) == ["state.dir"]
        assert config.failover.is_given("state.dir")

    def test_a_version_must_be_one(self, tmp_path):
        with pytest.raises(ConfigError, match="'new' is no version"):
            load(tmp_path, PAIR + "failover.mm2.version=new")

    def test_secrets_appear_in_no_text_and_no_encoding(self, tmp_path):
        text = """
            A.sasl.jaas.config = x required password="hunter2";
            B.ssl.key.password = hunter2
            ssl.keystore.key = hunter2
            A->B.producer.override.ssl.keystore.password = hunter2
            failover.cluster.B.ssl.truststore.password = hunter2
        """
        config = load(tmp_path, PAIR + text, "A.ssl.keystore.key=hunter2", "x.password=hunter2")
        assert "hunter2" not in repr(config) + str(config)
        with pytest.raises(TypeError):
            msgspec.json.encode(config.clusters["A"].properties["sasl.jaas.config"])


def test_a_secret_stays_one_under_another_name():
    setting = make_setting("A.ssl.key.password", "hunter2", Origin("file")).named("x")
    assert setting.text == "hunter2"
    assert "hunter2" not in f"{setting} {setting!r} {setting.shown} {setting.value} {setting.value:>10}"


@pytest.mark.parametrize(
    ("text", "items"),
    [("", ()), ("  ", ()), ("a", ("a",)), (" a ,\tb,c ", ("a", "b", "c")), ("a,,b", ("a", "", "b")), ("a,", ("a", ""))],
)
def test_lists(text, items):
    assert split_list(text) == items


def test_settings_are_a_mapping_of_given_and_default():
    settings = Settings({"a": make_setting("a", "1", Origin("file", "a", "f", 1))}, {"a": "0", "b": "0"})
    assert {key: setting.text for key, setting in settings.items()} == {"a": "1", "b": "0"}
    assert len(settings) == 2
    assert (settings.is_given("a"), settings.is_given("b"), settings["b"].origin.kind) == (True, False, "default")
    with pytest.raises(KeyError):
        settings["c"]
