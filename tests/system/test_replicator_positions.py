"""Positions and offset syncs, to and fro between the replicator and the real MirrorMaker 2; both at once refused."""

from __future__ import annotations

import json
import re
import time

import msgspec
import pytest

from failover.config.flow import SelectedFlow
from failover.config.load import load_config
from failover.errors import MirrorMakerRuns, NotAuthorized, Refused
from failover.inventory.flow import flow_of
from failover.kafka.wire.topics import NewTopic, describe_topic_configs
from failover.lab import APP
from failover.lab.internal_records import sync_of
from failover.mm2.connect_offsets import CheckpointOffsetKey, SourceOffsetKey, decode_offset_key, offset_partition
from failover.mm2.worker_name import HEADER
from failover.model.names import TopicPartition
from failover.replication.anchor import Anchor, anchor_key, decode_anchor, encode_anchor, writer_of
from failover.replication.beside import look_beside
from failover.replication.positions import DEDICATED_CONNECTOR, Positions, positions_topic
from failover.replication.syncs import Syncs, syncs_topic
from tests.system.conftest import MIRROR
from tests.system.wire_side import plain, secured, wire

CONSOLE = "org.apache.kafka.tools.consumer.ConsoleConsumer"
FORMATTER = "org.apache.kafka.connect.mirror.formatters.OffsetSyncFormatter"
SOURCE_ID, TARGET_ID = bytes(range(16)), bytes(range(16, 32))


@pytest.fixture(scope="module")
def a(pair):
    with plain(pair, "a") as both:
        yield both


@pytest.fixture(scope="module")
def b(pair):
    with plain(pair, "b") as both:
        yield both


def flow(path):
    config = load_config(path)
    [only] = config.enabled_flows
    return only, flow_of(config, SelectedFlow(only, only.source.alias, only.target.alias)).internal


def store(path, both):
    """The positions of a configuration's flow, opened."""
    thread, cluster = both
    only, internal = flow(path)
    positions = Positions(cluster, positions_topic(internal, only.worker), source=only.source.alias)
    thread.run(positions.open())
    return positions


def raw(pair, topic):
    return [(number, record) for number, records in pair.b.read(topic).items() for record in records]


def test_positions_of_the_real_mirror_maker_are_read(mm2, b):
    topic = mm2.create_topic("a", mm2.name("t.positions"), 3)
    mm2.produce("a", topic, 30)
    group = mm2.name('größe 組 🐘"\x7f')
    mm2.commit("a", group, {(topic, 0): 5})
    mm2.wait_mirrored(topic)
    thread, _ = b
    positions = store(mm2.lab.config, b)
    places = [TopicPartition(topic, number) for number in range(3)]

    def read():
        found = thread.run(positions.read())
        return [found.get(tp) for tp in places] == [Anchor(10)] * 3

    mm2.b.until(read, what="MirrorMaker 2 wrote its positions", every=0.3)
    assert positions.unreadable == 0
    ours = CheckpointOffsetKey("MirrorCheckpointConnector", group, f"a.{topic}", 0).encode()

    def named():
        return any(record.key == ours for _, record in raw(mm2, positions.topic))

    mm2.b.until(named, what="MirrorMaker 2 wrote what it stores of a group with every kind of character", every=0.3)
    seen = 0
    for number, record in raw(mm2, positions.topic):
        assert offset_partition(record.key) == number
        key = decode_offset_key(record.key)
        assert key is not None
        assert key.encode() == record.key
        if isinstance(key, SourceOffsetKey) and record.value is not None:
            anchor = decode_anchor(record.value, record.headers)
            assert anchor is not None
            assert encode_anchor(anchor, writer_of(record.headers)) == (record.value, record.headers)
            seen += 1
    assert seen >= 3


