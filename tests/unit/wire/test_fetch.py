"""What is fetched, as brokers of every supported version read it: those before Kafka 3.1 know topics by name alone."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

import pytest

from failover.kafka.wire.connection import Connection
from failover.kafka.wire.fetch import FETCH, FetchPartition, fetch_call
from failover.kafka.wire.metadata import NO_TOPIC_ID
from failover.kafka.wire.primitives import Reader, Writer

ID, OTHER = bytes(range(16)), bytes(15) + b"\1"
HIGHEST = {"2.4": 11, "2.7": 12, "3.0": 12, "3.1": 13, "4.1": 17}


class Request(NamedTuple):
    asked: list[tuple[str | bytes, int, int]]
    forgotten: list[tuple[str | bytes, int]]


def request(call, version: int) -> Request:
    reader = Reader(memoryview(b"".join(map(bytes, call.encode(version)))), flexible=version >= 12)
    if version < 15:
        assert reader.int32() == -1
    reader.take(4 * 3 + 1 + 4 * 2)

    def topic() -> str | bytes:
        return bytes(reader.take(16)) if version >= 13 else reader.string()

    asked, forgotten = [], []
    for _ in range(reader.array()):
        name = topic()
        for _ in range(reader.array()):
            partition, _, offset = reader.int32(), reader.int32(), reader.int64()
            if version >= 12:
                reader.int32()
            reader.int64()
            reader.int32()
            reader.tags()
            asked.append((name, partition, offset))
        reader.tags()
    for _ in range(reader.array()):
        name = topic()
        forgotten += [(name, number) for number in reader.int32s()]
        reader.tags()
    assert reader.string() == ""
    return Request(asked, forgotten)


def spoken(call, highest: int) -> int:
    """Chooses a version as a connection does."""

    async def choose() -> int:
        connection = Connection(alias="a", peer="broker 1", client_id="", silence=1.0)
        connection.versions = {FETCH: (0, highest)}
        return connection.version(call.key, call.low, call.high)

    return asyncio.run(choose())


@pytest.mark.parametrize("broker", HIGHEST)
@pytest.mark.parametrize("topic_id", [ID, NO_TOPIC_ID], ids=["with ids", "without"])
def test_every_broker_is_asked_in_a_version_that_it_speaks(broker, topic_id):
    asked = FetchPartition("orders", 3, 100, 1 << 20, topic_id)
    call = fetch_call([asked], max_bytes=1)
    version = spoken(call, HIGHEST[broker])
    name = "orders" if version < 13 else topic_id
    assert request(call, version) == Request([(name, 3, 100)], [])
    assert version <= 12 or topic_id == ID


@pytest.mark.parametrize("broker", HIGHEST)
@pytest.mark.parametrize("topic_id", [ID, NO_TOPIC_ID], ids=["with ids", "without"])
def test_nothing_new_in_a_session_is_asked_as_the_session_is(broker, topic_id):
    names = {topic_id: "orders"}
    begun = fetch_call([FetchPartition("orders", 3, 100, 1 << 20, topic_id)], max_bytes=1, names=names)
    idle = fetch_call([], max_bytes=1, session=(7, 1), names=names)
    assert spoken(idle, HIGHEST[broker]) == spoken(begun, HIGHEST[broker])
    assert request(idle, spoken(idle, HIGHEST[broker])) == Request([], [])


@pytest.mark.parametrize(("version", "forgotten"), [(12, []), (13, [(ID, 3)])])
def test_by_name_a_topic_made_anew_is_not_forgotten_with_the_one_before(version, forgotten):
    """A broker adds what is asked first, then forgets what is to be forgotten (Kafka: FetchSession.update)."""
    old, new = FetchPartition("orders", 3, 100, 1 << 20, ID), FetchPartition("orders", 3, 0, 1 << 20, OTHER)
    call = fetch_call([new], max_bytes=1, session=(7, 1), forgotten=[old], names={ID: "orders", OTHER: "orders"})
    assert request(call, version).forgotten == forgotten


@pytest.mark.parametrize("version", [11, 12, 13, 17])
def test_answers_name_the_topic(version):
    out = Writer(flexible=version >= 12)
    out.int32(0)
    out.int16(0)
    out.int32(7)
    out.array(1)
    if version >= 13:
        out.raw(ID)
    else:
        out.string("orders")
    out.array(1)
    out.int32(3)
    out.int16(0)
    for offset in (20, 19, 5):
        out.int64(offset)
    out.array(1)
    out.int64(9)
    out.int64(12)
    out.tags()
    out.int32(-1)
    out.data += b"\4abc" if version >= 12 else b"\0\0\0\3abc"
    out.tags()
    out.tags()
    out.tags()
    call = fetch_call([FetchPartition("orders", 3, 10, 1 << 20, ID)], max_bytes=1)
    answer = call.decode(version, memoryview(bytes(out.data)))
    [fetched] = answer.partitions
    assert (answer.session_id, *fetched[:7], bytes(fetched.records)) == (
        7,
        "orders",
        3,
        0,
        20,
        19,
        5,
        ((9, 12),),
        b"abc",
    )
