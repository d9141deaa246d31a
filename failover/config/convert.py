"""A configuration in another form, meaning the same: an mm2.properties file, or the connectors of its flows.

Connectors that a dedicated MM2 would run all read the same settings, while on Connect each has its own. What must agree
and does not cannot be written into one file and is an error; where only one value can be kept, that is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from failover.config import mm2
from failover.config.connect_json import Connector, flow_connectors
from failover.config.flow import ClusterConfig, Config, FlowConfig
from failover.config.mm2_keys import (
    CHECKPOINT,
    CONNECTOR_KEYS,
    CONNECTORS,
    HEARTBEAT,
    ROLES,
    SOURCE,
    connector_defaults,
    is_client_key,
)
from failover.config.providers import Provider, references
from failover.config.settings import Origin, Setting, Settings, make_setting
from failover.errors import ConfigError

MUST_AGREE: Final = (
    "replication.policy.class",
    "replication.policy.separator",
    "replication.policy.internal.topic.separator.enabled",
    "offset-syncs.topic.location",
    "topics",
    "topics.exclude",
    "topic.filter.class",
)
"""What the source and the checkpoint connector both read and must read alike."""

_OF_CONNECTOR: Final = frozenset({"name", "connector.class", "source.cluster.alias", "target.cluster.alias"})
_MADE: Final = Origin("set")


class Converted(msgspec.Struct, frozen=True):
    """Is a result: ``entries`` in the order to be written, and what its reader must know."""

    entries: tuple[Setting, ...]
    remarks: tuple[str, ...] = ()


def to_properties(config: Config, flows: Iterable[FlowConfig]) -> Converted:
    """Gives the settings of an mm2.properties file for these flows; raises ConfigError where one file cannot say it."""
    flows = list(flows)
    remarks: list[str] = []
    aliases = dict.fromkeys(alias for flow in flows for alias in (flow.source.alias, flow.target.alias))
    made: dict[str, Setting] = {"clusters": _made("clusters", ", ".join(aliases))}
    for alias in aliases:
        of_file = config.form == "properties"
        made |= _of_cluster(config.clusters[alias]) if of_file else _in_common(config, alias)
    for flow in flows:
        for key, setting in _of_worker(flow, made).items():
            made.setdefault(key, setting)
    for flow in flows:
        _require_agreement(flow)
        made |= _of_flow(flow, made, remarks)
    made |= _of_others(config, aliases, flows, made)
    made |= _own(config)
    made |= _providers(flows, made)
    return Converted(tuple(made.values()), tuple(dict.fromkeys(remarks)))


def to_connectors(flows: Iterable[FlowConfig]) -> tuple[list[Connector], tuple[str, ...], tuple[str, ...]]:
    """Gives the connectors of these flows, and what is left to their Connect workers.

    That is the providers they have to declare, and the settings they have to be started with, as ``KEY=VALUE``.
    """
    flows = list(flows)
    connectors = [connector for flow in flows for connector in flow_connectors(flow)]
    texts = [one.text for connector in connectors for one in connector.settings.values()]
    providers = dict.fromkeys(name for text in texts for name in references(text))
    worker = dict.fromkeys(
        f"{name}={setting.shown}"
        for flow in flows
        for key, setting in _of_worker(flow, {}).items()
        # Its producer's settings are in the source connector, as producer.override.…
        if not (name := key.removeprefix(f"{flow.target.alias}.")).startswith(tuple(f"{role}." for role in ROLES))
    )
    return connectors, tuple(providers), tuple(worker)


def _of_cluster(cluster: ClusterConfig) -> dict[str, Setting]:
    found = {}
    properties = cluster.properties
    for key, setting in properties.items():
        role, _, name = key.partition(".")
        # The driver makes these copies again.
        copied = role in ROLES and is_client_key(name) and name in properties and properties[name].text == setting.text
        if not copied and not key.startswith("config.providers"):
            found[f"{cluster.alias}.{key}"] = setting.named(f"{cluster.alias}.{key}")
    return found


def _in_common(config: Config, alias: str) -> dict[str, Setting]:
    """Gives the connection settings that every connector has for a cluster; what only one has is its flow's own."""
    sides = [
        {key: one for key, one in mm2.with_prefix(settings, f"{side}.cluster.").items() if is_client_key(key)}
        for flow in config.flows
        for settings in flow.connectors.values()
        for side, cluster in (("source", flow.source), ("target", flow.target))
        if cluster.alias == alias
    ]
    first, *rest = sides
    return {
        f"{alias}.{key}": one.named(f"{alias}.{key}")
        for key, one in first.items()
        if all(key in other and other[key].text == one.text for other in rest)
    }


def _of_worker(flow: FlowConfig, made: Mapping[str, Setting]) -> dict[str, Setting]:
    """Gives the settings of the flow's worker that are not its target's already: a Connect worker's, written for it."""
    found = {}
    defaults = mm2.worker_defaults(flow.source.alias, flow.target.alias)
    for key, setting in flow.worker.items():
        name = f"{flow.target.alias}.{key}"
        copied = key.partition(".")[0] in ROLES and is_client_key(key.partition(".")[2])
        default = key in defaults and defaults[key].text == setting.text
        elsewhere = is_client_key(key) or key.startswith(("config.providers", "replication.policy"))
        # Some of the connectors' keys reach the worker by their prefix (tasks.max), where nobody reads them.
        if name in made or copied or default or elsewhere or key in CONNECTOR_KEYS:
            continue
        found[name] = setting.named(name)
    return found


