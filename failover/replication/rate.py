"""A bound on the bytes read a second."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable


class Rate:
    """Lets ``bytes_per_second`` through (0: no bound), with bursts of a second; what was too much is waited for."""

    def __init__(
        self,
        bytes_per_second: int,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._rate = bytes_per_second
        self._clock = clock
        self._sleep = sleep
        self._credit = float(bytes_per_second)
        self._since = clock()

    def took(self, size: int) -> None:
        """Notes bytes that were read."""
        self._credit -= size

    async def ready(self) -> None:
        """Waits until the next read may begin."""
        if not self._rate:
            return
        now = self._clock()
        self._credit = min(self._credit + (now - self._since) * self._rate, float(self._rate))
        self._since = now
        if self._credit < 0:
            await self._sleep(-self._credit / self._rate)
