"""What was copied since the start, in numbers."""

from __future__ import annotations

from collections import Counter

from failover.replication.batches import Kind


class Traffic:
    """Counts acknowledged records, their bytes as sent, and batches by what was done to them."""

    def __init__(self) -> None:
        self.records = 0
        self.bytes = 0
        self.batches: Counter[Kind] = Counter()

    def add(self, records: int, size: int, kind: Kind) -> None:
        """Counts one acknowledged batch."""
        self.records += records
        self.bytes += size
        self.batches[kind] += 1
