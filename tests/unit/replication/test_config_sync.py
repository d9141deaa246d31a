from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failover.kafka.faults import fault
from failover.kafka.wire.topics import ConfigEntry, ConfigSource
from failover.replication import config_sync as module
from failover.replication.config_sync import ConfigSync
from failover.replication.topic_configs import config_rule, differences, topic_configs

OWN, DEFAULT = ConfigSource.DYNAMIC_TOPIC_CONFIG, ConfigSource.DEFAULT_CONFIG
DEFAULTS = {"retention.ms": "604800000", "cleanup.policy": "delete", "segment.ms": "1"}


class Cluster:
    """Keeps the settings that topics have of their own; ``defaults``: those it knows.

    ``refuses``: setting → what it says of any value, ``faults``: topic → its answer to everything.
    """

    def __init__(self, alias, topics):
        self.alias = alias
        self.topics = topics
        self.defaults = dict(DEFAULTS)
        self.refuses = {}
        self.faults = {}
        self.altered = []

    async def describe(self, names):
        return {name: self.faults.get(name) or self._entries(self.topics.get(name)) for name in names}

    def _entries(self, own):
        if own is None:
            return fault(3)
        inherited = {name: value for name, value in self.defaults.items() if name not in own}
        told = [ConfigEntry(name, value, OWN) for name, value in own.items() if name in self.defaults]
        return (*told, *(ConfigEntry(name, value, DEFAULT) for name, value in inherited.items()))

    async def alter(self, changes):
        self.altered.append({topic: dict(values) for topic, values in changes.items()})
        return {topic: self._alter(topic, values) for topic, values in changes.items()}

    def _alter(self, topic, values):
        if topic in self.faults:
            return self.faults[topic]
        for name in values:
            if name in self.refuses:
                return fault(40, self.refuses[name])
        own = self.topics[topic]
        own.update({name: value for name, value in values.items() if value is not None})
        for name, value in values.items():
            if value is None:
                own.pop(name, None)
        return None


class Scene:
    def __init__(self, monkeypatch, theirs, ours, **settings):
        self.a, self.b = Cluster("a", theirs), Cluster("b", ours)
        monkeypatch.setattr(module, "describe_topic_configs", lambda cluster, names: cluster.describe(list(names)))
        monkeypatch.setattr(module, "alter_topic_configs", lambda cluster, changes: cluster.alter(changes))
        rule = config_rule({key.replace("_", "."): value for key, value in settings.items()})
        both: Any = self.a, self.b
        self.work = ConfigSync(*both, topics=lambda: {topic: f"a.{topic}" for topic in theirs}, rule=rule)

    def rounds(self, number=1):
        for _ in range(number):
            asyncio.run(self.work.sync())


@pytest.fixture
def scene(monkeypatch, caplog):
    caplog.set_level(logging.INFO)
    return lambda theirs, ours, **settings: Scene(monkeypatch, theirs, ours, **settings)


def lines(caplog):
    return [record.getMessage() for record in caplog.records]


def test_a_change_is_followed_and_what_is_alike_costs_no_request(scene, caplog):
    one = scene({"t": {"retention.ms": "5"}, "u": {}}, {"a.t": {"segment.ms": "7"}, "a.u": {}})
    one.rounds(3)
    assert one.b.altered == [{"a.t": {"retention.ms": "5", "segment.ms": None}}]
    assert one.b.topics == {"a.t": {"retention.ms": "5"}, "a.u": {}}
    assert lines(caplog) == ["Topic a.t of b has retention.ms=5, segment.ms by default now, as on a"]
    one.a.topics["u"]["cleanup.policy"] = "compact"
    del one.a.topics["t"]["retention.ms"]
    one.rounds(2)
    assert one.b.altered[1:] == [{"a.t": {"retention.ms": None}, "a.u": {"cleanup.policy": "compact"}}]
    assert one.b.topics == {"a.t": {}, "a.u": {"cleanup.policy": "compact"}}


def test_a_value_that_is_also_the_targets_default_is_the_topics_own(scene):
    one = scene({"t": {"retention.ms": DEFAULTS["retention.ms"]}}, {"a.t": {}})
    one.rounds(2)
    assert one.b.altered == [{"a.t": {"retention.ms": DEFAULTS["retention.ms"]}}]


def test_the_sources_defaults_and_what_is_excluded(scene):
    one = scene(
        {"t": {"segment.ms": "3"}},
        {"a.t": {"segment.ms": "9"}},
        use_defaults_from="source",
        config_properties_exclude=r"segment\..*",
    )
    one.rounds(2)
    assert one.b.topics["a.t"] == {**DEFAULTS, "segment.ms": "9"}
    assert len(one.b.altered) == 1


