"""From connectors' own configurations, as Kafka Connect or Strimzi holds them, to clusters and flows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from failover.config import mm2
from failover.config.connect_json import Connector
from failover.config.flow import ClusterConfig, Config, FlowConfig
from failover.config.mm2_keys import (
    ALIASES,
    CHECKPOINT,
    CONNECTOR_KEYS,
    CONNECTORS,
    FLOW_ONLY_KEYS,
    FLOW_ONLY_PREFIXES,
    HEARTBEAT,
    ROLES,
    SOURCE,
    connector_defaults,
    is_client_key,
)
from failover.config.notes import nearest, notes_on_keys, on_own_key, on_unofficial, on_value, role_note, unknown
from failover.config.providers import USUAL_NAMES, Provider, Providers, declared_in, references
from failover.config.resolve import in_order, notes_on_clients, overrides_of, version_in
from failover.config.settings import DRIVER, Note, Origin, Setting, Settings, make_setting
from failover.errors import ConfigError

ABSENT = Origin("absent")
# Of the settings of a connector that is there, those that hold for one that is not.
_SHARED_PREFIXES = (
    "source.",
    "target.",
    "replication.policy",
    "offset-syncs.topic.location",
    "topic",
    "config.providers",
)
_FREE_PREFIXES = (*FLOW_ONLY_PREFIXES, "predicates.", "config.providers", "key.converter.", "value.converter.")

Pair = tuple[str, str]


def resolve_connectors(
    connectors: Sequence[Connector],
    where: str,
    overrides: Mapping[str, Setting],
    *,
    worker: Mapping[str, Setting] | None = None,
    secrets_dir: str = "",
    strimzi: bool = False,
) -> Config:
    """Makes the configuration of MM2's connectors; those of other classes are passed over.

    ``overrides`` (``--set``) count as written in an mm2.properties file: ``A->B.k`` for one flow, ``A.k`` for a
    cluster, ``k`` for all connectors. A connector that a flow has not got is as if switched off. Raises ConfigError.
    """
    flows: dict[Pair, dict[str, Connector]] = {}
    notes: list[Note] = []
    raw = dict(overrides)
    for connector in connectors:
        kind = connector.kind
        if kind is None:
            continue
        pair = flow_of_connector(connector)
        present = flows.setdefault(pair, {})
        if kind in present:
            raise ConfigError(
                f"{where}: {pair[0]}->{pair[1]} has two {kind} connectors: {present[kind].name}, {connector.name}",
                hint="give one of them; or are they of two flows that need aliases of their own?",
            )
        present[kind] = connector
        for key, setting in connector.settings.items():
            if key.startswith("failover."):
                raw.setdefault(key, setting)
    if not flows:
        classes = ", ".join(sorted({one.settings.text("connector.class") for one in connectors if one.settings}))
        raise ConfigError(
            f"{where}: none of its connectors is MirrorMaker 2's" + (f", only {classes}" if classes else ""),
            hint="MirrorSourceConnector, MirrorCheckpointConnector and MirrorHeartbeatConnector are",
        )
    version = version_in(raw)
    aliases = tuple(dict.fromkeys(alias for pair in flows for alias in reversed(pair)))
    laid = {pair: _laid_over(pair, present, raw) for pair, present in flows.items()}
    clusters = {alias: _cluster(alias, laid, raw, secrets_dir) for alias in reversed(aliases)}
    made = tuple(
        _flow(clusters[pair[0]], clusters[pair[1]], present, version, worker or {}) for pair, present in laid.items()
    )
    for pair, present in flows.items():
        notes += _missing(pair, present)
        for connector in present.values():
            notes += connector_notes(connector, version, aliases)
    typed = {key: setting for key, setting in overrides.items() if setting.origin.kind == "set"}
    # Which providers the workers declare is not known here.
    named = {name for setting in typed.values() for name in references(setting.text)}
    notes += notes_on_keys(typed, aliases, list(flows), version, named)
    own = mm2.with_prefix(raw, "failover.")
    settings = Settings({key: setting for key, setting in own.items() if not key.startswith("cluster.")})
    found = in_order([*notes, *notes_on_clients(clusters)])
    return Config(where, clusters, made, settings, found, version, "strimzi" if strimzi else "connectors")


def connector_notes(connector: Connector, version: tuple[int, int], aliases: Sequence[str]) -> Iterator[Note]:
    """Gives a note for each key of a connector that nobody reads, or not as its writer meant."""
    class_name = connector.settings.text("connector.class").rpartition(".")[2]
    for key, setting in connector.settings.items():
        if setting.origin.kind == "driver":
            continue
        yield from on_value(setting, None)
        if key.startswith("failover."):
            yield from on_own_key(key, setting, aliases)
        elif key in ALIASES.values():
            new = next(new for new, old in ALIASES.items() if old == key)
            if version < (4, 0):
                text = f"{key} is a deprecated name, gone in MM2 4.0"
                yield Note("deprecated", key, text, setting.origin, f"write {new}")
            else:
                yield Note("dropped", key, f"MM2 4.0 and later ignore {key}", setting.origin, f"write {new}")
        elif note := on_unofficial(key, key, setting) or _unknown(key, setting, class_name):
            yield note


def _unknown(key: str, setting: Setting, class_name: str) -> Note | None:
    if key in CONNECTOR_KEYS or key in FLOW_ONLY_KEYS or key.startswith(_FREE_PREFIXES):
        return None
    side, _, rest = key.partition(".")
    prefix = ""
    if side in ("source", "target"):
        prefix, key_below = f"{side}.", rest
        if rest.startswith("cluster."):
            name = rest.removeprefix("cluster.")
            if name == "alias" or is_client_key(name):
                return None
            near = nearest(name, {"bootstrap.servers", "security.protocol", "alias"})
            if near:
                return unknown(key, setting, class_name, near, f"{side}.cluster.")
            return Note(
                "not-used", key, f"{class_name} reads only the connection below {side}.cluster.", setting.origin
            )
    else:
        key_below = key
    role, _, name = key_below.partition(".")
    if role in ROLES and name:
        return role_note(prefix, role, name, setting)
    if key == "bootstrap.servers":
        return unknown(key, setting, class_name, "source.cluster.bootstrap.servers")
    if is_client_key(key):
        return None
    return unknown(key, setting, class_name, nearest(key, CONNECTOR_KEYS | FLOW_ONLY_KEYS, 0.75))


def flow_of_connector(connector: Connector) -> Pair:
    """Gives the aliases of a connector's source and target; raises ConfigError where the source has none."""
    settings = connector.settings
    source = settings.text("source.cluster.alias") if "source.cluster.alias" in settings else ""
    # MM2 (MirrorConnectorConfig): the target's alias has a default, the source's has none.
    target = settings.text("target.cluster.alias") if "target.cluster.alias" in settings else "target"
    if not source:
        raise ConfigError(
            f"the connector {connector.name or settings.text('connector.class')} has no source.cluster.alias",
            hint="MirrorMaker 2 refuses it too; set source.cluster.alias and target.cluster.alias",
        )
    if source == target:
        raise ConfigError(
            f"the connector {connector.name or settings.text('connector.class')} has '{source}' for both clusters",
            hint="give source.cluster.alias and target.cluster.alias two names: MirrorMaker 2 knows clusters by them",
        )
    return source, target


