from __future__ import annotations

import asyncio
import logging

import pytest

from failover.errors import ClusterUnreachable
from failover.replication import repeating
from failover.replication.repeating import Troubles, repeat, while_so


def run(monkeypatch, outcomes, *, seconds=600.0):
    """Repeats work that ends as told, an error or None each time; gives the pauses between."""
    pauses: list[float] = []
    left = list(outcomes)

    async def sleep(pause):
        pauses.append(pause)
        if not left:
            raise asyncio.CancelledError

    async def work():
        if (outcome := left.pop(0)) is not None:
            raise outcome

    monkeypatch.setattr(asyncio, "sleep", sleep)

    async def inside():
        try:
            await repeat(work, seconds=seconds, what="this")
        except asyncio.CancelledError:
            return

    asyncio.run(inside())
    return pauses


def test_what_fails_is_told_once_and_once_more_when_it_works(monkeypatch, caplog):
    down = ClusterUnreachable("nobody there", alias="b", hint="look")
    pauses = run(monkeypatch, [down, down, None, None, down])
    assert [record.getMessage() for record in caplog.records] == [
        "this: nobody there; look; tried again",
        "this: works again",
        "this: nobody there; look; tried again",
    ]
    assert pauses == [30, 30, 600, 600, 30]


def test_a_short_interval_holds_for_what_fails_too(monkeypatch):
    assert run(monkeypatch, [ClusterUnreachable("x", alias="b")], seconds=2) == [2]


def test_a_defect_ends_nothing(monkeypatch, caplog):
    pauses = run(monkeypatch, [ZeroDivisionError("oops"), None])
    [record] = caplog.records
    assert record.exc_info is not None
    assert (record.levelno, pauses) == (logging.ERROR, [600, 600])


def test_troubles_begin_and_end_one_by_one(caplog):
    troubles = Troubles()
    for _ in range(2):
        troubles.tell("a", "a began", over="a ended")
        troubles.tell("b", "b began")
    troubles.only(["b"])
    troubles.only(["b"])
    troubles.only()
    troubles.tell("a", "a began", over="a ended")
    assert [record.getMessage() for record in caplog.records] == ["a began", "b began", "a ended", "a began"]


async def until(done):
    while not done():  # noqa: ASYNC110 - whoever changes it tells nobody
        await asyncio.sleep(0.001)


def test_work_is_done_while_something_is_so_and_from_its_beginning_each_time(monkeypatch):
    monkeypatch.setattr(repeating, "_LOOK_SECONDS", 0.001)
    told = []

    async def work():
        told.append("begun")
        try:
            await asyncio.Event().wait()
        finally:
            told.append("ended")

    async def inside():
        so = False
        task = asyncio.ensure_future(while_so(lambda: so, work))
        await asyncio.sleep(0.01)
        assert told == []
        for turn in range(3):
            so = True
            await until(lambda: len(told) == 2 * turn + 1)  # noqa: B023 - awaited within the turn
            if turn < 2:
                so = False
                await until(lambda: len(told) == 2 * turn + 2)  # noqa: B023 - likewise
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(inside())
    assert told == ["begun", "ended"] * 3


def test_work_that_ends_by_itself_ends_it():
    async def fails():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(while_so(lambda: True, fails))