def test_what_the_target_refuses_is_named_once_and_costs_nothing_else(scene, caplog):
    one = scene({"t": {"retention.ms": "5", "new.one": "1"}, "u": {"new.one": "1"}}, {"a.t": {}, "a.u": {}})
    one.a.defaults["new.one"] = "0"
    one.b.refuses["new.one"] = "Unknown topic config name: new.one"
    one.rounds(3)
    assert one.b.topics == {"a.t": {"retention.ms": "5"}, "a.u": {}}
    assert len(one.b.altered) == 2  # all, then without it
    assert lines(caplog) == [
        "Topic a.t of b has retention.ms=5 now, as on a",
        "b does not take new.one=1 (INVALID_CONFIG: Unknown topic config name: new.one); left out: a.t, a.u",
    ]
    one.a.topics["t"]["new.one"] = "2"
    one.rounds(2)
    assert one.b.altered[2:] == [{"a.t": {"new.one": "2"}}]
    # a newer release there knows it
    one.b.defaults["new.one"] = "0"
    one.b.refuses.clear()
    one.rounds(2)
    assert one.b.altered[3:] == [{"a.t": {"new.one": "2"}, "a.u": {"new.one": "1"}}]


def test_where_the_refusal_names_no_setting_each_is_tried_alone(scene, caplog):
    values = {"retention.ms": "5", "segment.ms": "6", "cleanup.policy": "compact"}
    one = scene({"t": values, "u": {"retention.ms": "5"}}, {"a.t": {}, "a.u": {}})
    one.b.refuses["segment.ms"] = "not here"
    one.rounds(2)
    assert one.b.topics == {"a.t": {"retention.ms": "5", "cleanup.policy": "compact"}, "a.u": {"retention.ms": "5"}}
    assert len(one.b.altered) == 4
    assert "b does not take segment.ms=6 (INVALID_CONFIG: not here); left out: a.t" in lines(caplog)


def test_what_is_taken_and_never_listed_is_sent_once(scene):
    one = scene({"t": {"hidden": "1"}}, {"a.t": {}})
    one.a.defaults["hidden"] = "0"
    one.rounds(3)
    assert one.b.altered == [{"a.t": {"hidden": "1"}}]


@pytest.mark.parametrize(
    ("side", "number", "text"),
    [
        ("a", 29, "settings of topics cannot be read on a: TOPIC_AUTHORIZATION_FAILED: t; grant DESCRIBE_CONFIGS on"),
        ("b", 29, "settings of topics cannot be read on b: TOPIC_AUTHORIZATION_FAILED: a.t; grant ALTER_CONFIGS (DES"),
        ("b", 35, "settings of topics cannot be read on b: UNSUPPORTED_VERSION: a.t; brokers from Kafka 2.3 on take"),
    ],
)
def test_a_cause_is_said_once_and_when_it_is_over(scene, caplog, side, number, text):
    one = scene({"t": {"retention.ms": "5"}, "u": {"retention.ms": "6"}}, {"a.t": {}, "a.u": {}})
    cluster = one.a if side == "a" else one.b
    cluster.faults["t" if side == "a" else "a.t"] = fault(number)
    one.rounds(3)
    assert one.b.topics == {"a.t": {}, "a.u": {"retention.ms": "6"}}
    told = [line for line in lines(caplog) if line.startswith("settings")]
    assert [line[: len(text)] for line in told] == [text]
    cluster.faults.clear()
    one.rounds(2)
    assert one.b.topics["a.t"] == {"retention.ms": "5"}
    assert [line for line in lines(caplog) if line.startswith("settings")][1:] == [
        f"settings of topics can be read on {side} again"
    ]


def test_changes_that_may_not_be_made_are_tried_again(scene, caplog):
    one = scene({"t": {"retention.ms": "5"}}, {"a.t": {}})
    one.b._alter = lambda topic, values: fault(29)
    one.rounds(2)
    assert len(one.b.altered) == 2
    [line] = lines(caplog)
    assert line.startswith("settings of topics cannot be changed on b: TOPIC_AUTHORIZATION_FAILED: a.t; grant ALTER_CO")


def test_a_topic_that_is_gone_is_nothing_to_speak_of(scene, caplog):
    one = scene({"t": {}, "u": {"retention.ms": "5"}}, {"a.u": {}})
    one.rounds()
    assert one.b.topics == {"a.u": {"retention.ms": "5"}}
    assert lines(caplog) == ["Topic a.u of b has retention.ms=5 now, as on a"]


def test_many_topics_are_asked_for_in_pieces(scene):
    topics = {f"t{number}": {"retention.ms": "5"} for number in range(450)}
    one = scene(topics, {f"a.{topic}": {} for topic in topics})
    one.rounds(2)
    assert [len(changes) for changes in one.b.altered] == [200, 200, 50]


VALUES = st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), st.sampled_from(["1", "2"]))
KNOWN = dict.fromkeys("abcd", "1")


@given(VALUES, VALUES, st.booleans())
def test_once_changed_nothing_differs(theirs, ours, source_defaults):
    """The changes, applied, give what MM2's rule wants: a value of the topic's own, or none; and end there."""
    source, target = Cluster("a", {"t": theirs}), Cluster("b", {"t": dict(ours)})
    source.defaults = target.defaults = KNOWN
    rule = config_rule({"use.defaults.from": "source" if source_defaults else "target"})
    wanted = topic_configs(source._entries(theirs), rule)
    changes = differences(wanted, target._entries(ours))
    assert target._alter("t", changes) is None
    assert target.topics["t"] == (KNOWN | theirs if source_defaults else theirs)
    assert differences(wanted, target._entries(target.topics["t"])) == {}
