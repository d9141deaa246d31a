"""Metadata, Kafka API 3: brokers, topics with ids, leaders with epochs. It never creates a topic."""

from __future__ import annotations

import base64
from collections.abc import Collection
from typing import NamedTuple

import msgspec

from failover.kafka.faults import maybe_fault
from failover.kafka.wire.messages import Call, written
from failover.kafka.wire.primitives import Reader, Writer
from failover.model.cluster import Broker
from failover.model.names import Fault

NO_TOPIC_ID = bytes(16)

_METADATA = 3
_NOT_SAID = -(1 << 31)

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

    def write(out: Writer, version: int) -> None:
        out.array(None if topics is None else len(topics))
        for name in topics or ():
            if version >= 10:
                out.raw(NO_TOPIC_ID)
            out.string(name)
            out.tags()
        out.int8(0)  # no auto-creation
        if version <= 10:
            out.int8(0)  # the cluster's operations
        out.int8(1 if operations else 0)
        out.tags()

    return written(_METADATA, 9, 12, flexible_from=9, write=write, read=_read)


def operation_names(bits: int) -> frozenset[str] | None:
    """Names a bit field of AclOperation codes as a broker sends it; None when it did not say."""
    if bits == _NOT_SAID:
        return None
    return frozenset(name for code, name in enumerate(_OPERATIONS) if code > 1 and bits >> code & 1)


def _read(reader: Reader, version: int) -> Metadata:
    reader.int32()  # throttle time: the connection layer reads it
    brokers = tuple([_read_broker(reader) for _ in range(reader.array())])
    cluster_id, controller = reader.nullable_string(), reader.int32()
    topics = [_read_topic(reader, version) for _ in range(reader.array())]
    return Metadata(
        cluster_id=cluster_id,
        controller=controller if controller >= 0 else None,
        brokers=brokers,
        topics={topic.name: topic for topic in topics},
    )


def _read_broker(reader: Reader) -> Broker:
    broker = Broker(reader.int32(), reader.string(), reader.int32())
    reader.nullable_string()  # rack
    reader.tags()
    return broker


def _read_topic(reader: Reader, version: int) -> TopicState:
    error, name = reader.int16(), reader.string()
    topic_id = bytes(reader.take(16)) if version >= 10 else NO_TOPIC_ID
    internal = bool(reader.int8())
    partitions = dict([_read_partition(reader) for _ in range(reader.array())])
    operations = operation_names(reader.int32())
    reader.tags()
    return TopicState(name, topic_id, internal, partitions, operations, maybe_fault(error))


def _read_partition(reader: Reader) -> tuple[int, PartitionState]:
    error, number, leader, epoch = reader.int16(), reader.int32(), reader.int32(), reader.int32()
    replicas, in_sync = reader.int32s(), reader.int32s()
    reader.int32s()  # offline replicas
    reader.tags()
    return number, PartitionState(leader, epoch, replicas, in_sync, maybe_fault(error))
