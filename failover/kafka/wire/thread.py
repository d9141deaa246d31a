"""A synchronous face: the event loop runs in one background thread, commands call into it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Coroutine, Generator
from concurrent.futures import CancelledError
from typing import Any, Self, TypeVar

R = TypeVar("R")


class WireThread:
    """Runs one event loop (uvloop where there is one) in a background thread; a context manager.

    ``run`` may be called from any other thread, from several at once.
    """

    def __init__(self) -> None:
        self._loop = new_loop()
        self._thread = threading.Thread(target=self._work, name="wire", daemon=True)
        self._closed = False
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def run(self, work: Coroutine[Any, Any, R], timeout: float | None = None) -> R:
        """Runs a coroutine to its end and gives its result.

        Raises what it raises, and ``TimeoutError`` after ``timeout`` seconds. However the wait ends early (a signal, a
        timeout), the coroutine is cancelled.
        """
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(timeout)
        finally:
            if not future.done():
                future.cancel()

    def iterate(self, rows: AsyncIterator[R], timeout: float | None = None) -> Generator[R, None, None]:
        """Goes through an async iterator; ``timeout`` seconds for each step. Leaving early ends it."""
        try:
            while True:
                row = self.run(_step(rows), timeout)
                if isinstance(row, _End):
                    return
                yield row
        finally:
            close = getattr(rows, "aclose", None)
            if close is not None:
                self.run(close())

    def close(self) -> None:
        """Cancels what still runs and ends the thread; further calls do nothing."""
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(CancelledError):
            asyncio.run_coroutine_threadsafe(_wind_up(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _work(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()


def new_loop() -> asyncio.AbstractEventLoop:
    """Makes an event loop: uvloop's where there is one."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


class _End:
    """Marks the end of an async iterator."""


async def _step(rows: AsyncIterator[R]) -> R | _End:
    return await anext(rows, _End())


async def _wind_up() -> None:
    own = asyncio.current_task()
    tasks = [task for task in asyncio.all_tasks() if task is not own]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()
    await asyncio.sleep(0)  # what the cancelled ended closes its sockets in the loop's next turn
