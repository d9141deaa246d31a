from __future__ import annotations

import msgspec
import pytest

from failover.config.clients import ClientSettings, TlsSettings
from failover.errors import ClusterError, CredentialsRefused
from failover.kafka.wire.columns import read_columns, read_records
from failover.kafka.wire.groups import delete_groups, describe_groups, list_groups
from failover.kafka.wire.logs import EARLIEST, LATEST, OffsetAt, describe_producers, list_offsets, log_ranges
from failover.kafka.wire.offsets import commit_offsets, committed_offsets, delete_offsets
from failover.kafka.wire.windows import read_windows
from failover.lab import ADMIN, APP
from failover.model.cluster import LogRange
from failover.model.groups import Commit, GroupType
from failover.model.names import Fault, TopicPartition
from failover.model.records import WindowRequest
from tests.system.wire_side import address, plain, secured, wire


@pytest.fixture(scope="module")
def b(pair):
    with plain(pair, "b") as both:
        yield both


def faults(answers):
    return {key: answer.name for key, answer in answers.items() if isinstance(answer, Fault)}


def faults_of(windows):
    return [window.fault.name for window in windows.values() if window.fault is not None]


def test_asking_for_a_missing_topic_creates_none(pair, b):
    thread, cluster = b
    missing = TopicPartition(pair.name("wire.missing"), 0)
    assert (
        thread.run(cluster.metadata([missing.topic])).topics[missing.topic].fault.name == "UNKNOWN_TOPIC_OR_PARTITION"
    )
    assert faults(thread.run(log_ranges(cluster, [missing]))) == {missing: "UNKNOWN_TOPIC_OR_PARTITION"}
    request = WindowRequest("target", missing, 0, 10)
    assert faults_of(thread.run(read_windows(cluster, [request]))) == ["UNKNOWN_TOPIC_OR_PARTITION"]
    group = pair.name("wire.group")
    answer = thread.run(commit_offsets(cluster, {group: {missing: Commit(1)}}))
    assert answer[group][missing].number == 3
    assert missing.topic not in pair.b.topics()


def test_metadata_tells_ids_leaders_and_rights(pair, b):
    thread, cluster = b
    topic = pair.create_topic("b", pair.name("wire.metadata"), 3)
    state = thread.run(cluster.metadata([topic], operations=True)).topics[topic]
    assert sorted(state.partitions) == [0, 1, 2]
    assert {partition.leader for partition in state.partitions.values()} == set(cluster.brokers)
    assert {partition.leader_epoch for partition in state.partitions.values()} == {0}
    assert len(state.topic_id_text) == 22
    assert {"READ", "WRITE", "DESCRIBE"} <= state.operations
    everything = thread.run(cluster.metadata(None))
    assert topic in everything.topics
    assert everything.cluster_id == cluster.cluster_id != ""


def test_offsets_of_many_groups_come_back_in_one_answer(pair, b):
    thread, cluster = b
    topic = pair.create_topic("b", pair.name("wire.offsets"), 2)
    pair.produce("b", topic, 40)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    groups = [pair.name("wire.many") for _ in range(250)]
    commits = {group: {first: Commit(place % 20), second: Commit(1, b"m", 0)} for place, group in enumerate(groups)}
    seen = []
    done = thread.run(commit_offsets(cluster, commits, lambda group, _: seen.append(group)))
    assert sorted(seen) == sorted(groups)
    assert all(done[group] == {first: None, second: None} for group in groups)
    found = thread.run(committed_offsets(cluster, [*groups, "wire.nobody"]))
    assert found == {**commits, "wire.nobody": {}}
    assert thread.run(committed_offsets(cluster, groups[:1], partitions=[second])) == {
        groups[0]: {second: Commit(1, b"m", 0)}
    }
    listed, unheard = thread.run(list_groups(cluster))
    assert not unheard
    assert {(listed[group].type, listed[group].state) for group in groups} == {(GroupType.CLASSIC, "Empty")}
    assert thread.run(delete_offsets(cluster, {groups[0]: [first]})) == {groups[0]: {first: None}}
    assert thread.run(committed_offsets(cluster, groups[:1])) == {groups[0]: {second: Commit(1, b"m", 0)}}
    deleted = thread.run(delete_groups(cluster, [*groups, "wire.nobody"]))
    assert faults(deleted) == {"wire.nobody": "GROUP_ID_NOT_FOUND"}
    assert faults(thread.run(delete_offsets(cluster, {"wire.nobody": [first]}))) == {
        "wire.nobody": "GROUP_ID_NOT_FOUND"
    }


