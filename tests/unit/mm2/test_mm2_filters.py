"""Topic, group and setting filters, and what a flow mirrors in the end."""

from __future__ import annotations

import pytest

from failover.errors import ConfigError
from failover.mm2.filters import (
    compile_list,
    config_property_filter,
    group_filter,
    java_list,
    looks_like_glob,
    topic_filter,
)
from failover.mm2.replication_policy import policy_from
from failover.mm2.topic_selection import selection_from

POLICY = "org.apache.kafka.connect.mirror.{}ReplicationPolicy"


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("", []),
        ("  \t", []),
        ("a", ["a"]),
        (" a , b\t,\n c ", ["a", "b", "c"]),
        ("a,,b", ["a", "", "b"]),
        ("a,", ["a", ""]),
        ("a b", ["a b"]),
    ],
)
def test_lists_are_split_as_java_splits_them(text, items):
    assert java_list(text) == items


def test_a_list_must_match_the_whole_name_and_exclusion_wins():
    topics = topic_filter({"topics": "orders, pay.*", "topics.exclude": "pay-old"})
    assert topics.matches("orders")
    assert not topics.matches("orders2")
    assert topics.matches("payments")
    assert topics.why_not("pay-old") == "excluded by topics.exclude"
    assert topics.why_not("other") == "not in topics"
    assert topics.why_not("payments") is None


def test_an_empty_list_matches_nothing():
    assert not topic_filter({"topics": ""}).matches("orders")
    assert topic_filter({"topics.exclude": " "}).matches("__anything")


def test_a_flag_of_one_item_holds_for_those_behind_it_as_in_java():
    groups = group_filter({"groups": "(?i)orders,billing"})
    assert groups.matches("ORDERS")
    assert groups.matches("Billing")


@pytest.mark.parametrize(
    ("version", "name", "taken"),
    [
        (None, "user.internal", True),
        ((4, 0), "user.internal", True),
        ((3, 9), "user.internal", False),
        ((3, 9), "user-internal", False),
        ((4, 0), "mm2-offsets.a.internal", False),
        ((3, 9), "x.replica", False),
        ((4, 0), "x.replica", False),
        ((4, 0), "__consumer_offsets", False),
        ((2, 7), "__consumer_offsets", False),
    ],
)
def test_default_topic_filter_by_release(version, name, taken):
    assert topic_filter({}, version).matches(name) is taken


@pytest.mark.parametrize("name", ["console-consumer-1", "connect-sink", "__x"])
def test_default_group_filter(name):
    assert group_filter({}).why_not(name) == "excluded by groups.exclude"
    assert group_filter({}).matches("app")


def test_default_filter_of_settings_by_release():
    old, new = config_property_filter({}, (4, 2)), config_property_filter({}, (4, 3))
    for settings in (old, new):
        assert not settings.matches("min.insync.replicas")
        assert not settings.matches("message.timestamp.type")
        assert settings.matches("retention.ms")
        assert settings.matches("message.timestamp.before.max.ms")
    assert old.matches("log.message.timestamp.before.max.ms")
    assert not new.matches("log.message.timestamp.before.max.ms")
    # From 4.3 on a dot of the defaults stands for any character.
    assert old.matches("min-insync-replicas")
    assert not new.matches("min-insync-replicas")


def test_blacklists_count_up_to_3_9_and_where_guides_are_followed():
    settings = {
        "topics.blacklist": "secret.*",
        "groups.blacklist": "temp.*",
        "config.properties.blacklist": "retention.ms",
    }
    assert not topic_filter(settings, (3, 9)).matches("secret1")
    assert topic_filter(settings, (4, 0)).matches("secret1")
    assert topic_filter(settings).matches("secret1")
    assert topic_filter(settings, unofficial=True).why_not("secret1") == "excluded by topics.blacklist"
    assert not group_filter(settings, (3, 9)).matches("temp1")
    assert group_filter(settings, (4, 1)).matches("temp1")
    assert not config_property_filter(settings, (3, 9)).matches("retention.ms")
    assert config_property_filter(settings, (4, 0)).matches("retention.ms")


def test_the_present_key_goes_before_the_deprecated_one():
    settings = {"topics.exclude": "a", "topics.blacklist": "b"}
    assert topic_filter(settings, (3, 9)).matches("b")
    assert not topic_filter(settings, (3, 9)).matches("a")


def test_guides_regex_keys_count_only_where_asked_for():
    settings = {"topics.regex": "eu-.*", "groups.regex": "eu-.*"}
    assert topic_filter(settings).matches("us-1")
    assert topic_filter(settings, unofficial=True).why_not("us-1") == "not in topics.regex"
    assert group_filter(settings, unofficial=True).matches("eu-1")


