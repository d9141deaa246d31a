"""What an operator wants of a connector while it runs: to work, to pause, to stop, to begin again."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Awaitable, Callable
from typing import Protocol


class Target(enum.Enum):
    """Says what is wanted, in Kafka Connect's words. ``PAUSED`` keeps what is open, ``STOPPED`` lets it go."""

    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"


class Switch:
    """Is one connector's. ``target``: what is wanted; ``reached``: what was wanted when it was last obeyed.

    ``turns`` counts changes, a restart being one. ``let_go``: it was stopped and has not run since.
    """

    def __init__(self) -> None:
        self.target = self.reached = Target.RUNNING
        self.turns = 0
        self.let_go = False
        self._changed = asyncio.Event()

    def turn(self, target: Target) -> None:
        """Wants something else; nothing happens where it is wanted already."""
        if target is not self.target:
            self.target = target
            self._tell()

    def restart(self) -> None:
        """Has it begin again, if it is to run."""
        if self.target is Target.RUNNING:
            self._tell()

    def obeyed(self, target: Target) -> None:
        """Notes that what was wanted is done."""
        self.reached = target
        if target is not Target.PAUSED:
            self.let_go = target is Target.STOPPED

    async def after(self, turns: int) -> None:
        """Waits until something is wanted that was not at ``turns``."""
        while self.turns == turns:
            await self._changed.wait()

    def _tell(self) -> None:
        self.turns += 1
        told, self._changed = self._changed, asyncio.Event()
        told.set()


class Copying(Protocol):
    """Is what copies; see ``failover.replication.hold.Hold``."""

    def pause(self) -> None:
        """Reads nothing more."""

    def resume(self) -> None:
        """Goes on."""

    async def halt(self) -> None:
        """Reads nothing more, and lets all partitions go once what was read is written."""


async def under(switch: Switch, work: Callable[[], Awaitable[None]]) -> None:
    """Does ``work`` while the switch wants it, until cancelled; from its beginning after each change."""
    while True:
        turns = switch.turns
        change = asyncio.ensure_future(switch.after(turns))
        task = asyncio.ensure_future(work()) if switch.target is Target.RUNNING else None
        try:
            switch.obeyed(switch.target)
            await asyncio.wait([change] if task is None else [change, task], return_when=asyncio.FIRST_COMPLETED)
            if task is not None and task.done():
                return task.result()
        finally:
            ended = [each for each in (change, task) if each is not None]
            for each in ended:
                each.cancel()
            await asyncio.gather(*ended, return_exceptions=True)


async def obey(switch: Switch, copying: Copying) -> None:
    """Has the copying do what the switch wants, until cancelled.

    What is paused after it was stopped stays let go, as in Kafka Connect.
    """
    turns = switch.turns
    while True:
        before, turns = turns, switch.turns
        target = switch.target
        if target is Target.RUNNING:
            if before != turns and switch.reached is Target.RUNNING:
                await copying.halt()
            copying.resume()
        elif target is Target.PAUSED:
            copying.pause()
        else:
            await copying.halt()
        switch.obeyed(target)
        await switch.after(turns)
