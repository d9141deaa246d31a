"""Which given settings of MirrorMaker 2's clients, connectors and workers ``replicate`` does not use, and why. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from failover.config.flow import FlowConfig
from failover.config.mm2_keys import CONNECTORS, ROLES, SOURCE, is_client_key
from failover.config.settings import Setting

CONSUMER_USED: Final = frozenset(
    {
        "isolation.level",
        "auto.offset.reset",
        "fetch.max.bytes",
        "max.partition.fetch.bytes",
        "fetch.max.wait.ms",
        "fetch.min.bytes",
    }
)
PRODUCER_USED: Final = frozenset({"max.request.size"})

_TIMES = "--timeout decides how long a broker may be silent"
_AS_WRITTEN = "batches are passed on as they were written, neither gathered nor compressed anew"
_ORDER = "five batches are in flight for each partition, acknowledged by all replicas, and none is sent twice"
_NO_GROUP = (
    "partitions are assigned, no consumer group of the source takes part; of workers that share a flow, --group-id and"
    " failover.replicator.session.timeout count"
)
_DRIVER = "workers share a flow by --group-id and ask each other nothing; --rest answers Kafka Connect's REST"
_SINKS = "Kafka Connect gives such overrides to sink connectors, not to MirrorMaker 2's consumer"
_NO_WORKER = "there is no Connect worker"
_CODE = "Java classes are not loaded"
_CHANGES = "records pass as they are: what MirrorMaker 2 would have made of them is not made here"

_ROLE_REASONS: Final[Mapping[str, Mapping[str, str]]] = {
    "producer": {
        **dict.fromkeys(("batch.size", "linger.ms", "compression.type", "partitioner.class"), _AS_WRITTEN),
        **dict.fromkeys(("compression.gzip.level", "compression.lz4.level", "compression.zstd.level"), _AS_WRITTEN),
        **dict.fromkeys(("acks", "max.in.flight.requests.per.connection", "enable.idempotence", "retries"), _ORDER),
        **dict.fromkeys(("transactional.id", "transaction.timeout.ms"), "its transactional ids are its own"),
        "buffer.memory": "failover.replicator.buffer.memory is the bound",
        **dict.fromkeys(("delivery.timeout.ms", "max.block.ms"), "a batch is tried until it is acknowledged"),
    },
    "consumer": {
        "max.poll.records": "batches are taken whole; failover.replicator.buffer.memory bounds them",
        **dict.fromkeys(
            (
                "session.timeout.ms",
                "heartbeat.interval.ms",
                "max.poll.interval.ms",
                "group.id",
                "group.instance.id",
                "partition.assignment.strategy",
                "enable.auto.commit",
                "auto.commit.interval.ms",
            ),
            _NO_GROUP,
        ),
        "check.crcs": "checksums are always checked",
    },
    "admin": {},
}
_ANY_ROLE: Final = {
    **dict.fromkeys(("request.timeout.ms", "default.api.timeout.ms", "socket.connection.setup.timeout.ms"), _TIMES),
    **dict.fromkeys(
        ("key.serializer", "value.serializer", "key.deserializer", "value.deserializer", "interceptor.classes"), _CODE
    ),
    "metric.reporters": _CODE,
}

_CONNECTOR_REASONS: Final = {
    "tasks.max": "one process copies all partitions",
    "consumer.poll.timeout.ms": _TIMES,
    "admin.timeout.ms": _TIMES,
    "metric.reporters": _CODE,
    "forwarding.admin.class": _CODE,
    "exactly.once.support": "records are copied exactly once; see failover.replicator.exactly.once",
    "config.action.reload": _NO_WORKER,
    "metric.names.formats": "there is no JMX",
    "add.source.alias.to.metrics": "there is no JMX",
    "use.incremental.alter.configs": "settings are altered incrementally",
}
_CONNECTOR_PREFIXES: Final = {
    "errors.": "an error makes its partition stand still and be tried again",
    "topic.creation.": "target topics are made as the source has them",
    "transaction.boundary": "data is sent outside transactions",
    "offsets.storage.topic": "positions are kept in the worker's offset.storage.topic",
}
_WORKER_REASONS: Final = {
    "offset.flush.interval.ms": "positions and offset syncs are written every second",
    "offset.flush.timeout.ms": "positions and offset syncs are written every second",
    "exactly.once.source.support": "records are copied exactly once; see failover.replicator.exactly.once",
    "client.id": "connections name themselves",
}
_WORKER_USED: Final = ("offset.storage.", "replication.policy")
_NAMES_ONLY: Final = frozenset({"group.id", "config.storage.topic", "status.storage.topic"})
_CONVERTERS: Final = ("key.converter", "value.converter", "header.converter")
_BYTES: Final = "org.apache.kafka.connect.converters.ByteArrayConverter"
_DATA: Final = ("transforms", "predicates")


class Unused(NamedTuple):
    """Is a setting as it is written, and why it is not used. ``matters``: MirrorMaker 2 would copy other records."""

    key: str
    why: str
    matters: bool = False


def unused(flows: Iterable[FlowConfig], driver: Mapping[str, Setting] | None = None) -> list[Unused]:
    """Gives the settings that none of these flows uses, in the order in which they are met, each once.

    ``driver``: those of MM2's dedicated driver itself (``Config.driver``).
    """
    used: set[str] = set()
    found: dict[str, Unused] = {}
    for flow in flows:
        for key, setting, why in _weighed(flow):
            written = setting.origin.key or key
            if setting.origin.kind not in ("file", "set"):
                continue
            if why is None:
                used.add(written)
            elif why:
                found.setdefault(written, Unused(written, why, why == _CHANGES))
    for key, setting in (driver or {}).items():
        found.setdefault(setting.origin.key or key, Unused(setting.origin.key or key, _DRIVER))
    return [one for key, one in found.items() if key not in used]


def _weighed(flow: FlowConfig) -> Iterator[tuple[str, Setting, str | None]]:
    """Gives each setting with why it is not used: None where it is, "" where the same is judged elsewhere."""
    for name in CONNECTORS:
        for key, setting in flow.connectors[name].items():
            yield key, setting, _of_connector(key, setting, flow.source.alias, data=name == SOURCE)
    for key, setting in flow.worker.items():
        yield key, setting, _of_worker(key, setting)


def _of_connector(key: str, setting: Setting, source: str, *, data: bool) -> str | None:
    if key.startswith(("source.cluster.", "target.cluster.")):
        # A connection; or of the worker that the cluster has, perhaps for another flow.
        return None if is_client_key(key.split(".", 2)[2]) else ""
    side, _, rest = key.partition(".") if key.startswith(("source.", "target.")) else ("", "", key)
    role, _, name = rest.partition(".")
    if role in ROLES and name:
        if name.startswith("override."):
            name = name.removeprefix("override.")
            if role == "consumer":
                return f"{_SINKS}; write {source}.consumer.{name}"
            side = "target" if role == "producer" else side
        return _of_role(role, name, data=data and (side, role) not in (("target", "consumer"), ("source", "producer")))
    if key in _CONVERTERS:
        return None if setting.trimmed == _BYTES else _CHANGES
    if key in _DATA or key.startswith(tuple(f"{name}." for name in _DATA)):
        return _CHANGES if setting.trimmed else None
    prefix = next((prefix for prefix in _CONNECTOR_PREFIXES if key.startswith(prefix)), None)
    return _CONNECTOR_REASONS.get(key) if prefix is None else _CONNECTOR_PREFIXES[prefix]


def _of_role(role: str, name: str, *, data: bool) -> str | None:
    used = {"consumer": CONSUMER_USED, "producer": PRODUCER_USED}.get(role, frozenset())
    if is_client_key(name) or (data and name in used):
        return None
    return _ROLE_REASONS[role].get(name) or _ANY_ROLE.get(name) or f"nothing here answers to this {role}'s setting"


def _of_worker(key: str, setting: Setting) -> str | None:
    role, _, name = key.partition(".")
    if role in ROLES and name:
        return ""  # the same is a connector's
    if is_client_key(key) or key.startswith(_WORKER_USED) or key in _NAMES_ONLY:
        return None
    if key in _CONVERTERS:
        return None if setting.trimmed == _BYTES else _CHANGES
    return _WORKER_REASONS.get(key, _NO_WORKER)
