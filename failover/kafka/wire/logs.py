"""What a partition's leader tells of its log: ends, offsets by time, producers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from failover.kafka.faults import maybe_fault
from failover.kafka.wire.cluster import WireCluster
from failover.kafka.wire.messages import generated
from failover.model.cluster import LogRange
from failover.model.names import Fault, TopicPartition

EARLIEST, LATEST = -2, -1
"""Stand for a timestamp: the first offset still in the log, and the high watermark (Kafka: ListOffsetsRequest)."""


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
    from kafka.protocol.consumer import ListOffsetsRequest, ListOffsetsResponse

    async def send(node: int, partitions: list[TopicPartition]) -> dict[TopicPartition, OffsetAt | Fault]:
        topic_class = ListOffsetsRequest.ListOffsetsTopic
        fields = {
            "replica_id": -1,
            "isolation_level": 1 if read_committed else 0,
            "topics": [
                topic_class(
                    name=name,
                    partitions=[
                        topic_class.ListOffsetsPartition(
                            partition_index=number,
                            current_leader_epoch=-1,
                            timestamp=asked[TopicPartition(name, number)],
                        )
                        for number in numbers
                    ],
                )
                for name, numbers in by_topic(partitions).items()
            ],
        }

        answer = await cluster.send(node, generated(ListOffsetsRequest, ListOffsetsResponse, 5, 9, fields))
        return {
            TopicPartition(topic.name, row.partition_index): maybe_fault(row.error_code)
            or OffsetAt(row.offset, row.timestamp, row.leader_epoch)
            for topic in answer.topics
            for row in topic.partitions
        }

    return await cluster.spread(asked, send)


async def log_ranges(
    cluster: WireCluster, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, LogRange | Fault]:
    """Reads log start and high watermark of each partition."""
    wanted = list(dict.fromkeys(partitions))
    starts, ends = await asyncio.gather(
        list_offsets(cluster, dict.fromkeys(wanted, EARLIEST)), list_offsets(cluster, dict.fromkeys(wanted, LATEST))
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


async def describe_producers(
    cluster: WireCluster, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, tuple[ProducerState, ...] | Fault]:
    """Tells which producers each partition remembers, with their last sequence (Kafka API 61, brokers from 2.8 on)."""
    from kafka.protocol.admin import DescribeProducersRequest, DescribeProducersResponse

    async def send(node: int, share: list[TopicPartition]) -> dict[TopicPartition, tuple[ProducerState, ...] | Fault]:
        topics = [
            DescribeProducersRequest.TopicRequest(name=name, partition_indexes=numbers)
            for name, numbers in by_topic(share).items()
        ]
        call = generated(DescribeProducersRequest, DescribeProducersResponse, 0, 0, {"topics": topics})
        answer = await cluster.send(node, call)
        return {
            TopicPartition(topic.name, row.partition_index): maybe_fault(row.error_code, row.error_message)
            or tuple(
                ProducerState(
                    producer.producer_id,
                    producer.producer_epoch,
                    producer.last_sequence,
                    producer.last_timestamp,
                    producer.coordinator_epoch,
                    producer.current_txn_start_offset,
                )
                for producer in row.active_producers
            )
            for topic in answer.topics
            for row in topic.partitions
        }

    return await cluster.spread(partitions, send)


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Groups partition numbers by topic."""
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return topics
