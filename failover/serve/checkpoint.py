"""What ``failover checkpoint`` answers over HTTP: metrics and health."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Callable

from failover.replication.checkpointing import Checkpointing
from failover.replication.snapshot import CheckpointsNow, checkpoints_now
from failover.serve.checkpoint_metrics import CheckpointMetrics, checkpoint_health
from failover.serve.server import application, listening
from failover.serve.settings import RestSettings


@contextlib.asynccontextmanager
async def beside_checkpoint(
    settings: RestSettings, source: str, target: str
) -> AsyncIterator[Callable[[Checkpointing], None]]:
    """Answers while the context lasts; what it gives is to be called with what tracks the flow, once it does.

    Raises ``UsageError`` where the address cannot be had, ``ConfigError`` where certificates cannot be used.
    """
    tracked: list[Checkpointing] = []

    def look(now: float) -> CheckpointsNow | None:
        return checkpoints_now(tracked[-1], now) if tracked else None

    def health() -> str:
        now = time.time()
        return checkpoint_health(look(now), now)

    metrics = CheckpointMetrics(source, target, look)
    async with listening(settings, application(settings, metrics=metrics.render, health=health)):
        yield tracked.append