def test_mirror_maker_goes_on_at_our_positions_and_we_at_its(pair, b):
    """At a position, at source offset 0, at a tombstone, and where it finds nothing under our key."""
    thread, _ = b
    topic = pair.create_topic("a", pair.name("handover"), 5)
    pair.produce("a", topic, 250)
    here = [TopicPartition(topic, number) for number in range(5)]
    aliases = ("pa", "pb")
    options = msgspec.structs.replace(MIRROR, topics=re.escape(topic))
    path = pair.config_path(aliases=aliases, options=options)
    positions = store(path, b)
    [policy] = thread.run(describe_topic_configs(b[1], [positions.topic], ["cleanup.policy"]))[positions.topic]
    assert policy.value == "compact"
    assert len(pair.b.partitions(positions.topic)) == 25
    ours = {
        here[0]: Anchor(40, 777, SOURCE_ID, TARGET_ID, 0),
        here[1]: Anchor(0, 5, SOURCE_ID, TARGET_ID),
        here[2]: Anchor(49, 49),
    }
    assert thread.run(positions.write({**ours, here[0]: Anchor(10, 10)})) == {}
    assert thread.run(positions.write(ours)) == {}
    key = anchor_key(DEDICATED_CONNECTOR, "pa", here[3])
    producer = pair.b.producer()
    producer.produce(positions.topic, b'{"offset":30}', key, offset_partition(key))
    producer.produce(positions.topic, None, key, offset_partition(key))
    producer.flush(10)
    assert thread.run(positions.read()) == ours

    with pair.mirror(options, aliases=aliases):
        group, name = "pa-mm2", "pa->pb"
        copied = {0: 40, 1: 0, 2: 49, 3: 0, 4: 0}
        wanted = {number: 50 - first for number, first in copied.items()}

        def done():
            return {number: end for number, (_, end) in pair.b.ends(f"pa.{topic}").items()} == wanted

        pair.b.until(done, what="MirrorMaker 2 copied what lies behind the positions", seconds=90, every=0.3)
        source, target = pair.a.read(topic), pair.b.read(f"pa.{topic}")
        for number, first in copied.items():
            assert [record.value for record in target[number]] == [
                record.value for record in source[number] if record.offset >= first
            ]

        def moved():
            found = thread.run(positions.read())  # beside them that of the heartbeats, which are mirrored always
            return {tp: found[tp] for tp in here if tp in found} == dict.fromkeys(here, Anchor(50))

        pair.b.until(moved, what="MirrorMaker 2 moved all positions", every=0.3)
        with pytest.raises(MirrorMakerRuns) as refused:
            thread.run(look_beside(b[1], group, flow=name))
        [member] = thread.run(look_beside(b[1], group, flow=name, alongside=True))
        assert f"{member.client_id} on 127.0.0.1" in refused.value.message
        pair.lab.stop("mm2-pa-pb")
    pair.b.until(
        lambda: not thread.run(look_beside(b[1], group, flow=name, alongside=True)),
        what="MirrorMaker 2 left its group",
    )
    assert thread.run(look_beside(b[1], group, flow=name)) == ()


def test_a_running_mirror_maker_is_named(mm2, b):
    thread, cluster = b
    only, internal = flow(mm2.lab.config)
    with pytest.raises(MirrorMakerRuns) as caught:
        thread.run(look_beside(cluster, internal.connect_group, flow=only.name))
    assert caught.value.exit_code == 3
    assert "group a-mm2 on cluster b has a->b" in caught.value.message
    assert "127.0.0.1" in caught.value.message
    assert thread.run(look_beside(cluster, "nobody-mm2", flow="nobody->b")) == ()


def test_an_offsets_topic_of_another_shape_is_used_as_it_is(pair, b):
    thread, cluster = b
    name = pair.create_topic("b", f"mm2-offsets.{pair.name('odd')}.internal", 7, config={"cleanup.policy": "compact"})
    positions = Positions(cluster, NewTopic(name, 25, 1), source="odd", connector="odd->b.MirrorSourceConnector")
    thread.run(positions.open())
    ours = {TopicPartition("orders", number): Anchor(number, 3 * number, SOURCE_ID) for number in range(40)}
    before = time.time_ns() // 1_000_000
    assert thread.run(positions.write(ours)) == {}
    written = raw(pair, name)
    assert {number for number, _ in written} == set(range(7))
    for number, record in written:
        assert offset_partition(record.key, 7) == number
        assert json.loads(record.key)[0] == "odd->b.MirrorSourceConnector"
        assert [header for header, _ in record.headers] == [HEADER]
        assert before <= record.timestamp <= time.time_ns() // 1_000_000
    assert thread.run(positions.read()) == ours
    assert positions.partition_of(64).topic == name
    deleted = pair.create_topic("b", f"mm2-offsets.{pair.name('odd')}.internal", 1)
    with pytest.raises(Refused, match=r"cleanup\.policy=delete"):
        thread.run(Positions(cluster, NewTopic(deleted, 25, 1), source="odd").open())


