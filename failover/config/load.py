"""Finds and loads the configuration, and picks the flow a command works on."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from failover.config import mm2
from failover.config.flow import ClusterConfig, Config, FlowConfig, SelectedFlow
from failover.config.java_client import client_notes
from failover.config.mm2_keys import ASSUMED_VERSION, CONNECTORS, SOURCE, connector_defaults, is_client_key
from failover.config.notes import notes_on_keys
from failover.config.properties import PropertiesDocument, read_properties
from failover.config.settings import Note, Origin, Setting, Settings, make_setting
from failover.errors import ConfigError, ConfigNotFound, FlowAmbiguous, UnknownAlias, UsageError

DEFAULT_FILE = "mm2.properties"


def find_config(paths: Sequence[str] = (), environ: Mapping[str, str] | None = None) -> str:
    """Gives the path to load: ``paths``, then ``$FAILOVER_CONFIG``, then ``./mm2.properties``.

    Raises ConfigNotFound if there is none, ConfigError if there are several or one is not a properties file.
    """
    environ = os.environ if environ is None else environ
    if len(paths) > 1:
        raise ConfigError(f"{len(paths)} configurations were given", hint="an mm2.properties file is given alone")
    path = paths[0] if paths else environ.get("FAILOVER_CONFIG", "")
    if not path:
        if not Path(DEFAULT_FILE).is_file():
            raise ConfigNotFound(
                f"no configuration: neither --config nor $FAILOVER_CONFIG is given and there is no ./{DEFAULT_FILE}",
                hint="give the path of your mm2.properties with --config",
            )
        path = DEFAULT_FILE
    if path.startswith(("connect+", "http://", "https://")) or path.lower().endswith((".json", ".yaml", ".yml")):
        raise ConfigError(f"{path}: is no mm2.properties file", hint="give the file connect-mirror-maker.sh reads")
    return path


def load_config(
    paths: str | Path | Sequence[str] = (),
    overrides: Sequence[str] = (),
    *,
    environ: Mapping[str, str] | None = None,
) -> Config:
    """Loads the configuration and resolves it by MM2's rules.

    ``paths`` is a path, or what ``find_config`` takes. ``overrides`` are ``KEY=VALUE`` texts that count as if written
    last in the file. Only the file itself is read: PEM files are read, and connection settings checked, when a client
    is asked for. Raises ConfigNotFound and ConfigError.
    """
    given = (str(paths),) if isinstance(paths, (str, Path)) else paths
    document = read_properties(find_config(given, environ))
    raw = {
        key: make_setting(key, entry.value, Origin("file", key, document.path, entry.line))
        for key, entry in document.effective().items()
    }
    for override in overrides:
        key, equals, value = override.partition("=")
        if not key.strip() or not equals:
            # The text may be a secret without its key, so it is not shown.
            raise UsageError("--set wants KEY=VALUE", hint="for example --set failover.state.dir=/var/lib/failover")
        key = key.strip()
        raw[key] = make_setting(key, value, Origin("set", key))
    return resolve(document, raw)


def resolve(document: PropertiesDocument, raw: Mapping[str, Setting]) -> Config:
    """Makes the configuration of one file's settings, ``--set`` included."""
    aliases = _aliases(document, raw)
    version = _version(raw)
    providers = _providers(raw, aliases)
    own = mm2.with_prefix(raw, "failover.")
    clusters = {}
    for alias in aliases:
        ours = mm2.with_prefix(raw, f"failover.cluster.{alias}.")
        overrides = {key: setting for key, setting in ours.items() if is_client_key(key)}
        clusters[alias] = ClusterConfig(alias, Settings(mm2.cluster_properties(raw, alias)), overrides, providers)
    flows = tuple(
        _flow(raw, clusters[source], clusters[target], version)
        for source, target in mm2.pairs(aliases)
        if mm2.flow_exists(raw, source, target)
    )
    enabled = [(flow.source.alias, flow.target.alias) for flow in flows if flow.enabled]
    notes = [*document.notes, *notes_on_keys(raw, aliases, enabled, version, providers), *_client_notes(clusters)]
    notes.sort(key=lambda note: note.origin.line or 0)
    settings = Settings({key: setting for key, setting in own.items() if not key.startswith("cluster.")})
    return Config(document.path, clusters, flows, settings, tuple(dict.fromkeys(notes)), version)


