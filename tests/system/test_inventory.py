from __future__ import annotations

from typing import Any

import msgspec
import pytest

from failover.config.clients import TlsSettings
from failover.errors import CredentialsRefused, NotAuthorized
from failover.lab import ADMIN, APP
from failover.model.cluster import ClusterState
from failover.model.groups import Commit, GroupType
from failover.model.names import Fault, TopicPartition
from failover.model.translation import Precision
from tests.system.inventory_side import cluster, look
from tests.system.wire_side import secured


@pytest.fixture(scope="module")
def b(pair):
    with cluster(pair, "b") as found:
        yield found


def commit(cluster, commits):
    heard: dict[str, Any] = {}
    cluster.commit(commits, heard.__setitem__)
    return heard


# -- the real cluster behind the port ----------------------------------------------------------------


def test_facts_and_topics_are_those_of_the_broker(pair, b):
    topic = pair.create_topic("b", pair.name("look.topic"), 3)
    facts = b.facts()
    assert facts.cluster_id == pair.lab.state.cluster("b").id
    assert [broker.port for broker in facts.brokers] == [int(pair.bootstrap("b").rpartition(":")[2])]
    assert facts.unreachable == ()
    assert "ALTER" in facts.operations
    info = b.topics()[topic]
    assert (info.partitions, info.replication_factor, info.leaderless) == (3, 1, ())
    described = b.describe_topics([topic, "look.nowhere"])
    assert len(described[topic].topic_id) == 22
    assert "READ" in described[topic].operations
    assert described["look.nowhere"].number == 3
    assert b.broker_settings(["offsets.retention.minutes", "no.such.setting"]) == {"offsets.retention.minutes": "10080"}


def test_topic_ids_are_written_as_kafka_writes_them(pair, b):
    """Among 20 random ids some hold the characters in which the two kinds of base64 differ."""
    topics = [pair.create_topic("b", pair.name("look.ids")) for _ in range(20)]
    ids = "".join(info.topic_id for info in b.describe_topics(topics).values())
    assert not set(ids) & set("+/=")
    pair.b.recreate_topic(topics[0])
    assert b.describe_topics(topics[:1])[topics[0]].topic_id not in ids


def test_logs_are_read_without_creating_what_is_missing(pair, b):
    topic = pair.create_topic("b", pair.name("look.logs"), 2)
    pair.produce("b", topic, 30, partition=1)
    pair.b.delete_records(topic, 1, 10)
    missing = TopicPartition(pair.name("look.missing"), 0)
    found = b.log_ranges([TopicPartition(topic, 0), TopicPartition(topic, 1), TopicPartition(topic, 2), missing])
    assert found[TopicPartition(topic, 0)] == (0, 0)
    assert found[TopicPartition(topic, 1)] == (10, 30)
    assert found[TopicPartition(topic, 2)].number == found[missing].number == 3
    assert b.offsets_at({TopicPartition(topic, 1): 0}) == {TopicPartition(topic, 1): 10}
    assert b.offsets_at({TopicPartition(topic, 1): 1 << 50}) == {TopicPartition(topic, 1): None}
    assert [record.offset for chunk in b.read(TopicPartition(topic, 1)) for record in chunk] == list(range(10, 30))
    assert missing.topic not in pair.b.topics()


def test_commits_of_many_groups_are_written_and_bad_partitions_are_told(pair, b):
    topic = pair.create_topic("b", pair.name("look.commits"), 2)
    good, bad = TopicPartition(topic, 1), TopicPartition(topic, 9)
    groups = [pair.name("look.many") for _ in range(300)]
    heard = commit(b, {group: {good: Commit(0), bad: Commit(5)} for group in groups})
    assert {heard[group][good] for group in groups} == {None}
    assert {heard[group][bad].number for group in groups} == {3}
    assert b.committed(groups) == {group: {good: Commit(0)} for group in groups}


@pytest.mark.parametrize("metadata", [b"plain", "größe".encode(), b"a\x00b\x00", "\ufffd".encode(), b"x" * 4000])
def test_commit_metadata_passes_byte_for_byte(pair, b, metadata):
    topic = pair.create_topic("b", pair.name("look.metadata"))
    group, tp = pair.name("look.metadata"), TopicPartition(topic, 0)
    assert commit(b, {group: {tp: Commit(0, metadata, leader_epoch=0)}}) == {group: {tp: None}}
    assert b.committed([group]) == {group: {tp: Commit(0, metadata, 0)}}


