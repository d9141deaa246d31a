"""Replication policies by separator and release, loops, maps of names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failover.errors import ConfigError
from failover.mm2.internal_topics import (
    InternalTopics,
    checkpoint_group,
    is_own_group,
    is_own_topic,
    lag_group,
    replicate_group,
    runs_topic,
)
from failover.mm2.replication_policy import (
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
    checkpointed_topic,
    is_cycle,
    policy_from,
)
from failover.mm2.versions import at_least

IDENTITY = {"replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"}
DEFAULT = {"replication.policy.class": "org.apache.kafka.connect.mirror.DefaultReplicationPolicy"}
MAP = "failover.replication.policy.topic.map"


def test_releases_compare_with_and_without_a_patch():
    assert at_least(None, 99)
    assert at_least((4, 0), 4, 0)
    assert not at_least((3, 9), 4, 0)
    assert at_least((3, 10), 3, 9)
    assert at_least((3, 5), 3, 5, 2), "no patch number stands for the newest patch"
    assert not at_least((3, 5, 1), 3, 5, 2)
    assert at_least((3, 4, 1), 3, 4, 1)


@pytest.mark.parametrize(
    ("topic", "source", "upstream", "original"),
    [
        ("orders", None, None, "orders"),
        ("a.orders", "a", "orders", "orders"),
        ("b.a.orders", "b", "a.orders", "orders"),
        ("prod.eu.orders", "prod", "eu.orders", "orders"),
        ("foo.", None, None, "foo."),
        ("foo..", None, None, "foo.."),
        (".b", "", "b", "b"),
        (".", None, None, "."),
        ("a..b", "a", ".b", "b"),
    ],
)
def test_default_names_read_back(topic, source, upstream, original):
    policy = policy_from({}, "a")
    assert policy.topic_source(topic) == source
    assert policy.upstream_topic(topic) == upstream
    assert policy.original_topic(topic) == original


@given(
    st.sampled_from([".", "_", "-", "--", "__mirror__"]),
    st.from_regex(r"[a-z][a-z0-9]*", fullmatch=True),
    st.from_regex(r"[a-z][a-z0-9]*", fullmatch=True),
)
def test_default_names_round_trip(separator, alias, topic):
    policy = policy_from({"replication.policy.separator": separator}, alias)
    remote = policy.format_remote_topic(alias, topic)
    assert policy.topic_source(remote) == alias
    assert policy.upstream_topic(remote) == topic


def test_an_empty_separator_keeps_names_apart_from_the_alias():
    policy = policy_from({"replication.policy.separator": ""}, "")
    assert policy.format_remote_topic("", "orders") == "orders"
    assert policy.topic_source("orders") == "o"
    assert policy.upstream_topic("orders") == "rders"
    assert policy.original_topic("orders") == "s"


@pytest.mark.parametrize(
    ("version", "flag", "syncs", "checkpoints"),
    [
        ((3, 0), None, "mm2-offset-syncs.b.internal", "a.checkpoints.internal"),
        ((3, 1), None, "mm2-offset-syncs_b_internal", "a_checkpoints_internal"),
        ((3, 5, 1), "false", "mm2-offset-syncs_b_internal", "a_checkpoints_internal"),
        ((3, 5, 2), "false", "mm2-offset-syncs.b.internal", "a.checkpoints.internal"),
        ((3, 6), "false", "mm2-offset-syncs.b.internal", "a.checkpoints.internal"),
        ((4, 3), "true", "mm2-offset-syncs_b_internal", "a_checkpoints_internal"),
        (None, "FALSE", "mm2-offset-syncs.b.internal", "a.checkpoints.internal"),
        (None, None, "mm2-offset-syncs_b_internal", "a_checkpoints_internal"),
    ],
)
def test_a_custom_separator_in_internal_names_by_release(version, flag, syncs, checkpoints):
    settings = {"replication.policy.separator": "_"}
    if flag is not None:
        settings["replication.policy.internal.topic.separator.enabled"] = flag
    policy = policy_from(settings, "a", version)
    assert policy.offset_syncs_topic("b") == syncs
    assert policy.checkpoints_topic("a") == checkpoints
    assert policy.heartbeats_topic() == "heartbeats"
    assert policy.format_remote_topic("a", "x") == "a_x"
    assert policy.is_checkpoints_topic(checkpoints)
    assert policy.is_internal_topic(syncs)


def test_the_flag_alone_changes_nothing():
    policy = policy_from({"replication.policy.internal.topic.separator.enabled": "false"}, "a")
    assert policy.checkpoints_topic("a") == "a.checkpoints.internal"


@pytest.mark.parametrize(
    ("topic", "mm2_internal_old", "internal_old", "mm2_internal_new", "internal_new"),
    [
        ("mm2-offset-syncs.b.internal", True, True, True, True),
        ("a.checkpoints.internal", True, True, True, True),
        ("user.internal", True, True, False, False),
        ("user-internal", False, True, False, False),
        ("__consumer_offsets", False, True, False, True),
        (".hidden", False, True, False, True),
        ("mm2-notes", False, False, False, False),
        ("orders", False, False, False, False),
    ],
)
def test_internal_topics_by_release(topic, mm2_internal_old, internal_old, mm2_internal_new, internal_new):
    for version in ((2, 7), (3, 0), (3, 9)):
        old = policy_from({}, "a", version)
        assert old.is_mm2_internal_topic(topic) is mm2_internal_old
        assert old.is_internal_topic(topic) is internal_old
    for new in (policy_from({}, "a", (4, 0)), policy_from({}, "a")):
        assert new.is_mm2_internal_topic(topic) is mm2_internal_new
        assert new.is_internal_topic(topic) is internal_new


def test_identity_keeps_names_but_not_those_of_heartbeats():
    policy = policy_from(IDENTITY | {"replication.policy.separator": "_"}, "src")
    assert isinstance(policy, IdentityReplicationPolicy)
    assert policy.format_remote_topic("src", "orders") == "orders"
    assert policy.topic_source("orders") == "src"
    assert policy.upstream_topic("orders") == "orders"
    assert policy.original_topic("orders") == "orders"
    assert policy.format_remote_topic("src", "heartbeats") == "src_heartbeats"
    assert policy.format_remote_topic("src", "device-heartbeats") == "src_device-heartbeats"
    assert policy.is_heartbeats_topic("src_heartbeats")
    assert not policy.is_heartbeats_topic("src.heartbeats")
    assert policy.is_heartbeats_topic("heartbeats")
    assert policy.topic_source("src_heartbeats") == "src"
    assert policy.topic_source("heartbeats") is None


def test_heartbeats_of_the_default_policy():
    policy = policy_from(DEFAULT, "a")
    assert policy.is_heartbeats_topic("heartbeats")
    assert policy.is_heartbeats_topic("b.a.heartbeats")
    assert not policy.is_heartbeats_topic("device-heartbeats")


@pytest.mark.parametrize(
    ("topic", "up_to_4_3", "from_4_4"),
    [
        ("orders", False, False),
        ("b.orders", True, True),
        ("c.b.orders", True, True),
        ("a.orders", False, True),
        ("c.a.orders", False, True),
        ("c.orders", False, False),
    ],
)
def test_cycles_by_release(topic, up_to_4_3, from_4_4):
    assert is_cycle(policy_from({}, "a", (4, 3)), "a", "b", topic) is up_to_4_3
    assert is_cycle(policy_from({}, "a", (4, 4)), "a", "b", topic) is from_4_4
    assert is_cycle(policy_from({}, "a"), "a", "b", topic) is from_4_4


def test_identity_sees_no_cycle_but_for_heartbeats():
    policy = policy_from(IDENTITY, "a")
    assert not is_cycle(policy, "a", "b", "orders")
    assert not is_cycle(policy, "a", "b", "b.orders")
    assert is_cycle(policy, "a", "b", "b.heartbeats")


def test_a_checkpoint_for_a_topic_of_the_target_gets_its_name_there():
    policy = policy_from({}, "a")
    assert checkpointed_topic(policy, "a", "b", "orders") == "a.orders"
    assert checkpointed_topic(policy, "a", "b", "b.orders") == "orders"
    assert checkpointed_topic(policy, "a", "b", "c.orders") == "a.c.orders"


def test_unknown_classes_are_refused_with_a_way_out():
    with pytest.raises(ConfigError, match=r"com\.acme\.X") as caught:
        policy_from({"replication.policy.class": "com.acme.X"}, "a")
    assert "failover.replication.policy.class=default or identity" in caught.value.hint
    with pytest.raises(ConfigError) as caught:
        policy_from({"replication.policy.class": "IdentityReplicationPolicy"}, "a")
    assert "org.apache.kafka.connect.mirror.IdentityReplicationPolicy" in caught.value.hint
    known = policy_from(
        {"replication.policy.class": "com.acme.X", "failover.replication.policy.class": "identity"}, "a"
    )
    assert isinstance(known, IdentityReplicationPolicy)
    with pytest.raises(ConfigError, match="unknown policy 'acme'"):
        policy_from({"failover.replication.policy.class": "acme"}, "a")


def test_policies_name_themselves():
    assert policy_from({}, "a").name == "default"
    assert policy_from(IDENTITY, "a").name == "identity"
    assert policy_from({MAP: "x:y"}, "a").name == "map"


# -- maps ------------------------------------------------------------------------------------------


def test_a_map_renames_forbids_and_leaves_the_rest_to_the_policy():
    policy = policy_from({MAP: "orders:sales, secret:-, eu-{topic}:{topic}-from-eu, tmp-{topic}:-"}, "a")
    assert policy.format_remote_topic("a", "orders") == "sales"
    assert policy.topic_source("sales") == "a"
    assert policy.upstream_topic("sales") == "orders"
    assert policy.original_topic("sales") == "orders"
    assert policy.format_remote_topic("a", "eu-pay") == "pay-from-eu"
    assert policy.original_topic("pay-from-eu") == "eu-pay"
    assert policy.format_remote_topic("a", "other") == "a.other"
    assert policy.topic_source("a.other") == "a"
    assert [t for t in ("orders", "secret", "tmp-1", "eu-pay", "other") if not policy.mirrors(t)] == ["secret", "tmp-1"]
    # Other clusters' topics and heartbeats are not the map's.
    assert policy.format_remote_topic("c", "orders") == "c.orders"
    assert policy.offset_syncs_topic("b") == "mm2-offset-syncs.b.internal"


def test_a_suffix_for_every_topic_but_heartbeats():
    policy = policy_from(IDENTITY | {MAP: "{topic}.dr"}, "a")
    assert policy.format_remote_topic("a", "orders") == "orders.dr"
    assert policy.upstream_topic("orders.dr") == "orders"
    assert policy.format_remote_topic("a", "heartbeats") == "a.heartbeats"
    assert policy.is_heartbeats_topic("a.heartbeats")
    assert not is_cycle(policy, "a", "b", "orders")


def test_names_that_cross_over_make_no_endless_loop():
    policy = policy_from({MAP: "x:y, y:x"}, "a")
    assert policy.original_topic("x") == "y"
    assert not is_cycle(policy, "a", "b", "x")
    assert is_cycle(policy, "a", "b", "b.x")


def test_the_first_entry_that_fits_decides_in_both_directions():
    policy = policy_from({MAP: "orders:sales, {topic}:{topic}.dr"}, "a")
    assert policy.format_remote_topic("a", "orders") == "sales"
    # Nothing is called orders.dr: it would have been orders, which became sales.
    assert policy.topic_source("orders.dr") == "orders"
    assert policy.upstream_topic("pay.dr") == "pay"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("orders", "'orders' is not an entry"),
        ("orders:", "is not an entry"),
        (":x", "is not an entry"),
        ("a:b:c", "is not an entry"),
        ("x:1, x:2", "x has two entries"),
        ("x:1, y:1", "x and y would both become 1"),
        ("{topic}:fixed", "once on both sides"),
        ("fixed:{topic}", "once on both sides"),
        ("{topic}{topic}:{topic}", "once on both sides"),
    ],
)
def test_malformed_maps_are_named(text, message):
    with pytest.raises(ConfigError, match=message) as caught:
        policy_from({MAP: text}, "a")
    assert MAP in caught.value.message
    assert caught.value.hint


def test_an_empty_map_is_no_map():
    assert type(policy_from({MAP: " "}, "a")) is DefaultReplicationPolicy


# -- internal topics -------------------------------------------------------------------------------


def of_flow(settings, version=None, worker=None):
    return InternalTopics.of_flow(settings, "a", "b", policy_from(settings, "a", version), worker)


def test_names_of_a_flow():
    topics = of_flow({})
    assert (topics.offset_syncs, topics.offset_syncs_on) == ("mm2-offset-syncs.b.internal", "a")
    assert topics.offset_syncs_location == "source"
    assert topics.checkpoints == "a.checkpoints.internal"
    assert (topics.heartbeats, topics.remote_heartbeats) == ("heartbeats", "a.heartbeats")
    assert topics.connect_configs == "mm2-configs.a.internal"
    assert topics.connect_offsets == "mm2-offsets.a.internal"
    assert topics.connect_status == "mm2-status.a.internal"
    assert topics.connect_group == "a-mm2"
    assert runs_topic(None, "a") == "mm2-failover-runs.a.internal"
    assert topics.exact_checkpoints == "mm2-exact-checkpoints.a.internal"
    assert topics.failover_shards == "mm2-failover-shards.a.internal"
    assert all(map(is_own_topic, ("mm2-failover-runs.a.internal", topics.exact_checkpoints, topics.failover_shards)))
    assert not any(map(is_own_topic, (topics.offset_syncs, topics.checkpoints, topics.connect_offsets)))


def test_syncs_on_the_target_are_named_after_the_source_from_3_0_on():
    on_target = {"offset-syncs.topic.location": "target"}
    topics = of_flow(on_target)
    assert (topics.offset_syncs, topics.offset_syncs_on) == ("mm2-offset-syncs.a.internal", "b")
    assert topics.offset_syncs_location == "target"
    assert of_flow(on_target, (2, 8)).offset_syncs == "mm2-offset-syncs.b.internal"
    with pytest.raises(ConfigError, match="elsewhere"):
        of_flow({"offset-syncs.topic.location": "elsewhere"})


def test_connect_topics_keep_their_dots_and_can_be_named_otherwise():
    topics = of_flow({"replication.policy.separator": "_"}, worker={"offset.storage.topic": "my-offsets"})
    assert topics.connect_configs == "mm2-configs.a.internal"
    assert topics.connect_offsets == "my-offsets"
    assert topics.remote_heartbeats == "a_heartbeats"


def test_own_groups():
    own = ["drill.app", replicate_group("a", "b"), checkpoint_group("a", "b"), lag_group("b")]
    assert own[1:] == ["failover.replicate.a-b", "failover.checkpoint.a-b", "mirrormaker2-cluster-b"]
    assert all(map(is_own_group, own))
    assert not any(map(is_own_group, ["app", "drill", "failover", "a-mm2"]))
    assert is_own_topic("failover-canary")
    assert not is_own_topic("failover-canary2")


def test_an_older_class_of_the_same_name_is_told_both_ways_out() -> None:
    java = "io.strimzi.kafka.connect.mirror.IdentityReplicationPolicy"
    with pytest.raises(ConfigError) as raised:
        policy_from({"replication.policy.class": java}, "a")
    assert "write org.apache.kafka.connect.mirror.IdentityReplicationPolicy;" in str(raised.value.hint)
    assert "failover.replication.policy.class=identity" in str(raised.value.hint)
    said = {"replication.policy.class": java, "failover.replication.policy.class": "identity"}
    assert isinstance(policy_from(said, "a"), IdentityReplicationPolicy)
