"""The judge of a translated offset: which records would come again, and which would never come.

Every value is unique within its cluster, so a copy is recognised, and both are counted record by
record. *Consumed* is what lies below the group's committed offset on the source, records of aborted
transactions included.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from failover.lab.side import Produced
from failover.model import Record


class Judgement(NamedTuple):
    """Counts records: ``reread`` come again, ``skipped`` are on the target but never come, ``lost`` are not there."""

    reread: int
    skipped: int
    lost: int


class Mirrored:
    """Is one source partition and its copy.

    ``produced``: everything ever written to it; ``source``, ``target``: what the two logs hold now.
    """

    def __init__(self, produced: Iterable[Produced], source: Sequence[Record], target: Sequence[Record]) -> None:
        offset_of = {record.value: record.offset for record in produced}
        newest = {record.key: record.offset for record in source}
        self.positions = array("q", (record.offset for record in target))
        # the source offset of the record at each of these positions
        self.origins = array("q", (offset_of[record.value or b""] for record in target))
        self.last = dict(zip(self.origins, self.positions, strict=True))
        # what a consumer of the source would get; a compacted log keeps the newest of each key
        self.live = [record.offset for record in source]
        self.kept = {record.offset for record in source if record.key is None or newest[record.key] == record.offset}

    def judge(self, upstream: int, offset: int) -> Judgement:
        """Judges a group that committed ``upstream`` on the source and starts at ``offset`` on the target."""
        first = bisect_left(self.positions, offset)
        reread = sum(1 for origin in self.origins[first:] if origin < upstream)
        unread = self.live[bisect_left(self.live, upstream) :]
        skipped = sum(1 for origin in unread if -1 < self.last.get(origin, -1) < offset)
        lost = sum(1 for origin in unread if origin not in self.last and origin in self.kept)
        return Judgement(reread, skipped, lost)
