"""The flow a run is about, and its two clusters, each opened once when a step first wants it."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from failover.errors import FlowAmbiguous
from failover.library.flows import MirrorFlow
from failover.state.folder import StateFolder

if TYPE_CHECKING:
    from failover.kafka.port import Cluster


class Reach:
    """Gives steps the flow's clusters; a context manager that closes them.

    ``flow``: None where no configuration was found or several flows are enabled; a step that needs one then raises
    ``FlowAmbiguous``. ``timeouts``: longest silences accepted from source and target, seconds, None: the usual ones.
    ``source_down``: the source is not to be contacted. ``kept``: what steps leave for later steps of the same process.
    """

    def __init__(
        self,
        flow: MirrorFlow | None,
        state: StateFolder,
        *,
        timeouts: tuple[float | None, float | None] = (None, None),
        source_down: bool = False,
    ) -> None:
        self._flow = flow
        self.state = state
        self.timeouts = timeouts
        self.source_down = source_down
        self.kept: dict[str, Any] = {}
        self._open: dict[str, Cluster] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def chosen(self) -> bool:
        """Says whether there is a flow."""
        return self._flow is not None

    @property
    def flow(self) -> MirrorFlow:
        """Is the flow; raises ``FlowAmbiguous`` where there is none."""
        if self._flow is None:
            raise FlowAmbiguous(
                "this step needs a flow, and none is chosen", hint="--config mm2.properties --source A --target B"
            )
        return self._flow

    @property
    def source(self) -> Cluster:
        """Is the flow's source."""
        return self._cluster(self.flow.source, self.timeouts[0])

    @property
    def target(self) -> Cluster:
        """Is the flow's target."""
        return self._cluster(self.flow.target, self.timeouts[1])

    def close(self) -> None:
        """Closes what was opened."""
        while self._open:
            self._open.popitem()[1].close()

    def _cluster(self, alias: str, timeout: float | None) -> Cluster:
        if alias not in self._open:
            self._open[alias] = self.flow.open_cluster(alias, timeout=timeout)
        return self._open[alias]