def test_an_unusable_item_is_named_with_its_key():
    with pytest.raises(ConfigError, match=r"groups: '\*\.orders' cannot be used: dangling") as caught:
        group_filter({"groups": "app, *.orders"})
    assert caught.value.hint == "if a shell pattern was meant, write .*.orders"
    with pytest.raises(ConfigError, match=r"topics\.exclude: '\\\\p\{IsGreek\}'"):
        topic_filter({"topics.exclude": r"a,\p{IsGreek}"})


def test_items_that_are_valid_only_together_are_judged_together():
    joined = compile_list("topics", ["(a", "b)"])
    assert joined is not None
    assert joined.fullmatch("b")
    with pytest.raises(ConfigError, match="'a\\{1'"):
        compile_list("topics", ["a{1", "3}"])


def test_java_filter_classes_are_refused_unless_told_how_to_read_them():
    settings = {"group.filter.class": "com.acme.Groups"}
    with pytest.raises(ConfigError, match=r"com\.acme\.Groups") as caught:
        group_filter(settings)
    assert "failover.group.filter.class=default" in caught.value.hint
    assert group_filter(settings | {"failover.group.filter.class": "default"}).matches("app")
    named = {
        "topic.filter.class": "org.apache.kafka.connect.mirror.DefaultTopicFilter",
        "group.filter.class": "org.apache.kafka.connect.mirror.DefaultGroupFilter",
        "config.property.filter.class": "org.apache.kafka.connect.mirror.DefaultConfigPropertyFilter",
    }
    assert topic_filter(named).matches("orders")
    assert group_filter(named).matches("app")
    assert config_property_filter(named).matches("retention.ms")


@pytest.mark.parametrize(
    ("item", "suggestion"),
    [
        ("customer-*", "customer-.*"),
        ("*", ".*"),
        ("*.orders", ".*.orders"),
        ("eu.*-orders-*", "eu.*-orders-.*"),
        ("(a|*-x)", "(a|.*-x)"),
        ("a*b", "a.*b"),
        (".*", None),
        ("orders.*", None),
        ("[a-z]*", None),
        (r"\w*", None),
        ("(ab)*", None),
        ("orders", None),
        ("order?", None),
    ],
)
def test_shell_patterns_are_recognised(item, suggestion):
    assert looks_like_glob(item) == suggestion


# -- what is mirrored ------------------------------------------------------------------------------


def selection(settings=None, version=None, **more):
    settings = settings or {}
    return selection_from(settings, "a", "b", policy_from(settings, "a", version), **more)


def test_reasons_why_topics_are_not_mirrored():
    chosen = selection({"topics": "orders.*, .*events, mm2.*, .*\\.internal, .*x", "topics.exclude": "orders-tmp"})
    assert chosen.should_replicate("orders")
    assert chosen.why_not("orders") is None
    assert chosen.why_not("orders-tmp") == "excluded by topics.exclude"
    assert chosen.why_not("payments") == "not in topics"
    assert chosen.why_not("mm2-offset-syncs.b.internal") == "internal topic"
    assert chosen.why_not("a.checkpoints.internal") == "internal topic"
    assert chosen.why_not("b.x") == "cycle: it came from b or from a itself"
    assert chosen.why_not("c.b.x") == "cycle: it came from b or from a itself"
    assert chosen.should_replicate("c.x")
    for own in ("mm2-failover-runs.a.internal", "mm2-exact-checkpoints.c.internal", "failover-canary"):
        assert chosen.why_not(own) == "a topic of this tool"


@pytest.mark.parametrize(("setting", "left_out"), [("ops-runs", ["ops-runs"]), (" runs ", ["runs"]), ("off", [])])
def test_the_topic_of_executions_is_left_out_by_whatever_name(setting, left_out):
    chosen = selection({"failover.runs.topic": setting})
    assert [topic for topic in ("off", "ops-runs", "runs") if not chosen.should_replicate(topic)] == left_out
    assert chosen.why_not("mm2-failover-runs.a.internal") == "a topic of this tool"


def test_heartbeats_pass_the_topic_filter_unless_switched_off_from_4_0_on():
    off = {"topics": "orders", "heartbeats.replication.enabled": "false"}
    assert selection({"topics": "orders"}).should_replicate("heartbeats")
    assert selection({"topics": "orders"}).should_replicate("c.heartbeats")
    assert not selection({"topics": "orders"}).should_replicate("b.heartbeats")
    assert selection(off).why_not("heartbeats") == "not in topics"
    assert selection(off, (3, 9)).should_replicate("heartbeats")


def test_a_topic_map_can_forbid():
    chosen = selection({"failover.replication.policy.topic.map": "secret:-"})
    assert chosen.why_not("secret") == "the topic map says not to mirror it"
    assert chosen.should_replicate("orders")
