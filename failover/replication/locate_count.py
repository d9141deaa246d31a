"""Passing as many data records on the source as the target got since an anchor. Pure."""

from __future__ import annotations

from heapq import merge
from typing import NamedTuple

from failover.replication.reading import Stretch


class Passed(NamedTuple):
    """Says where so many records from an offset on lead to: somewhere in [low, high], by source offset.

    ``least``, ``most``: how many records it is. ``natural``: the place if whatever is gone was data, None beyond the
    source's end. ``beyond``: how many of the least are missing up to the source's end. ``behind_start``: the number is
    known, and all that is gone lies below the source's log start.
    """

    low: int
    high: int
    least: int
    most: int
    natural: int | None
    beyond: int = 0
    behind_start: bool = False

    @property
    def records(self) -> str:
        """Is the number of records in words."""
        return f"{self.least} records" if self.least == self.most else f"{self.least} to {self.most} records"


def passed(upstream: int, walked: Stretch, least: int, most: int) -> Passed:
    """Goes over at least ``least`` and at most ``most`` data records from ``upstream`` on.

    ``walked``: what lies there, from the log's start if that is behind ``upstream``, far enough or to the log's end.
    """
    if walked.start < upstream:
        raise ValueError(f"a walk from {upstream} cannot begin at {walked.start}")
    low, beyond = _at_least(upstream, walked, least)
    natural, short = _at_least(upstream, walked, most)
    high = max(_at_most(walked, most) if most else low, low)
    behind_start = least == most and walked.start > upstream and not walked.missing
    return Passed(low, high, least, most, None if short else natural, beyond, behind_start)


def _at_least(upstream: int, walked: Stretch, records: int) -> tuple[int, int]:
    """Takes whatever is gone for records: (the offset behind the last one, how many are left to pass)."""
    hidden = walked.start - upstream
    if records <= hidden:
        return upstream + records, 0
    left = records - hidden
    for first, count in merge(walked.runs, walked.holes):
        if count >= left:
            return first + left, 0
        left -= count
    return walked.stop, left


def _at_most(walked: Stretch, records: int) -> int:
    """Takes whatever is gone for none: the offset of the first record that is not passed, or where the walk ends."""
    left = records
    for first, count in walked.runs:
        if count > left:
            return first + left
        left -= count
    return walked.stop
