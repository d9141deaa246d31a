"""Checks of a configuration by itself: what MM2 would do that its writer hardly meant. No cluster is asked."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import combinations

from failover.config.findings import place
from failover.config.flow import Config, FlowConfig
from failover.config.mm2 import Side, client_properties
from failover.config.mm2_keys import CHECKPOINT, SOURCE
from failover.config.mm2_together import EMIT_CHECKPOINTS, EMIT_SYNCS, WORKER_EXACTLY, refused_together
from failover.config.settings import Setting, split_list
from failover.errors import ConfigError
from failover.mm2.filters import compile_list, looks_like_glob, refuse_custom_class
from failover.mm2.replication_policy import policy_from
from failover.model.plan import Finding, Severity

_POLICY = (
    "replication.policy.class",
    "replication.policy.separator",
    "replication.policy.internal.topic.separator.enabled",
)
_LOCATION = "offset-syncs.topic.location"
_TOPICS = ("topics", "topics.exclude", "topic.filter.class")
_LISTS = (
    (SOURCE, "topics"),
    (SOURCE, "topics.exclude"),
    (CHECKPOINT, "groups"),
    (CHECKPOINT, "groups.exclude"),
    (SOURCE, "config.properties.exclude"),
)
_IDENTITY = "IdentityReplicationPolicy"
_LINE = re.compile(r"line (\d+)\)$")


def check_config(config: Config) -> tuple[Finding, ...]:
    """Runs every check of this module on the enabled flows, in the table's order, each finding once."""
    return tuple(dict.fromkeys(finding for check in CONFIG_CHECKS for finding in check(config)))


