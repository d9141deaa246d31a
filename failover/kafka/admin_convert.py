"""Turns what a cluster answers into this package's values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from failover.kafka.faults import fault
from failover.model.cluster import Broker, TopicInfo
from failover.model.names import Fault

if TYPE_CHECKING:
    from confluent_kafka import KafkaError
    from confluent_kafka.admin import ClusterMetadata

    from failover.kafka.wire.metadata import TopicState


def fault_of(error: KafkaError) -> Fault:
    """Turns a KafkaError into the fault of its number; librdkafka's own numbers are below zero."""
    return fault(error.code(), error.str(), name=error.name())


def operations(allowed: Iterable[Any] | None) -> frozenset[str] | None:
    """Gives the names of authorized operations; None when the broker does not say."""
    return None if allowed is None else frozenset(str(operation.name) for operation in allowed)


def broker(node: Any) -> Broker:
    """Turns a Node or a BrokerMetadata into a broker."""
    return Broker(int(node.id), str(node.host), int(node.port))


def missing_brokers(metadata: ClusterMetadata) -> tuple[Broker, ...]:
    """Finds brokers that hold replicas and are not named any more: dead for longer than their session (KRaft).

    Their addresses are not told; host is empty and port 0.
    """
    replicas = {
        each for topic in metadata.topics.values() for part in topic.partitions.values() for each in part.replicas
    }
    return tuple(Broker(each, "", 0) for each in sorted(replicas - metadata.brokers.keys()))


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


def described_topic(state: TopicState) -> TopicInfo | Fault:
    """Turns a topic of raw metadata into a topic, or the fault why nothing is known of it."""
    if state.fault is not None:
        return state.fault
    partitions = state.partitions
    return TopicInfo(
        name=state.name,
        partitions=len(partitions),
        topic_id=state.topic_id_text,
        leaderless=tuple(sorted(n for n, p in partitions.items() if p.leader < 0)),
        replication_factor=max((len(p.replicas) for p in partitions.values()), default=0),
        internal=state.internal,
        operations=state.operations,
    )
