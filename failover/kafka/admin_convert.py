"""Turns what confluent-kafka answers into this package's values, and commits into its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from failover.kafka.faults import fault
from failover.model.cluster import Broker, TopicInfo
from failover.model.groups import Commit
from failover.model.names import Fault, TopicPartition

if TYPE_CHECKING:
    import confluent_kafka
    from confluent_kafka import KafkaError


_URL_SAFE = str.maketrans("+/", "-_", "=")


def fault_of(error: KafkaError) -> Fault:
    """Turns a KafkaError into the fault of its number; librdkafka's own numbers are below zero."""
    return fault(error.code(), error.str(), name=error.name())


def operations(allowed: Iterable[Any] | None) -> frozenset[str] | None:
    """Gives the names of authorized operations; None when the broker does not say."""
    return None if allowed is None else frozenset(str(operation.name) for operation in allowed)


def broker(node: Any) -> Broker:
    """Turns a Node or a BrokerMetadata into a broker."""
    return Broker(int(node.id), str(node.host), int(node.port))


def listed_topic(name: str, metadata: Any) -> TopicInfo:
    """Turns a TopicMetadata of a full listing into a topic; ids and rights are not in a listing."""
    partitions = metadata.partitions
    return TopicInfo(
        name=name,
        partitions=len(partitions),
        leaderless=tuple(sorted(n for n, p in partitions.items() if p.leader < 0)),
        replication_factor=max((len(p.replicas) for p in partitions.values()), default=0),
        internal=name.startswith("__"),
    )


def described_topic(description: Any) -> TopicInfo:
    """Turns a TopicDescription into a topic."""
    # librdkafka writes ids in plain base64, Kafka and its tools in the URL-safe kind
    topic_id = str(description.topic_id).translate(_URL_SAFE) if description.topic_id is not None else None
    partitions = description.partitions
    return TopicInfo(
        name=description.name,
        partitions=len(partitions),
        # brokers before 2.8 have no topic ids and librdkafka then gives one of zeros
        topic_id=topic_id if topic_id and topic_id.strip("A=") else None,
        leaderless=tuple(sorted(p.id for p in partitions if p.leader is None or p.leader.id < 0)),
        replication_factor=max((len(p.replicas) for p in partitions), default=0),
        internal=bool(description.is_internal),
        operations=operations(description.authorized_operations),
    )


def offsets_to_write(
    group: str, offsets: Mapping[TopicPartition, Commit]
) -> confluent_kafka.ConsumerGroupTopicPartitions:
    """Builds the request for one group, whose commits carry no metadata.

    confluent-kafka sends metadata with a NUL byte behind it (measured with 2.16.1) and cannot take
    what is not UTF-8; such commits go raw.
    """
    from confluent_kafka import ConsumerGroupTopicPartitions
    from confluent_kafka import TopicPartition as Partition

    partitions = []
    for tp, commit in offsets.items():
        epoch: dict[str, Any] = {} if commit.leader_epoch is None else {"leader_epoch": commit.leader_epoch}
        partitions.append(Partition(tp.topic, tp.partition, commit.offset, **epoch))
    return ConsumerGroupTopicPartitions(group, partitions)
