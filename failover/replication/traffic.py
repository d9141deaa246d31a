"""What a flow has copied since the start, in numbers."""

from __future__ import annotations

from collections import Counter

from failover.replication.batches import Kind
from failover.replication.tally import Tally, Window


class Traffic:
    """Counts acknowledged records, their bytes as sent, batches by what was done to them, and what went wrong.

    ``of_others``: records and bytes read, and offsets left out, of partitions that are another worker's now, so that
    sums do not go back. ``sizes``: records a batch. ``faults``: times something stood in the way, by side and code.
    ``heard``: when each side answered last (seconds since 1970).
    """

    def __init__(self) -> None:
        self.of_others = (0, 0, 0)
        self.records = 0
        self.bytes = 0
        self.batches: Counter[Kind] = Counter()
        self.sizes = Window()
        self.faults: Counter[tuple[str, str]] = Counter()
        self.heard: dict[str, float] = {}

    def add(self, records: int, size: int, kind: Kind, now: float) -> None:
        """Counts one acknowledged batch."""
        self.records += records
        self.bytes += size
        self.batches[kind] += 1
        self.sizes.add(records, now)

    def left(self, tally: Tally) -> None:
        """Keeps what was counted of a partition that another worker copies now."""
        polled, polled_bytes, left_out = self.of_others
        self.of_others = (polled + tally.polled, polled_bytes + tally.polled_bytes, left_out + tally.left_out)

    def failed(self, side: str, code: str) -> None:
        """Counts a fault."""
        self.faults[side, code] += 1
