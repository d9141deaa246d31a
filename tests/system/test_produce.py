from __future__ import annotations

import asyncio
import struct
import sys
import time

import pytest
from crc32c import crc32c

from failover.errors import BrokerError
from failover.kafka.wire import producer_ids
from failover.kafka.wire.cluster import Leader
from failover.kafka.wire.fetch import FetchPartition, fetch_call
from failover.kafka.wire.logs import describe_producers
from failover.kafka.wire.metadata import NO_TOPIC_ID
from failover.kafka.wire.produce import BY_TOPIC_ID, PRODUCE, ProduceBatch, submit_produce
from failover.kafka.wire.producer_ids import Fence, ProducerFenced, fence, fence_again, init_producer_id
from failover.kafka.wire.transactions import Transaction, describe_transactions
from failover.model.names import TopicPartition
from failover.replication.batches import Kind, Limits, next_sequence, prepare, stamp
from tests.system.wire_side import plain
from tests.unit.replication.source_log import Data, Datum, SourceLog

OLD_EPOCH, OUT_OF_ORDER, ID_DENIED, INVALID_RECORD = 47, 45, 53, 87
LOG_APPEND_TIME, TRANSACTIONAL = 0x08, 0x10


@pytest.fixture(scope="module")
def a(pair):
    with plain(pair, "a") as both:
        yield both


@pytest.fixture(scope="module")
def b(pair):
    with plain(pair, "b") as both:
        yield both


def records(count, *, first=0, codec="none", key=b"k", **options):
    data = tuple(Datum(1_700_000_000_000 + at, key, b"value %d" % at * 5) for at in range(first, first + count))
    options.setdefault("kept", (True,) * count)
    return bytearray(SourceLog([Data(data, codec=codec, **options)]).data)


def batch(owner, sequence, count=2, **options):
    """A batch of an owner, (producer id, epoch), as a sender stamps it."""
    data = records(count, **options)
    stamp(data, owner[0], owner[1], sequence)
    return data


def flagged(data, flags):
    (attributes,) = struct.unpack_from(">h", data, 21)
    struct.pack_into(">h", data, 21, attributes | flags)
    struct.pack_into(">I", data, 17, crc32c(data[21:]))
    return data


async def start(cluster, batches, *, by_id=True):
    leaders = await cluster.leaders([TopicPartition(*place) for place in batches])
    node = next(iter(leaders.values())).node
    connection = await cluster.connection(node, "produce")
    await connection.ready()
    return submit_produce(
        connection,
        [
            ProduceBatch(tp.topic, tp.partition, batches[tp], leader.topic_id if by_id else NO_TOPIC_ID)
            for tp, leader in leaders.items()
            if isinstance(leader, Leader)
        ],
    )


async def send_all(cluster, batches, **options):
    sent = await start(cluster, batches, **options)
    return {TopicPartition(each.topic, each.partition): each for each in (await sent.answer()).partitions}


@pytest.fixture
def send(b):
    """Sends one batch; gives Kafka's error number (0: none) and where it was appended."""
    thread, cluster = b

    def run(tp, data, **options):
        [produced] = thread.run(send_all(cluster, {tp: data}, **options)).values()
        return produced.fault.number if produced.fault else 0, produced.base_offset

    return run


@pytest.fixture
def place(pair):
    def make(**config):
        return TopicPartition(pair.create_topic("b", pair.name("produce"), config=config), 0)

    return make


# -- the fence ------------------------------------------------------------------------------------


def test_a_fence_without_data_refuses_the_older_epoch_at_once(pair, b, send, place):
    thread, cluster = b
    tp, transactional_id = place(), pair.name("produce|fence")
    old = thread.run(fence(cluster, transactional_id, [tp]))
    assert old.left_out == {}
    assert send(tp, batch(old[:2], 0)) == (0, 1)  # the marker of the fence lies before it
    new = thread.run(fence(cluster, transactional_id, [tp]))
    assert (new.producer_id, new.epoch) == (old.producer_id, old.epoch + 1)
    assert send(tp, batch(old[:2], 2))[0] == OLD_EPOCH
    assert send(tp, batch(new[:2], 0)) == (0, 4)
    assert send(tp, batch(old[:2], 2))[0] == OLD_EPOCH
    assert [record.value for record in pair.read("b", tp.topic)[0]] == [b"value %d" % at * 5 for at in (0, 1)] * 2
    assert pair.ends("b", tp.topic) == {0: (0, 6)}


