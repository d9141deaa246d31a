"""Makes topics and partitions, reads the settings of topics and brokers and changes those of topics, many at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

import msgspec

from failover.kafka.faults import maybe_fault
from failover.kafka.wire.cluster import WireCluster
from failover.kafka.wire.controller import at_controller, in_pieces, or_unsupported
from failover.kafka.wire.messages import Call, written
from failover.kafka.wire.metadata import NO_TOPIC_ID
from failover.kafka.wire.primitives import Reader, Writer
from failover.kafka.wire.rounds import scatter, settle
from failover.model.names import Fault

CREATE_TOPICS, DESCRIBE_CONFIGS, CREATE_PARTITIONS, ALTER_CONFIGS = 19, 32, 37, 44

_TOPIC, _BROKER = 2, 4
_SET, _DELETE = 0, 1
_UNKNOWN_TOPIC = 3
_CONFIG_SECONDS = 3.0


class NewTopic(msgspec.Struct, frozen=True):
    """Is a topic to be made. ``replication_factor`` -1: the brokers' default."""

    name: str
    partitions: int
    replication_factor: int = -1
    configs: Mapping[str, str] = {}


class CreatedTopic(NamedTuple):
    """Is a topic as the controller made it.

    ``topic_id``: ``NO_TOPIC_ID`` before Kafka 2.8. Without the right DESCRIBE_CONFIGS ``partitions`` and
    ``replication_factor`` are -1 and ``configs`` is empty; else it has every effective setting.
    """

    topic_id: bytes
    partitions: int
    replication_factor: int
    configs: dict[str, str | None]


