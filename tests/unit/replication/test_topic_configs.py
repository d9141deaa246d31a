from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failover.errors import ConfigError
from failover.kafka.faults import fault
from failover.kafka.wire.metadata import NO_TOPIC_ID
from failover.kafka.wire.topics import ConfigEntry, ConfigSource, CreatedTopic, NewTopic
from failover.replication import topic_creation
from failover.replication.topic_configs import config_rule, named_in, new_topic_configs, topic_configs
from failover.replication.topic_creation import create_with_what_is_taken

TOPIC, DEFAULT, STATIC, DYNAMIC = (
    ConfigSource.DYNAMIC_TOPIC_CONFIG,
    ConfigSource.DEFAULT_CONFIG,
    ConfigSource.STATIC_BROKER_CONFIG,
    ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG,
)
ENTRIES = [
    ConfigEntry("cleanup.policy", "compact", TOPIC),
    ConfigEntry("retention.ms", "5", DYNAMIC),
    ConfigEntry("segment.bytes", "9", STATIC),
    ConfigEntry("segment.ms", "7", DEFAULT),
    ConfigEntry("min.insync.replicas", "2", TOPIC),
    ConfigEntry("secret", None, TOPIC, sensitive=True),
    ConfigEntry("fixed", "1", TOPIC, read_only=True),
]


def test_the_targets_defaults_hold_unless_the_sources_are_asked_for():
    assert topic_configs(ENTRIES, config_rule({})) == {
        "cleanup.policy": "compact",
        "retention.ms": "5",
        "segment.ms": None,
    }
    assert new_topic_configs(ENTRIES, config_rule({})) == {"cleanup.policy": "compact", "retention.ms": "5"}
    of_source = config_rule({"use.defaults.from": "source"})
    assert new_topic_configs(ENTRIES, of_source) == {
        "cleanup.policy": "compact",
        "retention.ms": "5",
        "segment.ms": "7",
    }


def test_releases_before_3_5_know_no_defaults_of_the_source():
    assert not config_rule({"use.defaults.from": "source"}, (3, 4)).source_defaults
    assert config_rule({"use.defaults.from": "source"}, (3, 5)).source_defaults


def test_what_is_excluded_is_the_operators_choice():
    rule = config_rule({"config.properties.exclude": r"retention\..*"})
    assert topic_configs(ENTRIES, rule).keys() == {"cleanup.policy", "segment.ms", "min.insync.replicas"}
    with pytest.raises(ConfigError, match=r"config\.properties\.exclude"):
        config_rule({"config.properties.exclude": "("})


@given(
    st.lists(st.builds(ConfigEntry, st.text(), st.none() | st.text(), st.integers(0, 8), st.booleans(), st.booleans())),
    st.booleans(),
)
def test_a_setting_is_copied_or_left_to_the_target_or_not_spoken_of(entries, source_defaults):
    rule = config_rule({"use.defaults.from": "source" if source_defaults else "target"})
    told = topic_configs(entries, rule)
    by_name = {entry.name: entry for entry in entries if not entry.read_only and not entry.sensitive}
    for name, value in told.items():
        allowed = {entry.value for entry in entries if entry.name == name} | {None}
        assert name in by_name
        assert value in allowed
    copied = new_topic_configs(entries, rule)
    assert copied.items() <= told.items()
    assert None not in copied.values()


@pytest.mark.parametrize(
    ("message", "found"),
    [
        ("Unknown topic config name: retention.ms.", "retention.ms"),
        ("Invalid value -5 for configuration local.retention.ms: Value must be", "local.retention.ms"),
        ("local.retention.ms must not exceed retention.ms", "local.retention.ms"),
        ("retention.ms must not be below local.retention.ms", "retention.ms"),
        ("retention.ms.x, retention.msx, x-retention.ms", None),
        ("Tiered storage is disabled", None),
    ],
)
def test_the_setting_a_message_is_about(message, found):
    assert named_in(message, ["retention.ms", "local.retention.ms", "retention"]) == found


class Target:
    """Takes topics whose settings are all known; ``says`` what of a setting it does not take."""

    def __init__(self, says: dict[str, str], together: frozenset[str] = frozenset()) -> None:
        self.says = says
        self.together = together
        self.topics: dict[str, dict[str, str]] = {}
        self.requests = 0

    async def create_topics(self, _: object, topics: Any, *, validate_only: bool = False) -> dict[str, Any]:
        self.requests += 1
        answers: dict[str, Any] = {}
        for topic in topics:
            refused = next((name for name in topic.configs if name in self.says), None)
            if refused is not None:
                answers[topic.name] = fault(40, self.says[refused])
            elif self.together and self.together <= topic.configs.keys():
                answers[topic.name] = fault(40, "these do not go together")
            else:
                answers[topic.name] = CreatedTopic(NO_TOPIC_ID, topic.partitions, 1, {})
                if not validate_only:
                    self.topics[topic.name] = dict(topic.configs)
        return answers


def create(monkeypatch, target, *topics):
    monkeypatch.setattr(topic_creation, "create_topics", target.create_topics)
    return asyncio.run(create_with_what_is_taken(target, topics))


def test_settings_that_are_not_taken_are_left_out_one_after_the_other(monkeypatch):
    target = Target({"new.one": "Unknown topic config name: new.one", "tiered": "no such storage here"})
    topics = [
        NewTopic("t", 1, 1, {"tiered": "true", "retention.ms": "5", "new.one": "1"}),
        NewTopic("u", 1, 1, {"retention.ms": "6"}),
        NewTopic("v", 1, 1, {"tiered": "true"}),
    ]
    creation = create(monkeypatch, target, *topics)
    assert target.topics == {"t": {"retention.ms": "5"}, "u": {"retention.ms": "6"}, "v": {}}
    assert {name: set(found) for name, found in creation.left_out.items()} == {
        "t": {"tiered", "new.one"},
        "v": {"tiered"},
    }
    assert creation.left_out["t"]["tiered"].message == "no such storage here"
    assert {type(answer) for answer in creation.answers.values()} == {CreatedTopic}


def test_settings_that_do_not_go_together_leave_the_topic_uncreated(monkeypatch):
    target = Target({"bad": "bad is bad"}, together=frozenset({"one", "two"}))
    creation = create(monkeypatch, target, NewTopic("t", 1, 1, {"one": "1", "two": "2", "bad": "3"}))
    assert creation.answers["t"].number == 40
    assert (target.topics, creation.left_out) == ({}, {})


def test_many_topics_cost_no_more_requests(monkeypatch):
    target = Target({"x": "x is unknown", "tiered": "no"})
    create(monkeypatch, target, *(NewTopic(f"t{at}", 1, 1, {"x": "1", "tiered": "1"}) for at in range(100)))
    assert len(target.topics) == 100
    assert target.requests == 4