@pytest.mark.parametrize("metadata", [b"", "grüße\0\U0001f600".encode(), b"x" * 4096])
def test_metadata_of_a_commit_travels_as_bytes(pair, b, metadata):
    thread, cluster = b
    tp = TopicPartition(pair.create_topic("b", pair.name("wire.bytes")), 0)
    group = pair.name("wire.group")
    assert thread.run(commit_offsets(cluster, {group: {tp: Commit(0, metadata, 0)}})) == {group: {tp: None}}
    assert thread.run(committed_offsets(cluster, [group])) == {group: {tp: Commit(0, metadata, 0)}}


def test_a_broker_stores_metadata_that_is_no_utf_8_with_replacement_characters(pair, b):
    # Measured on Kafka 4.1.1: what does not decode is lost on the broker's side, whatever the client sends.
    thread, cluster = b
    tp = TopicPartition(pair.create_topic("b", pair.name("wire.bytes")), 0)
    group = pair.name("wire.group")
    assert thread.run(commit_offsets(cluster, {group: {tp: Commit(0, b"\xff\xfe\0raw")}})) == {group: {tp: None}}
    stored = "\ufffd\ufffd\0raw".encode()
    assert thread.run(committed_offsets(cluster, [group])) == {group: {tp: Commit(0, stored)}}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_commit_to_an_active_group_is_refused(pair, b, protocol):
    thread, cluster = b
    tp = TopicPartition(pair.create_topic("b", pair.name("wire.active")), 0)
    pair.produce("b", tp.topic, 5)
    group = pair.name("wire.group")
    with pair.b.member(group, [tp.topic], protocol=protocol):
        listed, _ = thread.run(list_groups(cluster))
        assert (listed[group].type.value, listed[group].state) == (protocol, "Stable")
        answer = thread.run(commit_offsets(cluster, {group: {tp: Commit(1)}}))
        assert answer[group][tp].number == 25
        for types in (None, {group: listed[group].type}):
            info = thread.run(describe_groups(cluster, [group], types))[group]
            assert (info.exists, info.type.value, info.state, info.fault) == (True, protocol, "Stable", None)
            [member] = info.members
            assert member.client_id == "rdkafka"
            assert member.host.lstrip("/") == "127.0.0.1"
            assert "DELETE" in info.operations
        assert thread.run(delete_groups(cluster, [group]))[group].name == "NON_EMPTY_GROUP"
        assert thread.run(delete_offsets(cluster, {group: [tp]}))[group][tp].name == "GROUP_SUBSCRIBED_TO_TOPIC"
    absent = thread.run(describe_groups(cluster, ["wire.nobody"]))["wire.nobody"]
    assert (absent.exists, absent.state, absent.fault) == (False, "Dead", None)


def test_offsets_held_back_by_a_transaction(pair, b):
    from confluent_kafka import TopicPartition as Place

    thread, cluster = b
    tp = TopicPartition(pair.create_topic("b", pair.name("wire.pending")), 0)
    pair.produce("b", tp.topic, 5)
    group = pair.name("wire.group")
    assert thread.run(commit_offsets(cluster, {group: {tp: Commit(1)}})) == {group: {tp: None}}
    producer = pair.b.producer(transactional_id=pair.name("wire.txn"))
    producer.init_transactions(10)
    producer.begin_transaction()
    consumer = pair.b.consumer(group)
    try:
        producer.send_offsets_to_transaction([Place(*tp, 4)], consumer.consumer_group_metadata(), 10)
        assert thread.run(committed_offsets(cluster, [group])) == {group: {tp: Commit(1)}}
        held = thread.run(committed_offsets(cluster, [group], require_stable=True))
        assert held[group][tp].number == 88
        producer.abort_transaction(10)
        pair.b.until(
            lambda: thread.run(committed_offsets(cluster, [group], require_stable=True)) == {group: {tp: Commit(1)}},
            what="the transaction's end",
        )
    finally:
        consumer.close()