def by_severity(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Puts findings in the order of their weight, then of their lines, each once."""
    weight = list(reversed(Severity))

    def order(finding: Finding) -> tuple[int, float]:
        line = _LINE.search(finding.subject)
        return weight.index(finding.severity), float("inf") if line is None else int(line.group(1))

    return tuple(sorted(dict.fromkeys(findings), key=order))


def no_flow(config: Config) -> Iterator[Finding]:
    """No flow is enabled, so that MM2 mirrors nothing and no command has anything to work on."""
    if not config.enabled_flows:
        example = config.flows[0].name if config.flows else "->".join(list(config.clusters)[:2])
        remedy = f"set {example}.enabled = true" if config.form == "properties" else "give the source connector too"
        yield Finding("no-flow", Severity.ERROR, config.path, "no flow is enabled: nothing is mirrored", remedy)


def globs(config: Config) -> Iterator[Finding]:
    """A list item is a shell pattern (``customer-*``) where MM2 wants a name or a regular expression."""
    for setting, items in _lists(config):
        for item in items:
            meant = looks_like_glob(item)
            if meant is not None:
                example = next((part for part in item.split("|") if looks_like_glob(part)), item).replace("*", "x")
                message = (
                    f"'{item}' looks like a shell pattern; MM2 takes it for a regular expression, where * repeats what "
                    f"stands before it: it does not match '{example}'"
                )
                yield Finding("glob-pattern", Severity.WARNING, _place(setting, config), message, f"write {meant}")


def patterns(config: Config) -> Iterator[Finding]:
    """A list of patterns cannot be compiled: MM2's connector fails as it starts."""
    for setting, items in _lists(config):
        try:
            compile_list(setting.origin.key or setting.key, list(items))
        except ConfigError as error:
            yield Finding("pattern-invalid", Severity.ERROR, _place(setting, config), error.message, error.hint)


def policies(config: Config) -> Iterator[Finding]:
    """The replication policy is a class whose naming is not known here."""
    for flow in config.enabled_flows:
        own = {f"failover.{key}": setting.text for key, setting in config.failover.items()}
        try:
            policy_from(flow.connectors[SOURCE].texts() | own, flow.source.alias, config.mm2_version)
        except ConfigError as error:
            setting = flow.connectors[SOURCE]["replication.policy.class"]
            yield Finding("policy-unknown", Severity.ERROR, _place(setting, config), error.message, error.hint)


def filters(config: Config) -> Iterator[Finding]:
    """What is mirrored is chosen by a class that is not known here."""
    for flow in config.enabled_flows:
        own = {f"failover.{key}": setting.text for key, setting in config.failover.items()}
        for connector, kind in ((SOURCE, "topic"), (CHECKPOINT, "group"), (SOURCE, "config.property")):
            try:
                refuse_custom_class(kind, flow.connectors[connector].texts() | own)
            except ConfigError as error:
                setting = flow.connectors[connector][f"{kind}.filter.class"]
                # No command but failover replicate asks which settings of topics are copied.
                severity = Severity.WARNING if kind == "config.property" else Severity.ERROR
                yield Finding("filter-unknown", severity, _place(setting, config), error.message, error.hint)


def connectors_disagree(config: Config) -> Iterator[Finding]:
    """The connectors of a flow, each with settings of its own (Connect, Strimzi), name or find topics differently."""
    for flow in config.enabled_flows:
        if not flow.has(CHECKPOINT):
            continue
        for key in (*_POLICY, _LOCATION, *_TOPICS):
            ours, theirs = (flow.connectors[kind].resolved(key) for kind in (SOURCE, CHECKPOINT))
            if _value(key, ours) != _value(key, theirs):
                yield _disagreement(flow, key, ours, theirs)


def one_alias_two_clusters(config: Config) -> Iterator[Finding]:
    """One alias stands for two clusters: the connectors that use it connect to different brokers (MM2 cannot tell)."""
    places: dict[str, list[tuple[str, frozenset[str]]]] = {}
    for flow in config.flows:
        for kind, settings in flow.connectors.items():
            if not flow.has(kind):
                continue
            sides: tuple[tuple[Side, str], ...] = (("source", flow.source.alias), ("target", flow.target.alias))
            for side, alias in sides:
                found = _servers(client_properties(settings, side, "admin").get("bootstrap.servers"))
                if found:
                    places.setdefault(alias, []).append((f"the {kind} connector of {flow.name}", found))
    for alias, found_at in places.items():
        first, servers = found_at[0]
        other = next(((where, theirs) for where, theirs in found_at if not theirs & servers), None)
        if other is not None:
            message = f"'{alias}' is {_named(servers)} to {first} and {_named(other[1])} to {other[0]}"
            remedy = "give each cluster an alias of its own, the same in every connector"
            yield Finding("one-alias-two-clusters", Severity.ERROR, alias, message, remedy)


def same_cluster(config: Config) -> Iterator[Finding]:
    """Two aliases have a bootstrap server in common, so that they are one cluster."""
    by_alias = {
        alias: _servers(cluster.properties.get("bootstrap.servers")) for alias, cluster in config.clusters.items()
    }
    for (one, ours), (other, theirs) in combinations(by_alias.items(), 2):
        if shared := ours & theirs:
            message = f"{one} and {other} are one cluster: both have {_named(shared)} among their bootstrap servers"
            remedy = "correct the bootstrap.servers of one of them"
            yield Finding("same-cluster", Severity.ERROR, f"{one} and {other}", message, remedy)


def identity_loop(config: Config) -> Iterator[Finding]:
    """Both directions are enabled under one topic name, so that records go round: identical names show no cycle."""
    enabled = {(flow.source.alias, flow.target.alias): flow for flow in config.enabled_flows}
    for (source, target), flow in enabled.items():
        back = enabled.get((target, source))
        if back is None or source > target or not (_identity(flow) and _identity(back)):
            continue
        if _disjoint(flow.topics, back.topics):
            continue
        message = f"{flow.name} and {back.name} are both enabled and keep topic names: records would go round for ever"
        remedy = "enable one direction at a time, or mirror different topics"
        yield Finding("identity-loop", Severity.ERROR, f"{flow.name}, {back.name}", message, remedy)


def refused(config: Config) -> Iterator[Finding]:
    """Settings that MM2's source connector does not take together: it is not begun, and nothing is mirrored."""
    driver = config.form == "properties"
    for flow in config.enabled_flows:
        worker = {key: setting.text for key, setting in flow.worker.items()} if driver else None
        source, target = (f"{flow.source.alias}.", f"{flow.target.alias}.") if driver else ("source.", "of its worker ")
        exactly = f"set {source}consumer.isolation.level = read_committed and {target}{WORKER_EXACTLY} = enabled"
        for key, message in refused_together(SOURCE, _given(flow, SOURCE), config.mm2_version, worker).items():
            remedy = f"take the others out, or set {key} = true" if key == EMIT_SYNCS else exactly
            text = f"MM2 does not start {flow.name}: {message}"
            yield Finding("invalid-value", Severity.ERROR, _place(flow.connectors[SOURCE][key], config), text, remedy)


def checkpoints_off(config: Config) -> Iterator[Finding]:
    """No checkpoints are written: with the source gone, nobody can say where its groups stood."""
    for flow in config.enabled_flows:
        if not flow.has(CHECKPOINT):
            continue
        if flow.connectors[CHECKPOINT][EMIT_CHECKPOINTS].trimmed.lower() == "false":
            setting = flow.connectors[CHECKPOINT][EMIT_CHECKPOINTS]
            message = (
                f"{flow.name} writes no checkpoints: with {flow.source.alias} gone its groups' offsets are gone too"
            )
            if flow.connectors[CHECKPOINT]["sync.group.offsets.enabled"].trimmed.lower() == "true":
                message += "; nor are group offsets synced, which needs them, though sync.group.offsets.enabled is true"
            remedy = "set emit.checkpoints.enabled = true (MM2 3.9 and later refuses false), or run failover checkpoint"
            yield Finding("checkpoints-off", Severity.WARNING, _place(setting, config), message, remedy)
        elif EMIT_SYNCS in refused_together(CHECKPOINT, _given(flow, CHECKPOINT), config.mm2_version):
            setting = flow.connectors[CHECKPOINT][EMIT_SYNCS]
            message = f"MM2 does not start the checkpoint connector of {flow.name} without offset syncs: no checkpoints"
            remedy = f"set {EMIT_SYNCS} = true, or run failover replicate, which needs none for its own"
            yield Finding("checkpoints-off", Severity.WARNING, _place(setting, config), message, remedy)


def offset_syncs_on_source(config: Config) -> Iterator[Finding]:
    """The offset syncs live on the cluster whose loss they are needed for (KIP-716: they need not)."""
    for flow in config.enabled_flows:
        if flow.connectors[SOURCE][_LOCATION].trimmed == "source" and flow.has(CHECKPOINT):
            message = f"the offset syncs of {flow.name} are kept on {flow.source.alias} and die with it"
            remedy = f"{_LOCATION} = target keeps them on {flow.target.alias} (MM2 3.0 and later)"
            yield Finding("offset-syncs-on-source", Severity.INFO, flow.name, message, remedy)


CONFIG_CHECKS: tuple[Callable[[Config], Iterable[Finding]], ...] = (
    no_flow,
    same_cluster,
    one_alias_two_clusters,
    connectors_disagree,
    policies,
    filters,
    patterns,
    identity_loop,
    globs,
    refused,
    checkpoints_off,
    offset_syncs_on_source,
)


def _given(flow: FlowConfig, kind: str) -> dict[str, str]:
    settings = flow.connectors[kind]
    return {key: settings[key].text for key in settings if settings.is_given(key)}


def _lists(config: Config) -> Iterator[tuple[Setting, tuple[str, ...]]]:
    seen: set[Setting] = set()
    for flow in config.enabled_flows:
        for kind, key in _LISTS:
            settings = flow.connectors[kind]
            setting = settings.resolved(key)
            if settings.is_given(key) and setting not in seen and flow.has(kind):
                seen.add(setting)
                yield setting, split_list(setting.text)


def _disagreement(flow: FlowConfig, key: str, ours: Setting, theirs: Setting) -> Finding:
    what = f"{key} is '{ours.shown}' for the source connector and '{theirs.shown}' for the checkpoint connector"
    if key in _TOPICS:
        message = f"{what}: groups get checkpoints only for topics that both take"
        return Finding("connectors-disagree", Severity.WARNING, flow.name, message, "give both the same list")
    if key == _LOCATION:
        message = f"{what}, which looks for offset syncs where there are none: it writes no checkpoints"
    else:
        message = f"{what}: records go to one topic, checkpoints name another"
    return Finding("connectors-disagree", Severity.ERROR, flow.name, message, f"give all connectors the same {key}")


def _value(key: str, setting: Setting) -> object:
    if key == "replication.policy.separator":
        return setting.text
    return tuple(sorted(split_list(setting.text))) if key in ("topics", "topics.exclude") else setting.trimmed


def _identity(flow: FlowConfig) -> bool:
    return flow.replication_policy_class.endswith(_IDENTITY)


def _disjoint(ours: tuple[str, ...], theirs: tuple[str, ...]) -> bool:
    plain = all(item.replace("-", "").replace("_", "").replace(".", "").isalnum() for item in (*ours, *theirs))
    return plain and not set(ours) & set(theirs)


def _servers(setting: Setting | None) -> frozenset[str]:
    return frozenset() if setting is None else frozenset(item.lower() for item in split_list(setting.text) if item)


def _named(servers: frozenset[str]) -> str:
    return ", ".join(sorted(servers))


def _place(setting: Setting, config: Config) -> str:
    return place(setting.origin.key or setting.key, setting.origin, config.path)