def test_without_a_fence_the_older_epoch_still_writes(pair, b, send, place):
    """Why taking the id over is not enough: InitProducerId tells the coordinator alone."""
    thread, cluster = b
    tp, transactional_id = place(), pair.name("produce|init")
    old = thread.run(init_producer_id(cluster, transactional_id))
    assert send(tp, batch(old, 0)) == (0, 0)
    new = thread.run(init_producer_id(cluster, transactional_id))
    assert new == (old[0], old[1] + 1)
    assert send(tp, batch(old, 2)) == (0, 2)
    assert send(tp, batch(new, 0)) == (0, 4)
    assert send(tp, batch(old, 4))[0] == OLD_EPOCH


def test_behind_a_fence_sequences_start_at_zero(pair, b, send, place):
    thread, cluster = b
    tp = place()
    unknown = thread.run(init_producer_id(cluster, pair.name("produce|unfenced")))
    assert send(tp, batch(unknown, 55))[0] == 0  # the hazard: an id the partition has not seen may start anywhere
    owner = thread.run(fence(cluster, pair.name("produce|zero"), [tp]))
    assert send(tp, batch(owner[:2], 55))[0] == OUT_OF_ORDER
    assert send(tp, batch(owner[:2], 2))[0] == OUT_OF_ORDER
    assert send(tp, batch(owner[:2], 0))[0] == 0


def test_fencing_again_at_the_same_epoch_keeps_the_sequences(pair, b, send, place):
    thread, cluster = b
    tp, later, transactional_id = place(), place(), pair.name("produce|again")
    owner = thread.run(fence(cluster, transactional_id, [tp]))
    assert send(tp, batch(owner[:2], 0)) == (0, 1)
    for _ in range(2):
        again = thread.run(fence_again(cluster, transactional_id, owner.producer_id, owner.epoch, [tp, later]))
        assert again.left_out == {}
    assert send(tp, batch(owner[:2], 2)) == (0, 5)
    assert send(later, batch(owner[:2], 0)) == (0, 2)
    described = thread.run(describe_transactions(cluster, [transactional_id]))[transactional_id]
    assert isinstance(described, Transaction)
    assert (described.state, described.producer_id, described.epoch) == ("CompleteAbort", *owner[:2])


def test_who_lost_the_id_is_told_by_name(pair, b, place):
    thread, cluster = b
    tp, transactional_id = place(), pair.name("produce|lost")
    old = thread.run(fence(cluster, transactional_id, [tp]))
    thread.run(fence(cluster, transactional_id, [tp]))
    with pytest.raises(ProducerFenced, match=f"{old.producer_id} at epoch {old.epoch}") as raised:
        thread.run(fence_again(cluster, transactional_id, old.producer_id, old.epoch, [tp]))
    assert transactional_id in str(raised.value)


def test_of_many_who_fence_at_once_one_remains(pair, b, send, place):
    thread, cluster = b
    tp, transactional_id = place(), pair.name("produce|race")

    async def race():
        return await asyncio.gather(*(fence(cluster, transactional_id, [tp]) for _ in range(6)), return_exceptions=True)

    ended = thread.run(race())
    owners = sorted((each for each in ended if isinstance(each, Fence)), key=lambda each: each.epoch)
    lost = [each for each in ended if not isinstance(each, Fence)]
    assert all(isinstance(each, ProducerFenced) for each in lost), lost
    described = thread.run(describe_transactions(cluster, [transactional_id]))[transactional_id]
    assert isinstance(described, Transaction)
    assert owners
    assert owners[-1].epoch == described.epoch
    outcomes = [send(tp, batch(owner[:2], 0))[0] for owner in owners]
    assert outcomes == [OLD_EPOCH] * (len(owners) - 1) + [0]