def test_log_ends_offsets_by_time_and_producers(pair, b):
    thread, cluster = b
    topic = pair.create_topic("b", pair.name("wire.logs"), 2)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    pair.produce("b", topic, 20, partition=0, transactions=[(10, True)])
    pair.b.delete_records(topic, 0, 3)
    ranges = thread.run(log_ranges(cluster, [first, second, TopicPartition(topic, 2)]))
    assert faults(ranges) == {TopicPartition(topic, 2): "UNKNOWN_TOPIC_OR_PARTITION"}
    assert (ranges[first], ranges[second]) == (LogRange(3, 22), LogRange(0, 0))
    assert thread.run(list_offsets(cluster, {first: 0, second: 0}))[first].offset == 3
    assert thread.run(list_offsets(cluster, {first: 1 << 50}))[first] == OffsetAt(-1, -1, -1)
    assert thread.run(list_offsets(cluster, {first: LATEST}, read_committed=True))[first].offset == 22
    assert thread.run(list_offsets(cluster, {second: EARLIEST}))[second].offset == 0
    [producer] = thread.run(describe_producers(cluster, [first]))[first]
    assert (producer.last_sequence, producer.open_since) == (19, -1)


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_windows_hold_the_records_that_were_written(pair, b, codec):
    thread, cluster = b
    topic = pair.create_topic("b", pair.name("wire.windows"), 3)
    written = pair.produce("b", topic, 3000, keys=5, size=200, compression_type=codec)
    places = {(record.tp, record.offset): record for record in written}
    requests = [
        WindowRequest("target", TopicPartition(topic, p), start, start + 64)
        for p in range(3)
        for start in (0, 70, 500, 936)
    ]
    windows = thread.run(read_windows(cluster, requests))
    for request, window in windows.items():
        assert (window.fault, window.covered_to, window.log_start, window.log_end) == (None, request.stop, 0, 1000)
        assert [record.offset for record in window.records] == list(range(request.start, request.stop))
        for record in window.records:
            assert (record.key, record.value) == (
                places[request.tp, record.offset].key,
                places[request.tp, record.offset].value,
            )
        assert not window.log_append_time


def test_windows_at_the_edges(pair, b):
    thread, cluster = b
    topic = pair.create_topic("b", pair.name("wire.edges"), config={"message.timestamp.type": "LogAppendTime"})
    tp = TopicPartition(topic, 0)
    pair.produce("b", topic, 20, transactions=[(5, True), (5, False)])  # markers at 5, 11, 17, 23
    pair.b.until(lambda: pair.ends("b", topic)[0][1] == 24, what="the last marker is written")
    pair.b.delete_records(topic, 0, 2)
    ask = [WindowRequest("target", tp, *bounds) for bounds in ((2, 100), (5, 6), (24, 30), (4, 4), (0, 10), (25, 30))]
    across, marker, end, empty, below, beyond = thread.run(read_windows(cluster, ask)).values()
    assert [record.offset for record in across.records] == [o for o in range(2, 24) if o not in (5, 11, 17, 23)]
    assert (across.covered_to, across.log_start, across.log_end, across.log_append_time) == (24, 2, 24, True)
    assert (marker.records, marker.covered_to) == ((), 6)
    assert (end.records, end.covered_to, end.fault) == ((), 24, None)
    assert (empty.records, empty.covered_to) == ((), 4)
    for window in (below, beyond):
        assert (window.fault.name, window.records, window.log_start, window.log_end) == (
            "OFFSET_OUT_OF_RANGE",
            (),
            2,
            24,
        )


