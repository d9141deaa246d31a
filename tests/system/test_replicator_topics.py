"""The replicator's topics: what is found on the source is made, enlarged and watched on the target."""

from __future__ import annotations

import contextlib
import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from failover.config.clients import ClientSettings
from failover.config.load import load_config, select_flow
from failover.inventory.flow import flow_of
from failover.kafka.wire.cluster import WireCluster
from failover.kafka.wire.connection import Connection
from failover.kafka.wire.thread import WireThread
from failover.kafka.wire.topics import NewTopic, create_topics, describe_broker_configs, describe_topic_configs
from failover.lab import APP, MirrorOptions
from failover.model.names import Fault, TopicPartition
from failover.replication.topic_creation import create_with_what_is_taken
from failover.replication.topics import Changes, Topics, TopicsSeen, topic_settings
from tests.system.pair import Pair
from tests.system.test_plan_rights import Scene
from tests.system.wire_side import address, secured

MAP = "failover.replication.policy.topic.map"
METADATA, CREATE, DESCRIBE_CONFIGS, GROW = 3, 19, 32, 37


class Worker:
    """Is a worker's ``Topics`` on the pair, from its configuration file on."""

    def __init__(self, pair: Pair, thread: WireThread, topics: Topics) -> None:
        self._pair = pair
        self._thread = thread
        self.topics = topics

    def refresh(self) -> Changes:
        told: Changes = self._thread.run(self.topics.refresh())
        self._pair.expected["b"].update(self.seen.created)
        return told

    def run(self, work: Any) -> Any:
        return self._thread.run(work)

    @property
    def seen(self) -> TopicsSeen:
        return self.topics.seen

    def ids(self, topic: str) -> set[tuple[bytes, bytes]]:
        return {pair[2:] for tp, pair in self.seen.pairs.items() if tp.topic == topic}

    def notices(self, code: str) -> list[str]:
        return [notice.text for notice in self.seen.notices if notice.code == code]


@contextlib.contextmanager
def worker(
    pair: Pair,
    topics: str,
    settings: Mapping[str, str] | None = None,
    *,
    aliases: tuple[str, str] = ("a", "b"),
    source: ClientSettings | None = None,
    target: ClientSettings | None = None,
) -> Iterator[Worker]:
    """Opens a worker for topics matching an expression; its clients are super users unless given."""
    # a real MirrorMaker 2 of another test may write heartbeats, which are copied whatever the filter says
    options = MirrorOptions(topics=topics, settings={"heartbeats.replication.enabled": "false"})
    config = load_config([str(pair.config_path(aliases=aliases, options=options, added=settings))])
    selected = select_flow(config, *aliases)
    plain = {alias: ClientSettings(address(pair.bootstrap(alias))) for alias in ("a", "b")}
    from_a = WireCluster(source or plain["a"], alias=aliases[0], silence=10)
    to_b = WireCluster(target or plain["b"], alias=aliases[1], silence=10)
    found = Topics(from_a, to_b, flow_of(config, selected), topic_settings(config, selected.flow))
    with WireThread() as thread:
        try:
            thread.run(from_a.open())
            thread.run(to_b.open())
            yield Worker(pair, thread, found)
        finally:
            thread.run(from_a.close())
            thread.run(to_b.close())


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    """Counts the requests by API key."""
    counted: Counter[int] = Counter()
    submit = Connection.submit

    def counting(self: Connection, key: int, *rest: Any, **options: Any) -> Any:
        counted[key] += 1
        return submit(self, key, *rest, **options)

    monkeypatch.setattr(Connection, "submit", counting)
    return counted


# -- what is made ---------------------------------------------------------------------------------


