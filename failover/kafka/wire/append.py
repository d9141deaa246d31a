"""Appends a few records to topics of small records (positions, offset syncs): a plain producer, acknowledged by all."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from failover.kafka.faults import fault
from failover.kafka.wire.cluster import Leader, WireCluster
from failover.kafka.wire.encode import builder
from failover.kafka.wire.produce import ProduceBatch, submit_produce
from failover.model.names import Fault, TopicPartition

_BATCH_BYTES = 256 << 10
_UNCOMPRESSED = 0
_NOT_LEADER = 6


class NewRecord(NamedTuple):
    """Is one record to append. ``timestamp``: epoch ms, None for the time of writing."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp: int | None = None


async def append(
    cluster: WireCluster, records: Mapping[TopicPartition, Sequence[NewRecord]], *, purpose: str = "append"
) -> dict[TopicPartition, Fault]:
    """Appends records to each partition in their order; gives a fault where not all of them were acknowledged.

    What passes by itself is tried again as long as silence is accepted, so that a record may come twice, in order all
    the same unless an answer was lost: only for records of which the newest counts. The caller lets one call for a
    partition end before the next. Raises ``CredentialsRefused``, ``ClusterUnreachable``.
    """
    waiting = {tp: _batches(rows) for tp, rows in records.items() if rows}
    faults: dict[TopicPartition, Fault] = {}
    while waiting:
        # A broker takes one batch for each partition of a request.
        turn = {tp: batches.pop(0) for tp, batches in waiting.items()}

        async def send(
            node: int, share: list[TopicPartition], turn: Mapping[TopicPartition, bytes] = turn
        ) -> dict[TopicPartition, int | Fault]:
            return await _send(cluster, node, {tp: turn[tp] for tp in share}, purpose)

        answers: dict[TopicPartition, int | Fault] = await cluster.spread(turn, send)
        faults.update((tp, answer) for tp, answer in answers.items() if isinstance(answer, Fault))
        waiting = {tp: batches for tp, batches in waiting.items() if batches and tp not in faults}
    return faults


async def _send(
    cluster: WireCluster, node: int, batches: Mapping[TopicPartition, bytes], purpose: str
) -> dict[TopicPartition, int | Fault]:
    """Gives the offset of each batch; a partition whose leader moved since it was looked up is asked for again."""
    leaders = await cluster.leaders(batches)
    ready = [
        ProduceBatch(*tp, data, leader.topic_id)
        for tp, data in batches.items()
        if isinstance(leader := leaders[tp], Leader) and leader.node == node
    ]
    answers: dict[TopicPartition, int | Fault] = dict.fromkeys(batches, fault(_NOT_LEADER))
    if ready:
        connection = await cluster.connection(node, purpose)
        await connection.ready()
        for produced in (await submit_produce(connection, ready).answer()).partitions:
            answers[TopicPartition(produced.topic, produced.partition)] = produced.fault or produced.base_offset
    return answers


def _batches(records: Sequence[NewRecord]) -> list[bytes]:
    now = time.time_ns() // 1_000_000
    batches: list[bytes] = []
    batch, count = builder(_UNCOMPRESSED, _BATCH_BYTES), 0
    for key, value, pairs, own in records:
        headers = list(pairs)  # the codec takes no other sequence
        timestamp = now if own is None else own
        if batch.append(count, timestamp, key, value, headers) is None:
            batches.append(bytes(batch.build()))
            batch, count = builder(_UNCOMPRESSED, _BATCH_BYTES), 0
            batch.append(0, timestamp, key, value, headers)
        count += 1
    batches.append(bytes(batch.build()))
    return batches
