"""What a partition's leader tells of its log: ends, offsets by time, producers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from struct import Struct
from typing import NamedTuple

from failover.kafka.faults import fault, maybe_fault
from failover.kafka.wire.cluster import WireCluster
from failover.kafka.wire.messages import Call, written
from failover.kafka.wire.primitives import Reader, Writer
from failover.model.cluster import LogRange
from failover.model.names import Fault, TopicPartition

EARLIEST, LATEST = -2, -1
"""Stand for a timestamp: the first offset still in the log, and the high watermark (Kafka: ListOffsetsRequest)."""

_NEWEST = -3  # the record of the highest timestamp (KIP-734)
_NEWEST_FROM = 7


_LIST_OFFSETS, _DESCRIBE_PRODUCERS = 2, 61
_UNSUPPORTED = 35
_PRODUCER = Struct(">qiiqiq")


class OffsetAt(NamedTuple):
    """Is an offset found by timestamp; ``offset`` -1: no record is that young. ``timestamp`` -1: not looked at."""

    offset: int
    timestamp: int
    leader_epoch: int


class ProducerState(NamedTuple):
    """Is one producer a partition remembers. ``open_since``: first offset of its open transaction, -1 if none."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    open_since: int


async def list_offsets(
    cluster: WireCluster, asked: Mapping[TopicPartition, int], *, read_committed: bool = False
) -> dict[TopicPartition, OffsetAt | Fault]:
    """Finds the first offset at or after a timestamp (epoch ms), or ``EARLIEST`` or ``LATEST``, for each partition.

    With ``read_committed`` LATEST is the last stable offset.
    """

    async def send(node: int, share: list[TopicPartition]) -> dict[TopicPartition, OffsetAt | Fault]:
        return await cluster.send(node, _list_call({tp: asked[tp] for tp in share}, read_committed=read_committed))

    return await cluster.spread(asked, send)


async def log_ranges(
    cluster: WireCluster, partitions: Iterable[TopicPartition], *, read_committed: bool = False
) -> dict[TopicPartition, LogRange | Fault]:
    """Reads log start and high watermark of each partition; with ``read_committed`` the last stable offset as end."""
    wanted = list(dict.fromkeys(partitions))
    starts, ends = await asyncio.gather(
        list_offsets(cluster, dict.fromkeys(wanted, EARLIEST)),
        list_offsets(cluster, dict.fromkeys(wanted, LATEST), read_committed=read_committed),
    )
    ranges: dict[TopicPartition, LogRange | Fault] = {}
    for tp in wanted:
        start, end = starts[tp], ends[tp]
        if isinstance(start, Fault):
            ranges[tp] = start
        elif isinstance(end, Fault):
            ranges[tp] = end
        else:
            ranges[tp] = LogRange(start.offset, end.offset)
    return ranges


async def last_times(
    cluster: WireCluster, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int | Fault | None]:
    """Reads the highest timestamp of each partition's records (epoch ms), None in an empty one.

    UNSUPPORTED_VERSION (35) where brokers do not know the question (before Kafka 3.0, KIP-734).
    """
    wanted = list(partitions)
    if cluster.highest(_LIST_OFFSETS) < _NEWEST_FROM:
        return dict.fromkeys(wanted, fault(_UNSUPPORTED))
    found = await list_offsets(cluster, dict.fromkeys(wanted, _NEWEST))
    return {
        tp: at if isinstance(at, Fault) else (at.timestamp if at.timestamp >= 0 else None) for tp, at in found.items()
    }


async def describe_producers(
    cluster: WireCluster, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, tuple[ProducerState, ...] | Fault]:
    """Tells which producers each partition remembers, with their last sequence (Kafka API 61, brokers from 2.8 on)."""

    async def send(node: int, share: list[TopicPartition]) -> dict[TopicPartition, tuple[ProducerState, ...] | Fault]:
        return await cluster.send(node, _producers_call(share))

    return await cluster.spread(partitions, send)


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Groups partition numbers by topic."""
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return topics


def _list_call(
    asked: Mapping[TopicPartition, int], *, read_committed: bool
) -> Call[dict[TopicPartition, OffsetAt | Fault]]:
    topics = by_topic(asked)

    def write(out: Writer, _: int) -> None:
        out.int32(-1)  # no replica
        out.int8(1 if read_committed else 0)
        out.array(len(topics))
        for name, numbers in topics.items():
            out.string(name)
            out.array(len(numbers))
            for number in numbers:
                out.int32(number)
                out.int32(-1)  # any leader epoch
                out.int64(asked[TopicPartition(name, number)])
                out.tags()
            out.tags()
        out.tags()

    def read(reader: Reader, _: int) -> dict[TopicPartition, OffsetAt | Fault]:
        reader.int32()
        found: dict[TopicPartition, OffsetAt | Fault] = {}
        for tp in partitions_of(reader):
            error, timestamp, offset, epoch = reader.int16(), reader.int64(), reader.int64(), reader.int32()
            reader.tags()
            found[tp] = maybe_fault(error) or OffsetAt(offset, timestamp, epoch)
        return found

    return written(_LIST_OFFSETS, 5, 9, flexible_from=6, write=write, read=read)


def _producers_call(
    partitions: Sequence[TopicPartition],
) -> Call[dict[TopicPartition, tuple[ProducerState, ...] | Fault]]:
    topics = by_topic(partitions)

    def write(out: Writer, _: int) -> None:
        write_topics(out, topics)
        out.tags()

    def read(reader: Reader, _: int) -> dict[TopicPartition, tuple[ProducerState, ...] | Fault]:
        reader.int32()
        found: dict[TopicPartition, tuple[ProducerState, ...] | Fault] = {}
        for tp in partitions_of(reader):
            error, text = reader.int16(), reader.nullable_string()
            producers = []
            for _ in range(reader.array()):
                producers.append(ProducerState(*_PRODUCER.unpack(reader.take(_PRODUCER.size))))
                reader.tags()
            reader.tags()
            found[tp] = maybe_fault(error, text) or tuple(producers)
        return found

    return written(_DESCRIBE_PRODUCERS, 0, 0, flexible_from=0, write=write, read=read)


def write_topics(out: Writer, topics: Mapping[str, Sequence[int]]) -> None:
    """Writes an array of topics with their partition numbers."""
    out.array(len(topics))
    for name, numbers in topics.items():
        out.string(name)
        out.int32s(numbers)
        out.tags()


def partitions_of(reader: Reader) -> Iterator[TopicPartition]:
    """Goes through an array of topics that hold arrays of partitions; the caller reads what follows each number."""
    for _ in range(reader.array()):
        topic = reader.string()
        for _ in range(reader.array()):
            yield TopicPartition(topic, reader.int32())
        reader.tags()
