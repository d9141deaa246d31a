"""From the flat settings of an mm2.properties file to clusters and flows, by MM2's rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from failover.config import mm2
from failover.config.flow import ClusterConfig, Config, FlowConfig
from failover.config.java_client import client_notes, is_own_client_key
from failover.config.mm2_keys import (
    ASSUMED_VERSION,
    CONNECTORS,
    DRIVER_KEYS,
    SOURCE,
    UNOFFICIAL,
    connector_defaults,
)
from failover.config.notes import notes_on_keys
from failover.config.properties import PropertiesDocument
from failover.config.providers import Provider, Providers, declared_in
from failover.config.settings import Note, Setting, Settings
from failover.errors import ConfigError

Raw = Mapping[str, Setting]


def resolve(document: PropertiesDocument, raw: Raw, secrets_dir: str = "") -> Config:
    """Makes the configuration of one file's settings, ``--set`` included; raises ConfigError."""
    aliases = aliases_in(raw)
    if not aliases:
        marked = any(note.code == "byte-order-mark" for note in document.notes)
        raise ConfigError(
            f"{document.path}: the key 'clusters' is missing or empty",
            hint="the file begins with a byte order mark, which Java takes for part of the first key: save it without"
            if marked
            else "an mm2.properties file begins with, for example, clusters = primary, standby",
        )
    version = version_in(raw)
    own = mm2.with_prefix(raw, "failover.")
    clusters = {}
    for alias in aliases:
        providers = Providers(_providers(raw, aliases, alias), secrets_dir=secrets_dir)
        clusters[alias] = ClusterConfig(
            alias, Settings(mm2.cluster_properties(raw, alias)), overrides_of(raw, alias), providers
        )
    flows = tuple(
        _flow(raw, clusters[source], clusters[target], version)
        for source, target in mm2.pairs(aliases)
        if mm2.flow_exists(raw, source, target)
    )
    settings = Settings({key: setting for key, setting in own.items() if not key.startswith("cluster.")})
    notes = file_notes(document, raw, clusters)
    driver = {key: raw[key] for key in raw if key in DRIVER_KEYS and key != "clusters"}
    return Config(document.path, clusters, flows, settings, notes, version, driver=driver)


def file_notes(document: PropertiesDocument, raw: Raw, clusters: Mapping[str, ClusterConfig]) -> tuple[Note, ...]:
    """Gives every note about a file; it needs no value to be valid, so that one error hides no other."""
    aliases = aliases_in(raw)
    enabled = [pair for pair in mm2.pairs(aliases) if mm2.is_enabled(raw, *pair)]
    try:
        version = version_in(raw)
    except ConfigError:
        version = ASSUMED_VERSION
    declared = {name for alias in aliases for name in _providers(raw, aliases, alias)}
    notes = [*document.notes, *notes_on_keys(raw, aliases, enabled, version, declared)]
    misspelt = {note.key for note in notes if note.code == "unknown-key"}
    of_clients = (note for note in notes_on_clients(clusters) if note.origin.key not in misspelt)
    return in_order([*notes, *of_clients])


def in_order(notes: Sequence[Note]) -> tuple[Note, ...]:
    """Puts notes in the order of their lines, each once."""
    return tuple(dict.fromkeys(sorted(notes, key=lambda note: (note.origin.file, note.origin.line or 0))))


def aliases_in(raw: Raw) -> tuple[str, ...]:
    """Gives the aliases of ``clusters``, each once."""
    names = Settings(raw).strings("clusters") if "clusters" in raw else ()
    return tuple(dict.fromkeys(name for name in names if name))


def version_in(raw: Raw) -> tuple[int, int]:
    """Gives ``failover.mm2.version`` as (major, minor), else the newest known; raises ConfigError."""
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


def overrides_of(raw: Raw, alias: str) -> dict[str, Setting]:
    """Gives this tool's own connection settings for a cluster (``failover.cluster.<alias>.``), prefix removed."""
    ours = mm2.with_prefix(raw, f"failover.cluster.{alias}.")
    return {key: setting for key, setting in ours.items() if is_own_client_key(key)}


def notes_on_clients(clusters: Mapping[str, ClusterConfig]) -> list[Note]:
    """Gives a note for each connection setting that MM2 uses and this tool does not."""
    return [
        note
        for cluster in clusters.values()
        for settings in (cluster.properties, cluster.overrides)
        for note in client_notes(settings, cluster.alias)
    ]


def _providers(raw: Raw, aliases: Sequence[str], alias: str) -> dict[str, Provider]:
    """Gives the providers that a cluster's settings may name: its own, then those at top level, then the others'.

    MM2 asks those of the worker that reads the settings, which is the target's.
    """
    found: dict[str, Provider] = {}
    for prefix in (f"{alias}.", "", *(f"{other}." for other in aliases if other != alias)):
        here = mm2.with_prefix(raw, prefix) if prefix else raw
        for name, provider in declared_in(here).items():
            found.setdefault(name, provider)
    return found


def _flow(raw: Raw, source: ClusterConfig, target: ClusterConfig, version: tuple[int, int]) -> FlowConfig:
    connectors: dict[str, Settings] = {}
    providers = target.providers
    # MM2 drops these at top level as it does any name it does not know; `failover replicate` reads them.
    guides = {key: raw[key] for key in UNOFFICIAL if key.endswith(".regex") and key in raw}
    for connector in CONNECTORS:
        given = guides | mm2.connector_properties(raw, source.alias, target.alias, connector)
        defaults = connector_defaults(connector, version)
        connectors[connector] = Settings(mm2.apply_aliases(given, version), defaults, providers.resolve)
    worker = Settings(mm2.worker_properties(raw, source.alias, target.alias), resolve=providers.resolve)
    return FlowConfig(source, target, connectors[SOURCE].boolean("enabled"), connectors, worker)