class ConfigSource(IntEnum):
    """Says where a setting's value comes from (Kafka: DescribeConfigsResponse.ConfigSource)."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5


class ConfigEntry(msgspec.Struct, frozen=True):
    """Is one setting; ``value`` is None for a sensitive one. ``source``: a ``ConfigSource`` or a newer one."""

    name: str
    value: str | None
    source: int = ConfigSource.DYNAMIC_TOPIC_CONFIG
    read_only: bool = False
    sensitive: bool = False


async def create_topics(
    cluster: WireCluster, topics: Iterable[NewTopic], *, validate_only: bool = False
) -> dict[str, CreatedTopic | Fault]:
    """Makes topics; TOPIC_ALREADY_EXISTS (36) for one that is there, which may be our own of a lost answer.

    The controller answers before every broker knows them. Raises ``ClusterUnreachable``, ``CredentialsRefused``.
    """
    wanted = {topic.name: topic for topic in topics}

    def call(names: Sequence[str]) -> Call[dict[str, CreatedTopic | Fault]]:
        return _create_call([wanted[name] for name in names], _timeout_ms(cluster), validate_only=validate_only)

    return await in_pieces(wanted, lambda piece: at_controller(cluster, piece, call))


async def create_partitions(cluster: WireCluster, counts: Mapping[str, int]) -> dict[str, int | Fault]:
    """Raises topics to these partition counts; INVALID_PARTITIONS (37) for one that has as many or more.

    Raises ``ClusterUnreachable``, ``CredentialsRefused``.
    """

    def call(names: Sequence[str]) -> Call[dict[str, int | Fault]]:
        return _grow_call({name: counts[name] for name in names}, _timeout_ms(cluster))

    return await in_pieces(counts, lambda piece: at_controller(cluster, piece, call))


async def describe_topic_configs(
    cluster: WireCluster, topics: Iterable[str], names: Collection[str] | None = None
) -> dict[str, tuple[ConfigEntry, ...] | Fault]:
    """Reads these settings of topics, all with None. Raises ``ClusterUnreachable``, ``CredentialsRefused``."""

    async def ask(piece: Sequence[str], _: bool) -> dict[str, tuple[ConfigEntry, ...] | Fault]:
        return await or_unsupported(piece, cluster.ask_any(_describe_call(_TOPIC, piece, names)))

    async def send(piece: Sequence[str]) -> dict[str, tuple[ConfigEntry, ...] | Fault]:
        return await settle(piece, ask, budget=min(cluster.silence, _CONFIG_SECONDS))

    return await in_pieces(dict.fromkeys(topics), send)


async def alter_topic_configs(
    cluster: WireCluster, changes: Mapping[str, Mapping[str, str | None]]
) -> dict[str, Fault | None]:
    """Sets these settings of topics, None: leaves one to the cluster's default; others stay as they are.

    A topic gets all of its changes or, with a fault, none. UNSUPPORTED_VERSION (35) before Kafka 2.3 (IncrementalAlter-
    Configs, KIP-339). Raises ``ClusterUnreachable``, ``CredentialsRefused``.
    """

    def call(names: Sequence[str]) -> Call[dict[str, Fault | None]]:
        return _alter_call({name: changes[name] for name in names})

    return await in_pieces(changes, lambda piece: at_controller(cluster, piece, call))


async def describe_broker_configs(
    cluster: WireCluster, names: Collection[str] | None = None
) -> dict[int, dict[str, str | None] | Fault]:
    """Reads these settings of every broker, all with None; CLUSTER_AUTHORIZATION_FAILED (31) without the right.

    A broker leaves out names it does not know. Raises ``CredentialsRefused``.
    """

    async def send(node: int, _: list[int]) -> dict[int, dict[str, str | None] | Fault]:
        # A broker knows its own settings only.
        call = _describe_call(_BROKER, [str(node)], names)
        answer = (await or_unsupported([str(node)], cluster.send(node, call)))[str(node)]
        return {node: answer if isinstance(answer, Fault) else {entry.name: entry.value for entry in answer}}

    async def ask(nodes: Sequence[int], _: bool) -> dict[int, dict[str, str | None] | Fault]:
        return await scatter({node: node for node in nodes}, send)

    return await settle(cluster.brokers, ask, budget=min(cluster.silence, _CONFIG_SECONDS))


# -- inside ------------------------------------------------------------------------------------------


def _timeout_ms(cluster: WireCluster) -> int:
    return int(cluster.silence * 1000)


def _create_call(
    topics: Sequence[NewTopic], timeout_ms: int, *, validate_only: bool
) -> Call[dict[str, CreatedTopic | Fault]]:
    def write(out: Writer, _: int) -> None:
        out.array(len(topics))
        for topic in topics:
            out.string(topic.name)
            out.int32(topic.partitions)
            out.int16(topic.replication_factor)
            out.array(0)  # replicas are placed by the controller
            out.array(len(topic.configs))
            for name, value in topic.configs.items():
                out.string(name)
                out.string(value)
                out.tags()
            out.tags()
        out.int32(timeout_ms)
        out.int8(1 if validate_only else 0)
        out.tags()

    def read(reader: Reader, version: int) -> dict[str, CreatedTopic | Fault]:
        reader.int32()
        found: dict[str, CreatedTopic | Fault] = {}
        for _ in range(reader.array()):
            name = reader.string()
            topic_id = bytes(reader.take(16)) if version >= 7 else NO_TOPIC_ID
            error, text = reader.int16(), reader.nullable_string()
            partitions, factor = reader.int32(), reader.int16()
            configs = dict([_read_created_config(reader) for _ in range(reader.array())])
            reader.tags()
            found[name] = maybe_fault(error, text) or CreatedTopic(topic_id, partitions, factor, configs)
        return found

    return written(CREATE_TOPICS, 5, 7, flexible_from=5, write=write, read=read)


def _read_created_config(reader: Reader) -> tuple[str, str | None]:
    name, value = reader.string(), reader.nullable_string()
    reader.take(3)  # read-only, source, sensitive
    reader.tags()
    return name, value


def _grow_call(counts: Mapping[str, int], timeout_ms: int) -> Call[dict[str, int | Fault]]:
    def write(out: Writer, _: int) -> None:
        out.array(len(counts))
        for name, count in counts.items():
            out.string(name)
            out.int32(count)
            out.array(None)  # replicas are placed by the controller
            out.tags()
        out.int32(timeout_ms)
        out.int8(0)
        out.tags()

    def read(reader: Reader, _: int) -> dict[str, int | Fault]:
        reader.int32()
        found: dict[str, int | Fault] = {}
        for _ in range(reader.array()):
            name, error, text = reader.string(), reader.int16(), reader.nullable_string()
            reader.tags()
            found[name] = maybe_fault(error, text) or counts[name]
        return found

    return written(CREATE_PARTITIONS, 1, 3, flexible_from=2, write=write, read=read)


def _alter_call(changes: Mapping[str, Mapping[str, str | None]]) -> Call[dict[str, Fault | None]]:
    def write(out: Writer, _: int) -> None:
        out.array(len(changes))
        for topic, values in changes.items():
            out.int8(_TOPIC)
            out.string(topic)
            out.array(len(values))
            for name, value in values.items():
                out.string(name)
                out.int8(_DELETE if value is None else _SET)
                out.string(value)
                out.tags()
            out.tags()
        out.int8(0)  # not only validated
        out.tags()

    def read(reader: Reader, _: int) -> dict[str, Fault | None]:
        reader.int32()
        found: dict[str, Fault | None] = {}
        for _ in range(reader.array()):
            error, text = reader.int16(), reader.nullable_string()
            reader.int8()  # the kind asked for
            found[reader.string()] = _settled(maybe_fault(error, text))
            reader.tags()
        return found

    return written(ALTER_CONFIGS, 0, 1, flexible_from=1, write=write, read=read)


def _describe_call(
    kind: int, resources: Sequence[str], names: Collection[str] | None
) -> Call[dict[str, tuple[ConfigEntry, ...] | Fault]]:
    def write(out: Writer, version: int) -> None:
        out.array(len(resources))
        for resource in resources:
            out.int8(kind)
            out.string(resource)
            out.strings(names)
            out.tags()
        out.int8(0)  # no synonyms
        if version >= 3:
            out.int8(0)  # no documentation
        out.tags()

    def read(reader: Reader, version: int) -> dict[str, tuple[ConfigEntry, ...] | Fault]:
        reader.int32()
        found: dict[str, tuple[ConfigEntry, ...] | Fault] = {}
        for _ in range(reader.array()):
            error, text = reader.int16(), reader.nullable_string()
            reader.int8()  # the kind asked for
            resource = reader.string()
            entries = tuple([_read_entry(reader, version) for _ in range(reader.array())])
            reader.tags()
            found[resource] = _settled(maybe_fault(error, text)) or entries
        return found

    return written(DESCRIBE_CONFIGS, 1, 4, flexible_from=4, write=write, read=read)


def _settled(reason: Fault | None) -> Fault | None:
    """Makes the fault of a topic that is not there final: it was just listed, so it has been deleted."""
    if reason is None or reason.number != _UNKNOWN_TOPIC:
        return reason
    return Fault(reason.number, reason.name, reason.message)


def _read_entry(reader: Reader, version: int) -> ConfigEntry:
    name, value = reader.string(), reader.nullable_string()
    read_only, source, sensitive = bool(reader.int8()), reader.int8(), bool(reader.int8())
    for _ in range(reader.array()):  # synonyms: asked for none, yet some brokers send them
        reader.string()
        reader.nullable_string()
        reader.int8()
        reader.tags()
    if version >= 3:
        reader.int8()  # type
        reader.nullable_string()  # documentation
    reader.tags()
    return ConfigEntry(name, value, source, read_only, sensitive)
