"""Fetch, Kafka API 1, coded by hand: many partitions in one request, record batches handed out uncopied.

By topic id where the broker offers it (from version 13, Kafka 3.1, on): a topic that was deleted and made again under
its old name then answers UNKNOWN_TOPIC_ID (100) instead of another topic's records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from struct import Struct
from typing import NamedTuple

from failover.kafka.wire.messages import Call, written
from failover.kafka.wire.metadata import NO_TOPIC_ID
from failover.kafka.wire.primitives import Reader, Writer

FETCH = 1
_BY_TOPIC_ID = 13
FULL_FETCH = (0, -1)
"""The session id and epoch of a fetch without a session (Kafka: KIP-227)."""

_ASKED = Struct(">iiqiqib")  # partition, leader epoch, offset, last fetched epoch, log start, max bytes, no tags
_ASKED_V11 = Struct(">iiqqi")
_STATE = Struct(">ihqqq")  # partition, error, high watermark, last stable offset, log start


class FetchPartition(NamedTuple):
    """Asks for one partition from ``offset`` on, ``max_bytes`` at most (one whole batch is always given to the first).

    ``leader_epoch`` -1 is not checked. ``last_fetched_epoch``: the leader epoch of the batch before ``offset``; a
    log that was cut below then answers with ``Fetched.diverging`` instead of records (Kafka: KIP-595, version 12
    on).
    """

    topic: str
    partition: int
    offset: int
    max_bytes: int
    topic_id: bytes = NO_TOPIC_ID
    leader_epoch: int = -1
    last_fetched_epoch: int = -1


class Fetched(NamedTuple):
    """Is what a fetch answers for one partition.

    ``error``: Kafka's code, 0 if none. ``records``: whole batches, then perhaps a cut one; the first may begin
    below the asked offset. ``aborted``: (producer id, first offset) of aborted transactions, under read_committed
    only. ``diverging``: (epoch, end offset) where the logs part.
    """

    topic: str
    partition: int
    error: int
    high_watermark: int
    last_stable: int
    log_start: int
    aborted: tuple[tuple[int, int], ...]
    diverging: tuple[int, int] | None
    records: memoryview


class FetchAnswer(NamedTuple):
    """Is one answer; ``error`` concerns the fetch as a whole (its session)."""

    error: int
    session_id: int
    partitions: list[Fetched]


def fetch_call(
    partitions: Sequence[FetchPartition],
    *,
    max_bytes: int,
    max_wait_ms: int = 0,
    min_bytes: int = 0,
    read_committed: bool = False,
    session: tuple[int, int] = FULL_FETCH,
    forgotten: Iterable[FetchPartition] = (),
    names: Mapping[bytes, str] | None = None,
) -> Call[FetchAnswer]:
    """Makes a fetch of these partitions, each at most once.

    ``max_bytes`` bounds the answer (exceeded by one batch at most). Topic ids are used if all partitions have one and
    the broker can. ``names``: topic id → name of partitions an incremental fetch may answer without asking for them.
    """
    gone = list(forgotten)
    known = dict(names or {})
    known.update((asked.topic_id, asked.topic) for asked in partitions)
    by_id = all(topic_id != NO_TOPIC_ID for topic_id in (*known, *(each.topic_id for each in gone)))

    def write(out: Writer, version: int) -> None:
        if version < 15:
            out.int32(-1)
        out.int32(max_wait_ms)
        out.int32(min_bytes)
        out.int32(max_bytes)
        out.int8(1 if read_committed else 0)
        out.int32(session[0])
        out.int32(session[1])
        if version >= _BY_TOPIC_ID:
            _write_topics(out, partitions, by_id=True)
            _write_forgotten(out, gone, by_id=True)
        else:
            # What is asked for is added first (Kafka: FetchSession.update): it must not be forgotten under its name.
            again = {(asked.topic, asked.partition) for asked in partitions}
            _write_topics(out, partitions, by_id=False)
            _write_forgotten(out, [each for each in gone if (each.topic, each.partition) not in again], by_id=False)
        out.string("")  # no rack: the leader is read
        out.tags()

    return written(
        FETCH,
        11,
        17 if by_id else _BY_TOPIC_ID - 1,
        flexible_from=12,
        write=write,
        read=lambda reader, version: _read_answer(reader, version, known),
    )


def _by_topic(partitions: Iterable[FetchPartition]) -> dict[tuple[str, bytes], list[FetchPartition]]:
    topics: dict[tuple[str, bytes], list[FetchPartition]] = {}
    for asked in partitions:
        topics.setdefault((asked.topic, asked.topic_id), []).append(asked)
    return topics


def _each_topic(out: Writer, partitions: Iterable[FetchPartition], *, by_id: bool) -> Iterator[list[FetchPartition]]:
    """Writes an array of topics; yields the partitions of each where they are to be written."""
    topics = _by_topic(partitions)
    out.array(len(topics))
    for (name, topic_id), members in topics.items():
        if by_id:
            out.raw(topic_id)
        else:
            out.string(name)
        out.array(len(members))
        yield members
        out.tags()


def _write_topics(out: Writer, partitions: Sequence[FetchPartition], *, by_id: bool) -> None:
    for members in _each_topic(out, partitions, by_id=by_id):
        for _, partition, offset, size, _, epoch, last_epoch in members:
            if out.flexible:
                out.raw(_ASKED.pack(partition, epoch, offset, last_epoch, -1, size, 0))
            else:
                out.raw(_ASKED_V11.pack(partition, epoch, offset, -1, size))


def _write_forgotten(out: Writer, gone: Sequence[FetchPartition], *, by_id: bool) -> None:
    for members in _each_topic(out, gone, by_id=by_id):
        for asked in members:
            out.int32(asked.partition)


def _read_answer(reader: Reader, version: int, names: Mapping[bytes, str]) -> FetchAnswer:
    reader.int32()  # throttle time: the connection layer reads it
    error, session_id = reader.int16(), reader.int32()
    partitions: list[Fetched] = []
    for _ in range(reader.array()):
        topic = names.get(bytes(reader.take(16)), "") if version >= _BY_TOPIC_ID else reader.string()
        partitions.extend(_read_partition(reader, topic) for _ in range(reader.array()))
        reader.tags()
    return FetchAnswer(error, session_id, partitions)


def _read_partition(reader: Reader, topic: str) -> Fetched:
    partition, error, high_watermark, last_stable, log_start = _STATE.unpack_from(reader.data, reader.at)
    reader.at += _STATE.size
    aborted = []
    for _ in range(reader.array()):
        aborted.append((reader.int64(), reader.int64()))
        reader.tags()
    reader.int32()  # preferred read replica: only with a rack
    records = reader.sized()
    diverging = None
    if (tagged := reader.tags().get(0)) is not None:
        part = Reader(tagged, flexible=True)
        diverging = part.int32(), part.int64()
    return Fetched(topic, partition, error, high_watermark, last_stable, log_start, tuple(aborted), diverging, records)
