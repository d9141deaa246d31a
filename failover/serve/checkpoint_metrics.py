"""The metrics of exact checkpoints, alike in ``replicate`` and ``checkpoint``."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from failover import __version__
from failover.replication.snapshot import CheckpointsNow
from failover.serve.exposition import Page, labels

_PRECISIONS = ("exact", "bounded", "conservative")
_LATE_SECONDS = 60.0
_LATE_INTERVALS = 5


def flow_labels(source: str, target: str) -> str:
    """Gives the label text of what concerns a flow."""
    return labels({"source": source, "target": target})


def add_checkpoints(page: Page, source: str, target: str, seen: CheckpointsNow, now: float) -> None:
    """Adds them; of a process that does not lead only that, since another one knows better."""
    ends = {"source": source, "target": target}
    where = labels(ends)
    said = "1 where this process keeps the exact checkpoints, 0 where another one does."
    page.add("failover_checkpoint_leader", "gauge", said, [(where, int(seen.leader))])
    if not seen.leader or not seen.cycled:
        return
    said = "When the groups were looked at last, seconds since 1970."
    page.add("failover_checkpoint_looked_timestamp_seconds", "gauge", said, [(where, seen.cycled / 1000)])
    page.add("failover_groups", "gauge", "Groups with commits on mirrored topics.", [(where, len(seen.exact_at))])
    said = "Groups that could be moved exactly now, all positions known."
    page.add("failover_groups_ready", "gauge", said, [(where, seen.ready)])
    page.add(
        "failover_checkpoint_positions",
        "gauge",
        "Positions of groups on record, by precision.",
        [(labels({**ends, "precision": name}), seen.precisions.get(name, 0)) for name in _PRECISIONS],
    )
    # Two names may look alike here (one is no UTF-8); a sample that comes twice would cost the whole page.
    ages: dict[str, float] = {}
    for group, at in seen.exact_at.items():
        text = labels({**ends, "group": group})
        ages[text] = max(ages.get(text, 0.0), max(now - at / 1000, 0.0) if at else math.inf)
    said = "Seconds since all of a group's positions were on record exactly; +Inf: they never were."
    page.add("failover_checkpoint_age_seconds", "gauge", said, ages.items())


class CheckpointMetrics:
    """Renders the page of ``failover checkpoint``; ``look`` gives the checkpoints at a time, None before the start."""

    def __init__(
        self,
        source: str,
        target: str,
        look: Callable[[float], CheckpointsNow | None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._source, self._target = source, target
        self._look = look
        self._clock = clock

    def render(self) -> str:
        """Gives the page without what concerns the process as a whole."""
        now = self._clock()
        page = Page()
        page.add("failover_build_info", "gauge", "This tool.", [(labels({"version": __version__}), 1)])
        seen = self._look(now)
        up = int(seen is not None)
        page.add(
            "failover_flow_up",
            "gauge",
            "1 once both clusters have answered.",
            [(flow_labels(self._source, self._target), up)],
        )
        if seen is not None:
            add_checkpoints(page, self._source, self._target, seen, now)
        return page.render()


def checkpoint_health(seen: CheckpointsNow | None, now: float) -> str:
    """Says ``healthy``, ``starting`` or ``unhealthy``: this process leads and has not looked for a while."""
    if seen is None or (seen.leader and not seen.cycled):
        return "starting"
    late = now - seen.cycled / 1000 > max(_LATE_INTERVALS * seen.interval, _LATE_SECONDS)
    return "unhealthy" if seen.leader and late else "healthy"
