from __future__ import annotations

import pytest
from confluent_kafka import KafkaException

from failover.lab import ADMIN, APP
from failover.lab.side import Side
from failover.model import TopicPartition


def test_records_come_back_as_written(pair):
    topic = pair.create_topic("a", pair.name("lab.back"), 3)
    written = pair.produce("a", topic, 300, keys=7)
    found = pair.read("a", topic)
    assert {(record.tp.partition, record.offset): record.value for record in written} == {
        (partition, record.offset): record.value for partition, records in found.items() for record in records
    }
    assert len({record.value for record in written}) == 300
    assert pair.ends("a", topic) == {0: (0, 100), 1: (0, 100), 2: (0, 100)}


def test_aborted_records_are_hidden_from_read_committed_only(pair):
    topic = pair.create_topic("a", pair.name("lab.aborted"))
    written = pair.produce("a", topic, 60, transactions=[(10, True), (5, False)])
    everything, committed = pair.a.read(topic), pair.a.read(topic, isolation="read_committed")
    assert [record.value for record in everything[0]] == [record.value for record in written]
    assert [record.value for record in committed[0]] == [record.value for record in written if record.committed]
    assert len(committed[0]) == 40
    assert pair.ends("a", topic)[0][1] == 60 + 8  # one marker a transaction


def test_a_commit_is_read_back(pair):
    topic, group = pair.create_topic("b", pair.name("lab.commit"), 2), pair.name("group")
    pair.produce("b", topic, 20)
    pair.commit("b", group, {(topic, 0): 4, (topic, 1): 0})
    assert pair.committed("b", group) == {TopicPartition(topic, 0): 4, TopicPartition(topic, 1): 0}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_placed_group_stands_where_it_was_put_and_has_no_members(pair, protocol):
    topic, group = pair.create_topic("a", pair.name("lab.placed"), 2), pair.name("group")
    pair.produce("a", topic, 20)
    pair.a.place(group, {(topic, 0): 3, (topic, 1): 10}, protocol=protocol)
    assert pair.committed("a", group) == {TopicPartition(topic, 0): 3, TopicPartition(topic, 1): 10}
    described = pair.a.admin.describe_consumer_groups([group])[group].result(timeout=10)
    assert (described.state.name, described.type.name.lower(), described.members) == ("EMPTY", protocol, [])


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "PLAIN"])
def test_users_log_in_and_only_the_admin_has_rights(pair, mechanism):
    topic = pair.create_topic("a", pair.name("lab.rights"))
    assert topic in Side("a", pair.lab.client_settings("a", user=ADMIN, mechanism=mechanism)).topics()
    nobody = Side("a", pair.lab.client_settings("a", user=APP, mechanism=mechanism))
    assert topic not in nobody.topics()
    with pytest.raises(KafkaException, match="AUTHORIZATION"):
        nobody.create_topic("lab.forbidden")


def test_recreating_a_topic_keeps_its_shape_and_drops_its_data(pair):
    topic = pair.create_topic("b", pair.name("lab.again"), 2, config={"cleanup.policy": "compact"})
    pair.produce("b", topic, 10, keys=2)
    pair.b.recreate_topic(topic)
    assert pair.ends("b", topic) == {0: (0, 0), 1: (0, 0)}
    assert pair.b.topic_config(topic) == {"cleanup.policy": "compact"}


def test_deleting_records_moves_the_log_start(pair):
    topic = pair.create_topic("b", pair.name("lab.deleted"))
    pair.produce("b", topic, 10)
    pair.b.delete_records(topic, 0, 4)
    assert pair.ends("b", topic) == {0: (4, 10)}


def test_a_topic_nobody_registered_is_found(pair):
    side = Side("a", pair.lab.client_settings("a"))
    side.create_topic("lab.stray")
    assert pair.unexpected_topics() == {"a": {"lab.stray"}}
    side.delete_topic("lab.stray")
    assert pair.unexpected_topics() == {}


def test_mirror_maker_copies_records_and_writes_checkpoints(mm2):
    topic, group = mm2.create_topic("a", mm2.name("t.mirrored"), 2), mm2.name("group")
    written = mm2.produce("a", topic, 200)
    mm2.commit("a", group, {(topic, 0): 100, (topic, 1): 40})
    remote = mm2.wait_mirrored(topic)
    found = mm2.wait_checkpoint(group, topic, 0, upstream=100)
    assert {record.value for records in mm2.read("b", remote).values() for record in records} == {
        record.value for record in written
    }
    assert found.upstream == 100
    assert 0 < found.downstream <= 100
