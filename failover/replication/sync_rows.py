"""Of which records offset syncs are written. Pure."""

from __future__ import annotations

Row = tuple[int, int]
"""(source offset, target offset) of one record."""


class SyncRows:
    """Gathers the pairs of one partition that are to become offset syncs.

    They stand wherever the difference of the two offsets changes, at the last record copied, and between these at ends
    of batches about ``offset.lag.max`` records apart: MirrorMaker 2's own translation gets no nearer than to the sync
    before (MM2: OffsetSyncWriter).
    """

    __slots__ = ("_delta", "_lag_max", "_rows")

    def __init__(self, offset_lag_max: int) -> None:
        self._lag_max = offset_lag_max
        self._delta: int | None = None
        self._rows: list[Row] = []

    def copied(self, source: Row, target: Row) -> None:
        """Notes a batch: the offsets of its first and last record on either side."""
        if source[0] - target[0] != self._delta:
            self._add(source[0], target[0])
        self._delta = source[1] - target[1]
        self._add(source[1], target[1])

    def begin(self, upstream: int, downstream: int | None = None) -> None:
        """Goes on elsewhere: what was noted from these offsets on is true no more."""
        self._delta = None
        self._rows = [row for row in self._rows if row[0] < upstream and (downstream is None or row[1] < downstream)]

    def take(self) -> list[Row]:
        """Gives the pairs noted since the last time."""
        rows, self._rows = self._rows, []
        return rows

    def _add(self, upstream: int, downstream: int) -> None:
        """Adds a pair; of those that continue one another the last takes its place while the one before is near."""
        rows = self._rows
        delta = upstream - downstream
        if rows and rows[-1] == (upstream, downstream):
            return
        if (
            len(rows) >= 2
            and rows[-1][0] - rows[-1][1] == delta == rows[-2][0] - rows[-2][1]
            and downstream - rows[-2][1] <= self._lag_max
        ):
            rows[-1] = upstream, downstream
        else:
            rows.append((upstream, downstream))
