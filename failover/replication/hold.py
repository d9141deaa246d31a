"""Keeps a flow from copying for a while, and has it go on."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Mapping
from typing import Protocol

from failover.model.names import TopicPartition
from failover.replication.lane import State
from failover.replication.route import Route

_FINISH_SECONDS = 10.0
_LOOK_SECONDS = 0.02


class Held(Protocol):
    """Is what is held; see ``failover.replication.engine.Engine``."""

    routes: dict[TopicPartition, Route]

    def close(self, route: Route) -> None:
        """Lets a lane go."""

    def look_soon(self) -> None:
        """Looks at the topics of both clusters before it is time to."""

    async def on_record(self) -> None:
        """Writes down where every lane stands."""


class Hold:
    """Is the hold on one engine. ``gate``: open while there is to be read. ``halted``: no lane is owned.

    Paused, all that is open stays so. Halted, every lane is closed once what was read is written and on record; to go
    on, each is located anew behind a fence, as after a restart.
    """

    def __init__(self, engine: Held) -> None:
        self.gate = asyncio.Event()
        self.gate.set()
        self.halted = False
        self._engine = engine

    def pause(self) -> None:
        """Reads nothing more until ``resume``; what has been read goes on its way."""
        self.gate.clear()

    async def halt(self) -> None:
        """Reads nothing more until ``resume``, and lets the lanes go."""
        self.gate.clear()
        routes = self._engine.routes
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_FINISH_SECONDS):
                while _busy(routes):  # noqa: ASYNC110 - seldom, and nobody else has to tell when a lane is done
                    await asyncio.sleep(_LOOK_SECONDS)
        self.halted = True
        self.let_go(routes.values())
        await self._engine.on_record()

    def resume(self) -> None:
        """Goes on."""
        if self.halted:
            self.halted = False
            for route in self._engine.routes.values():
                route.shard.add([route])
        if not self.gate.is_set():
            self.gate.set()
            self._engine.look_soon()

    def let_go(self, routes: Iterable[Route]) -> bool:
        """Closes lanes if none is to be owned; says whether."""
        if self.halted:
            for route in routes:
                self._engine.close(route)
        return self.halted


def _busy(routes: Mapping[TopicPartition, Route]) -> bool:
    return any(route.lane.pending and route.lane.state is State.OPEN for route in routes.values())
