"""Puts a command's pieces together: configuration, flow, state folder, clusters."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from failover.cli.frame import Settings
from failover.errors import ConfigNotFound, UsageError
from failover.state.folder import StateFolder, default_folder

if TYPE_CHECKING:
    from failover.config.flow import Config, SelectedFlow
    from failover.config.load import Loaded
    from failover.config.settings import Setting
    from failover.kafka.port import Cluster


def utc_now() -> datetime:
    """Gives the time now."""
    return datetime.now(UTC)


def operator() -> str:
    """Names who runs this: the user of the operating system."""
    from failover.library.planning import user

    return user()


def load(settings: Settings) -> Config:
    """Loads the configuration the global options name."""
    from failover.config.load import resolve_loaded

    return resolve_loaded(read(settings))


def read(settings: Settings) -> Loaded:
    """Reads the configuration the global options name, without resolving it."""
    from failover.config.load import read as read_config

    return read_config(
        settings.config,
        settings.overrides,
        secrets_dir=settings.secrets_dir,
        running=partial(_running, settings.target_timeout()),
    )


def _running(timeout: float, address: str, typed: Mapping[str, Setting]) -> list[dict[str, object]]:
    from failover.inventory.running_config import running_connectors

    return running_connectors(address, typed, timeout=timeout)


def choose_flow(settings: Settings, config: Config, *, allow_reverse: bool = False) -> SelectedFlow:
    """Picks the flow and says so when the opposite flow's settings are used."""
    from failover.config.load import select_flow

    selected = select_flow(config, settings.source, settings.target, allow_reverse=allow_reverse)
    if selected.reversed:
        settings.say(f"{selected.name} is not enabled: the settings of {selected.flow.name} apply, read backwards")
    return selected


def state_folder(settings: Settings, config: Config | None = None) -> StateFolder:
    """Finds the state folder: --state-dir, else failover.state.dir, else the platform's own.

    Commands that work without a configuration still honour the one that is found.
    """
    if settings.state_dir is not None:
        return StateFolder(Path(settings.state_dir).expanduser())
    if config is None:
        try:
            config = load(settings)
        except ConfigNotFound:
            if settings.config or os.environ.get("FAILOVER_CONFIG"):  # a file was named: its folder may be another
                raise
            return StateFolder(default_folder())
    setting = config.failover.get("state.dir")
    return StateFolder(Path(setting.trimmed).expanduser() if setting is not None else default_folder())


def require_source(settings: Settings, command: str) -> None:
    """Raises ``UsageError`` when the source must not be contacted and ``command`` cannot do without it."""
    if settings.source_down:
        raise UsageError(
            f"{command} works with the source, which --source-down leaves alone", hint="leave --source-down out"
        )


def check_clients(settings: Settings, selected: SelectedFlow) -> None:
    """Raises ``ConfigError`` when the settings of a cluster that will be asked are none."""
    selected.target_client()
    if not settings.source_down:
        selected.source_client()


def open_cluster(settings: Settings, selected: SelectedFlow, alias: str, *, timeout: float | None = None) -> Cluster:
    """Opens one of the flow's two clusters; nothing is contacted before it is asked something.

    ``timeout``: the longest accepted silence in seconds where it is not the cluster's usual one.
    """
    from failover.kafka.admin import KafkaCluster

    if alias == selected.source:
        return KafkaCluster(alias, selected.source_client(), timeout=timeout or settings.source_timeout())
    return KafkaCluster(alias, selected.target_client(), timeout=timeout or settings.target_timeout())