def select_flow(
    config: Config, source: str | None = None, target: str | None = None, *, allow_reverse: bool = False
) -> SelectedFlow:
    """Gives the one enabled flow that fits ``source`` and ``target``; either may be left out if only one flow fits.

    With ``allow_reverse`` B->A also fits where only A->B is enabled; ``reversed`` then says so. Raises UnknownAlias
    with near names, FlowAmbiguous naming the enabled flows.
    """
    for alias in (source, target):
        if alias is not None and alias not in config.clusters:
            raise _unknown_alias(config, alias)
    if source is not None and source == target:
        raise FlowAmbiguous(f"source and target are both '{source}'", hint="name two different clusters")
    fitting = [flow for flow in config.enabled_flows if _fits(flow, source, target)]
    if len(fitting) == 1:
        return SelectedFlow(fitting[0], fitting[0].source.alias, fitting[0].target.alias)
    reverse = [flow for flow in config.enabled_flows if _fits(flow, target, source)]
    if not fitting and len(reverse) == 1:
        flow = reverse[0]
        if allow_reverse:
            return SelectedFlow(flow, flow.target.alias, flow.source.alias, reversed=True)
        raise FlowAmbiguous(
            f"{flow.target.alias}->{flow.source.alias} is not enabled, only {flow.name} is",
            hint=f"use --source {flow.source.alias} --target {flow.target.alias}",
        )
    names = ", ".join(flow.name for flow in (fitting or reverse or config.enabled_flows))
    if fitting or reverse:
        raise FlowAmbiguous(f"several flows fit: {names}", hint="choose one with --source and --target")
    if names:
        wanted = f"{source or '*'}->{target or '*'}"
        raise FlowAmbiguous(f"no enabled flow fits {wanted}; enabled: {names}", hint="choose one of these")
    example = "->".join(list(config.clusters)[:2])
    raise FlowAmbiguous(f"{config.path}: no flow is enabled", hint=f"set {example}.enabled=true")


def _fits(flow: FlowConfig, source: str | None, target: str | None) -> bool:
    return source in (None, flow.source.alias) and target in (None, flow.target.alias)


def _unknown_alias(config: Config, alias: str) -> UnknownAlias:
    import difflib

    near = difflib.get_close_matches(alias, config.clusters, n=3)
    known = f"clusters: {', '.join(config.clusters)}"
    hint = f"did you mean {' or '.join(near)}? ({known})" if near else known
    return UnknownAlias(f"{config.path} has no cluster '{alias}'", hint=hint)


def _aliases(document: PropertiesDocument, raw: Mapping[str, Setting]) -> tuple[str, ...]:
    names = Settings(raw).strings("clusters") if "clusters" in raw else ()
    aliases = tuple(dict.fromkeys(name for name in names if name))
    if not aliases:
        raise ConfigError(
            f"{document.path}: the key 'clusters' is missing or empty",
            hint="an mm2.properties file begins with, for example, clusters = primary, standby",
        )
    return aliases


def _version(raw: Mapping[str, Setting]) -> tuple[int, int]:
    setting = raw.get("failover.mm2.version")
    if setting is None:
        return ASSUMED_VERSION
    major, _, rest = setting.trimmed.partition(".")
    minor = rest.partition(".")[0]
    if not (major.isdigit() and minor.isdigit()):
        raise ConfigError(
            f"{setting.described()}: '{setting.shown}' is no version", hint="write for example 3.9 or 4.1.1"
        )
    return int(major), int(minor)


def _providers(raw: Mapping[str, Setting], aliases: Sequence[str]) -> frozenset[str]:
    keys = ("config.providers", *(f"{alias}.config.providers" for alias in aliases))
    settings = Settings(raw)
    return frozenset(name for key in keys if key in raw for name in settings.strings(key))


def _flow(
    raw: Mapping[str, Setting], source: ClusterConfig, target: ClusterConfig, version: tuple[int, int]
) -> FlowConfig:
    connectors: dict[str, Settings] = {}
    for connector in CONNECTORS:
        given = mm2.connector_properties(raw, source.alias, target.alias, connector)
        connectors[connector] = Settings(mm2.apply_aliases(given, version), connector_defaults(connector, version))
    worker = Settings(mm2.worker_properties(raw, source.alias, target.alias))
    return FlowConfig(source, target, connectors[SOURCE].boolean("enabled"), connectors, worker)


def _client_notes(clusters: Mapping[str, ClusterConfig]) -> list[Note]:
    return [
        note
        for cluster in clusters.values()
        for settings in (cluster.properties, cluster.overrides)
        for note in client_notes(settings, cluster.alias)
    ]
