"""What the status page shows: flows as they are now, worst first, and how they were over the last hour."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from failover.replication.shards import SHARDS
from failover.replication.snapshot import CheckpointsNow, FlowNow, PartitionNow, ShareNow
from failover.serve.board import Board
from failover.serve.rates import Rates

STEP_SECONDS = 10.0
_POINTS = 360
_SHOWN = 20

Point = tuple[float, float | None, float | None, float]
"""Is a moment (epoch seconds), the lag in records and in seconds (None: not known), and records a second."""


class History:
    """Looks at a board every ten seconds and remembers an hour. ``clock`` gives epoch seconds."""

    def __init__(self, board: Board, clock: Callable[[], float]) -> None:
        self._board = board
        self._clock = clock
        self._points: dict[str, deque[Point]] = {name: deque(maxlen=_POINTS) for name in board.flows}
        self._rates: dict[str, Rates[str]] = {name: Rates(flow.began) for name, flow in board.flows.items()}

    async def run(self) -> None:
        """Looks until cancelled."""
        while True:
            self.look()
            await asyncio.sleep(STEP_SECONDS)

    def look(self) -> None:
        """Adds a point to each flow that is at work."""
        now = self._clock()
        for name, flow in self._board.flows.items():
            seen = flow.look(now)
            if seen is not None:
                rate = self._growth(name, seen)[0]
                self._points[name].append((now, _known(seen.rpo_records), _known(seen.rpo_seconds), rate))

    def now(self) -> dict[str, Any]:
        """Gives everything the page shows, as JSON; its size does not depend on the number of partitions."""
        now = self._clock()
        return {
            "at": now,
            "health": self._board.health,
            "flows": [self._flow(name, now) for name in self._board.flows],
        }

    # -- inside ----------------------------------------------------------------------------------

    def _growth(self, name: str, seen: FlowNow) -> tuple[float, ...]:
        return self._rates[name].take(seen.at, {"": (seen.records, seen.bytes)})[""]

    def _flow(self, name: str, now: float) -> dict[str, Any]:
        flow = self._board.flows[name]
        seen = flow.look(now)
        beat = flow.heartbeat() if flow.heartbeat is not None else seen.heartbeat if seen is not None else None
        found: dict[str, Any] = {
            "name": name,
            "failure": flow.failure,
            "connectors": [
                [each.name.rpartition(".")[2], each.state.value]
                for each in self._board.connectors.values()
                if each.flow is flow
            ],
            "heartbeat": None if beat is None else now - beat / 1000,
            "copies": len(flow.kinds) > 1,
        }
        if seen is None:
            return found
        records, size = self._growth(name, seen)
        still = [part for part in seen.partitions if part.reason]
        return found | {
            "rpo_records": _known(seen.rpo_records),
            "rpo_seconds": _known(seen.rpo_seconds),
            "records": seen.records,
            "rate": records,
            "bytes_rate": size,
            "partitions": len(seen.partitions),
            "still": len(still),
            "starting": 0 if seen.halted else sum(1 for part in seen.partitions if not part.open and not part.reason),
            "silent": {side: now - at for side, at in seen.heard.items()},
            "copied_heartbeat": None if seen.copied_heartbeat is None else now - seen.copied_heartbeat / 1000,
            "trouble": [[str(part.source), part.reason] for part in still[:_SHOWN]],
            "behind": [
                [str(part.source), part.lag, _known(part.seconds)]
                for part in _most(seen.partitions, lambda part: part.lag)
            ],
            "share": _share(seen.share),
            "groups": None if seen.checkpoints is None else _groups(seen.checkpoints, now),
            "points": list(self._points[name]),
        }


def _share(seen: ShareNow) -> str:
    """Says which part of the flow the page is about, "" where it is all of it."""
    whole = len(seen.shards) == SHARDS and seen.leader and not seen.group
    said = f"{seen.worker} copies {len(seen.shards)} of {SHARDS} shards{' and leads' if seen.leader else ''}"
    return "" if whole else f"{said}: what follows is of its part alone"


def _groups(seen: CheckpointsNow, now: float) -> dict[str, Any]:
    late = sorted(seen.exact_at.items(), key=lambda row: row[1])[:_SHOWN]
    fresh = max(3 * seen.interval, STEP_SECONDS)
    return {
        "leader": seen.leader,
        "total": len(seen.exact_at),
        "ready": seen.ready,
        "precisions": dict(seen.precisions),
        "late": [[group, now - at / 1000 if at else None] for group, at in late if not at or now - at / 1000 > fresh],
    }


def _most(parts: Iterable[PartitionNow], by: Callable[[PartitionNow], float]) -> list[PartitionNow]:
    known = [part for part in parts if by(part) > 0]  # nan is not
    return sorted(known, key=by, reverse=True)[:_SHOWN]


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
