from __future__ import annotations

import asyncio
import struct

import pytest

from failover.errors import BrokerError
from failover.kafka.wire.connection import Connection, ConnectionLost
from failover.kafka.wire.metadata import NO_TOPIC_ID
from failover.kafka.wire.primitives import Reader, Writer
from failover.kafka.wire.produce import PRODUCE, ProduceBatch, Produced, produce_call, submit_produce
from tests.unit.wire.fake_broker import FakeBroker

ID = bytes(range(16))
BATCHES = [
    ProduceBatch("orders", 0, b"first", ID),
    ProduceBatch("orders", 3, memoryview(bytearray(b"x" * 300)), ID),
    ProduceBatch("ü", 1, bytearray(b"third"), bytes(15) + b"\1"),
]


def encoded(call, version):
    return b"".join(bytes(chunk) for chunk in call.encode(version))


def test_a_classic_request_is_written_as_kafka_reads_it():
    text = "ü".encode()
    assert encoded(produce_call(BATCHES, timeout_ms=1234), 8) == (
        struct.pack(">hhi", -1, -1, 1234)
        + struct.pack(">i", 2)
        + struct.pack(">h6s", 6, b"orders")
        + struct.pack(">i", 2)
        + struct.pack(">ii5s", 0, 5, b"first")
        + struct.pack(">ii300s", 3, 300, b"x" * 300)
        + struct.pack(">h2s", 2, text)
        + struct.pack(">i", 1)
        + struct.pack(">ii5s", 1, 5, b"third")
    )


@pytest.mark.parametrize(
    ("version", "first", "second"), [(12, b"\7orders", b"\3\xc3\xbc"), (13, ID, bytes(15) + b"\1")]
)
def test_a_flexible_request_is_written_as_kafka_reads_it(version, first, second):
    assert encoded(produce_call(BATCHES, timeout_ms=1234), version) == (
        b"\0"
        + struct.pack(">hi", -1, 1234)
        + b"\3"
        + first
        + b"\3"
        + struct.pack(">iB5s", 0, 6, b"first")
        + b"\0"
        + struct.pack(">i2s300s", 3, b"\xad\x02", b"x" * 300)
        + b"\0\0"
        + second
        + b"\2"
        + struct.pack(">iB5s", 1, 6, b"third")
        + b"\0\0\0"
    )


def test_batches_are_not_copied():
    chunks = produce_call(BATCHES).encode(13)
    assert [chunk for chunk in chunks if any(chunk is batch.data for batch in BATCHES)] == [
        batch.data for batch in BATCHES
    ]


def test_ids_are_used_only_if_all_have_one():
    assert produce_call(BATCHES).high == 13
    assert produce_call([*BATCHES, ProduceBatch("late", 0, b"", NO_TOPIC_ID)]).high == 12


def answer(version, *, error=0, reason=None, record_reason=None, leader=None, throttle=0):
    """An answer for BATCHES' first and third batch, the latter with an error."""
    out = Writer(flexible=version >= 9)
    out.array(2)
    for batch, code in ((BATCHES[0], 0), (BATCHES[2], error)):
        if version >= 13:
            out.raw(batch.topic_id)
        else:
            out.string(batch.topic)
        out.array(1)
        out.int32(batch.partition)
        out.int16(code)
        out.int64(-1 if code else 70)
        out.int64(1234)
        out.int64(5)
        if version >= 8:
            reasons = [record_reason] if code and record_reason else []
            out.array(len(reasons))
            for each in reasons:
                out.int32(0)
                out.string(each)
                out.tags()
            out.string(reason if code else None)
        if code and leader:
            part = Writer(flexible=True)
            part.int32(leader[0])
            part.int32(leader[1])
            part.tags()
            out.raw(b"\1\0" + bytes([len(part.data)]) + part.data)
        else:
            out.tags()
        out.tags()
    out.int32(throttle)
    if version >= 10 and leader:
        out.raw(b"\1\0\3abc")  # where the leaders listen: metadata tells that too
    else:
        out.tags()
    return bytes(out.data)