def test_javas_formatter_prints_our_syncs(pair, a):
    thread, cluster = a
    only, internal = flow(pair.config_path(aliases=("sa", "sb")))
    syncs = Syncs(cluster, syncs_topic(internal, only.connectors["source"]))
    thread.run(syncs.open())
    thread.run(syncs.open())
    assert syncs.topic == "mm2-offset-syncs.sb.internal"
    assert pair.a.topic_config(syncs.topic) == {"cleanup.policy": "compact"}
    first, second = TopicPartition("orders", 0), TopicPartition("größe", 11)
    rows = [(first, 10, 7), (second, 2**40, 5), (first, 20, 17), (first, 15, 18), (first, 30, 33)]
    assert thread.run(syncs.write(rows[:2])) is None
    assert thread.run(syncs.write(rows[2:])) is None
    printed = pair.lab.run_tool(
        *(CONSOLE, "--bootstrap-server", pair.bootstrap("a"), "--topic", syncs.topic, "--from-beginning"),
        *("--formatter", FORMATTER, "--max-messages", str(len(rows)), "--timeout-ms", "20000"),
    )
    assert printed.splitlines() == [
        f"OffsetSync{{topicPartition={tp}, upstreamOffset={up}, downstreamOffset={down}}}" for tp, up, down in rows
    ]
    assert [tuple(sync_of(record)) for record in pair.a.read(syncs.topic)[0]] == [
        (*tp, up, down) for tp, up, down in rows
    ]
    assert thread.run(syncs.read_last([first, second])) == {
        first: (Anchor(16, 19), Anchor(31, 34)),
        second: (Anchor(2**40 + 1, 6),),
    }


def test_syncs_of_the_real_mirror_maker_are_anchors(mm2, a):
    thread, cluster = a
    topic = mm2.create_topic("a", mm2.name("t.syncs"))
    mm2.produce("a", topic, 500)
    mm2.wait_mirrored(topic)
    only, internal = flow(mm2.lab.config)
    syncs = Syncs(cluster, syncs_topic(internal, only.connectors["source"]))
    tp = TopicPartition(topic, 0)
    mm2.a.until(
        lambda: thread.run(syncs.read_last([tp])).get(tp, (None,))[-1] == Anchor(500, 500),
        what="MirrorMaker 2 wrote the sync of the last record",
        every=0.3,
    )
    anchors = thread.run(syncs.read_last([tp]))[tp]
    assert all(anchor.upstream == anchor.downstream for anchor in anchors)
    assert anchors == tuple(sorted(anchors, key=lambda anchor: anchor.upstream))


def test_without_rights_positions_cannot_be_kept_and_syncs_are_done_without(pair, caplog):
    name = pair.create_topic("a", f"mm2-offset-syncs.{pair.name('no')}.internal")
    settings = secured(pair, "a", user=APP, mechanism="SCRAM-SHA-512")
    tp = TopicPartition("orders", 0)
    with wire(settings, alias="a") as (thread, cluster):
        for topic in (name, f"{name}.absent"):
            caplog.clear()
            syncs = Syncs(cluster, NewTopic(topic, 1, 1, {"cleanup.policy": "compact"}))
            thread.run(syncs.open())
            [said] = caplog.messages
            assert topic in said
            assert "AUTHORIZATION_FAILED" in str(thread.run(syncs.write([(tp, 1, 1)])))
            assert syncs.waiting == 1
            assert thread.run(syncs.read_last([tp])) == {}
        with pytest.raises(NotAuthorized, match="AUTHORIZATION_FAILED"):
            thread.run(Positions(cluster, NewTopic(name, 25, 1), source="a").open())
        assert thread.run(look_beside(cluster, "a-mm2", flow="a->b")) == ()
        assert "grant DESCRIBE" in caplog.text
    assert f"{name}.absent" not in pair.a.topics()
