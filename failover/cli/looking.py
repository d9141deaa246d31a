"""Opens the flow's clusters for one command and looks at them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from failover.cli.progress import ProgressBar
from failover.cli.wiring import check_clients, open_cluster, utc_now

if TYPE_CHECKING:
    from failover.cli.frame import Settings
    from failover.config.flow import Config, SelectedFlow
    from failover.inventory.flow import Flow
    from failover.inventory.selection import Selection
    from failover.inventory.snapshot import Earlier
    from failover.kafka.port import Cluster
    from failover.model.snapshot import Snapshot


class Looking:
    """Holds what is open while a command looks, perhaps more than once."""

    def __init__(self, settings: Settings, config: Config, selected: SelectedFlow, opened: ExitStack) -> None:
        from failover.inventory.flow import flow_of

        self.settings = settings
        self.config = config
        self.selected = selected
        self.flow: Flow = flow_of(config, selected)
        self.clusters: dict[str, Cluster] = {}
        self._opened = opened

    def open(self, alias: str) -> Cluster:
        """Gives the cluster of an alias, opened when first asked for."""
        if alias not in self.clusters:
            cluster = open_cluster(self.settings, self.selected, alias)
            self._opened.callback(cluster.close)
            self.clusters[alias] = cluster
        return self.clusters[alias]

    def snapshot(
        self, selection: Selection, *, content: bool, source_down: bool | None = None, earlier: Earlier | None = None
    ) -> Snapshot:
        """Takes one look; see ``failover.inventory.snapshot``. ``content``: compare records where that says more."""
        from failover.inventory.comparison import comparison_of
        from failover.inventory.snapshot import Earlier, take_snapshot

        with ProgressBar(self.settings) as progress:
            return take_snapshot(
                self.flow,
                self.open,
                selection,
                now=utc_now,
                source_down=self.settings.source_down if source_down is None else source_down,
                progress=progress,
                earlier=earlier or Earlier(),
                comparison=comparison_of(self.config) if content else None,
            )


@contextmanager
def looking(settings: Settings, config: Config, selected: SelectedFlow) -> Iterator[Looking]:
    """Checks the settings of both clusters before anything is contacted, and closes what was opened in the end."""
    check_clients(settings, selected)
    with ExitStack() as opened:
        yield Looking(settings, config, selected, opened)
