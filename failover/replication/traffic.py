"""What a flow has copied since the start, in numbers."""

from __future__ import annotations

from collections import Counter

from failover.replication.batches import Kind
from failover.replication.tally import Window


class Traffic:
    """Counts acknowledged records, their bytes as sent, batches by what was done to them, and what went wrong.

    ``sizes``: records a batch. ``faults``: times something stood in the way, by side and code. ``heard``: when each
    side answered last (seconds since 1970).
    """

    def __init__(self) -> None:
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

    def failed(self, side: str, code: str) -> None:
        """Counts a fault."""
        self.faults[side, code] += 1
