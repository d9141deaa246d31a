"""What has been read of one log, reduced to numbers; record contents are not kept.

A record's fingerprint is Python's hash of key, value and headers: 64 bits, keyed by the process, so
it is never stored and never compared with another process's.
"""

from __future__ import annotations

import base64
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence

from failover.mm2.provenance import without_provenance
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

    __slots__ = (
        "_begins", "_ends", "_repeated", "_repeated_of", "_tokens", "_tokens_of",
        "encode", "encoded", "headers", "offsets", "prints", "stamps",
    )  # fmt: skip

    def __init__(self, *, encode: bool = False) -> None:
        self.encode = encode
        self.headers = False
        self.offsets: array[int] = array("q")
        self.prints: array[int] = array("q")
        self.encoded: array[int] = array("q")
        self.stamps: array[int] = array("q")
        self._begins: list[int] = []
        self._ends: list[int] = []
        self._tokens: array[int] = array("q")
        self._tokens_of: tuple[bool, bool] | None = None
        self._repeated: dict[int, int] = {}
        self._repeated_of: tuple[bool, bool, int] | None = None

    def add(self, start: int, stop: int, records: Sequence[Record]) -> None:
        """Adds the records of [start, stop); the stretch must not be covered yet."""
        at = bisect_left(self.offsets, start)
        self.offsets[at:at] = array("q", [record[0] for record in records])
        self.stamps[at:at] = array("q", [record[1] for record in records])
        if any(record.headers for record in records):
            records = [without_provenance(record) for record in records]
            self.headers = self.headers or any(record.headers for record in records)
        self.prints[at:at] = array("q", [hash(record[2:]) for record in records])
        if self.encode:
            self.encoded[at:at] = array("q", [fingerprint_encoded(record) for record in records])
        self._tokens_of = None
        self._cover(start, stop)

    def _cover(self, start: int, stop: int) -> None:
        first = bisect_left(self._ends, start)
        last = bisect_right(self._begins, stop)
        if first < last:
            start, stop = min(start, self._begins[first]), max(stop, self._ends[last - 1])
        self._begins[first:last] = [start]
        self._ends[first:last] = [stop]

    def copied_encoded(self, copies: LogView) -> bool | None:
        """Says whether more of these records are among the copies with encoded headers than as they are.

        None where as many are: nobody can tell yet.
        """
        found = set(copies.prints)
        plain = sum(1 for each in self.prints if each in found)
        encoded = sum(1 for each in self.encoded if each in found)
        return None if plain == encoded else encoded > plain

    def missing(self, start: int, stop: int) -> list[tuple[int, int]]:
        """Returns the parts of [start, stop) that have not been read."""
        at = bisect_right(self._ends, start)
        if at < len(self._begins) and self._begins[at] <= start and stop <= self._ends[at]:
            return []
        gaps = []
        while at < len(self._begins) and self._begins[at] < stop:
            if self._begins[at] > start:
                gaps.append((start, self._begins[at]))
            start = self._ends[at]
            at += 1
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
        if self._tokens_of != (encoded, stamped):
            # made once for all committed offsets of a partition: their windows overlap
            prints = self.encoded if encoded else self.prints
            self._tokens = array("q", map(hash, zip(prints, self.stamps, strict=True))) if stamped else prints
            self._tokens_of = encoded, stamped
        return self._tokens[places.start : places.stop].tolist()

    def repeated(self, *, encoded: bool = False, stamped: bool = True) -> dict[int, int]:
        """Returns the tokens that more than one of the records read has, with the offset of the first."""
        known = encoded, stamped, len(self.offsets)
        if self._repeated_of != known:
            tokens = self.tokens(range(len(self.offsets)), encoded=encoded, stamped=stamped)
            self._repeated, self._repeated_of = {}, known
            if len(set(tokens)) < len(tokens):
                first = dict(zip(reversed(tokens), reversed(self.offsets), strict=True))
                self._repeated = {token: first[token] for token, times in Counter(tokens).items() if times > 1}
        return self._repeated
