"""Metadata, Kafka API 3: brokers, topics with ids, leaders with epochs. It never creates a topic."""

from __future__ import annotations

import base64
from collections.abc import Collection
from typing import Any, NamedTuple

import msgspec

from failover.kafka.faults import maybe_fault
from failover.kafka.wire.messages import Call, generated
from failover.model.cluster import Broker
from failover.model.names import Fault

NO_TOPIC_ID = bytes(16)

_OPERATIONS = [
    "UNKNOWN",
    "ANY",
    "ALL",
    "READ",
    "WRITE",
    "CREATE",
    "DELETE",
    "ALTER",
    "DESCRIBE",
    "CLUSTER_ACTION",
    "DESCRIBE_CONFIGS",
    "ALTER_CONFIGS",
    "IDEMPOTENT_WRITE",
    "CREATE_TOKENS",
    "DESCRIBE_TOKENS",
    "TWO_PHASE_COMMIT",
]
"""Kafka: AclOperation, in the order of its codes."""


class PartitionState(NamedTuple):
    """Is one partition; ``leader`` -1 when it has none, ``leader_epoch`` -1 when the broker does not tell."""

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    fault: Fault | None = None


class TopicState(msgspec.Struct, frozen=True):
    """Is one topic. ``topic_id``: 16 bytes, ``NO_TOPIC_ID`` where the broker has none.

    ``operations``: what this client may do, None when not asked for. ``fault``: why nothing is known of it.
    """

    name: str
    topic_id: bytes
    internal: bool
    partitions: dict[int, PartitionState]
    operations: frozenset[str] | None = None
    fault: Fault | None = None

    @property
    def topic_id_text(self) -> str | None:
        """Is the topic id as Kafka writes it (base64, 22 characters), None where there is none."""
        if self.topic_id == NO_TOPIC_ID:
            return None
        return base64.urlsafe_b64encode(self.topic_id).decode().rstrip("=")


class Metadata(msgspec.Struct, frozen=True):
    """Is one answer of one broker; ``topics`` holds those asked for."""

    cluster_id: str | None
    controller: int | None
    brokers: tuple[Broker, ...]
    topics: dict[str, TopicState]


def metadata_call(topics: Collection[str] | None, *, operations: bool = False) -> Call[Metadata]:
    """Asks for these topics, for all (None) or for the brokers alone (empty)."""
    from kafka.protocol.metadata import MetadataRequest, MetadataResponse

    named = None if topics is None else [MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
    call = generated(
        MetadataRequest,
        MetadataResponse,
        9,
        12,
        {
            "topics": named,
            "allow_auto_topic_creation": False,
            "include_topic_authorized_operations": operations,
        },
    )
    decode = call.decode
    call.decode = lambda version, body: _metadata(decode(version, body))
    return call


def operation_names(codes: Any) -> frozenset[str] | None:
    """Names a set of AclOperation codes as a broker sends it; None when it did not say."""
    if codes is None:
        return None
    return frozenset(_OPERATIONS[code] for code in codes if 1 < code < len(_OPERATIONS))


def _metadata(answer: Any) -> Metadata:
    topics = {}
    for topic in answer.topics:
        partitions = {
            partition.partition_index: PartitionState(
                partition.leader_id,
                partition.leader_epoch,
                tuple(partition.replica_nodes),
                tuple(partition.isr_nodes),
                maybe_fault(partition.error_code),
            )
            for partition in topic.partitions
        }
        topics[topic.name] = TopicState(
            name=topic.name,
            topic_id=topic.topic_id.bytes if topic.topic_id else NO_TOPIC_ID,
            internal=topic.is_internal,
            partitions=partitions,
            operations=operation_names(topic.authorized_operations),
            fault=maybe_fault(topic.error_code),
        )
    return Metadata(
        cluster_id=answer.cluster_id,
        controller=answer.controller_id if answer.controller_id >= 0 else None,
        brokers=tuple(Broker(broker.node_id, broker.host, broker.port) for broker in answer.brokers),
        topics=topics,
    )