def test_a_topic_is_made_with_its_partitions_and_settings(pair: Pair, caplog: pytest.LogCaptureFixture) -> None:
    stem = pair.name("w.made")
    compacted = pair.create_topic(
        "a", f"{stem}.c", 3, config={"cleanup.policy": "compact", "min.insync.replicas": "1", "retention.ms": "7000000"}
    )
    plain = pair.create_topic("a", f"{stem}.p", 1)
    with caplog.at_level(logging.INFO), worker(pair, rf"{stem}\..*") as one:
        told = one.refresh()
    assert one.seen.created == (f"a.{compacted}", f"a.{plain}")
    assert one.seen.faults == ()
    assert one.seen.wanted == {compacted: 3, plain: 1}
    assert {pair_.source: pair_.target for pair_ in told.added} == {
        **{TopicPartition(compacted, number): TopicPartition(f"a.{compacted}", number) for number in range(3)},
        TopicPartition(plain, 0): TopicPartition(f"a.{plain}", 0),
    }
    assert pair.b.partitions(f"a.{compacted}") == [0, 1, 2]
    # min.insync.replicas is excluded by default
    assert pair.b.topic_config(f"a.{compacted}") == {"cleanup.policy": "compact", "retention.ms": "7000000"}
    assert pair.b.topic_config(f"a.{plain}") == {}
    lines = [record.getMessage() for record in caplog.records]
    assert "Skipping topic __consumer_offsets (internal topic)" in lines or "__consumer_offsets" not in pair.a.topics()
    assert (
        f"Created topic a.{compacted} of b for {compacted}: 3 partitions, replication factor 1, "
        "cleanup.policy=compact, retention.ms=7000000"
    ) in lines


def test_what_is_skipped_is_said_once(pair: Pair, caplog: pytest.LogCaptureFixture) -> None:
    stem = pair.name("w.skip")
    back = pair.create_topic("a", f"b.{stem}")
    left = pair.create_topic("a", pair.name("w.left"))
    pair.create_topic("a", stem)
    with caplog.at_level(logging.INFO), worker(pair, rf"(b\.)?{stem}") as one:
        one.refresh()
        assert one.seen.skipped[left] == "not in topics"
        assert one.seen.skipped[back].startswith("cycle")
        lines = [record.getMessage() for record in caplog.records]
        assert f"Skipping topic {left} (not in topics)" in lines
        caplog.clear()
        assert not one.refresh()
        assert [record.getMessage() for record in caplog.records if stem in record.getMessage()] == []
        assert one.seen.skipped[left] == "not in topics"
    assert f"a.b.{stem}" not in pair.b.topics()


def test_the_sources_defaults_are_set_where_they_are_asked_for(pair: Pair) -> None:
    topic = pair.create_topic("a", pair.name("w.defaults"), config={"max.message.bytes": "2000000"})
    with worker(pair, topic, {"use.defaults.from": "source"}) as wrong_place:
        wrong_place.refresh()  # MM2 reads it below a flow only
    assert pair.b.topic_config(f"a.{topic}") == {"max.message.bytes": "2000000"}
    topic = pair.create_topic("a", pair.name("w.defaults"))
    with worker(pair, topic, {"a->b.use.defaults.from": "source"}) as one:
        one.refresh()
        assert one.seen.faults == ()
    own = pair.b.topic_config(f"a.{topic}")
    assert own["retention.ms"] == "604800000"
    assert "min.insync.replicas" not in own


def test_topics_that_are_there_are_used_as_they_are(pair: Pair) -> None:
    more, fewer = (pair.create_topic("a", pair.name("w.there"), 2) for _ in range(2))
    pair.create_topic("b", f"a.{more}", 5, config={"retention.ms": "9000000"})
    pair.create_topic("b", f"a.{fewer}", 1)
    with worker(pair, f"{more}|{fewer}") as one:
        one.refresh()
        assert one.seen.created == ()
        assert one.seen.grown == {f"a.{fewer}": (1, 2)}
        assert len(one.seen.pairs) == 4
        assert one.notices("more-partitions") == [
            f"Topic a.{more} of b has 3 partitions more than {more}; nothing is copied there"
        ]
        assert [notice.text for notice in one.seen.news if notice.code == "more-partitions"]
        assert not one.refresh()
        assert one.notices("more-partitions")
        assert one.seen.news == ()
    assert pair.b.partitions(f"a.{more}") == [0, 1, 2, 3, 4]
    assert pair.b.partitions(f"a.{fewer}") == [0, 1]
    assert pair.b.topic_config(f"a.{more}") == {"retention.ms": "9000000"}


