from __future__ import annotations

import asyncio
import threading

import pytest

from failover.kafka.wire.thread import WireThread


async def value(result):
    await asyncio.sleep(0)
    return result


async def fails():
    raise KeyError("x")


def test_results_and_errors_come_back():
    with WireThread() as thread:
        assert thread.run(value(3)) == 3
        with pytest.raises(KeyError):
            thread.run(fails())


def test_a_wait_that_ends_early_cancels_the_work():
    ended = threading.Event()

    async def endless():
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    with WireThread() as thread:
        with pytest.raises(TimeoutError):
            thread.run(endless(), timeout=0.01)
        assert ended.wait(5)


def test_closing_ends_what_still_runs():
    ended = []

    async def endless():
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(True)

    async def start():
        running.append(asyncio.create_task(endless()))
        await asyncio.sleep(0)

    running: list[asyncio.Task[None]] = []
    thread = WireThread()
    thread.run(start())
    thread.close()
    thread.close()
    assert ended == [True]


def test_an_async_iterator_is_walked_and_ended():
    ended = []

    async def rows(count):
        try:
            for number in range(count):
                await asyncio.sleep(0)
                yield number
        finally:
            ended.append(count)

    with WireThread() as thread:
        assert list(thread.iterate(rows(3))) == [0, 1, 2]
        walk = thread.iterate(rows(5))
        assert next(walk) == 0
        walk.close()
    assert ended == [3, 5]


def test_calls_may_come_from_many_threads():
    with WireThread() as thread:
        results: list[int] = []
        callers = [
            threading.Thread(target=lambda number=number: results.append(thread.run(value(number))))
            for number in range(8)
        ]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
    assert sorted(results) == list(range(8))
