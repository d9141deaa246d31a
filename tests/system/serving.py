"""Answers HTTP from a thread of its own, for programs that are no part of the test: a browser, Prometheus."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator

from aiohttp import web

from failover.serve.server import listening
from failover.serve.settings import RestSettings


@contextlib.contextmanager
def in_a_thread(app: web.Application) -> Iterator[str]:
    """Serves while the context lasts; gives the URL."""
    loop, ready, urls = asyncio.new_event_loop(), threading.Event(), list[str]()
    end = asyncio.Event()

    async def serve() -> None:
        async with listening(RestSettings("127.0.0.1", 0), app) as url:
            urls.append(url)
            ready.set()
            await end.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield urls[0]
    finally:
        loop.call_soon_threadsafe(end.set)
        thread.join(10)
        loop.close()