def test_a_commit_without_a_leader_epoch_writes_none(pair, b):
    topic = pair.create_topic("b", pair.name("look.epoch"))
    group, tp = pair.name("look.epoch"), TopicPartition(topic, 0)
    commit(b, {group: {tp: Commit(0, leader_epoch=0)}})
    assert b.committed([group])[group][tp].leader_epoch == 0
    commit(b, {group: {tp: Commit(0)}})
    assert b.committed([group])[group][tp].leader_epoch is None


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_with_a_member_is_described_in_the_brokers_words_and_refuses_commits(pair, b, protocol):
    topic = pair.create_topic("b", pair.name("look.active"))
    group, tp = pair.name("look.active"), TopicPartition(topic, 0)
    with pair.b.member(group, [topic], protocol=protocol, client_id="app-1"):
        info = b.describe_groups([group])[group]
        listed = b.list_groups()[0][group]
        assert (info.exists, info.type, info.state) == (True, GroupType(protocol), "Stable")
        assert (listed.type, listed.state, listed.protocol_type) == (GroupType(protocol), "Stable", "consumer")
        assert [member.client_id for member in info.members] == ["app-1"]
        assert info.members[0].host.startswith("/127.")
        assert not info.inactive
        for metadata in (b"", b"m"):
            refused = commit(b, {group: {tp: Commit(0, metadata)}})
            assert refused[group][tp].name == "UNKNOWN_MEMBER_ID"
    pair.b.until(lambda: b.describe_groups([group])[group].inactive, what=f"group {group} is empty")
    assert b.describe_groups([group])[group].type is GroupType(protocol)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_static_member_closed_cleanly_still_holds_its_group(pair, b, protocol):
    topic = pair.create_topic("b", pair.name("look.static"))
    group, tp = pair.name("look.static"), TopicPartition(topic, 0)
    with pair.b.member(group, [topic], protocol=protocol, group_instance_id="pod-0"):
        pass
    info = b.describe_groups([group])[group]
    assert [member.group_instance_id for member in info.members] == ["pod-0"]
    assert not info.inactive
    assert commit(b, {group: {tp: Commit(0)}})[group][tp].name == "UNKNOWN_MEMBER_ID"


def test_a_group_that_is_not_there_is_absent_and_stays_so(pair, b):
    group = pair.name("look.nobody")
    info = b.describe_groups([group])[group]
    assert (info.exists, info.state, info.members, info.inactive) == (False, "Dead", (), True)
    assert b.committed([group]) == {group: {}}
    assert b.pending([group]) == {}
    assert group not in pair.b.groups()


def test_an_open_transaction_is_seen_and_the_offset_before_it_is_read(pair, b):
    topic = pair.create_topic("b", pair.name("look.open"))
    group, tp = pair.name("look.open"), TopicPartition(topic, 0)
    pair.produce("b", topic, 10)
    pair.commit("b", group, {tp: 3})
    producer = pair.b.producer(transactional_id=group)
    producer.init_transactions(20)
    with pair.b.member(group, [topic]) as consumer:
        from confluent_kafka import TopicPartition as Place

        producer.begin_transaction()
        producer.send_offsets_to_transaction([Place(topic, 0, 7)], consumer.consumer_group_metadata(), 20)
        assert b.pending([group]) == {group: (tp,)}
        assert b.committed([group])[group][tp].offset == 3
        producer.abort_transaction(20)
    pair.b.until(lambda: not b.pending([group]), what="the transaction has ended")


def test_offsets_and_groups_are_deleted(pair, b):
    topic = pair.create_topic("b", pair.name("look.delete"), 2)
    group, tp, other = pair.name("look.delete"), TopicPartition(topic, 0), TopicPartition(topic, 1)
    commit(b, {group: {tp: Commit(0), other: Commit(0)}})
    assert b.delete_offsets({group: [tp]}) == {group: {tp: None}}
    assert b.committed([group]) == {group: {other: Commit(0)}}
    assert b.delete_groups([group]) == {group: None}
    assert b.delete_groups([group])[group].name == "GROUP_ID_NOT_FOUND"
    assert isinstance(b.delete_offsets({group: [tp]})[group], Fault)


# -- credentials and rights --------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "PLAIN"])
def test_a_wrong_password_is_refused_and_never_silence(pair, mechanism):
    settings = secured(pair, "a", user=ADMIN, mechanism=mechanism, password="wrong")
    with cluster(pair, "a", settings) as refused:
        for ask in (refused.facts, refused.topics):
            with pytest.raises(CredentialsRefused, match="cluster a refuses the credentials"):
                ask()


def test_a_broker_whose_certificate_is_not_trusted_is_no_silence_either(pair):
    settings = secured(pair, "a", user=ADMIN, mechanism="PLAIN")
    distrustful = msgspec.structs.replace(settings, tls=TlsSettings())
    with cluster(pair, "a", distrustful) as refused, pytest.raises(CredentialsRefused, match="certificate"):
        refused.facts()


