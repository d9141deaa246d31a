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
    topic_id = str(description.topic_id) if description.topic_id is not None else None
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


def text_metadata(commit: Commit) -> str | None:
    """Gives a commit's metadata as confluent-kafka takes it; None when it would not survive that way.

    Bytes that are not UTF-8 cannot be passed as ``str``, and a NUL is refused or cuts the text.
    """
    try:
        text = commit.metadata.decode("utf-8")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def offsets_to_write(
    group: str, offsets: Mapping[TopicPartition, Commit]
) -> confluent_kafka.ConsumerGroupTopicPartitions:
    """Builds the request for one group; every metadata must be a text (see ``text_metadata``)."""
    from confluent_kafka import ConsumerGroupTopicPartitions
    from confluent_kafka import TopicPartition as Partition

    partitions = []
    for tp, commit in offsets.items():
        metadata = text_metadata(commit)
        assert metadata is not None
        keywords: dict[str, Any] = {"metadata": metadata} if metadata else {}
        if commit.leader_epoch is not None:
            keywords["leader_epoch"] = commit.leader_epoch
        partitions.append(Partition(tp.topic, tp.partition, commit.offset, **keywords))
    return ConsumerGroupTopicPartitions(group, partitions)
