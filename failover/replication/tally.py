"""What copying has come to, in numbers: counts since the start, and figures over the last minute. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from failover.replication.batches import Outgoing

_SAMPLE_SECONDS = 30.0

UNKNOWN = -1.0


class Spread(NamedTuple):
    """Is what a ``Window`` holds; all but ``last`` are NaN while it holds nothing, ``last`` before the first value."""

    last: float = math.nan
    least: float = math.nan
    most: float = math.nan
    mean: float = math.nan


class Window:
    """Keeps the last value, and the smallest, largest and mean one of the last 30 to 60 seconds.

    As Kafka's metrics do (SampledStat): two samples of 30 seconds, of which the older one is thrown away.
    """

    __slots__ = ("_count", "_least", "_most", "_old", "_total", "_until", "last")

    def __init__(self) -> None:
        self.last = math.nan
        self._until = 0.0
        self._old: tuple[int, float, float, float] = (0, 0.0, math.inf, -math.inf)
        self._count, self._total, self._least, self._most = self._old

    def add(self, value: float, now: float, times: int = 1) -> None:
        """Takes a value, ``times`` over; ``now`` in seconds."""
        if now >= self._until:
            self._roll(now)
        self.last = value
        self._count += times
        self._total += value * times
        self._least = min(self._least, value)
        self._most = max(self._most, value)

    def read(self, now: float) -> Spread:
        """Gives what it holds at ``now``."""
        if now >= self._until:
            self._roll(now)
        count, total, least, most = self._old
        count += self._count
        if not count:
            return Spread(self.last)
        return Spread(self.last, min(least, self._least), max(most, self._most), (total + self._total) / count)

    def _roll(self, now: float) -> None:
        fresh = now < self._until + _SAMPLE_SECONDS
        self._old = (self._count, self._total, self._least, self._most) if fresh else (0, 0.0, math.inf, -math.inf)
        self._count, self._total, self._least, self._most = 0, 0.0, math.inf, -math.inf
        self._until = now + _SAMPLE_SECONDS


class Tally:
    """Counts one partition's copying. Times are in seconds since 1970, timestamps and ages in milliseconds.

    ``polled``, ``copied``: records read, and acknowledged by the target. ``polled_bytes``, ``copied_bytes``: of their
    batches. ``left_out``: offsets of the source of which the target gets nothing: transaction markers, aborted records,
    holes that compaction left. ``newest``: the newest timestamp of what was copied last, -1 before. ``age``,
    ``latency``: how old a batch's newest record was when it was read, and when it was acknowledged (MM2: record-age,
    replication-latency).
    ``behind_since``: when the source's end was first seen beyond what is copied, 0 while nothing is to be copied,
    ``UNKNOWN`` until then: what was there at the start may be of any age.
    """

    __slots__ = (
        "age",
        "behind_since",
        "copied",
        "copied_bytes",
        "latency",
        "left_out",
        "newest",
        "polled",
        "polled_bytes",
    )

    def __init__(self) -> None:
        self.polled = self.polled_bytes = self.copied = self.copied_bytes = self.left_out = 0
        self.newest = -1
        self.age = Window()
        self.latency = Window()
        self.behind_since = UNKNOWN

    def seen(self, upstream: int, end: int, now: float) -> None:
        """Notes the source's end as a broker told it; all below ``upstream`` is copied."""
        if upstream >= end:
            self.behind_since = 0.0
        elif self.behind_since == 0.0:
            self.behind_since = now

    def took(self, batches: Iterable[Outgoing], offsets: int, now: float) -> None:
        """Counts batches that were read; they are what the target gets of so many ``offsets`` of the source."""
        self.left_out += offsets
        for batch in batches:
            self.left_out -= batch.records
            self.polled += batch.records
            self.polled_bytes += len(batch.data)
            self.age.add(now * 1000 - batch.newest_timestamp, now, batch.records)

    def sent(self, batch: Outgoing, now: float) -> None:
        """Counts a batch that the target has acknowledged."""
        self.copied += batch.records
        self.copied_bytes += len(batch.data)
        self.newest = batch.newest_timestamp
        self.latency.add(now * 1000 - batch.newest_timestamp, now, batch.records)

    def seconds_behind(self, now: float) -> float:
        """Gives how old the oldest record may be that is not copied yet, given there is one; NaN where nothing tells.

        Two bounds, of which the lower counts: it is no older than what was copied last (as far as its producer's clock
        tells), and no older than the moment since when something was to be copied.
        """
        by_record = now - self.newest / 1000 if self.newest >= 0 else math.inf
        by_clock = now - self.behind_since if self.behind_since > 0 else math.inf
        found = min(by_record, by_clock)
        return max(found, 0.0) if found != math.inf else math.nan