def test_what_does_not_exist_is_left_out_of_the_fence(pair, b, send, place):
    thread, cluster = b
    tp = place()
    absent = [TopicPartition(tp.topic, 9), TopicPartition(pair.name("produce.absent"), 0)]
    owner = thread.run(fence(cluster, pair.name("produce|absent"), [absent[0], tp, absent[1]]))
    assert {each: reason.number for each, reason in owner.left_out.items()} == dict.fromkeys(absent, 3)
    assert send(tp, batch(owner[:2], 0)) == (0, 1)
    assert absent[1].topic not in pair.b.topics()
    alone = thread.run(fence(cluster, pair.name("produce|nothing"), absent))
    assert alone.left_out.keys() == set(absent)


def test_a_thousand_partitions_are_fenced_in_one_go(pair, b, capsys):
    thread, cluster = b
    topic = pair.create_topic("b", pair.name("produce.many"), 1000)
    places = [TopicPartition(topic, partition) for partition in range(1000)]
    transactional_id = pair.name("produce|many")
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        owner = thread.run(fence(cluster, transactional_id, places))
        seconds.append(time.perf_counter() - began)
    with capsys.disabled():
        sys.stdout.write(f"\n1,000 partitions fenced in {', '.join(f'{each:.2f}' for each in seconds)} s\n")
    assert owner.left_out == {}
    states = thread.run(describe_producers(cluster, places))
    for tp in places:
        [state] = states[tp]
        assert (state.producer_id, state.epoch, state.open_since) == (*owner[:2], -1)
    produced = thread.run(send_all(cluster, {tp: batch(owner[:2], 0, count=1) for tp in places}))
    assert {each.fault for each in produced.values()} == {None}
    assert {each.base_offset for each in produced.values()} == {3}


# -- what brokers take ------------------------------------------------------------------------------


def _gap(data):
    return records(3, kept=(True, False, True))


def _base(data):
    struct.pack_into(">q", data, 0, 7)
    return data


@pytest.mark.parametrize(
    ("config", "change", "number"),
    [
        ({}, lambda data: data, 0),
        ({}, lambda data: records(2, codec="zstd"), 0),
        ({}, _base, INVALID_RECORD),
        ({}, _gap, INVALID_RECORD),
        ({}, lambda data: records(3, kept=(True, False, True), codec="lz4"), INVALID_RECORD),
        ({}, lambda data: data + records(2), INVALID_RECORD),
        ({}, lambda data: flagged(data, LOG_APPEND_TIME), 0),
        ({"message.timestamp.type": "LogAppendTime"}, lambda data: flagged(data, LOG_APPEND_TIME), 32),
        ({"message.timestamp.type": "LogAppendTime"}, lambda data: data, 0),
        ({"cleanup.policy": "compact"}, lambda data: records(2, key=None), INVALID_RECORD),
        ({"max.message.bytes": "200"}, lambda data: records(9), 10),
    ],
)
def test_what_a_broker_takes(send, place, config, change, number):
    assert send(place(**config), change(records(2)))[0] == number


def test_a_transactional_batch_outside_a_transaction_is_refused(pair, b, send, place):
    thread, cluster = b
    owner = thread.run(init_producer_id(cluster, pair.name("produce|txn")))
    tp, data = place(), batch(owner, 0)
    assert send(tp, flagged(bytearray(data), TRANSACTIONAL))[0] == ID_DENIED
    assert send(tp, data) == (0, 0)


def test_a_damaged_batch_is_refused_as_stamped(pair, b, send, place):
    """The CRC is carried over, so bytes that change in this process do not get past the target."""
    tp, data = place(), records(5)
    data[70] ^= 1
    stamp(data, -1, -1, -1)
    assert send(tp, data)[0] == 2


