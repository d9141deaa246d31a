"""Opens the flow's clusters for one command that looks at them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING

from failover.cli.progress import ProgressBar
from failover.cli.wiring import check_clients, open_cluster, state_folder

if TYPE_CHECKING:
    from failover.cli.frame import Settings
    from failover.config.flow import Config, SelectedFlow
    from failover.kafka.port import Cluster
    from failover.library.connectors import OnConnect
    from failover.library.open_flow import OpenFlow


@contextmanager
def looking(settings: Settings, config: Config, selected: SelectedFlow) -> Iterator[OpenFlow]:
    """Checks the settings of both clusters before anything is contacted, and closes what was opened in the end."""
    from failover.library.flows import MirrorFlow
    from failover.library.open_flow import OpenFlow

    check_clients(settings, selected)
    with ExitStack() as opened, ProgressBar(settings) as progress:

        def open_one(alias: str) -> Cluster:
            cluster = open_cluster(settings, selected, alias)
            opened.callback(cluster.close)
            return cluster

        yield OpenFlow(
            MirrorFlow(config, selected),
            state_folder(settings, config),
            open_one,
            source_down=settings.source_down,
            progress=progress,
        )


def on_connect(settings: Settings, look: OpenFlow) -> OnConnect:
    """Asks the Connect cluster for the flow's connectors; nothing is known where none is configured."""
    from failover.library.connectors import ask_connect

    return ask_connect(
        look.mirror,
        url=connect_address(settings),
        timeout=settings.target_timeout(),
        warn=lambda text: say_once(settings, text),
    )


def connect_address(settings: Settings) -> str:
    """Gives the address of a Connect cluster that stands in the place of a configuration, "" where none does."""
    from failover.config.documents import is_address

    return next(filter(is_address, settings.config), "")


@lru_cache(maxsize=8)
def say_once(settings: Settings, text: str) -> None:
    """Says something once on stderr, however often a command looks."""
    settings.say(text)