def test_partitions_are_added_as_the_source_gets_them(pair: Pair) -> None:
    from confluent_kafka.admin import NewPartitions

    topic = pair.create_topic("a", pair.name("w.grow"), 1)
    with worker(pair, topic) as one:
        assert len(one.refresh().added) == 1
        pair.a.admin.create_partitions([NewPartitions(topic, 4)])[topic].result(timeout=10)
        pair.a.until(lambda: len(pair.a.partitions(topic)) == 4, what="the source has 4 partitions")
        told = one.refresh()
        assert {each.source.partition for each in told.added} == {1, 2, 3}
        assert one.seen.grown == {f"a.{topic}": (1, 4)}
        assert one.notices("partitions-added") == [
            f"Topic a.{topic} of b has 4 partitions now, as {topic} has; it had 1"
        ]
        # each can be written at once
        leaders = one.run(one.topics._target.leaders([each.target for each in told.added]))
        assert not any(isinstance(leader, Fault) for leader in leaders.values())
    assert pair.b.partitions(f"a.{topic}") == [0, 1, 2, 3]


def test_two_hundred_topics_take_six_requests(pair: Pair, asked: Counter[int]) -> None:
    from confluent_kafka.admin import NewTopic as Wanted

    stem = pair.name("w.many")
    names = [f"{stem}.{number}" for number in range(200)]
    config = {"retention.ms": "8000000"}
    for done in pair.a.admin.create_topics([Wanted(name, 1, 1, config=config) for name in names]).values():
        done.result(timeout=30)
    pair.expected["a"].update(names)
    pair.a.until(lambda: set(names) <= pair.a.topics(), what="200 topics are there")
    with worker(pair, rf"{stem}\..*") as one:
        one.run(describe_broker_configs(one.topics._source))
        one.run(describe_broker_configs(one.topics._target))  # both are connected now
        asked.clear()
        told = one.refresh()
        first = dict(asked)
        assert len(told.added) == len(one.seen.created) == 200
        assert one.seen.faults == ()
        # metadata of both sides, and of what is new until it has leaders
        assert first.pop(METADATA) <= 2 + 6
        assert first == {DESCRIBE_CONFIGS: 1, CREATE: 1}
        asked.clear()
        assert not one.refresh()
        assert asked == {METADATA: 2}
    assert pair.b.topic_config(f"a.{names[-1]}") == config


def test_mirror_maker_makes_the_same_topics(mm2: Pair) -> None:
    from confluent_kafka.admin import (
        AlterConfigOpType,
        ConfigEntry,
        ConfigResource,
        ResourceType,
    )

    def of_broker(operation: AlterConfigOpType) -> None:
        change = ConfigEntry("log.flush.interval.messages", "900000000", incremental_operation=operation)
        asked = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[change])
        mm2.a.admin.incremental_alter_configs([asked])[asked].result(timeout=10)

    of_broker(AlterConfigOpType.SET)  # an operator's setting at run time becomes a setting of each copy
    try:
        config = {
            "cleanup.policy": "compact,delete",
            "min.insync.replicas": "1",
            "unclean.leader.election.enable": "true",
            "message.timestamp.type": "LogAppendTime",
            "follower.replication.throttled.replicas": "*",
            "compression.type": "zstd",
        }
        topic = mm2.create_topic("a", mm2.name("t.same"), 3, config=config)
        mm2.b.until(lambda: len(mm2.b.partitions(f"a.{topic}")) == 3, what="MirrorMaker 2 made its topic", seconds=90)
        with worker(mm2, topic, aliases=("c", "d")) as one:
            one.refresh()
            assert one.seen.created == (f"c.{topic}",)
        own = mm2.b.topic_config(f"c.{topic}")
        assert own == mm2.b.topic_config(f"a.{topic}")
        assert own.items() >= {"cleanup.policy": "compact,delete", "flush.messages": "900000000"}.items()
        assert "message.timestamp.type" not in own
        assert mm2.b.partitions(f"c.{topic}") == [0, 1, 2]
    finally:
        of_broker(AlterConfigOpType.DELETE)


