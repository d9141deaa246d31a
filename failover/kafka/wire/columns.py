"""A whole partition, from its start to the end that was known at the start."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TypeVar

from failover.errors import BrokerError, ClusterUnreachable, NotAuthorized
from failover.kafka.faults import corrupt, fault
from failover.kafka.wire.batches import Batch, UnreadableBatch, check, decode, decode_columns, split
from failover.kafka.wire.cluster import Leader, WireCluster
from failover.kafka.wire.fetch import Fetched, FetchPartition, fetch_call
from failover.kafka.wire.logs import log_ranges
from failover.kafka.wire.rounds import scatter, settle
from failover.model.cluster import LogRange
from failover.model.names import Fault, TopicPartition
from failover.model.records import Record

Row = tuple[int, int, bytes | None, bytes | None]
"""(offset, timestamp in epoch ms, key, value)."""
T = TypeVar("T", Row, Record)

CHUNK_BYTES = 1 << 20
_OUT_OF_RANGE, _TOPIC_DENIED, _NOT_AVAILABLE = 1, 29, 78


async def read_columns(
    cluster: WireCluster, tp: TopicPartition, *, start: int | None = None
) -> AsyncIterator[list[Row]]:
    """Yields every data record of a partition as (offset, timestamp, key, value), about a megabyte of batches at a
    time.

    Reads from ``start`` (None: the log's start) to the end known when it begins, whatever lies there: aborted
    records are included as a read_uncommitted consumer sees them, transaction markers are not, and an end that is
    no data record is reached by position. The next fetch is under way while the caller works. Raises
    ``NotAuthorized`` without READ, ``BrokerError`` where the partition does not exist or is damaged,
    ``ClusterUnreachable``.
    """
    async for rows in _read(cluster, tp, decode_columns, start):
        yield rows


async def read_records(
    cluster: WireCluster, tp: TopicPartition, *, start: int | None = None
) -> AsyncIterator[list[Record]]:
    """Yields every data record of a partition with its headers; otherwise like ``read_columns``."""
    async for records in _read(cluster, tp, decode, start):
        yield records


async def _read(
    cluster: WireCluster, tp: TopicPartition, decoder: Callable[[Batch], list[T]], start: int | None
) -> AsyncIterator[list[T]]:
    found = (await log_ranges(cluster, [tp]))[tp]
    if isinstance(found, Fault):
        raise _error(cluster, tp, found)
    position, end = found.start if start is None else max(start, found.start), found.end
    if position >= end:
        return
    fetching = asyncio.ensure_future(_fetch(cluster, tp, position))
    try:
        batches: list[Batch]
        while True:
            fetched = await fetching
            if isinstance(fetched, LogRange):  # retention overtook the reading, or the log was cut
                batches, after = [], fetched.start if position < fetched.start else end
            else:
                batches, after = _batches(cluster, tp, fetched, position)
            if after < end:
                fetching = asyncio.ensure_future(_fetch(cluster, tp, after))
            rows = _decoded(cluster, tp, batches, decoder, (position, end))
            position = after
            if rows:
                yield rows
            if position >= end:
                return
    finally:
        fetching.cancel()
        await asyncio.gather(fetching, return_exceptions=True)


async def _fetch(cluster: WireCluster, tp: TopicPartition, position: int) -> Fetched | LogRange:
    """Fetches from a position below the end known at the start; gives the log's range where it no longer lies inside.

    A leader just elected may not know the high watermark yet and answers without records: it is asked again.
    """

    async def ask(_: object, again: bool) -> dict[TopicPartition, Fetched | Fault]:
        leader = (await cluster.leaders([tp], refresh=again))[tp]
        if not isinstance(leader, Leader):
            return {tp: leader}

        async def send(node: int, _: object) -> dict[TopicPartition, Fetched | Fault]:
            asked = FetchPartition(*tp, position, CHUNK_BYTES, leader.topic_id, leader.epoch)
            answer = await cluster.send(node, fetch_call([asked], max_bytes=CHUNK_BYTES), purpose="read")
            while not answer.error and not answer.partitions:
                # Under a quota a broker answers without partitions (measured on Kafka 4.1.1); the connection waits
                # as long as it says before the next request, which is no silence and costs no budget.
                answer = await cluster.send(node, fetch_call([asked], max_bytes=CHUNK_BYTES), purpose="read")
            if answer.error:
                return {tp: fault(answer.error)}
            fetched = answer.partitions[0]
            if not fetched.error and not fetched.records:
                return {tp: fault(_NOT_AVAILABLE)}
            return {tp: fault(fetched.error) if fetched.error else fetched}

        return await scatter({tp: leader.node}, send)

    fetched = (await settle([tp], ask, budget=cluster.silence))[tp]
    if not isinstance(fetched, Fault):
        return fetched
    if fetched.number in (_OUT_OF_RANGE, _NOT_AVAILABLE):
        found = (await log_ranges(cluster, [tp]))[tp]
        if isinstance(found, LogRange):
            return found
    raise _error(cluster, tp, fetched)


def _batches(cluster: WireCluster, tp: TopicPartition, fetched: Fetched, position: int) -> tuple[list[Batch], int]:
    try:
        batches = [batch for batch in split(fetched.records) if batch.next_offset > position]
    except UnreadableBatch as error:
        raise _error(cluster, tp, corrupt(str(error))) from error
    return batches, batches[-1].next_offset if batches else position


def _decoded(
    cluster: WireCluster,
    tp: TopicPartition,
    batches: list[Batch],
    decoder: Callable[[Batch], list[T]],
    stretch: tuple[int, int],
) -> list[T]:
    rows: list[T] = []
    position, end = stretch
    try:
        for batch in batches:
            check(batch)
            if batch.control:
                continue
            decoded = decoder(batch)
            # An old compressed set does not say where it begins.
            if batch.magic < 2 or batch.base_offset < position or batch.next_offset > end:
                decoded = [row for row in decoded if position <= row[0] < end]
            rows += decoded
    except UnreadableBatch as error:
        raise _error(cluster, tp, corrupt(str(error))) from error
    return rows


def _error(cluster: WireCluster, tp: TopicPartition, reason: Fault) -> Exception:
    where = f"cluster {cluster.alias}: partition {tp} cannot be read: {reason}"
    if reason.number == _TOPIC_DENIED:
        return NotAuthorized(where, alias=cluster.alias, hint=f"grant READ on topic {tp.topic}")
    if reason.number < -1:
        return ClusterUnreachable(where, alias=cluster.alias)
    return BrokerError(where, number=reason.number, name=reason.name)
