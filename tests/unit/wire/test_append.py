"""Appending to a broker that keeps what it is sent, and fails where it is told to."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict

import pytest

from failover.config.clients import ClientSettings
from failover.errors import ClusterUnreachable
from failover.kafka.wire.append import NewRecord, append
from failover.kafka.wire.batches import check, decode, split
from failover.kafka.wire.cluster import WireCluster
from failover.kafka.wire.primitives import Reader, Writer
from failover.model.names import TopicPartition
from tests.unit.wire.fake_broker import FakeBroker

PRODUCE, METADATA = 0, 3
TOPIC, TOPIC_ID = "small", bytes(range(16))
FIRST, SECOND, ABSENT = TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1), TopicPartition(TOPIC, 2)


class Keeper:
    """Is a broker with two partitions; ``errors``: what the next batches for a partition get, None: no answer."""

    def __init__(self):
        self.logs = defaultdict(list)
        self.sizes = []
        self.errors = defaultdict(list)
        self.port = 0

    def metadata(self, asked):
        out = Writer(flexible=True)
        out.int32(0)
        out.array(1)
        out.int32(1)
        out.string("127.0.0.1")
        out.int32(self.port)
        out.string(None)
        out.tags()
        out.string("cluster-id")
        out.int32(1)
        out.array(1)
        out.int16(0)
        out.string(TOPIC)
        out.raw(TOPIC_ID)
        out.int8(0)
        out.array(2)
        for number in (0, 1):
            out.int16(0)
            out.int32(number)
            out.int32(1)
            out.int32(3)
            out.int32s([1])
            out.int32s([1])
            out.int32s([])
            out.tags()
        out.int32(-(1 << 31))
        out.tags()
        out.tags()
        return bytes(out.data)

    def produce(self, asked):
        reader = Reader(asked.body, flexible=True)
        assert (reader.nullable_string(), reader.int16()) == (None, -1)
        reader.int32()
        assert (reader.array(), bytes(reader.take(16))) == (1, TOPIC_ID)
        sent = {}
        for _ in range(reader.array()):
            number = reader.int32()
            sent[number] = bytes(reader.sized())
            reader.tags()
        out = Writer(flexible=True)
        out.array(1)
        out.raw(TOPIC_ID)
        out.array(len(sent))
        for number, data in sent.items():
            error = self.errors[number].pop(0) if self.errors[number] else 0
            if error is None:
                return None
            if not error:
                self.take(number, data)
            out.int32(number)
            out.int16(error)
            out.int64(-1)
            out.int64(-1)
            out.int64(0)
            out.array(0)
            out.string(None)
            out.tags()
        out.tags()
        out.int32(0)
        out.tags()
        return bytes(out.data)

    def take(self, number, data):
        [batch] = split(memoryview(data))
        check(batch)
        assert batch.base_offset == 0
        self.sizes.append(len(data))
        self.logs[number] += decode(batch)


def run(keeper, *calls, silence=5.0):
    async def work():
        broker = FakeBroker({}, {PRODUCE: (3, 13), METADATA: (0, 12)}, flexible={PRODUCE: 9, METADATA: 9})
        broker.script.update({PRODUCE: keeper.produce, METADATA: keeper.metadata})
        async with broker:
            keeper.port = broker.port
            settings = ClientSettings((("127.0.0.1", broker.port),))
            async with WireCluster(settings, alias="b", silence=silence) as cluster:
                return [await append(cluster, records) for records in calls], broker.order().count(PRODUCE)

    return asyncio.run(work())


def rows(keeper, number):
    return [NewRecord(record.key, record.value, record.headers) for record in keeper.logs[number]]


def test_records_of_several_partitions_go_in_one_request_stamped_with_the_time():
    keeper, began = Keeper(), time.time_ns() // 1_000_000
    first = [NewRecord(b"k1", b"v1", (("h", b"x"), ("n", None))), NewRecord(b"k2", None)]
    [faults], requests = run(keeper, {FIRST: first, SECOND: [NewRecord(b"k3", b"v3")]})
    assert (faults, requests) == ({}, 1)
    assert rows(keeper, 0) == first
    assert rows(keeper, 1) == [NewRecord(b"k3", b"v3")]
    assert all(began <= record.timestamp <= time.time_ns() // 1_000_000 for record in keeper.logs[0])


def test_a_record_may_have_a_time_of_its_own():
    keeper = Keeper()
    run(keeper, {FIRST: [NewRecord(b"k", b"v", timestamp=1_234), NewRecord(b"l", b"v")]})
    own, other = keeper.logs[0]
    assert own.timestamp == 1_234 < other.timestamp


def test_many_records_are_split_and_keep_their_order():
    keeper = Keeper()
    sent = [NewRecord(b"%d" % number, b"x" * 1000) for number in range(700)]
    [faults], requests = run(keeper, {FIRST: sent, SECOND: sent[:1]})
    assert faults == {}
    assert rows(keeper, 0) == sent
    assert requests == 3
    assert max(keeper.sizes) <= 256 << 10


def test_what_passes_by_itself_is_sent_again_and_the_rest_waits_for_it():
    keeper = Keeper()
    keeper.errors[0] = [6, 19, None]  # the leader moved, too few replicas, the connection broke
    sent = [NewRecord(b"%d" % number, b"x" * 1000) for number in range(500)]
    [faults], _ = run(keeper, {FIRST: sent})
    assert faults == {}
    assert rows(keeper, 0) == sent


def test_a_refusal_concerns_its_partition_alone_and_nothing_follows_it():
    keeper = Keeper()
    keeper.errors[0] = [29]
    sent = [NewRecord(b"%d" % number, b"x" * 1000) for number in range(500)]
    [faults], requests = run(keeper, {FIRST: sent, SECOND: sent, ABSENT: sent[:1]})
    assert {tp: reason.name for tp, reason in faults.items()} == {
        FIRST: "TOPIC_AUTHORIZATION_FAILED",
        ABSENT: "UNKNOWN_TOPIC_OR_PARTITION",
    }
    assert (rows(keeper, 0), rows(keeper, 1)) == ([], sent)
    assert requests == 2


def test_waiting_for_what_does_not_pass_ends():
    keeper = Keeper()
    keeper.errors[0] = [19] * 1000
    [faults], requests = run(keeper, {FIRST: [NewRecord(b"k", b"v")]}, silence=0.3)
    assert faults[FIRST].name == "NOT_ENOUGH_REPLICAS"
    assert 1 < requests < 100


def test_nothing_to_append_asks_nobody():
    [faults, none], requests = run(Keeper(), {}, {FIRST: []})
    assert (faults, none, requests) == ({}, {}, 0)


def test_a_cluster_that_is_gone_is_an_error():
    async def work():
        keeper = Keeper()
        broker = FakeBroker({METADATA: keeper.metadata}, {METADATA: (0, 12)}, flexible={METADATA: 9})
        async with broker:
            keeper.port = broker.port
            cluster = WireCluster(ClientSettings((("127.0.0.1", broker.port),)), alias="b", silence=0.5)
            await cluster.open()
            broker.stop_listening()
            broker.cut()
            try:
                with pytest.raises(ClusterUnreachable):
                    await append(cluster, {FIRST: [NewRecord(b"k", b"v")]})
            finally:
                await cluster.close()

    asyncio.run(work())