# -- what changes -----------------------------------------------------------------------------------


def test_a_recreated_source_topic_is_noticed(pair: Pair) -> None:
    topic = pair.create_topic("a", pair.name("w.again"), 2)
    with worker(pair, topic) as one:
        one.refresh()
        [(source_id, target_id)] = one.ids(topic)
        pair.a.recreate_topic(topic)
        told = one.refresh()
        assert {each.source.partition for each in told.source_recreated} == {0, 1}
        assert (told.added, told.gone, told.target_recreated) == ((), (), ())
        [(now, still)] = one.ids(topic)
        assert (now != source_id, still) == (True, target_id)
        assert not one.refresh()


def test_a_deleted_target_topic_is_made_anew_and_noticed(pair: Pair) -> None:
    topic = pair.create_topic("a", pair.name("w.target"), 2, config={"cleanup.policy": "compact"})
    with worker(pair, topic) as one:
        one.refresh()
        [(source_id, target_id)] = one.ids(topic)
        pair.b.delete_topic(f"a.{topic}")
        told = one.refresh()
        assert one.seen.created == (f"a.{topic}",)
        assert {each.target.partition for each in told.target_recreated} == {0, 1}
        assert (told.added, told.gone, told.source_recreated, told.target_missing) == ((), (), (), ())
        [(still, now)] = one.ids(topic)
        assert (still, now != target_id) == (source_id, True)
    assert pair.b.topic_config(f"a.{topic}") == {"cleanup.policy": "compact"}


def test_a_deleted_source_topic_is_gone_and_its_copy_stays(pair: Pair) -> None:
    topic = pair.create_topic("a", pair.name("w.gone"), 2)
    with worker(pair, topic) as one:
        one.refresh()
        pair.a.delete_topic(topic)
        told = one.refresh()
        assert {each.source for each in told.gone} == {TopicPartition(topic, number) for number in (0, 1)}
        assert (one.seen.pairs, one.seen.faults) == ({}, ())
    assert pair.b.partitions(f"a.{topic}") == [0, 1]
    assert topic not in pair.a.topics(), "a question made it again"


# -- what cannot be made ------------------------------------------------------------------------------


def test_a_name_that_collides_costs_only_its_topic(pair: Pair) -> None:
    stem = pair.name("w.collide")
    pair.create_topic("b", f"a_{stem}")  # metrics of a.x and a_x would be one: Kafka refuses the second
    other = pair.create_topic("a", f"{stem}-other")
    pair.create_topic("a", stem)
    with worker(pair, f"{stem}(-other)?") as one:
        one.refresh()
        [fault] = one.seen.faults
        assert (fault.topic, fault.target, fault.code) == (stem, f"a.{stem}", "invalid-name")
        assert f"topic a.{stem} of b cannot be made for {stem}: INVALID_TOPIC_EXCEPTION" in fault.message
        assert one.seen.created == (f"a.{other}",)
        assert one.notices("topic-fault") == [str(fault)]
        assert not one.refresh()
        assert one.seen.news == ()


def test_two_topics_with_one_target_are_both_refused(pair: Pair) -> None:
    stem = pair.name("w.both")
    old, new, other = (pair.create_topic("a", f"{stem}.{which}") for which in ("old1", "new1", "other"))
    topic_map = f"{stem}.old{{topic}}:{stem}.x{{topic}}, {stem}.new{{topic}}:{stem}.x{{topic}}"
    with worker(pair, rf"{stem}\..*", {MAP: topic_map}) as one:
        one.refresh()
        assert {fault.topic: fault.code for fault in one.seen.faults} == dict.fromkeys((old, new), "name-collision")
        assert one.seen.created == (f"a.{other}",)
    pair.a.delete_topic(new)
    with worker(pair, rf"{stem}\..*", {MAP: topic_map}) as one:
        one.refresh()
        assert (one.seen.created, one.seen.faults) == ((f"{stem}.x1",), ())


