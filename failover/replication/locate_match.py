"""Comparing the end of a target partition with a stretch of its source: where in the source it could have come from.

Pure. A *cut* is a place between two data records of the source stretch, given as the number of records before it; a
position is a cut, whatever markers and holes lie around it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from failover.replication.reading import Row, Stretch

COMPARED = 32
"""Target records compared at most."""

SURE = 8
"""So many records in a row that agree are no chance where records differ at all: but they may have been sent twice."""


class Side(NamedTuple):
    """Is one log's records as they are compared. ``gaps``: offsets in holes before each record, and behind the last.

    ``places``: where each token stands, rising. ``bottom``: no record of this log lies below.
    """

    offsets: Sequence[int]
    tokens: Sequence[int]
    gaps: Sequence[int]
    places: Mapping[int, Sequence[int]]


class Agreement(NamedTuple):
    """Says how far the target's end agrees with the source below a cut.

    ``pairs``: records found equal. ``broken``: (source, target) record that contradict each other, None where nothing
    does: then all that was compared agrees or is gone from one side. ``short``: the source stretch ended first.
    ``repeats``: it ended with the source's log, yet the target's next record is one of those that the stretch has.
    """

    pairs: int
    broken: tuple[int, int] | None = None
    short: bool = False
    repeats: bool = False

    @property
    def agrees(self) -> bool:
        """Says whether nothing contradicts, as far as there is anything to compare."""
        return self.broken is None and not self.short


class Found(NamedTuple):
    """Is a cut that the target's end agrees with. ``dropped``: records at that end that the source does not have."""

    cut: int
    pairs: int
    dropped: int = 0


class Sample(NamedTuple):
    """Is the end of the target beside a stretch of the source.

    ``bottom``: the source's log begins with the stretch. ``timed``: timestamps are compared, and they differ.
    """

    source: Side
    target: Side
    bottom: bool
    timed: bool = False

    def agreement(self, cut: int, *, dropped: int = 0) -> Agreement:
        """Compares downwards from a cut, the last ``dropped`` target records left out.

        A target record may be missing on the source only where the source has a hole to have lost it in, and the
        other way round, and only if its like is nowhere in the stretch: a log loses records, it does not move them.
        """
        source, target = self.source, self.target
        i, j = cut - 1, len(target.tokens) - 1 - dropped
        floor = max(0, j + 1 - COMPARED)
        lost_there, lost_here, pairs = source.gaps[cut], target.gaps[j + 1], 0
        while i >= 0 and j >= floor:
            if source.tokens[i] == target.tokens[j]:
                lost_there, lost_here = source.gaps[i], target.gaps[j]
                pairs, i, j = pairs + 1, i - 1, j - 1
            elif lost_there and target.tokens[j] not in source.places:
                lost_there, lost_here, j = lost_there - 1, lost_here + target.gaps[j], j - 1
            elif lost_here and source.tokens[i] not in target.places:
                lost_here, lost_there, i = lost_here - 1, lost_there + source.gaps[i], i - 1
            else:
                return Agreement(pairs, (i, j))
        more = j >= floor
        return Agreement(
            pairs, short=more and not self.bottom, repeats=more and self.bottom and target.tokens[j] in source.places
        )

    def went_back(self, agreement: Agreement) -> bool:
        """Says whether what does not agree is the end of an earlier copying that had come further.

        Kafka Connect: a worker that is killed begins again at the position it noted last.
        """
        if agreement.broken is None:
            return agreement.repeats
        at, last = agreement.broken
        places = self.source.places.get(self.target.tokens[last], ())
        return agreement.pairs > 0 and bool(places) and places[-1] > at

    def singular(self, found: Found) -> bool:
        """Says whether each record that agrees below a cut is the only one of its kind in the stretch."""
        tokens = self.source.tokens[found.cut - found.pairs : found.cut]
        return all(len(self.source.places[token]) == 1 for token in tokens)

    def candidates(self) -> tuple[list[Found], list[Found]]:
        """Finds the cuts that the target's end agrees with: altogether, and back to a new beginning of the copying.

        Cuts whose last record is that of the target, or the last of the target's that the source has. The search ends
        with the second sure one of the first kind: more would say no more.
        """
        source, target = self.source, self.target
        last = len(target.tokens) - 1
        while last >= 0 and target.tokens[last] not in source.places:
            last -= 1
        whole: list[Found] = []
        begun: list[Found] = []
        if last < 0:
            return whole, begun
        missing, sure = len(target.tokens) - 1 - last, 0
        for place in source.places[target.tokens[last]]:
            dropped = 0 if source.gaps[place + 1] >= missing else missing
            agreement = self.agreement(place + 1, dropped=dropped)
            if agreement.agrees and not agreement.repeats:
                whole.append(Found(place + 1, agreement.pairs, dropped))
                sure += agreement.pairs >= SURE
                if sure > 1:
                    break
            elif self.went_back(agreement) and not dropped:
                begun.append(Found(place + 1, agreement.pairs))
        return whole, begun


def sample(source: Stretch, target: Stretch, *, bottom: bool) -> Sample:
    """Makes records comparable.

    Timestamps count unless the target's broker set its own, or the source's records have none and got the time of
    their copying. Header values count as they are, or as Connect's SimpleHeaderConverter writes them if only so
    anything is alike.
    """
    stamped = not target.appended and all(row.timestamp != -1 for row in source.rows)
    there = {row.content for row in target.rows}
    encoded = not any(row.content in there for row in source.rows) and any(row.encoded in there for row in source.rows)
    return Sample(
        _side(source, stamped=stamped, encoded=encoded),
        _side(target, stamped=stamped, encoded=False),
        bottom,
        timed=stamped and len({row.timestamp for row in target.rows[-COMPARED:]}) > 1,
    )


def _side(stretch: Stretch, *, stamped: bool, encoded: bool) -> Side:
    tokens = [_token(row, stamped=stamped, encoded=encoded) for row in stretch.rows]
    places: dict[int, list[int]] = {}
    for place, token in enumerate(tokens):
        places.setdefault(token, []).append(place)
    offsets = [row.offset for row in stretch.rows]
    return Side(offsets, tokens, _gaps(offsets, stretch.holes), places)


def _token(row: Row, *, stamped: bool, encoded: bool) -> int:
    content = row.encoded if encoded else row.content
    return hash((content, row.timestamp)) if stamped else content


def _gaps(offsets: Sequence[int], holes: Sequence[tuple[int, int]]) -> list[int]:
    gaps, at = [0] * (len(offsets) + 1), 0
    for first, count in holes:
        while at < len(offsets) and offsets[at] < first:
            at += 1
        gaps[at] += count
    return gaps
