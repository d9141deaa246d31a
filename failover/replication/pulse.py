"""Whether this process has been running all the time."""

from __future__ import annotations

import time
from collections.abc import Callable


def _boot_time() -> float:
    """Gives seconds since boot, those in suspend included, where a monotonic clock stands still."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(clock)


class Pulse:
    """Says that the event loop has been heard of within ``limit`` seconds.

    A process that was frozen or suspended wakes up with requests ready to be sent, while another may have taken over;
    and brokers forget a producer whose records are old, so they may not refuse it. So nothing is sent after a longer
    silence until it is proven that the shard is still ours.
    """

    def __init__(self, limit: float, *, clock: Callable[[], float] = _boot_time) -> None:
        self._limit = limit
        self._clock = clock
        self._last = clock()

    def alive(self) -> bool:
        """Says whether the last beat is recent enough."""
        return self._clock() - self._last <= self._limit

    def beat(self) -> float:
        """Notes that the loop runs; gives the seconds since the last beat where they were too many, else 0."""
        now = self._clock()
        silent, self._last = now - self._last, now
        return silent if silent > self._limit else 0.0
