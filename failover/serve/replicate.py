"""What ``failover replicate`` answers over HTTP: metrics, health, and Kafka Connect's REST."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator

from failover.serve.board import Board
from failover.serve.connect_api import ConnectApi
from failover.serve.metrics import Metrics
from failover.serve.server import application, listening
from failover.serve.settings import RestSettings


@contextlib.asynccontextmanager
async def beside_replicate(settings: RestSettings, board: Board) -> AsyncIterator[str]:
    """Answers for a board while the context lasts; gives the URL. Raises ``UsageError``, ``ConfigError``."""
    metrics = Metrics(board)
    worker = f"{settings.host}:{settings.port}"
    api = ConnectApi(board, worker=worker, clock=time.time)
    app = application(settings, metrics=metrics.render, health=lambda: board.health, routes=api.routes())
    async with listening(settings, app) as url:
        yield url