def test_more_replicas_than_brokers_are_told_with_the_setting(pair: Pair) -> None:
    topic = pair.create_topic("a", pair.name("w.factor"))
    with worker(pair, topic, {"replication.factor": "2"}) as one:
        told = one.refresh()
        [fault] = one.seen.faults
        assert fault.code == "invalid-replication-factor"
        assert (
            fault.hint == "replication.factor is 2 and b has 1 broker: set it to 1 at most, or to -1 for their default"
        )
        assert (told, one.seen.wanted) == (Changes(), {topic: 1})
    with worker(pair, topic, {"replication.factor": "-1"}) as one:
        one.refresh()
        assert one.seen.created == (f"a.{topic}",)


def test_too_few_replicas_for_acknowledged_writes_are_warned_of(pair: Pair) -> None:
    topic = pair.create_topic("a", pair.name("w.insync"), config={"min.insync.replicas": "2"})
    with worker(pair, topic, {"a->b.config.properties.exclude": "none"}) as one:
        one.refresh()
        [warned] = one.notices("low-replication")
        assert f"Topic a.{topic} of b has replication factor 1 and min.insync.replicas=2" in warned


def test_settings_the_target_does_not_take_are_left_out(pair: Pair) -> None:
    name = pair.name("w.refused")
    configs = {
        "retention.ms": "5000000",
        "no.such.setting": "1",
        "remote.storage.enable": "true",  # its refusal does not name it
        "max.message.bytes": "-7",
        "cleanup.policy": "delete",
    }
    pair.expected["b"].update({name, f"{name}-2"})
    with worker(pair, name) as one:
        wanted = [NewTopic(name, 2, 1, configs), NewTopic(f"{name}-2", 1)]
        creation = one.run(create_with_what_is_taken(one.topics._target, wanted))
    assert creation.left_out.keys() == {name}
    assert creation.left_out[name].keys() == {"no.such.setting", "remote.storage.enable", "max.message.bytes"}
    assert pair.b.topic_config(name) == {"retention.ms": "5000000", "cleanup.policy": "delete"}
    assert pair.b.topics() >= {name, f"{name}-2"}


# -- rights -------------------------------------------------------------------------------------------


def test_without_create_each_topic_is_told_and_the_others_go_on(pair: Pair) -> None:
    stem = pair.name("w.rights")
    there, missing, small = (pair.create_topic("a", f"{stem}.{which}", 2) for which in ("there", "missing", "small"))
    pair.create_topic("b", f"a.{there}", 2)
    pair.create_topic("b", f"a.{small}", 1)
    unseen = pair.create_topic("a", f"{stem}.unseen")
    scene = Scene(pair, pair.lab.config, ("", ""), ("", ""))
    target = secured(pair, "b", user=APP, mechanism="SCRAM-SHA-512")
    rights = [("TOPIC", f"a.{stem}.{which}", "WRITE") for which in ("there", "missing", "small")]
    with scene.allowed(*rights), worker(pair, rf"{stem}\..*", target=target) as one:
        told = one.refresh()
        found = {fault.topic: fault for fault in one.seen.faults}
        assert {topic: (fault.code, fault.hint) for topic, fault in found.items()} == {
            missing: ("not-authorized", f"grant CREATE on topic a.{missing} of b"),
            small: ("not-authorized", f"grant ALTER on topic a.{small} of b"),
            unseen: ("not-authorized", f"grant DESCRIBE (WRITE includes it) on topic a.{unseen} of b"),
        }
        # what is there is copied meanwhile
        assert {each.target for each in told.added} == {
            TopicPartition(f"a.{there}", 0),
            TopicPartition(f"a.{there}", 1),
            TopicPartition(f"a.{small}", 0),
        }
        assert one.run(describe_broker_configs(one.topics._target))[1].name == "CLUSTER_AUTHORIZATION_FAILED"
        assert one.run(one.topics.producer_expiration_ms()) is None
    with (
        scene.allowed(*rights, ("TOPIC", f"a.{missing}", "CREATE")),
        worker(pair, rf"{stem}\..*", target=target) as one,
    ):
        one.refresh()
        assert one.seen.created == (f"a.{missing}",)
    assert pair.b.partitions(f"a.{missing}") == [0, 1]
    assert f"a.{unseen}" not in pair.b.topics()


