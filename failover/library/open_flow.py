"""A flow whose clusters stay open while it is looked at more than once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from failover.inventory.flow import Flow
    from failover.inventory.selection import Selection
    from failover.inventory.snapshot import Earlier
    from failover.kafka.port import Cluster
    from failover.library.flows import MirrorFlow
    from failover.model.snapshot import Snapshot
    from failover.state.folder import StateFolder


class OpenFlow:
    """Gives a flow's clusters, each opened when first asked for; whoever gave ``open_cluster`` closes them.

    ``state``: where earlier plans and executions of the flow lie. ``source_down``: the source is not contacted.
    ``progress`` is told what is done, how many, and of how many.
    """

    def __init__(
        self,
        mirror: MirrorFlow,
        state: StateFolder,
        open_cluster: Callable[[str], Cluster],
        *,
        source_down: bool = False,
        progress: Callable[[str, int, int | None], None] | None = None,
    ) -> None:
        from failover.inventory.flow import flow_of

        self.mirror = mirror
        self.state = state
        self.flow: Flow = flow_of(mirror.config, mirror.selected)
        self._source_down = source_down
        self._progress = progress
        self._open_cluster = open_cluster
        self._clusters: dict[str, Cluster] = {}

    def open(self, alias: str) -> Cluster:
        """Gives the cluster of an alias."""
        if alias not in self._clusters:
            self._clusters[alias] = self._open_cluster(alias)
        return self._clusters[alias]

    def snapshot(
        self, selection: Selection, *, content: bool, source_down: bool = False, earlier: Earlier | None = None
    ) -> Snapshot:
        """Takes one look; see ``failover.inventory.snapshot``. ``content``: compare records where that says more."""
        from failover.inventory.comparison import comparison_of
        from failover.inventory.snapshot import Earlier, take_snapshot

        return take_snapshot(
            self.flow,
            self.open,
            selection,
            now=lambda: datetime.now(UTC),
            source_down=source_down or self._source_down,
            progress=self._progress,
            earlier=earlier or Earlier(),
            comparison=comparison_of(self.mirror.config) if content else None,
        )
