"""Writes down how far each lane has come: its anchor, then its offset syncs."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterable
from typing import Protocol

from failover.errors import FailoverError
from failover.model.names import Fault, TopicPartition
from failover.replication.anchor import Anchor
from failover.replication.route import Route
from failover.replication.tally import Window

_log = logging.getLogger(__name__)

_EVERY_SECONDS = 1.0
_EVERY_BYTES = 64 << 20


class AnchorStore(Protocol):
    """Keeps anchors; see ``failover.replication.positions``."""

    async def write(self, anchors: dict[TopicPartition, Anchor]) -> dict[TopicPartition, Fault]:
        """Writes anchors; gives those that could not be."""


class SyncStore(Protocol):
    """Keeps offset syncs; see ``failover.replication.syncs``."""

    async def write(self, rows: list[tuple[TopicPartition, int, int]]) -> Fault | None:
        """Writes rows of (source partition, source offset, target offset) in order, behind those that still wait.

        Gives why they wait.
        """


class Recorder:
    """Writes anchors and syncs of the lanes that moved: every second, or sooner after ``_EVERY_BYTES``.

    Each record is true for ever for the topics it names, so one that arrives late, twice or from a worker that is no
    longer the owner does no harm here: it makes the next start read a little more. MirrorMaker 2, when it takes over,
    would copy that again. So nothing is written while this process may have stood still (``alive`` says no), or of a
    shard that is not proven to be still its own. What could not be written is written with a later round, as it
    stands then.

    ``written``, ``refused``: rounds of positions that were and that were not; ``took``: milliseconds a round.
    """

    def __init__(self, positions: AnchorStore, syncs: SyncStore, *, alive: Callable[[], bool] = lambda: True) -> None:
        self._alive = alive
        self._positions = positions
        self._syncs = syncs
        self._moved: dict[Route, None] = {}
        self._bytes = 0
        self._due = asyncio.Event()
        self._failing: set[str] = set()
        self._turn = asyncio.Lock()
        self.written = self.refused = 0
        self.took = Window()

    def moved(self, route: Route, size: int) -> None:
        """Notes that a lane's anchor moved, over ``size`` bytes."""
        self._moved[route] = None
        self._bytes += size
        if self._bytes >= _EVERY_BYTES:
            self._due.set()

    def forget(self, routes: Iterable[Route]) -> None:
        """Lets go of what another worker has."""
        for route in routes:
            self._moved.pop(route, None)

    async def run(self) -> None:
        """Writes until cancelled."""
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._due.wait(), _EVERY_SECONDS)
            self._due.clear()
            await self.flush()

    async def flush(self) -> None:
        """Writes what moved since the last time, and what could not be written then."""
        async with self._turn:
            await self._flush()

    async def _flush(self) -> None:
        if not self._alive():
            return
        moved = {route: None for route in self._moved if not route.shard.unproven}
        self._moved = {route: None for route in self._moved if route not in moved}
        self._bytes = 0
        if not moved and not self._failing:
            return
        anchors: dict[TopicPartition, Anchor] = {}
        rows: list[tuple[TopicPartition, int, int]] = []
        for route in moved:
            if not route.generation:
                continue  # the target's topic has been made anew, and nothing of it is known yet
            lane = route.lane
            anchor = anchor_of(route)
            anchors[lane.source] = anchor
            if not route.anchors or route.anchors[-1] != anchor:
                route.anchors.append(anchor)
            rows += [(lane.source, upstream, downstream) for upstream, downstream in lane.syncs()]
        if anchors:
            began = time.monotonic()
            refused = await self._write_positions(anchors)
            self.took.add((time.monotonic() - began) * 1000, time.time())
            self.written, self.refused = self.written + (not refused), self.refused + bool(refused)
            self._moved.update({route: None for route in moved if route.lane.source in refused})
        if rows or "syncs" in self._failing:
            await self._write_syncs(rows)

    # -- inside ----------------------------------------------------------------------------------

    async def _write_positions(self, anchors: dict[TopicPartition, Anchor]) -> dict[TopicPartition, Fault]:
        try:
            refused = await self._positions.write(anchors)
        except FailoverError as error:
            self._say("positions", f"positions cannot be written: {error}")
            refused = dict.fromkeys(anchors, Fault(-1, "NOT_WRITTEN"))
        else:
            if refused:
                tp, reason = next(iter(refused.items()))
                self._say("positions", f"{len(refused)} positions cannot be written; of {tp}: {reason}")
            else:
                self._heal("positions")
        return refused

    async def _write_syncs(self, rows: list[tuple[TopicPartition, int, int]]) -> None:
        try:
            reason: object = await self._syncs.write(rows)
        except FailoverError as error:
            reason = error
        if reason is not None:
            self._say("syncs", f"{len(rows)} offset syncs cannot be written: {reason}")
        else:
            self._heal("syncs")

    def _say(self, what: str, text: str) -> None:
        if what not in self._failing:
            self._failing.add(what)
            _log.error("%s", text)

    def _heal(self, what: str) -> None:
        if what in self._failing:
            self._failing.discard(what)
            _log.warning("%s are written again", "positions" if what == "positions" else "offset syncs")


def anchor_of(route: Route) -> Anchor:
    """Gives the anchor at which a route's lane stands."""
    lane = route.lane
    return Anchor(
        lane.upstream,
        lane.downstream,
        route.source_id,
        route.target_id,
        lane.leader_epoch if not lane.pending else -1,
        route.since,
    )


def anchors_of(route: Route, kept: Iterable[Anchor] = ()) -> tuple[Anchor, ...]:
    """Gives every anchor known for a route, newest first: its lane's own, those of this run, those ``kept`` before."""
    own = [anchor_of(route)] if route.generation else []
    return tuple(dict.fromkeys([*own, *reversed(route.anchors), *kept]))