def test_the_same_batch_again_is_the_same_record(pair, b, send, place):
    thread, cluster = b
    tp = place()
    owner = thread.run(fence(cluster, pair.name("produce|again"), [tp]))[:2]
    batches = [batch(owner, at * 2) for at in range(6)]
    assert [send(tp, data) for data in batches] == [(0, 1 + at * 2) for at in range(6)]
    # the last five are remembered, with where they are
    assert [send(tp, data) for data in batches[1:]] == [(0, 3 + at * 2) for at in range(5)]
    assert send(tp, batches[0])[0] == OUT_OF_ORDER
    assert send(tp, batch(owner, 10, count=1))[0] == OUT_OF_ORDER  # a part of the last one is another batch
    assert pair.ends("b", tp.topic) == {0: (0, 13)}


def test_requests_are_pipelined_in_order(pair, b, place):
    thread, cluster = b
    topic = pair.create_topic("b", pair.name("produce.pipe"), 3)
    places = [TopicPartition(topic, partition) for partition in range(3)]
    owner = thread.run(fence(cluster, pair.name("produce|pipe"), places))[:2]

    async def work():
        await send_all(cluster, {tp: batch(owner, 0) for tp in places})
        flying = [await start(cluster, {tp: batch(owner, at * 2) for tp in places}) for at in range(1, 6)]
        assert (await cluster.connection(cluster.brokers[0], "produce")).in_flight > 1
        return [await sent.answer() for sent in flying]

    for at, answer in enumerate(thread.run(work()), 1):
        assert {each.fault for each in answer.partitions} == {None}
        assert {(each.partition, each.base_offset) for each in answer.partitions} == {
            (partition, 1 + at * 2) for partition in range(3)
        }
        assert answer.throttle_ms == 0


@pytest.mark.parametrize("by_id", [True, False])
def test_an_unknown_topic_is_told(pair, b, by_id):
    thread, cluster = b
    topic = pair.create_topic("b", pair.name("produce.gone"))
    tp = TopicPartition(topic, 0)
    [known] = thread.run(cluster.leaders([tp], refresh=True)).values()
    assert isinstance(known, Leader)
    pair.b.recreate_topic(topic)
    [produced] = thread.run(send_all(cluster, {tp: records(1)}, by_id=by_id)).values()
    assert cluster.highest(PRODUCE) >= BY_TOPIC_ID
    assert (produced.topic, produced.fault.number if produced.fault else 0) == (topic, 100 if by_id else 0)


def test_an_absent_topic_is_not_made(pair, b):
    thread, cluster = b
    [produced] = thread.run(send_to_any(cluster, TopicPartition(pair.name("produce.nowhere"), 0)))
    assert produced.fault.name == "UNKNOWN_TOPIC_OR_PARTITION"
    assert produced.topic not in pair.b.topics()


async def send_to_any(cluster, tp):
    connection = await cluster.connection(cluster.brokers[0], "produce")
    await connection.ready()
    return (await submit_produce(connection, [ProduceBatch(tp.topic, tp.partition, records(1))]).answer()).partitions


# -- the whole way ------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_arrive_as_they_are(pair, a, b, place, codec):
    """Read back with librdkafka, so that both ends of the codec are judged by another implementation."""
    topic = pair.create_topic("a", pair.name("produce.source"), 1)
    for count in (1, 1, 40, 1, 1, 1):
        pair.produce("a", topic, count, compression_type=codec, keys=7, size=90)
    wanted = [record[1:] for record in pair.read("a", topic)[0]]
    for limits, kind in [
        (Limits(), Kind.COALESCED),
        (Limits(small_bytes=0), Kind.PASSED),
        (Limits(batch_bytes=700), Kind.COALESCED),
    ]:
        tp = place()
        assert kind in copy(a, b, TopicPartition(topic, 0), tp, limits=limits)
        assert [record[1:] for record in pair.read("b", tp.topic)[0]] == wanted