def _of_flow(flow: FlowConfig, made: Mapping[str, Setting], remarks: list[str]) -> dict[str, Setting]:
    found: dict[str, Setting] = {}
    prefix = f"{flow.name}."
    for kind in CONNECTORS:
        derived = mm2.connector_properties(made, flow.source.alias, flow.target.alias, kind)
        for key, setting in _given(flow, kind):
            if key in _OF_CONNECTOR or key.startswith("config.providers"):
                continue
            if key in derived and derived[key].text == setting.text and key != "enabled":
                continue
            if _only_copied(key, flow.connectors[kind], derived):
                continue
            name = prefix + key
            if name in found and found[name].text != setting.text:
                remarks.append(
                    f"{key} = {setting.shown} of the {kind} connector of {flow.name} is lost: in one file all have "
                    f"{found[name].shown}"
                )
                continue
            found[name] = setting.named(name)
    remarks += _spreading(flow)
    enabled = f"{prefix}enabled"
    found[enabled] = _made(enabled, "true" if flow.enabled else "false")
    return {enabled: found.pop(enabled)} | dict(sorted(found.items()))


def _spreading(flow: FlowConfig) -> Iterator[str]:
    """Tells of settings that the source or the checkpoint connector has alone though the other would read them too."""
    present = {kind: dict(_given(flow, kind)) for kind in (SOURCE, CHECKPOINT) if flow.has(kind)}
    for kind, given in present.items():
        others = [other for other in present if other != kind]
        spread = [
            key
            for key in sorted(given.keys() - _OF_CONNECTOR)
            if any(key not in present[other] and _reads(flow, other, key) for other in others)
        ]
        if spread:
            yield f"{', '.join(spread)} of the {kind} connector of {flow.name}: in one file all its connectors get it"


def _reads(flow: FlowConfig, kind: str, key: str) -> bool:
    return key in flow.connectors[kind] or key.startswith(("source.", "target.", *(f"{role}." for role in ROLES)))


def _of_others(
    config: Config, aliases: Iterable[str], flows: Iterable[FlowConfig], made: Mapping[str, Setting]
) -> dict[str, Setting]:
    """Keeps the driver from doing for other pairs what it does not do now: it writes heartbeats unless told not to."""
    found: dict[str, Setting] = {}
    written = {flow.name for flow in flows}
    present = {flow.name: flow for flow in config.flows}
    for source, target in mm2.pairs(aliases):
        name = f"{source}->{target}"
        if name in written:
            continue
        other = present.get(name)
        if other is None or other.enabled:
            off = f"{name}.emit.heartbeats.enabled"
            found[off] = _made(off, "false")
            continue
        read = connector_defaults(HEARTBEAT, config.mm2_version).keys() - {"enabled"}
        derived = mm2.connector_properties(made, source, target, HEARTBEAT)
        for key, setting in _given(other, HEARTBEAT):
            if key in read and (key not in derived or derived[key].text != setting.text):
                found[f"{name}.{key}"] = setting.named(f"{name}.{key}")
    return found


def _given(flow: FlowConfig, kind: str) -> Iterator[tuple[str, Setting]]:
    settings = flow.connectors[kind]
    for key in settings:
        if settings.is_given(key) and settings[key].origin.kind != "driver":
            yield key, settings[key]


def _only_copied(key: str, given: Settings, derived: Mapping[str, Setting]) -> bool:
    """Tells whether a role's connection setting says only what its cluster's does: nothing is lost without it."""
    side, _, rest = key.partition(".")
    role, _, name = rest.partition(".")
    if side not in ("source", "target") or role not in ROLES or not is_client_key(name):
        return False
    cluster = f"{side}.cluster.{name}"
    return cluster in given and given[cluster].text == given[key].text and key not in derived


def _require_agreement(flow: FlowConfig) -> None:
    source, checkpoint = flow.connectors[SOURCE], flow.connectors[CHECKPOINT]
    if not (flow.has(SOURCE) and flow.has(CHECKPOINT)):
        return
    for key in MUST_AGREE:
        if source[key].trimmed != checkpoint[key].trimmed:
            raise ConfigError(
                f"{flow.name}: {key} is '{source[key].shown}' for the source connector and '{checkpoint[key].shown}' "
                "for the checkpoint connector; an mm2.properties file has one value for both",
                hint=f"say which one counts: --set '{flow.name}.{key}=…'",
            )


def _own(config: Config) -> dict[str, Setting]:
    own = {f"failover.{key}": setting.named(f"failover.{key}") for key, setting in config.failover.items()}
    for alias, cluster in config.clusters.items():
        for key, setting in cluster.overrides.items():
            name = f"failover.cluster.{alias}.{key}"
            own[name] = setting.named(name)
    if config.form == "strimzi" and "failover.mm2.version" not in own:
        major, minor = config.mm2_version
        own["failover.mm2.version"] = _made("failover.mm2.version", f"{major}.{minor}")
    return own


def _providers(flows: Iterable[FlowConfig], made: Mapping[str, Setting]) -> dict[str, Setting]:
    """Gives the declarations of the providers that the settings name, at top level, where MM2 looks for them."""
    named = dict.fromkeys(name for setting in made.values() for name in references(setting.text))
    declared: dict[str, Provider] = {}
    for flow in flows:
        declared |= {**flow.source.providers.declared, **flow.target.providers.declared}
    used = {name: declared[name] for name in named if name in declared}
    found = {}
    if used:
        found["config.providers"] = _made("config.providers", ", ".join(used))
    for name, provider in used.items():
        prefix = f"config.providers.{name}."
        found[f"{prefix}class"] = _made(f"{prefix}class", provider.class_name)
        for key, text in provider.parameters.items():
            found[f"{prefix}param.{key}"] = _made(f"{prefix}param.{key}", text)
    return found


def _made(key: str, text: str) -> Setting:
    return make_setting(key, text, _MADE)
