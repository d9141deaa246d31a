"""What is known of one partition while its records are compared: stretches read, syncs, how far the mirror is."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Final, NamedTuple, TypeVar

from failover.model.names import TopicPartition
from failover.model.records import Window, WindowRequest
from failover.translate.align import Pair, Strip, matches
from failover.translate.digest import LogView
from failover.translate.segments import Syncs
from failover.translate.sync_rule import LogBounds

_T = TypeVar("_T")

AHEAD: Final = 256
"""Source offsets looked at beyond the newest copied record, to see whether they were copied before."""


NEAR: Final = 64
"""Offsets between two windows that cost less to read than a window of its own."""


class Need(NamedTuple):
    """Asks for the records of one side in [start, stop)."""

    side: str
    start: int
    stop: int


Reading = Generator[list[Need], None, None]


class Case:
    """Holds one partition's state: ``source`` and ``target`` are what was read, ``left`` the records still affordable.

    ``newest``: the target's last record and its original. ``tail``: the target records beyond the newest
    sync that do not simply go on from it, with their source offsets (-1: unknown): copied again, or unclear.
    ``limit``: no answer may lie beyond this target offset, because records beyond ``newest`` lie
    there already (the mirror is copying again); None when there is no such limit. ``wall``: the target offset
    from which on nothing is known to be a copy of what; no answer is looked for beyond. ``ceilings``: by
    committed offset, the pair beyond which no answer may lie, because it is an unread record's last copy.
    ``lacking``: by the sync before a break, how many source offsets within it hold no record. ``unsure``:
    whether the mirror copies again could not be found out and the syncs give cause for doubt. ``fault``: why
    reading ended early.
    ``distrusted``: a sync's two records differ, so no sync is used. ``own``: index of the first sync that is of the
    log that the source has now, and not of one before it was made anew.
    """

    def __init__(
        self,
        names: tuple[TopicPartition, TopicPartition],
        syncs: Syncs | None,
        bounds: LogBounds,
        *,
        source_readable: bool,
        max_records: int,
        asked: int,
    ) -> None:
        self.names = names
        self.syncs = syncs if syncs is not None and len(syncs) and syncs.downs[-1] < bounds.target_end else None
        self.bounds = bounds
        self.source_readable = source_readable and bounds.source_end is not None
        self.source, self.target = LogView(encode=True), LogView()
        self._logs = {
            "source": (self.source, bounds.source_start or 0, bounds.source_end or 0),
            "target": (self.target, bounds.target_start, bounds.target_end),
        }
        self.left = max_records
        self.width = min(128, max(16, 20_000 // (4 * max(1, asked))))
        self.limit: int | None = None
        self.fault: str | None = None
        self.distrusted = False
        self.own = 0
        self.stamped = True
        self.newest: Pair | None = None
        self.tail: list[Pair] = []
        self.unsure = False
        self.wall: int | None = None
        self.ceilings: dict[int, Pair] = {}
        self.lacking: dict[int, int] = {}
        self._verified: set[int] = set()
        self._encoded = False
        self._encoding_open = True

    # -- reading --------------------------------------------------------------------------------

    def clip(self, side: str, start: int, stop: int) -> Need:
        """Cuts a stretch to where its log begins and ends."""
        _, first, last = self._logs[side]
        return Need(side, max(start, first), min(stop, last))

    def open(self, needs: Iterable[Need]) -> list[Need]:
        """Returns what of ``needs`` has not been read; nothing of a source that cannot be read."""
        found: list[Need] = []
        for side, start, stop in needs:
            if side == "source" and not self.source_readable:
                continue
            view, first, last = self._logs[side]
            gaps = view.missing(max(first, start), min(last, stop))
            if gaps:
                found += [Need(side, *gap) for gap in gaps]
        return found

    def affords(self, needs: Iterable[Need]) -> bool:
        """Says whether the unread part of ``needs`` may still be read.

        A source stretch may be mostly holes: it is taken to hold at most four times the records of its target's.
        """
        lengths = {"source": 0, "target": 0}
        for need in self.open(needs):
            lengths[need.side] += need.stop - need.start
        cost = lengths["target"] + min(lengths["source"], 4 * lengths["target"] + 4 * AHEAD)
        return self.fault is None and cost <= self.left

    def read(self, needs: Iterable[Need]) -> Reading:
        """Has stretches read, those that may have been read meanwhile left out."""
        wanted = list(needs)
        while self.fault is None and (still := self.open(wanted)):
            yield still

    def absorb(self, request: WindowRequest, window: Window) -> None:
        """Takes the records of one answered request."""
        view = self.source if request.side == "source" else self.target
        if window.fault is not None:
            self.fault = f"{request.side} {request.tp}: {window.fault}"
            return
        stop = request.stop if window.log_end <= window.covered_to else min(request.stop, window.covered_to)
        if stop <= request.start:
            self.fault = f"{request.side} {request.tp}: nothing read from offset {request.start}"
            return
        for low, high in view.missing(request.start, stop):
            whole = low <= request.start and high >= window.covered_to
            records = window.records if whole else [r for r in window.records if low <= r.offset < high]
            view.add(low, high, records)
        self.left -= len(window.records) + 1
        self.stamped &= not window.log_append_time
        if self._encoding_open and view.headers:
            self._settle_encoding()

    def _settle_encoding(self) -> None:
        encoded = self.source.copied_encoded(self.target)
        if encoded is not None:
            self._encoded, self._encoding_open = encoded, False
            self.source.encode = encoded

    def strip(self, side: str, start: int, stop: int) -> Strip:
        """Returns the read records of one side in [start, stop)."""
        view = self.source if side == "source" else self.target
        places = view.between(start, stop)
        tokens = view.tokens(places, encoded=self._encoded and side == "source", stamped=self.stamped)
        return Strip(view.offsets[places.start : places.stop], tokens)

    def alike(self) -> dict[int, int]:
        """Returns the tokens, and first offsets, of source records that others read are like: they pair with none.

        Invariant: a target record that pairs has, among all source records read, no other original. Its own stretch
        of the source would not tell that: what a later run copied may have come from anywhere.
        """
        return self.source.repeated(encoded=self._encoded, stamped=self.stamped)

    def token(self, side: str, offset: int) -> int | None:
        """Returns the token of one read record, None where there is none."""
        tokens = self.strip(side, offset, offset + 1).tokens
        return tokens[0] if tokens else None

    # -- syncs as certain pairs -----------------------------------------------------------------

    def pair(self, index: int) -> Pair:
        """Returns a sync as a pair; one whose target record is gone stands just before the target's first."""
        assert self.syncs is not None
        return Pair(max(self.syncs.downs[index], self.bounds.target_start - 1), self.syncs.ups[index])

    def verify(self, index: int) -> bool:
        """Says whether a sync's two records agree, as far as both were read; a false one ends the trust in all."""
        assert self.syncs is not None
        if index not in self._verified:
            source = self.token("source", self.syncs.ups[index])
            target = self.token("target", self.syncs.downs[index])
            if source is not None and target is not None:
                self.distrusted |= source != target
                self._verified.add(index)
        return not self.distrusted

    def distrust(self) -> None:
        """Goes on without any sync."""
        self.syncs, self.newest, self.limit, self.wall, self.tail = None, None, None, None, []
        self.ceilings = {}

    # -- how far the mirror is ------------------------------------------------------------------

    def prepare(self) -> Reading:
        """Reads the end of both logs: finds the newest copied record and whether the mirror is copying again."""
        bounds = self.bounds
        end = bounds.source_end or 0
        if self.syncs is None:
            anchor = None
            start, first = bounds.target_end - AHEAD, end - 2 * AHEAD
        else:
            anchor = self.pair(len(self.syncs) - 1)
            start, first = anchor.target, anchor.source
        back, reach = AHEAD, bounds.target_end - start + 2 * AHEAD
        while True:
            low, stop = max(first - back, bounds.source_start or 0), first + reach
            needs = [Need("target", start, bounds.target_end), Need("source", low, stop)]
            if not self.affords(needs):
                break
            yield from self.read(needs)
            if self.fault is not None or (self.syncs is not None and not self.verify(len(self.syncs) - 1)):
                return
            self._find_newest(anchor, start, low)
            # a compacted source has fewer records than offsets: the last copy's original may lie further on
            sparse = stop < end and self.source.count(first, stop) <= self.target.count(start, bounds.target_end)
            if self.newest is not None or not self.tail or (low == (bounds.source_start or 0) and not sparse):
                break
            if sparse:
                reach *= 2
            else:
                back *= 8
        if self.newest is None and self.tail and self.source_readable:
            self.wall = self.tail[0].target
        yield from self.find_limit()

    def _find_newest(self, anchor: Pair | None, start: int, low: int) -> None:
        """Follows the target's end record by record; ``low``: first source offset to compare with."""
        end = self.bounds.source_end or 0
        target = self.strip("target", start if anchor is None else start + 1, self.bounds.target_end)
        self.newest, self.tail = anchor, []
        if anchor is not None and target.offsets:
            beyond = self.strip("source", anchor.source + 1, end)
            if list(target.tokens) == list(beyond.tokens):
                self.newest = Pair(target.offsets[-1], beyond.offsets[-1])
                return
        pairs = {pair.target: pair for pair in matches(self.strip("source", low, end), target, self.alike())}
        front = -1 if anchor is None else anchor.source
        for offset in target.offsets:
            pair = pairs.get(offset)
            if pair is None or pair.source <= front or self.tail:
                self.tail.append(pair or Pair(offset, -1))
            else:
                front = pair.source
        if target.offsets:
            self.newest = pairs.get(target.offsets[-1])

    def again(self, upstream: int, offset: int) -> int:
        """Returns how many records of ``tail`` at or beyond ``offset`` were consumed, or perhaps."""
        return sum(1 for pair in self.tail if pair.target >= offset and pair.source < upstream)

    def drained(self, upstream: int) -> bool:
        """Says whether the source is known to hold no record from ``upstream`` on."""
        end = self.bounds.source_end
        if end is None or upstream > end:
            return False
        return upstream == end or (self.source.covers(upstream, end) and not self.source.count(upstream, end))

    def copies_again_below(self, upstream: int) -> bool:
        """Says whether the mirror copies again what it had copied and has not reached ``upstream`` once more."""
        return self.limit is not None and self.newest is not None and self.newest.source + 1 < upstream

    def find_limit(self) -> Reading:
        """Sets ``limit`` where records beyond the newest copied one lie on the target already.

        Looks among all target records read so far, and in the spans that can hold the first such
        copy: where the syncs went beyond before, else the breaks whose tail has not been outnumbered.
        """
        syncs, bounds = self.syncs, self.bounds
        usable = -1 if syncs is None else syncs.usable_to()
        doubtful = syncs is not None and usable < len(syncs) - 1
        self.unsure = doubtful
        if self.newest is None or not self.source_readable:
            return
        z = self.newest.source
        stop, end = z + 1 + AHEAD, bounds.source_end or 0
        yield from self.read([Need("source", z + 1, stop)])
        while (
            not self.strip("source", z + 1, stop).offsets and stop < end and self.affords([Need("source", stop, end)])
        ):
            step = min(end, stop + 8 * (stop - z))
            yield from self.read([Need("source", stop, step)])
            stop = step
        ahead = self.strip("source", z + 1, stop)
        if self.fault is not None or (stop < end and not ahead.offsets):
            return
        self.unsure = False
        if not ahead.offsets:
            return
        beyond = -1 if syncs is None else syncs.first_beyond(z)
        if syncs is not None and 0 <= beyond < self.own:
            beyond = next((at for at in range(self.own, len(syncs)) if syncs.ups[at] > z), -1)
        floor = bounds.target_end if syncs is None else self.pair(usable).target + 1
        spans: list[Need] = []
        if syncs is not None and beyond >= 0:
            floor = self.pair(beyond - 1).target + 1 if beyond else bounds.target_start
            spans = [Need("target", floor, syncs.downs[beyond] + 1)]
        elif syncs is not None and doubtful:
            spans = [
                Need("target", syncs.downs[after], syncs.downs[after + 1] + 1)
                for after in syncs.breaks.after
                if after >= usable
            ]
        affordable = self.affords(spans)
        if affordable:
            yield from self.read(spans)
        # a record like one that was copied rightly tells nothing, and the first is the one to be looked for
        tokens = set(ahead.tokens).difference(self.strip("source", bounds.source_start or 0, z + 1).tokens)
        if ahead.tokens[0] not in tokens:
            self.unsure = doubtful
        found = yield from self._first_ahead(ahead, tokens)
        if found is not None:
            self._lower(found)
        if (found is None or not affordable) and (beyond >= 0 or (doubtful and not affordable)):
            self._lower(floor)

    def _first_ahead(self, ahead: Strip, tokens: set[int]) -> Generator[list[Need], None, int | None]:
        """Returns where on the target, before ``newest``, the first record of ``ahead`` lies, None where none is.

        ``tokens``: those of ``ahead`` that tell. Invariant: the run that copied the first record found copied all of
        ``ahead`` before it right before it, those that are like others, too: at most as many records as there are
        source offsets from ``newest`` to it.
        """
        assert self.newest is not None
        start, end = self.bounds.target_start, self.newest.target
        read = self.strip("target", start, end)
        at = next((at for at, token in enumerate(read.tokens) if token in tokens), None)
        if at is None:
            return None
        place, token = read.offsets[at], read.tokens[at]
        original = max(up for up, each in zip(*ahead, strict=True) if each == token)
        before = {each for up, each in zip(*ahead, strict=True) if up < original}
        most = reach = original - self.newest.source - 1 if before else 0
        while most:
            wanted = [self.clip("target", place - reach, place)]
            if not self.affords(wanted):
                self.unsure = True
                return place
            yield from self.read(wanted)
            if self.target.count(place - reach, place) >= most or place - reach <= start:
                break
            reach *= 2
        back = list(zip(*self.strip("target", place - reach, place), strict=True))[-most:] if most else []
        return next((offset for offset, each in back if each in before), place)

    def _lower(self, offset: int) -> None:
        self.limit = offset if self.limit is None else min(self.limit, offset)


def advance(waiting: dict[int, Generator[list[Need], None, _T]], results: dict[int, _T]) -> list[Need]:
    """Takes each reading one step on, gathers what they need, and moves those that ended to ``results``."""
    needs: list[Need] = []
    for number, step in list(waiting.items()):
        try:
            needs += next(step)
        except StopIteration as stop:
            results[number] = stop.value
            del waiting[number]
    return needs


def merged(names: tuple[TopicPartition, TopicPartition], needs: Iterable[Need]) -> tuple[WindowRequest, ...]:
    """Merges needs that touch or nearly do into as few windows as possible; ``names``: source and target partition."""
    joined: list[Need] = []
    for need in sorted(needs):
        if joined and joined[-1].side == need.side and need.start <= joined[-1].stop + NEAR:
            if need.stop > joined[-1].stop:
                joined[-1] = joined[-1]._replace(stop=need.stop)
        else:
            joined.append(need)
    source, target = names
    return tuple(
        WindowRequest(side, source if side == "source" else target, start, stop) for side, start, stop in joined
    )
