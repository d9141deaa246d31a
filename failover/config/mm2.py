"""The rules of MM2's dedicated driver: from the flat file to what each cluster, worker, connector and client gets.

Every function is pure and keeps each setting's origin. Source of the rules: MirrorMakerConfig, MirrorConnectorConfig.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from failover.config.mm2_keys import ALIASES, CONNECTOR_CLASSES, ROLES, WORKER_PREFIXES, is_client_key, is_connector_key
from failover.config.settings import DRIVER, Setting, make_setting

Raw = Mapping[str, Setting]
Side = Literal["source", "target"]
CONVERTERS = ("key.converter", "value.converter", "header.converter")
Role = Literal["producer", "consumer", "admin"]


def with_prefix(raw: Raw, prefix: str) -> dict[str, Setting]:
    """Gives the settings below a prefix, the prefix removed (Kafka: originalsWithPrefix)."""
    return {
        key[len(prefix) :]: setting.named(key[len(prefix) :])
        for key, setting in raw.items()
        if key.startswith(prefix) and len(key) > len(prefix)
    }


def cluster_properties(raw: Raw, alias: str) -> dict[str, Setting]:
    """Gives the properties of one cluster (MirrorMakerConfig.clusterProps).

    ``alias.k`` comes first; a connection setting found there is the default of ``producer.k``, ``consumer.k`` and
    ``admin.k``; a connection setting at top level is the default of all four.
    """
    properties = with_prefix(raw, f"{alias}.")
    for key, setting in list(properties.items()):
        if is_client_key(key):
            for role in ROLES:
                properties.setdefault(f"{role}.{key}", setting.named(f"{role}.{key}"))
    for key, setting in raw.items():
        if is_client_key(key):
            for name in (*(f"{role}.{key}" for role in ROLES), key):
                properties.setdefault(name, setting.named(name))
    return properties


def worker_properties(raw: Raw, source: str, target: str) -> dict[str, Setting]:
    """Gives the settings of the Connect worker of source->target (MirrorMakerConfig.workerConfig).

    It lives on the target: the target's properties, then some top-level keys over them. ``A->B.`` keys do not
    reach it.
    """
    properties = cluster_properties(raw, target)
    properties |= {key: setting for key, setting in raw.items() if key.startswith(WORKER_PREFIXES)}
    properties |= {key: setting for key, setting in raw.items() if key.startswith("config.providers")}
    return worker_defaults(source, target) | properties


def worker_defaults(source: str, target: str) -> dict[str, Setting]:
    """Gives what the driver fills in for the worker of source->target."""
    fallback = {
        "client.id": f"{source}->{target}",
        "group.id": f"{source}-mm2",
        "offset.storage.topic": f"mm2-offsets.{source}.internal",
        "status.storage.topic": f"mm2-status.{source}.internal",
        "config.storage.topic": f"mm2-configs.{source}.internal",
        **dict.fromkeys(CONVERTERS, "org.apache.kafka.connect.converters.ByteArrayConverter"),
    }
    return {key: make_setting(key, value, DRIVER) for key, value in fallback.items()}


def connector_properties(raw: Raw, source: str, target: str, connector: str) -> dict[str, Setting]:
    """Gives the settings of one connector of source->target (MirrorMakerConfig.connectorBaseConfig).

    From the lowest: top-level keys of the connectors' ConfigDefs; top-level ``config.providers*`` and
    ``replication.policy*``; the source's properties as ``source.cluster.k`` (client roles as ``source.k``); the
    target's likewise; then ``A->B.k`` over all.
    """
    properties = {key: setting for key, setting in raw.items() if is_connector_key(key)}
    properties |= {
        key: setting for key, setting in raw.items() if key.startswith(("config.providers", "replication.policy"))
    }
    for side, alias in (("source", source), ("target", target)):
        for key, setting in cluster_properties(raw, alias).items():
            name = f"{side}.{key}" if key.startswith(ROLES) else f"{side}.cluster.{key}"
            properties[name] = setting.named(name)
    class_name = CONNECTOR_CLASSES[connector]
    fallback = {
        "name": class_name.rpartition(".")[2],
        "connector.class": class_name,
        "source.cluster.alias": source,
        "target.cluster.alias": target,
    }
    properties = _fill_in(properties, fallback)
    properties |= with_prefix(raw, f"{source}->{target}.")
    return _fill_in(properties, {"enabled": "false"})


def client_properties(connector: Raw, side: Side, role: Role) -> dict[str, Setting]:
    """Gives the properties of one client inside a connector (MirrorConnectorConfig).

    From the lowest: ``source.cluster.k`` for connection settings only; ``consumer.k``; ``source.consumer.k``.
    """
    properties = {
        key: setting for key, setting in with_prefix(connector, f"{side}.cluster.").items() if is_client_key(key)
    }
    properties |= with_prefix(connector, f"{role}.")
    properties |= with_prefix(connector, f"{side}.{role}.")
    return properties


def apply_aliases(connector: dict[str, Setting], version: tuple[int, int]) -> dict[str, Setting]:
    """Gives the settings with deprecated names put under the new ones where this MM2 version still reads them.

    The new name wins if both are set (Kafka: ConfigUtils.translateDeprecatedConfigs).
    """
    if version >= (4, 0):
        return connector
    renamed = {
        new: connector[old].named(new) for new, old in ALIASES.items() if old in connector and new not in connector
    }
    return {**connector, **renamed}


def flow_exists(raw: Raw, source: str, target: str) -> bool:
    """Tells whether the driver starts a worker for source->target (MirrorMakerConfig.clusterPairs).

    It does if the flow is enabled or heartbeats are, which they are unless switched off: by default for every pair.
    """
    heartbeats = raw.get(f"{source}->{target}.emit.heartbeats.enabled") or raw.get("emit.heartbeats.enabled")
    return is_enabled(raw, source, target) or heartbeats is None or _parse_boolean(heartbeats)


def is_enabled(raw: Raw, source: str, target: str) -> bool:
    """Tells whether the driver takes source->target for enabled: ``true`` and nothing else."""
    return _parse_boolean(raw.get(f"{source}->{target}.enabled"))


def pairs(aliases: Iterable[str]) -> list[tuple[str, str]]:
    """Gives every ordered pair of two clusters, in the order of ``clusters``."""
    names = list(dict.fromkeys(aliases))
    return [(source, target) for source in names for target in names if source != target]


def _parse_boolean(setting: Setting | None) -> bool:
    # Java's Boolean.parseBoolean: no trimming, so "true " is false.
    return setting is not None and setting.text.lower() == "true"


def _fill_in(properties: dict[str, Setting], fallback: Mapping[str, str]) -> dict[str, Setting]:
    return {
        **{key: make_setting(key, value, DRIVER) for key, value in fallback.items() if key not in properties},
        **properties,
    }