@pytest.mark.parametrize("limits", [Limits(), Limits(small_bytes=0)], ids=["coalesced", "one by one"])
def test_aborted_records_arrive_unless_committed_ones_are_asked_for(pair, a, b, place, limits):
    topic = pair.create_topic("a", pair.name("produce.aborted"), 1)
    pair.produce("a", topic, 60, transactions=[(4, True), (3, False), (5, True)])
    for committed, isolation in ((False, "read_uncommitted"), (True, "read_committed")):
        tp = place()
        copy(a, b, TopicPartition(topic, 0), tp, limits=limits, committed=committed)
        wanted = pair.a.read(topic, isolation=isolation)[0]
        assert [record[1:] for record in pair.read("b", tp.topic)[0]] == [record[1:] for record in wanted]
    assert len(wanted) < 60


def test_append_times_become_the_records_own(pair, a, b, place):
    topic = pair.create_topic("a", pair.name("produce.appended"), 1, config={"message.timestamp.type": "LogAppendTime"})
    pair.produce("a", topic, 30)
    tp = place()
    assert copy(a, b, TopicPartition(topic, 0), tp) == {Kind.RECODED}
    assert [each[1:] for each in pair.read("b", tp.topic)[0]] == [each[1:] for each in pair.read("a", topic)[0]]


def copy(a, b, source, target, *, limits=None, committed=False):
    """Copies one partition as it is now; gives what was done to its batches."""
    (from_thread, source_cluster), (to_thread, target_cluster) = a, b
    owner = to_thread.run(fence(target_cluster, f"produce|copy|{target}", [target]))[:2]

    async def read(position):
        [leader] = (await source_cluster.leaders([source])).values()
        asked = FetchPartition(source.topic, source.partition, position, 1 << 20, leader.topic_id)
        answer = await source_cluster.send(
            leader.node, fetch_call([asked], max_bytes=1 << 20, read_committed=committed)
        )
        return answer.partitions[0]

    position = sequence = 0
    end, kinds = 1, set()
    while True:
        fetched = from_thread.run(read(position))
        aborted = fetched.aborted if committed else None
        prepared = prepare(source, fetched.records, position, now_ms=1, aborted=aborted, limits=limits)
        assert prepared.damage is None
        for outgoing in prepared.outgoing:
            kinds.add(outgoing.kind)
            stamp(outgoing.data, owner[0], owner[1], sequence)
            [produced] = to_thread.run(send_all(target_cluster, {target: outgoing.data})).values()
            assert (produced.fault, produced.base_offset) == (None, end)
            sequence, end = next_sequence(sequence, outgoing.records), end + outgoing.records
        if prepared.next_offset == position:
            assert position == fetched.high_watermark
            return kinds
        position = prepared.next_offset


def test_a_broker_before_topic_ids_is_asked_by_name(pair, b, send, place):
    assert send(place(), records(1), by_id=False) == (0, 0)


def test_errors_of_the_coordinator_are_named(pair, b):
    thread, cluster = b
    with pytest.raises(BrokerError, match="INVALID_REQUEST") as raised:
        thread.run(init_producer_id(cluster, ""))
    assert raised.value.number == 42


def test_a_fence_that_was_cut_short_is_nobody_elses(pair, b, send, place):
    """A target that goes away between AddPartitionsToTxn and EndTxn leaves our own transaction open."""
    thread, cluster = b
    tp, transactional_id = place(), pair.name("produce|cut")
    owner = thread.run(fence(cluster, transactional_id, [tp]))[:2]
    for _ in range(2):
        latest = thread.run(init_producer_id(cluster, transactional_id, owned=owner))
        asking = producer_ids._Owner(cluster, transactional_id, *latest)
        assert thread.run(asking.ask(producer_ids._add_call(transactional_id, latest[0], latest[1], [tp]))) == {}
        mended = thread.run(fence(cluster, transactional_id, [tp], owned=latest))
        assert mended.producer_id == owner[0]
        assert send(tp, batch(mended[:2], 0))[0] == 0
        assert send(tp, batch(latest, 0))[0] == send(tp, batch(owner, 0))[0] == OLD_EPOCH
        owner = mended[:2]
    fenced = thread.run(fence(cluster, transactional_id, [tp]))[:2]
    with pytest.raises(ProducerFenced):
        thread.run(fence(cluster, transactional_id, [tp], owned=owner))
    assert send(tp, batch(fenced, 0))[0] == 0
