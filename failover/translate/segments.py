"""The syncs of one partition, cut into histories, and what they say about records copied twice.

Words used here and in ``sync_rule``:

* *history*: a stretch of syncs whose upstream offsets rise. MM2 restarts from the last flushed
  Connect offset, so after ``kill -9`` it copies a stretch again and its syncs go back upstream: a
  new history begins, further down the same target log. Histories overlap upstream, never
  downstream.
* *span* i: what lies between neighbouring syncs i and i + 1. It *grows* when the downstream step
  is larger than the upstream step: the target then holds more offsets than the source could have
  filled, so something was copied twice (or the target has transaction markers).
* *break*: a span that grows, or that leads from one history to the next. A run of MM2 that was
  killed may have copied further than its last sync says; that unseen *tail* lies in a break.
* *frontier*: the furthest upstream offset any sync reached so far.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from itertools import compress, islice, pairwise
from operator import le, lt, sub
from typing import NamedTuple


class Breaks(NamedTuple):
    """Are the spans in which a killed run's tail or a recopied head may lie: columns, in downstream order.

    ``after``: index of the sync before it. ``extra``: the most records in it that are copies
    beyond the first ones (hence also the most its tail can reach beyond the span). ``upto``: the
    upstream offset that a recopied head in it must have reached. ``front``: place in the frontier
    columns beyond which its tail may have reached. ``largest``: the largest ``extra``. ``widest``: the most source
    offsets that one spans.
    """

    after: array[int]
    extra: array[int]
    upto: array[int]
    front: array[int]
    largest: int
    widest: int


class Syncs:
    """Holds one partition's usable syncs: downstream offsets rise throughout, upstream within a history.

    ``ups``, ``downs``: the columns. ``starts``: index of the first sync of each history.
    ``voided``: syncs left out because a later one went back downstream: the target was truncated
    or recreated, and nothing tells which of the older ones still hold (mirrored records at their
    offsets may be others by now), so all of them are void. ``replayed``: syncs that arrived a
    second time unchanged (a retried produce of the syncs producer) and say nothing new.
    """

    __slots__ = ("_breaks", "_front_data", "_front_ups", "_usable", "downs", "replayed", "starts", "ups", "voided")

    def __init__(
        self, ups: array[int], downs: array[int], starts: array[int], *, voided: int = 0, replayed: int = 0
    ) -> None:
        self.ups = ups
        self.downs = downs
        self.starts = starts
        self.voided = voided
        self.replayed = replayed
        self._breaks: Breaks | None = None
        self._usable: int | None = None
        self._front_ups: array[int] = array("q")
        self._front_data: array[int] = array("q")

    @classmethod
    def of(cls, ups: array[int], downs: array[int]) -> Syncs:
        """Cuts the columns of one partition, in arrival order, into histories."""
        if any(map(le, islice(downs, 1, None), downs)):
            return cls._cleaned(ups, downs)
        return cls(ups, downs, _starts(ups))

    @classmethod
    def _cleaned(cls, ups: array[int], downs: array[int]) -> Syncs:
        keep_ups, keep_downs = array("q"), array("q")
        voided = replayed = 0
        for up, down in zip(ups, downs, strict=True):
            if keep_downs and down <= keep_downs[-1]:
                at = bisect_left(keep_downs, down)
                if keep_downs[at] == down and keep_ups[at] == up:
                    replayed += 1
                    continue
                voided += len(keep_downs)
                keep_ups, keep_downs = array("q"), array("q")
            keep_ups.append(up)
            keep_downs.append(down)
        return cls(keep_ups, keep_downs, _starts(keep_ups), voided=voided, replayed=replayed)

    def __len__(self) -> int:
        return len(self.ups)

    def history_of(self, index: int) -> int:
        """Returns the number of the history the sync at ``index`` belongs to."""
        return bisect_right(self.starts, index) - 1

    def bounds_of(self, history: int) -> tuple[int, int]:
        """Returns the indexes [first, beyond the last) of a history's syncs."""
        first = self.starts[history]
        beyond = self.starts[history + 1] if history + 1 < len(self.starts) else len(self.ups)
        return first, beyond

    def since(self, index: int) -> Syncs:
        """Returns the syncs from ``index`` on; the older ones count as voided."""
        if index == 0:
            return self
        ups, downs = self.ups[index:], self.downs[index:]
        return Syncs(ups, downs, _starts(ups), voided=self.voided + index, replayed=self.replayed)

    def below(self, upstream: int, last: int) -> int:
        """Returns the index of the sync nearest at or below ``upstream`` in the last history that reaches down to it.

        ``last``: index of the newest sync that may be used. Returns -1 when every history begins above.
        """
        for history in range(self.history_of(last), -1, -1):
            first, beyond = self.bounds_of(history)
            if self.ups[first] <= upstream:
                return bisect_right(self.ups, upstream, first, min(beyond, last + 1)) - 1
        return -1

    def first_beyond(self, upstream: int) -> int:
        """Returns the index of the earliest sync above ``upstream``, -1 when there is none."""
        for history in range(len(self.starts)):
            first, beyond = self.bounds_of(history)
            if self.ups[beyond - 1] > upstream:
                return bisect_right(self.ups, upstream, first, beyond)
        return -1

    @property
    def breaks(self) -> Breaks:
        """The breaks; worked out at the first use."""
        if self._breaks is None:
            self._breaks = self._find_breaks()
        return self._breaks

    def _find_breaks(self) -> Breaks:
        ups, downs = self.ups, self.downs
        found = Breaks(array("q"), array("q"), array("q"), array("q"), 0, 0)
        deltas = array("q", map(sub, downs, ups))
        if len(self.starts) == 1 and not any(map(lt, deltas, islice(deltas, 1, None))):
            self._front_ups, self._front_data = ups, downs
            return found
        front_ups, front_data = array("q", ups[:1]), array("q", [0])
        front, data, widest = ups[0], 0, 0
        for index, ((up, next_up), (down, next_down)) in enumerate(zip(pairwise(ups), pairwise(downs), strict=True)):
            step, rise = next_down - down, next_up - up
            before = len(front_ups) - 1
            if next_up > front:
                data += next_up - front if step > rise else max(1, step - (front - up))
                front = next_up
                front_ups.append(front)
                front_data.append(data)
            if step > rise:
                found.after.append(index)
                found.extra.append(step - max(rise, 1))
                found.upto.append(next_up)
                found.front.append(before if rise <= 0 else len(front_ups) - 1)
                widest = max(widest, rise)
        self._front_ups, self._front_data = front_ups, front_data
        return found._replace(largest=max(found.extra, default=0), widest=widest)

    def data_between(self, low: int, high: int) -> int:
        """Returns how many data records with an upstream offset in [low, high) were mirrored, at least.

        Counts by downstream steps, so it holds where no span both lacks source offsets and
        contains records copied twice (see ``sync_rule``).
        """
        self.breaks  # noqa: B018 - fills the frontier columns
        first = bisect_left(self._front_ups, low)
        last = bisect_left(self._front_ups, high) - 1
        return 0 if last < first else self._front_data[last] - self._front_data[first] + 1

    def recopies(
        self, upstream: int, index: int, *, lacking: Mapping[int, int] | None = None, own: bool = False
    ) -> Iterator[tuple[int, int]]:
        """Yields the breaks from sync ``index`` on that may hold consumed records again: (sync before, most of them).

        A run that restarts below the committed offset copies everything from there on again, so a
        break holds consumed records only if it has room for all that lies between the committed
        offset and where the break ends. Source offsets within a break that hold no record leave more room:
        ``lacking`` says of a break, by the sync before it, how many these are; of others none are known, and with
        ``own`` a break may be made of nothing else.
        """
        breaks, known, above = self.breaks, lacking or {}, 0
        most = breaks.largest + (breaks.widest if known or own else 0)
        for at in range(bisect_left(breaks.after, index), len(breaks.after)):
            after = breaks.after[at]
            # what lies above the sync before it and was copied in the break is no room in it already
            between = self.data_between(upstream, min(breaks.upto[at], self.ups[after] + 1)) - above
            room = breaks.extra[at] + known.get(after, max(0, self.ups[after + 1] - self.ups[after] - 1) if own else 0)
            above += known.get(after, 0)
            if room > between:
                yield after, room - between
            elif between > most and after >= self.starts[-1]:
                break

    def usable_to(self) -> int:
        """Returns the index of the newest sync from which on everything ever mirrored is mirrored (again).

        After a restart MM2 copies again what it had copied; until it has passed its former reach,
        records beyond lie on the target only before the break. A break is passed when at least as
        many records were mirrored beyond the frontier at the break as its unseen tail can hold.
        """
        if self._usable is None:
            self._usable = self._find_usable()
        return self._usable

    def _find_usable(self) -> int:
        breaks = self.breaks
        usable = len(self.ups) - 1
        total = self._front_data[-1]
        reached, history = -1, len(self.starts) - 1
        for after, extra, place in zip(
            reversed(breaks.after), reversed(breaks.extra), reversed(breaks.front), strict=True
        ):
            while history >= 0 and self.starts[history] > after:
                reached = max(reached, self.ups[self.bounds_of(history)[1] - 1])
                history -= 1
            front = self._front_ups[place]
            passed = total - self._front_data[place]
            if passed < extra or (self.ups[after] == front and passed == 0 and reached < front):
                usable = after
            elif passed > breaks.largest:
                break
        return usable


def _starts(ups: array[int]) -> array[int]:
    """Returns where histories begin: 0 and each index whose upstream offset is not above the one before."""
    starts = array("q", [0] if ups else [])
    starts.extend(compress(range(1, len(ups)), map(le, islice(ups, 1, None), ups)))
    return starts
