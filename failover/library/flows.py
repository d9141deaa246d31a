"""A loaded configuration and its flows, ready to be looked at."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from failover.config.flow import Config, FlowConfig, SelectedFlow
from failover.errors import ConfigError

if TYPE_CHECKING:
    from failover.kafka.port import Cluster

SOURCE_TIMEOUT, TARGET_TIMEOUT = 10.0, 30.0


class MirrorFlow(msgspec.Struct, frozen=True):
    """Is one flow of a configuration. ``selected``: its settings, and the direction in which it is seen."""

    config: Config
    selected: SelectedFlow

    @property
    def name(self) -> str:
        """Gives ``source->target``."""
        return self.selected.name

    @property
    def source(self) -> str:
        """Gives the source's alias."""
        return self.selected.source

    @property
    def target(self) -> str:
        """Gives the target's alias."""
        return self.selected.target

    def __repr__(self) -> str:
        # The settings hold secrets.
        return f"MirrorFlow({self.name})"

    def open_cluster(self, alias: str, *, timeout: float | None = None) -> Cluster:
        """Opens one of the two clusters, for the caller to close; ``timeout``: longest silence accepted, in seconds.

        Nothing is contacted before something is asked. Raises ``ConfigError``.
        """
        from failover.kafka.admin import KafkaCluster

        if alias == self.source:
            return KafkaCluster(alias, self.selected.source_client(), timeout=timeout or SOURCE_TIMEOUT)
        return KafkaCluster(alias, self.selected.target_client(), timeout=timeout or TARGET_TIMEOUT)


class Configuration(msgspec.Struct, frozen=True):
    """Is a loaded configuration. ``flows``: those that are enabled, in the file's order."""

    config: Config
    flows: tuple[MirrorFlow, ...]

    def __repr__(self) -> str:
        return f"Configuration({self.config.path}: {', '.join(flow.name for flow in self.flows)})"

    def flow(self, source: str | None = None, target: str | None = None) -> MirrorFlow:
        """Gives the one flow that fits; with both aliases also the way back of an enabled flow (failback).

        Raises ``UnknownAlias`` and ``FlowAmbiguous``.
        """
        from failover.config.load import select_flow

        return MirrorFlow(self.config, select_flow(self.config, source, target, allow_reverse=True))


def load_config(
    path: str | os.PathLike[str] | Sequence[str] | None = None,
    *,
    overrides: Sequence[str] = (),
    secrets_dir: str = "",
) -> Configuration:
    """Loads a configuration as the commands do; without ``path`` the one they would find.

    ``path``: also several (the connectors of a flow), or the address of a Connect cluster (``connect+https://…``).
    ``overrides``: settings as ``KEY=VALUE`` that win. ``secrets_dir``: secrets that a Strimzi resource only names.
    Raises ``ConfigError``, ``ConfigNotFound``, and ``ConnectUnreachable`` and the like for an address.
    """
    from failover.config import load
    from failover.inventory.running_config import running_connectors

    paths = [os.fspath(path)] if isinstance(path, (str, os.PathLike)) else list(path or ())
    config = load.load_config(paths, overrides, secrets_dir=secrets_dir, running=running_connectors)
    flows = (SelectedFlow(flow, flow.source.alias, flow.target.alias) for flow in config.enabled_flows)
    return Configuration(config, tuple(MirrorFlow(config, selected) for selected in flows))


def own_settings(config: Config, selected: SelectedFlow) -> FlowConfig:
    """Gives the settings written for a flow's own direction, whether or not it is enabled. Raises ``ConfigError``."""
    for flow in config.flows:
        if (flow.source.alias, flow.target.alias) == (selected.source, selected.target):
            return flow
    raise ConfigError(
        f"{selected.name} has no settings of its own", hint=f"write {selected.name}.enabled = true into the file"
    )


def runs_topic(config: Config, source: str) -> str | None:
    """Names the topic of a flow's executions: ``failover.runs.topic``, which may be ``off``; None then."""
    from failover.mm2 import internal_topics

    setting = config.failover.get("runs.topic")
    return internal_topics.runs_topic(None if setting is None else setting.trimmed, source)


def one_flow(flow: MirrorFlow | Configuration) -> MirrorFlow:
    """Gives the flow itself, or the only one of a configuration; raises ``FlowAmbiguous`` where there are several."""
    return flow.flow() if isinstance(flow, Configuration) else flow
