"""What an operator wants of a connector, and that it happens."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from failover.replication.switch import Switch, Target, obey, under


async def soon(check: Callable[[], bool]) -> None:
    async with asyncio.timeout(2):
        while not check():  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0)


class Work:
    """Counts how often it was begun and how often it was ended."""

    def __init__(self) -> None:
        self.begun = self.ended = 0

    async def __call__(self) -> None:
        self.begun += 1
        try:
            await asyncio.Event().wait()
        finally:
            self.ended += 1


class Copying:
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.halting = asyncio.Event()
        self.halting.set()

    def pause(self) -> None:
        self.told.append("pause")

    def resume(self) -> None:
        self.told.append("resume")

    async def halt(self) -> None:
        self.told.append("halt")
        await self.halting.wait()


def test_work_runs_while_it_is_wanted():
    async def scene() -> None:
        switch, work = Switch(), Work()
        task = asyncio.ensure_future(under(switch, work))
        await soon(lambda: work.begun == 1)
        switch.turn(Target.PAUSED)
        await soon(lambda: work.ended == 1)
        await soon(lambda: switch.reached is Target.PAUSED)
        switch.turn(Target.PAUSED)
        switch.restart()  # of what is paused nothing is begun
        await asyncio.sleep(0.01)
        assert (work.begun, switch.turns) == (1, 1)
        switch.turn(Target.RUNNING)
        await soon(lambda: work.begun == 2)
        switch.restart()
        await soon(lambda: (work.begun, work.ended) == (3, 2))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert work.ended == 3

    asyncio.run(scene())


def test_what_work_raises_comes_out():
    async def broken() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        asyncio.run(under(Switch(), broken))


def test_copying_obeys():
    async def scene() -> None:
        switch, copying = Switch(), Copying()
        task = asyncio.ensure_future(obey(switch, copying))
        await soon(lambda: copying.told == ["resume"])

        async def told(*words: str, reached: Target) -> None:
            await soon(lambda: switch.reached is reached and copying.told[-len(words) :] == list(words))
            copying.told.clear()

        copying.told.clear()
        switch.turn(Target.PAUSED)
        await told("pause", reached=Target.PAUSED)
        assert not switch.let_go
        switch.turn(Target.RUNNING)
        await told("resume", reached=Target.RUNNING)
        switch.restart()
        await told("halt", "resume", reached=Target.RUNNING)
        # an order that comes while it stops is carried out afterwards
        copying.halting.clear()
        switch.turn(Target.STOPPED)
        await soon(lambda: copying.told == ["halt"])
        assert switch.reached is Target.RUNNING
        switch.turn(Target.RUNNING)
        copying.halting.set()
        await told("halt", "resume", reached=Target.RUNNING)
        switch.turn(Target.STOPPED)
        await told("halt", reached=Target.STOPPED)
        switch.turn(Target.PAUSED)
        await told("pause", reached=Target.PAUSED)
        assert switch.let_go  # what was stopped is not opened to pause
        switch.turn(Target.RUNNING)
        await told("resume", reached=Target.RUNNING)
        assert not switch.let_go
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(scene())