def _laid_over(
    pair: Pair, present: Mapping[str, Connector], raw: Mapping[str, Setting]
) -> dict[str, dict[str, Setting]]:
    """Gives each connector's settings with ``--set`` over them, and those of connectors that are not there."""
    typed = {key: setting for key, setting in raw.items() if setting.origin.kind == "set"}
    laid = {}
    basis = next(present[kind] for kind in CONNECTORS if kind in present)
    for kind in CONNECTORS:
        if kind in present:
            given = {key: one for key, one in present[kind].settings.items() if not key.startswith("failover.")}
        else:
            given = {key: one for key, one in basis.settings.items() if key.startswith(_SHARED_PREFIXES)}
            off = "enabled" if kind == SOURCE else f"emit.{kind}s.enabled"
            given[off] = make_setting(off, "false", ABSENT)
        over = mm2.connector_properties(typed, *pair, kind)
        laid[kind] = given | {key: one for key, one in over.items() if one.origin.kind == "set"}
    return laid


def _cluster(
    alias: str, laid: Mapping[Pair, Mapping[str, Mapping[str, Setting]]], raw: Mapping[str, Setting], secrets_dir: str
) -> ClusterConfig:
    properties: dict[str, Setting] = {}
    declared: dict[str, Provider] = {name: Provider(class_name) for name, class_name in USUAL_NAMES.items()}
    for (source, target), connectors in laid.items():
        for given in connectors.values():
            declared |= declared_in(given)
            for side in [side for side, name in (("source", source), ("target", target)) if name == alias]:
                for key, setting in mm2.with_prefix(given, f"{side}.cluster.").items():
                    if key != "alias":
                        properties.setdefault(key, setting)
                for role in ROLES:
                    for key, setting in mm2.with_prefix(given, f"{side}.{role}.").items():
                        name = f"{role}.{key}"
                        properties.setdefault(name, setting.named(name))
    declared |= declared_in(raw)
    providers = Providers(declared, strict=True, secrets_dir=secrets_dir)
    return ClusterConfig(alias, Settings(properties), overrides_of(raw, alias), providers)


def _flow(
    source: ClusterConfig,
    target: ClusterConfig,
    laid: Mapping[str, dict[str, Setting]],
    version: tuple[int, int],
    worker: Mapping[str, Setting],
) -> FlowConfig:
    resolve = target.providers.resolve
    connectors = {}
    for kind in CONNECTORS:
        settings = mm2.apply_aliases(laid[kind], version)
        aliases = {"source.cluster.alias": source.alias, "target.cluster.alias": target.alias}
        filled = {key: make_setting(key, text, DRIVER) for key, text in aliases.items() if key not in settings}
        connectors[kind] = Settings(settings | filled, connector_defaults(kind, version), resolve)
    # The connectors say what they convert with only where it differs from their worker, which is not seen here.
    converters = {key: connectors[SOURCE][key] for key in mm2.CONVERTERS if key in connectors[SOURCE]}
    of_worker = mm2.worker_defaults(source.alias, target.alias) | dict(worker) | converters
    enabled = connectors[SOURCE].boolean("enabled")
    return FlowConfig(source, target, enabled, connectors, Settings(of_worker, resolve=resolve))


def _missing(pair: Pair, present: Mapping[str, Connector]) -> Iterable[Note]:
    for kind, what in (
        (SOURCE, "no records are mirrored, and topics are known only by the other connectors"),
        (CHECKPOINT, "there are no checkpoints, and no group's offsets are synced"),
        (HEARTBEAT, "no heartbeats are written; MM2 works without them"),
    ):
        if kind not in present:
            remedy = "" if kind == HEARTBEAT else "give its configuration too: --config may be repeated"
            yield Note(
                "connector-missing", f"{pair[0]}->{pair[1]}", f"there is no {kind} connector: {what}", ABSENT, remedy
            )
