"""Produce, Kafka API 0, coded by hand: many partitions in one request, batches sent uncopied, requests pipelined.

By topic id where the broker offers it (version 13 on): a topic that was deleted and made again under its old name then
answers UNKNOWN_TOPIC_ID (100) instead of taking the records.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from failover.kafka.faults import maybe_fault
from failover.kafka.wire.connection import Connection
from failover.kafka.wire.messages import Call, Chunks
from failover.kafka.wire.metadata import NO_TOPIC_ID
from failover.kafka.wire.primitives import Reader, Writer, uvarint
from failover.model.names import Fault

PRODUCE = 0
BY_TOPIC_ID = 13
"""The first version that names topics by their ids."""

_LOW, _FLEXIBLE, _BY_NAME = 7, 9, 12
_RECORD_ERRORS = 8
_INDEX = struct.Struct(">i")
_ALL_IN_SYNC = -1
_STATE = struct.Struct(">ihqqq")  # partition, error, base offset, log append time, log start
_CURRENT_LEADER = 0


class ProduceBatch(NamedTuple):
    """Is one batch for one partition; ``data`` must stay as it is until the answer is there.

    A broker takes one batch for each partition of a request (measured on Kafka 4.1.1: 87 for two), with base offset 0
    and without gaps.
    """

    topic: str
    partition: int
    data: bytes | bytearray | memoryview
    topic_id: bytes = NO_TOPIC_ID


class Produced(NamedTuple):
    """Is what became of one batch.

    ``fault``: None if it was appended, or had been before (then ``base_offset`` is where it is).
    ``log_append_time``: epoch ms where the broker sets the timestamps, else -1. ``leader``: (broker, epoch) as the
    broker knows it, where it is no longer the leader and says so (Kafka: KIP-951).
    """

    topic: str
    partition: int
    fault: Fault | None
    base_offset: int
    log_append_time: int
    log_start: int
    leader: tuple[int, int] | None = None


class ProduceAnswer(NamedTuple):
    """Is one answer; ``throttle_ms``: how long the broker wants no further request."""

    partitions: list[Produced]
    throttle_ms: int


class Sent:
    """Is a produce request on its way. ``raw``: resolves with its answer's body, fails with ``ClusterError``."""

    __slots__ = ("_call", "_connection", "_version", "raw")

    def __init__(
        self, connection: Connection, call: Call[ProduceAnswer], version: int, raw: asyncio.Future[memoryview]
    ) -> None:
        self.raw = raw
        self._connection = connection
        self._call = call
        self._version = version

    async def answer(self) -> ProduceAnswer:
        """Waits for the answer and minds its throttle time.

        Raises ``ConnectionLost`` (the batches may have been appended), ``CredentialsRefused``.
        """
        return self.read(await self.raw)

    def read(self, body: memoryview) -> ProduceAnswer:
        """Takes the answer's body apart, for callers that have waited for ``raw`` themselves."""
        connection = self._connection
        try:
            answer = self._call.decode(self._version, body)
        except (ValueError, struct.error) as error:
            connection.close()
            raise connection.error("sent an answer to a produce request that ends too early") from error
        connection.pace.throttle(answer.throttle_ms, asyncio.get_running_loop().time())
        return answer


def submit_produce(connection: Connection, batches: Sequence[ProduceBatch], *, timeout_ms: int = 30_000) -> Sent:
    """Sends batches at once, acknowledged by all in-sync replicas; call it right behind ``await connection.ready()``.

    Several requests may be in flight on a connection; a broker works through them in order. ``timeout_ms``: how long
    the broker may wait for its replicas (then REQUEST_TIMED_OUT, and the batches are in its log). Raises
    ``ConnectionLost`` when nothing could be written, ``BrokerError`` 35 for a broker before Kafka 2.1.
    """
    call = produce_call(batches, timeout_ms=timeout_ms)
    version = connection.version(call.key, call.low, call.high)
    raw = connection.submit(
        call.key,
        version,
        call.encode(version),
        flexible=version >= call.flexible_from,
        patience=timeout_ms / 1000,
    )
    return Sent(connection, call, version, raw)


def produce_call(batches: Sequence[ProduceBatch], *, timeout_ms: int = 30_000) -> Call[ProduceAnswer]:
    """Makes a produce of these batches, one a partition. Topic ids are used if all have one and the broker can.

    Its answer's throttle time lies at its end, so whoever sends it otherwise than by ``submit_produce`` minds that
    himself.
    """
    by_id = all(batch.topic_id != NO_TOPIC_ID for batch in batches)
    names = {batch.topic_id: batch.topic for batch in batches} if by_id else {}
    return Call(
        PRODUCE,
        _LOW,
        BY_TOPIC_ID if by_id else _BY_NAME,
        flexible_from=_FLEXIBLE,
        encode=lambda version: _encode(batches, version, timeout_ms),
        decode=lambda version, body: _decode(Reader(body, flexible=version >= _FLEXIBLE), version, names),
        throttle_at=None,
    )


def _encode(batches: Sequence[ProduceBatch], version: int, timeout_ms: int) -> Chunks:
    """Writes the request around the batches: what lies between two of them is one piece."""
    topics: dict[tuple[str, bytes], list[ProduceBatch]] = {}
    for batch in batches:
        topics.setdefault((batch.topic, batch.topic_id), []).append(batch)
    flexible = version >= _FLEXIBLE
    length: Callable[[int], bytes] = _compact_length if flexible else _INDEX.pack
    out = Writer(flexible=flexible)
    out.string(None)  # no transaction
    out.int16(_ALL_IN_SYNC)
    out.int32(timeout_ms)
    out.array(len(topics))
    chunks: list[bytes | bytearray | memoryview] = []
    for (topic, topic_id), members in topics.items():
        if version >= BY_TOPIC_ID:
            out.raw(topic_id)
        else:
            out.string(topic)
        out.array(len(members))
        for batch in members:
            out.data += _INDEX.pack(batch.partition)
            out.data += length(len(batch.data))
            chunks += (out.data, batch.data)
            out = Writer(flexible=flexible)
            out.tags()
        out.tags()
    out.tags()
    chunks.append(out.data)
    return chunks


def _compact_length(length: int) -> bytes:
    return uvarint(length + 1)


def _decode(reader: Reader, version: int, names: Mapping[bytes, str]) -> ProduceAnswer:
    partitions: list[Produced] = []
    for _ in range(reader.array()):
        topic = names.get(bytes(reader.take(16)), "") if version >= BY_TOPIC_ID else reader.string()
        partitions.extend(_decode_partition(reader, version, topic) for _ in range(reader.array()))
        reader.tags()
    return ProduceAnswer(partitions, reader.int32())


def _decode_partition(reader: Reader, version: int, topic: str) -> Produced:
    partition, error, base_offset, append_time, log_start = _STATE.unpack_from(reader.data, reader.at)
    reader.at += _STATE.size
    text, leader = None, None
    if version >= _RECORD_ERRORS:
        reasons = []
        for _ in range(reader.array()):
            reader.int32()  # the record's place in the batch
            reasons.append(reader.nullable_string())
            reader.tags()
        text = reader.nullable_string() or next(filter(None, reasons), None)
    if (tagged := reader.tags().get(_CURRENT_LEADER)) is not None:
        part = Reader(tagged, flexible=True)
        leader = part.int32(), part.int32()
        leader = leader if leader[0] >= 0 else None
    fault = maybe_fault(error, text)
    return Produced(topic, partition, fault, base_offset, append_time, log_start, leader)