@pytest.mark.parametrize("version", [7, 8, 9, 12, 13])
def test_answers_of_every_version_are_read(version):
    call = produce_call(BATCHES)
    body = answer(version, error=6, reason="moved", leader=(4, 9) if version >= 10 else None, throttle=17)
    read = call.decode(version, memoryview(body))
    assert read.throttle_ms == 17
    good, bad = read.partitions
    assert good == Produced("orders", 0, None, 70, 1234, 5, None)
    assert (bad.topic, bad.partition, bad.base_offset) == ("ü", 1, -1)
    assert bad.fault is not None
    assert (bad.fault.number, bad.fault.retriable) == (6, True)
    assert bad.fault.message == ("moved" if version >= 8 else "")
    assert bad.leader == ((4, 9) if version >= 10 else None)


def test_a_record_s_own_reason_is_told_where_there_is_no_other():
    body = answer(13, error=87, record_reason="no key", leader=(-1, -1))
    bad = produce_call(BATCHES).decode(13, memoryview(body)).partitions[1]
    assert str(bad.fault) == "INVALID_RECORD: no key"
    assert bad.leader is None


async def connected(broker: FakeBroker, *, version: int = 13) -> Connection:
    _, connection = await asyncio.get_running_loop().create_connection(
        lambda: Connection(alias="b", peer="broker 1", client_id="t", silence=5), "127.0.0.1", broker.port
    )
    connection.versions = {PRODUCE: (3, version)}
    return connection


@pytest.mark.parametrize("version", [8, 12, 13])
def test_requests_are_in_flight_together_and_throttling_is_minded(version):
    async def run():
        broker = FakeBroker({PRODUCE: lambda asked: answer(asked.version, throttle=40)}, {}, flexible={PRODUCE: 9})
        async with broker:
            connection = await connected(broker, version=version)
            await connection.ready()
            sent = [submit_produce(connection, [BATCHES[0], BATCHES[2]]) for _ in range(3)]
            assert connection.in_flight == 3
            answers = [await each.answer() for each in sent]
            left = connection.pace.quiet_until - asyncio.get_running_loop().time()
            connection.close()
        return [asked.version for asked in broker.asked], answers, left, bytes(broker.asked[0].body)

    versions, answers, left, body = asyncio.run(run())
    assert versions == [version] * 3
    assert [len(each.partitions) for each in answers] == [2, 2, 2]
    assert 0 < left <= 0.04
    assert b"first" in body


def test_an_answer_that_ends_too_early_ends_the_connection():
    async def run():
        async with FakeBroker({PRODUCE: lambda _: answer(13)[:-3]}, {}, flexible={PRODUCE: 9}) as broker:
            connection = await connected(broker)
            sent = submit_produce(connection, BATCHES)
            with pytest.raises(ConnectionLost, match="ends too early") as raised:
                await sent.answer()
            assert raised.value.written
            assert not connection.open

    asyncio.run(run())


def test_a_lost_connection_leaves_the_outcome_open():
    async def run():
        async with FakeBroker({PRODUCE: lambda _: None}, {}, flexible={PRODUCE: 9}) as broker:
            connection = await connected(broker)
            sent = submit_produce(connection, BATCHES)
            with pytest.raises(ConnectionLost) as raised:
                await sent.answer()
            assert raised.value.written
            with pytest.raises(ConnectionLost) as raised:
                submit_produce(connection, BATCHES)
            assert not raised.value.written

    asyncio.run(run())


def test_a_broker_too_old_is_told():
    async def run():
        async with FakeBroker({}, {}) as broker:
            connection = await connected(broker, version=6)
            with pytest.raises(BrokerError, match="API 0") as raised:
                submit_produce(connection, BATCHES)
            connection.close()
            return raised.value.number

    assert asyncio.run(run()) == 35


def test_what_is_written_can_be_read_back():
    reader = Reader(memoryview(encoded(produce_call(BATCHES), 13)), flexible=True)
    assert reader.nullable_string() is None
    assert (reader.int16(), reader.int32(), reader.array()) == (-1, 30_000, 2)
