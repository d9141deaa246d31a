"""Rates over the last minute, from counters that are looked at now and then. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

_SPAN_SECONDS = 60.0
_STEP_SECONDS = 10.0


class Rates(Generic[K]):
    """Remembers counters of the last minute. ``began``: when they all were 0, in seconds."""

    def __init__(self, began: float) -> None:
        self._seen: deque[tuple[float, Mapping[K, tuple[int, ...]]]] = deque([(began, {})])

    def take(self, now: float, counters: Mapping[K, tuple[int, ...]]) -> dict[K, tuple[float, ...]]:
        """Gives what each counter grew by a second since a minute ago, or since the oldest look that is younger."""
        while len(self._seen) > 1 and self._seen[1][0] <= now - _SPAN_SECONDS:
            self._seen.popleft()
        then, before = self._seen[0]
        if now - self._seen[-1][0] >= _STEP_SECONDS:
            self._seen.append((now, counters))
        span = max(now - then, 1e-3)
        return {
            key: tuple(
                [max(new - old, 0) / span for new, old in zip(values, before.get(key, _zeros(values)), strict=True)]
            )
            for key, values in counters.items()
        }


def _zeros(values: tuple[int, ...]) -> tuple[int, ...]:
    return (0,) * len(values)