def test_a_user_without_rights_is_told_what_is_missing(pair):
    topic = pair.create_topic("a", pair.name("look.rights"))
    with cluster(pair, "a", secured(pair, "a", user=APP, mechanism="SCRAM-SHA-512")) as limited:
        assert limited.facts().cluster_id
        assert topic not in limited.topics()
        assert limited.describe_topics([topic])[topic].name == "TOPIC_AUTHORIZATION_FAILED"
        assert isinstance(fault := limited.committed(["g"])["g"], Fault)
        assert fault.name == "GROUP_AUTHORIZATION_FAILED"
        refused = commit(limited, {"g": {TopicPartition(topic, 0): Commit(0)}})["g"]
        assert {fault.name for fault in refused.values()} == {"GROUP_AUTHORIZATION_FAILED"}
        with pytest.raises(NotAuthorized, match=topic):
            list(limited.read(TopicPartition(topic, 0)))


# -- the look at both, beside the real MirrorMaker 2 ---------------------------------------------------


def test_a_look_creates_nothing(pair):
    before = (pair.a.topics(), pair.b.topics(), pair.a.groups(), pair.b.groups())
    group = pair.name("look.new")
    assert look(pair, group, create=True).groups == (group,)
    look(pair)
    assert (pair.a.topics(), pair.b.topics(), pair.a.groups(), pair.b.groups()) == before


def test_groups_of_both_protocols_are_translated_beside_the_real_mirror(mm2):
    topic = mm2.create_topic("a", mm2.name("t.look"), 2)
    mm2.produce("a", topic, 400)
    remote = mm2.wait_mirrored(topic)
    places = {}
    for protocol in ("classic", "consumer"):
        places[protocol] = mm2.name(f"look.{protocol}")
        mm2.a.place(places[protocol], {(topic, 0): 200, (topic, 1): 77}, protocol=protocol)
    for group in places.values():
        mm2.wait_checkpoint(group, topic, 0, upstream=200)
    snapshot = look(mm2, *places.values())
    assert snapshot.mirrored[remote] == topic
    assert snapshot.source.status.state is ClusterState.UP
    for protocol, group in places.items():
        assert snapshot.source.groups[group].type is GroupType(protocol)
        ends = snapshot.translations[group][TopicPartition(remote, 0)]
        assert (ends.upstream, ends.offset, ends.precision) == (200, 200, Precision.EXACT)
        within = snapshot.translations[group][TopicPartition(remote, 1)]
        assert within.offset is not None
        assert within.reread_max is not None
        assert within.offset <= 77 <= within.offset + within.reread_max
        seen = mm2.checkpoints()[group, remote, 1]
        assert snapshot.mm2_answers[group].get(TopicPartition(remote, 1)) == seen.downstream
    readings = {reading.topic: reading for reading in snapshot.readings}
    assert readings["a.checkpoints.internal"].records > 0
    assert readings["mm2-offset-syncs.b.internal"].cluster == "a"
    assert {reading.unreadable for reading in snapshot.readings} == {0}
    assert snapshot.newest_syncs[TopicPartition(remote, 0)] == (199, 199)


def test_the_mirrored_heartbeat_is_found(mm2):
    mm2.b.until(lambda: look(mm2, source_down=True).last_heartbeat, what="a mirrored heartbeat", seconds=40, every=1)


def test_without_the_source_checkpoints_answer(mm2):
    topic = mm2.create_topic("a", mm2.name("t.alone"))
    mm2.produce("a", topic, 50)
    remote = mm2.wait_mirrored(topic)
    group = mm2.name("look.alone")
    mm2.a.place(group, {(topic, 0): 30})
    seen = mm2.wait_checkpoint(group, topic, upstream=30)
    snapshot = look(mm2, group, source_down=True)
    assert snapshot.source.status.state is ClusterState.NOT_ASKED
    found = snapshot.translations[group][TopicPartition(remote, 0)]
    assert (found.upstream, found.offset) == (30, seen.downstream)


def test_wrong_credentials_for_the_source_end_the_look_with_the_way_on(pair):
    config = pair.config_path(user=ADMIN, added={"failover.cluster.a.sasl.jaas.config": jaas("wrong")})
    with pytest.raises(CredentialsRefused) as caught:
        look(pair, config=config)
    assert "--source-down" in caught.value.hint


def test_a_source_whose_name_does_not_resolve_is_down(pair):
    config = pair.config_path(added={"a.bootstrap.servers": "no-such-host.invalid:9092"})
    snapshot = look(pair, config=config, timeouts={"a": 2})
    assert snapshot.source.status.state is ClusterState.DOWN
    assert "no-such-host.invalid:9092 does not resolve" in snapshot.source.status.detail


def jaas(password):
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    return f'{module} required username="{ADMIN}" password="{password}";'
