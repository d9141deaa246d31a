"""What has been read of one log, reduced to numbers; record contents are not kept.

A record's fingerprint is Python's hash of key, value and headers: 64 bits, keyed by the process, so
it is never stored and never compared with another process's.
"""

from __future__ import annotations

import base64
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from failover.model.records import Record


def fingerprint_encoded(record: Record) -> int:
    """Reduces key, value and headers to 64 bits, the header values as a converter turns them into base64 text.

    Kafka Connect: SimpleHeaderConverter, the default on plain Connect, writes bytes that way; null stays null.
    """
    headers = tuple((name, None if value is None else base64.b64encode(value)) for name, value in record.headers)
    return hash((record.key, record.value, headers))


class LogView:
    """Holds the read stretches of one partition's log, by offset: fingerprint and timestamp of each data record.

    ``headers``: some record has any. ``encoded``: fingerprints with encoded headers, kept while ``encode`` is set.
    """

    __slots__ = ("_covered", "encode", "encoded", "headers", "offsets", "prints", "stamps")

    def __init__(self, *, encode: bool = False) -> None:
        self.encode = encode
        self.headers = False
        self.offsets: array[int] = array("q")
        self.prints: array[int] = array("q")
        self.encoded: array[int] = array("q")
        self.stamps: array[int] = array("q")
        self._covered: list[tuple[int, int]] = []

    def add(self, start: int, stop: int, records: Sequence[Record]) -> None:
        """Adds the records of [start, stop); the stretch must not be covered yet."""
        at = bisect_left(self.offsets, start)
        self.offsets[at:at] = array("q", [record[0] for record in records])
        self.stamps[at:at] = array("q", [record[1] for record in records])
        self.prints[at:at] = array("q", [hash(record[2:]) for record in records])
        if self.encode:
            self.encoded[at:at] = array("q", [fingerprint_encoded(record) for record in records])
        if not self.headers:
            self.headers = any(record.headers for record in records)
        self._cover(start, stop)

    def _cover(self, start: int, stop: int) -> None:
        first = bisect_left(self._covered, start, key=lambda pair: pair[1])
        last = bisect_right(self._covered, stop, key=lambda pair: pair[0])
        for low, high in self._covered[first:last]:
            start, stop = min(start, low), max(stop, high)
        self._covered[first:last] = [(start, stop)]

    def missing(self, start: int, stop: int) -> list[tuple[int, int]]:
        """Returns the parts of [start, stop) that have not been read."""
        gaps = []
        at = bisect_right(self._covered, start, key=lambda pair: pair[1])
        for low, high in self._covered[at:]:
            if low >= stop:
                break
            if low > start:
                gaps.append((start, low))
            start = high
        if start < stop:
            gaps.append((start, stop))
        return gaps

    def covers(self, start: int, stop: int) -> bool:
        """Says whether all of [start, stop) has been read."""
        return start >= stop or not self.missing(start, stop)

    def between(self, start: int, stop: int) -> range:
        """Returns the places in the columns of the records in [start, stop)."""
        return range(bisect_left(self.offsets, start), bisect_left(self.offsets, stop))

    def count(self, start: int, stop: int) -> int:
        """Returns how many records were read in [start, stop)."""
        return len(self.between(start, stop))

    def tokens(self, places: range, *, encoded: bool = False, stamped: bool = True) -> list[int]:
        """Returns what records are compared by; ``stamped``: with their timestamp."""
        prints = (self.encoded if encoded else self.prints)[places.start : places.stop]
        if not stamped:
            return prints.tolist()
        stamps = self.stamps[places.start : places.stop]
        return [hash(pair) for pair in zip(prints, stamps, strict=True)]
