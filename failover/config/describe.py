"""Tells a configuration as plain values for JSON and tables: each setting with its origin, secrets masked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from failover.config.flow import ClusterConfig, Config, FlowConfig
from failover.config.mm2_keys import ROLES
from failover.config.settings import Note, Setting

_ROLE_PREFIXES = tuple(f"{role}." for role in ROLES)
_CLUSTER_PREFIXES = (
    "source.cluster.",
    "target.cluster.",
    *(f"{side}.{r}" for side in ("source", "target") for r in ROLES),
)


class ShownSetting(msgspec.Struct, frozen=True, omit_defaults=True):
    """Is one effective setting as shown: ``origin`` is file, set, driver or default; ``written`` the key as written."""

    value: str
    origin: str
    written: str = ""
    file: str = ""
    line: int | None = None


class ShownNote(msgspec.Struct, frozen=True, omit_defaults=True):
    """Is one note as shown."""

    code: str
    key: str
    message: str
    file: str = ""
    line: int | None = None


class ShownCluster(msgspec.Struct, frozen=True):
    """Is one cluster: what MM2 reads of it, and this tool's own connection settings (``failover.cluster.``)."""

    alias: str
    settings: dict[str, ShownSetting]
    overrides: dict[str, ShownSetting]


class ShownFlow(msgspec.Struct, frozen=True):
    """Is one flow: ``settings`` are alike in all connectors that have them, ``connectors`` holds what differs."""

    flow: str
    enabled: bool
    settings: dict[str, ShownSetting]
    connectors: dict[str, dict[str, ShownSetting]]
    worker: dict[str, ShownSetting]


class ShownConfig(msgspec.Struct, frozen=True):
    """Is a whole configuration as ``config show`` gives it."""

    path: str
    clusters: list[ShownCluster]
    flows: list[ShownFlow]
    failover: dict[str, ShownSetting]
    notes: list[ShownNote]


def describe(config: Config, flows: Iterable[FlowConfig] | None = None) -> ShownConfig:
    """Gives what is shown of a configuration; ``flows`` limits it to these and their clusters."""
    chosen = list(config.flows if flows is None else flows)
    aliases = {cluster.alias for flow in chosen for cluster in (flow.source, flow.target)}
    clusters = [cluster for alias, cluster in config.clusters.items() if flows is None or alias in aliases]
    return ShownConfig(
        config.path,
        [_cluster(cluster) for cluster in clusters],
        [_flow(flow) for flow in chosen],
        _shown(config.failover),
        [_note(note) for note in config.notes],
    )


def _cluster(cluster: ClusterConfig) -> ShownCluster:
    # A role's copy of a setting says nothing new; a setting written for the role itself does.
    own = {
        key: setting
        for key, setting in cluster.properties.items()
        if not key.startswith(_ROLE_PREFIXES) or setting.origin.key == f"{cluster.alias}.{key}"
    }
    return ShownCluster(cluster.alias, _shown(own), _shown(cluster.overrides))


def _flow(flow: FlowConfig) -> ShownFlow:
    shared: dict[str, Setting] = {}
    present = {name: settings for name, settings in flow.connectors.items() if flow.has(name)}
    differing: dict[str, dict[str, ShownSetting]] = {name: {} for name in present}
    for key in dict.fromkeys(key for settings in present.values() for key in settings):
        holders = {name: settings[key] for name, settings in present.items() if key in settings}
        first = next(iter(holders.values()))
        if _is_of_cluster(flow, key, first):
            continue
        if all(setting == first for setting in holders.values()):
            shared[key] = first
        else:
            for name, setting in holders.items():
                differing[name][key] = _setting(setting)
    return ShownFlow(flow.name, flow.enabled, _shown(shared), differing, _shown(flow.worker))


def _is_of_cluster(flow: FlowConfig, key: str, setting: Setting) -> bool:
    """Tells whether a connector's setting only repeats one that is shown with its cluster."""
    return (
        key.startswith(_CLUSTER_PREFIXES)
        and setting.origin.kind != "driver"
        and not setting.origin.key.startswith(flow.name)
    )


def _shown(settings: Mapping[str, Setting]) -> dict[str, ShownSetting]:
    return {key: _setting(setting) for key, setting in settings.items()}


def _setting(setting: Setting) -> ShownSetting:
    origin = setting.origin
    return ShownSetting(setting.shown, origin.kind, origin.key, origin.file, origin.line)


def _note(note: Note) -> ShownNote:
    return ShownNote(note.code, note.key, note.text, note.origin.file, note.origin.line)