def test_windows_over_batches_larger_than_the_answer_may_be(pair, b):
    thread, cluster = b
    topic = pair.create_topic("b", pair.name("wire.large"), 2)
    pair.produce("b", topic, 12, size=200_000, batch_size=900_000, linger_ms=200)
    requests = [WindowRequest("target", TopicPartition(topic, p), 0, 6) for p in range(2)]
    for window in thread.run(read_windows(cluster, requests, max_bytes=50_000)).values():
        assert [(record.offset, len(record.value)) for record in window.records] == [(o, 200_000) for o in range(6)]


def test_a_partition_is_read_to_the_end_though_it_is_a_marker(pair, b):
    thread, cluster = b
    topic = pair.create_topic("b", pair.name("wire.columns"))
    tp = TopicPartition(topic, 0)
    written = pair.produce("b", topic, 60, keys=3, transactions=[(10, True), (5, False)])
    rows = [row for chunk in thread.iterate(read_columns(cluster, tp)) for row in chunk]
    assert [(offset, key, value) for offset, _, key, value in rows] == [(r.offset, r.key, r.value) for r in written]
    records = [record for chunk in thread.iterate(read_records(cluster, tp, start=40)) for record in chunk]
    assert [record.offset for record in records] == [r.offset for r in written if r.offset >= 40]
    empty = TopicPartition(pair.create_topic("b", pair.name("wire.columns")), 0)
    assert list(thread.iterate(read_columns(cluster, empty))) == []


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "PLAIN"])
def test_tls_and_sasl(pair, mechanism):
    topic = pair.create_topic("a", pair.name("wire.secured"))
    pair.produce("a", topic, 5)
    tp = TopicPartition(topic, 0)
    with wire(secured(pair, "a", user=ADMIN, mechanism=mechanism), alias="a") as (thread, cluster):
        assert thread.run(log_ranges(cluster, [tp])) == {tp: LogRange(0, 5)}
    with wire(secured(pair, "a", user=APP, mechanism=mechanism), alias="a") as (thread, cluster):
        assert faults(thread.run(log_ranges(cluster, [tp]))) == {tp: "TOPIC_AUTHORIZATION_FAILED"}
        request = WindowRequest("source", tp, 0, 5)
        assert faults_of(thread.run(read_windows(cluster, [request]))) == ["TOPIC_AUTHORIZATION_FAILED"]
        assert faults(thread.run(committed_offsets(cluster, ["g"]))) == {"g": "GROUP_AUTHORIZATION_FAILED"}


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "PLAIN"])
def test_a_wrong_password_is_refused_credentials(pair, mechanism):
    settings = secured(pair, "a", user=ADMIN, mechanism=mechanism, password="wrong")
    with pytest.raises(CredentialsRefused, match="refuses the credentials") as caught, wire(settings, alias="a"):
        pass
    assert caught.value.alias == "a"


def test_a_server_nobody_vouches_for_is_refused_credentials(pair):
    with (
        pytest.raises(CredentialsRefused, match="certificate") as caught,
        wire(msgspec.structs.replace(secured(pair, "a", user=ADMIN, mechanism="PLAIN"), tls=TlsSettings()), alias="a"),
    ):
        pass
    assert "truststore" in caught.value.hint


def test_tls_where_plain_text_is_spoken_and_the_other_way_round(pair):
    plain_text = address(pair.bootstrap("a"))
    over_tls = secured(pair, "a", user=ADMIN, mechanism="PLAIN")
    with (
        pytest.raises(ClusterError),
        wire(msgspec.structs.replace(over_tls, bootstrap=plain_text), alias="a", silence=3),
    ):
        pass
    with pytest.raises(CredentialsRefused, match="speaks TLS"), wire(ClientSettings(over_tls.bootstrap), alias="a"):
        pass
