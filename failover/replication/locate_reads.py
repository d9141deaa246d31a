"""What is read of the two logs of one partition while its position is looked for. Sans-IO: it yields what it wants."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Generator, Mapping
from typing import Literal, TypeVar

from failover.model.cluster import LogRange
from failover.replication.locate_match import COMPARED
from failover.replication.reading import Stretch, Want

T = TypeVar("T")
Steps = Generator[tuple[Want, ...], Mapping[Want, Stretch], T]

MARGIN = 2 * COMPARED
"""Offsets among which there are mostly as many records as are compared."""


class Logs:
    """Keeps what was read, so that it is not read again. ``limit``: offsets read at most while looking backwards."""

    def __init__(self, source: LogRange, target: LogRange, *, limit: int) -> None:
        self.source, self.target = source, target
        self._limit = limit
        self._read: list[tuple[Want, Stretch]] = []

    def want(self, side: Literal["source", "target"], start: int, stop: int, *, records: bool = True) -> Want:
        """Asks for the part of a stretch that the log has."""
        first, end = self.source if side == "source" else self.target
        start = min(max(start, first), end)
        return Want(side, start, min(max(stop, start), end), records)

    def get(self, wants: list[Want]) -> Steps[list[Stretch]]:
        """Reads stretches, in the order asked; those that are not known yet together."""
        missing = tuple(dict.fromkeys(want for want in wants if self._known(want) is None))
        if missing:
            answers = yield missing
            self._read += answers.items()
        found = [self._known(want) for want in wants]
        return [stretch for stretch in found if stretch is not None]

    def _known(self, want: Want) -> Stretch | None:
        if want.start >= want.stop:
            return Stretch(want.start, want.stop)
        for has, stretch in self._read:
            covers = has.side == want.side and has.start <= want.start and want.stop <= has.stop
            if covers and (has.records or not want.records):
                return stretch.part(want.start, want.stop)
        return None

    def tail(self, wanted: int) -> Steps[Stretch]:
        """Reads the target's last data records, if there are so many."""
        width = MARGIN
        while True:
            [tail] = yield from self.get([self.want("target", self.target.end - width, self.target.end)])
            if len(tail.rows) >= wanted or tail.start == self.target.start or width >= max(wanted, self._limit):
                return tail
            width *= 4

    def around(self, low: int, high: int) -> Steps[Stretch]:
        """Reads the source from enough records below ``low``, where there are, to ``high``."""
        width = MARGIN
        while True:
            want = self.want("source", low - width, high)
            [found] = yield from self.get([want])
            below = bisect_left(found.rows, low, key=lambda row: row[0])
            if below >= COMPARED or want.start == self.source.start or width >= self._limit:
                return found
            width *= 4
