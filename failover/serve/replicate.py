"""What ``failover replicate`` answers over HTTP: metrics, health, Kafka Connect's REST, and a page for people."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator

from failover.serve.board import Board
from failover.serve.connect_api import ConnectApi
from failover.serve.history import History
from failover.serve.metrics import Metrics
from failover.serve.server import application, listening
from failover.serve.settings import RestSettings
from failover.serve.status_page import StatusPage


@contextlib.asynccontextmanager
async def beside_replicate(settings: RestSettings, board: Board) -> AsyncIterator[str]:
    """Answers for a board while the context lasts; gives the URL. Raises ``UsageError``, ``ConfigError``."""
    metrics = Metrics(board)
    worker = f"{settings.host}:{settings.port}"
    api = ConnectApi(board, worker=worker, clock=time.time)
    history = History(board, time.time)
    page = StatusPage(history)
    routes = [*api.routes(), *page.routes()]
    app = application(
        settings, metrics=metrics.render, health=lambda: board.health, failed=lambda: board.failed, routes=routes
    )
    app.on_shutdown.append(page.end)
    async with listening(settings, app) as url:
        looking = asyncio.get_running_loop().create_task(history.run())
        try:
            yield url
        finally:
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)