def test_a_target_that_cannot_be_made_again_is_missing_until_it_can(pair: Pair) -> None:
    topic = pair.create_topic("a", pair.name("w.missing"), 2)
    scene = Scene(pair, pair.lab.config, ("", ""), ("", ""))
    write, create = (("TOPIC", f"a.{topic}", right) for right in ("WRITE", "CREATE"))
    with worker(pair, topic, target=secured(pair, "b", user=APP, mechanism="SCRAM-SHA-512")) as one:
        with scene.allowed(write, create):
            known = {each.target for each in one.refresh().added}
        pair.b.delete_topic(f"a.{topic}")
        with scene.allowed(write):
            told = one.refresh()
            assert {each.target for each in told.target_missing} == known
            assert (told.gone, one.seen.pairs, one.seen.wanted) == ((), {}, {topic: 2})
            assert not one.refresh()
        with scene.allowed(write, create):
            told = one.refresh()
            assert {each.target for each in told.target_recreated} == known
            assert (told.added, one.seen.faults) == ((), ())


def test_without_rights_on_the_source_nothing_is_made_blindly(pair: Pair) -> None:
    stem = pair.name("w.source")
    told, untold = (pair.create_topic("a", f"{stem}.{which}") for which in ("told", "untold"))
    source = secured(pair, "a", user=APP, mechanism="SCRAM-SHA-512")
    see = [("TOPIC", f"{stem}.{which}", "READ") for which in ("told", "untold")]
    configs = ("TOPIC", told, "DESCRIBE_CONFIGS")
    with allowed_on_source(pair, *see, configs), worker(pair, rf"{stem}\..*", source=source) as one:
        one.refresh()
        [fault] = one.seen.faults
        assert (fault.topic, fault.hint) == (untold, f"grant DESCRIBE_CONFIGS on topic {untold} of a")
        assert one.seen.created == (f"a.{told}",)
    with worker(pair, rf"{stem}\..*", source=source) as one:
        with allowed_on_source(pair, *see, configs):
            one.refresh()
            pairs = one.seen.pairs
        # a topic that may not be seen any more is not a topic that was deleted
        assert not one.refresh()
        assert one.seen.pairs == pairs
        assert {fault.topic: fault.hint for fault in one.seen.faults} == {
            topic: f"grant DESCRIBE on topic {topic} of a" for topic in (told, untold)
        }


@contextlib.contextmanager
def allowed_on_source(pair: Pair, *rights: tuple[str, str, str]) -> Iterator[None]:
    turned = type("Turned", (), {"b": pair.a})
    with Scene(turned, pair.lab.config, ("", ""), ("", "")).allowed(*rights):  # type: ignore[arg-type]
        yield


# -- the requests themselves --------------------------------------------------------------------------


def test_what_brokers_say_of_their_settings(pair: Pair) -> None:
    topic = pair.create_topic("a", pair.name("w.settings"), config={"retention.ms": "6000000"})
    with worker(pair, topic) as one:
        cluster = one.topics._source
        absent = pair.name("w.nowhere")
        told = one.run(describe_topic_configs(cluster, [topic, absent]))
        own = {entry.name: entry.value for entry in told[topic] if entry.source == 1}
        assert own == {"retention.ms": "6000000"}
        assert told[absent].name == "UNKNOWN_TOPIC_OR_PARTITION"
        some = one.run(describe_topic_configs(cluster, [topic], ["segment.bytes", "retention.ms"]))[topic]
        assert {entry.name for entry in some} == {"segment.bytes", "retention.ms"}
        [broker] = one.run(
            describe_broker_configs(cluster, ["message.max.bytes", "producer.id.expiration.ms"])
        ).values()
        assert broker.keys() == {"message.max.bytes", "producer.id.expiration.ms"}
        assert one.run(one.topics.producer_expiration_ms()) == int(broker["producer.id.expiration.ms"])
        made = one.run(create_topics(cluster, [NewTopic(topic, 1)]))
        assert made[topic].name == "TOPIC_ALREADY_EXISTS"
        assert absent not in pair.a.topics()
