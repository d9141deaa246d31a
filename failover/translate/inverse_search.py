"""One offset committed on the copies, looked for among the originals by comparing records: see ``inverse_content``.

How an offset is found. Copies before the committed offset are read back to the sync below it, originals around the
predicted place. Records that occur once among the originals read pair up, and so do equal stretches between
two pairs. The highest original of a run of pairs that begins at a sync, or is long enough by itself, was
consumed. Breaks between earlier syncs in which a killed run may have copied further are read as well.

Why nothing unread is passed: every pair says that this original was copied below the committed offset, and
runs rise. Why the answer is exact: had a higher original been copied below, too, the one that follows next would have
been; so none of the originals that follow occurs among the consumed copies that pair with nothing. Where one
does (identical records), where copies are gone or were not read, the answer stays and ``reread_max`` counts them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from failover.model.translation import Precision, Proof, Translation
from failover.translate.align import Pair, Strip, matches, runs
from failover.translate.comparison import Case, Need
from failover.translate.inverse import Inverse
from failover.translate.segments import Syncs

REACH: Final = 128
"""Records looked at on either side of a place before wider windows are read."""

FOLLOWING: Final = 32
"""Originals beyond the answer that must be seen, or the log's end, before the answer can be exact."""

UNANCHORED_RUN: Final = 8
"""Fewest pairs in a row that count where no sync stands at their beginning."""

NAMED: Final = 16
"""Syncs of earlier runs whose records are compared at most to see that they speak of these originals."""


class _Stretch(NamedTuple):
    """Is what pairs in one stretch of copies: the highest consumed original, and what is left open.

    ``best``: None when nothing counts. ``next``: the pair that follows it in its run, unread. ``loose``: tokens
    of consumed copies whose original is not known.
    """

    best: Pair | None
    next: Pair | None
    loose: tuple[int, ...]


class Search:
    """Looks for one committed offset; ``steps`` yields what it wants read and returns the answer, None for none."""

    def __init__(self, case: Case, inverse: Inverse, copied: int, *, shared: bool) -> None:
        self.case = case
        self.inverse = inverse
        self.copied = copied
        self.shared = shared
        self.last = min(copied, case.bounds.target_end) - 1
        self.index = inverse.before(copied)
        self.low = self._sync(self.index)
        following = self.index + 1
        syncs = inverse.syncs
        same_run = syncs is not None and 0 < following < len(syncs) and following not in syncs.starts
        first = syncs is not None and following == 0
        self.high = self._sync(following) if same_run or first else None
        self.oldest = 0
        self.doubt = copied - 1 - self.last
        self.loose: list[int] = []

    def _sync(self, index: int) -> Pair | None:
        syncs = self.inverse.syncs
        return None if syncs is None or not 0 <= index < len(syncs) else Pair(syncs.downs[index], syncs.ups[index])

    def steps(self) -> Generator[list[Need], None, Translation | None]:
        """Reads and answers."""
        found = yield from self._before()
        if found is None or found.best is None or self._stopped():
            return None
        best = yield from self._older(found.best)
        best = yield from self._breaks(best)
        if self._stopped():
            return None
        ahead = yield from self._following(best)
        self._weigh(found, best, ahead)
        if self.loose and (ahead is None or not ahead.isdisjoint(self.loose)):
            self.doubt += len(self.loose)
        return None if self._stopped() else self._answer(best)

    def _stopped(self) -> bool:
        return self.case.fault is not None or self.case.distrusted

    # -- the copies consumed last -----------------------------------------------------------------

    def _before(self) -> Generator[list[Need], None, _Stretch | None]:
        """Reads back from the committed offset (where names are shared, on from the sync) until it is clear."""
        case, reach = self.case, REACH
        found: _Stretch | None = None
        while True:
            needs = self._windows(reach)
            if not case.affords(needs):
                return found
            yield from case.read(needs)
            indexes = (self.index, self.index + 1)
            known = [i for i in indexes if self._sync(i) is not None]
            if case.fault is not None or not all(case.verify(i) for i in known):
                return None
            whole = self._whole()
            if whole and self.low is None:
                needs = self._all()  # what other commits had read counts: no sync tells what came before this window
            found = self._pair(needs, [pair for pair in map(self._sync, indexes) if pair is not None])
            if whole or self._clear(found):
                return found
            reach *= 8

    def _windows(self, reach: int) -> list[Need]:
        case, low, high, last = self.case, self.low, self.high, self.last
        bounds = case.bounds
        floor = bounds.target_start if low is None else low.target
        if self.shared and low is not None:
            start, stop, guesses = floor, min(floor + reach, last + 1), [low.source]
        else:
            start, stop, guesses = max(floor, last + 1 - reach), last + 1 + FOLLOWING, []
            if low is not None:
                guesses.append(low.source + last - low.target)
            if high is not None:
                guesses.append(high.source - (high.target - last))
            if not guesses:
                first, end = bounds.source_start or 0, bounds.source_end or 0
                guesses = [first + last - bounds.target_start, end - (bounds.target_end - last)]
        around = reach + case.width
        originals = [case.clip("source", guess - around, guess + around) for guess in guesses]
        certain = [pair for pair in (low, high) if pair is not None]
        return [
            case.clip("target", start, stop),
            *originals,
            *(case.clip("source", pair.source, pair.source + 1) for pair in certain),
            *(case.clip("target", pair.target, pair.target + 1) for pair in certain),
        ]

    def _whole(self) -> bool:
        """Says whether wider windows would hold no more: all copies since the sync, and all originals since it."""
        copies, originals = self._all()
        case = self.case
        return case.target.covers(copies.start, copies.stop) and case.source.covers(originals.start, originals.stop)

    def _all(self) -> list[Need]:
        """Returns all consumed copies since the sync, and all originals since it."""
        case, bounds = self.case, self.case.bounds
        start, first = (bounds.target_start, bounds.source_start or 0) if self.low is None else self.low
        return [case.clip("target", start, self.last + 1), case.clip("source", first, bounds.source_end or 0)]

    def _clear(self, found: _Stretch) -> bool:
        """Says whether the copies since the sync are all read and the last of them pair, or none of them matters."""
        if found.best is None or not self._read_back():
            return False
        if self.low is None and not self._whole():
            return False
        return not self.case.target.count(found.best.target + 1, self.last + 1) or found.next is not None

    def _read_back(self) -> bool:
        start = self.case.bounds.target_start if self.low is None else self.low.target + 1
        return self.case.target.covers(max(start, self.case.bounds.target_start), self.last + 1)

    # -- pairs --------------------------------------------------------------------------------------

    def _pair(self, needs: Sequence[Need], certain: Sequence[Pair]) -> _Stretch:
        """Pairs the copies and originals that were read within ``needs``."""
        case = self.case
        originals = [need for need in needs if need.side == "source" and need.stop > need.start]
        copies = [need for need in needs if need.side == "target" and need.stop > need.start]
        if not originals or not copies:
            return _Stretch(self.low, None, ())
        source = case.strip("source", min(n.start for n in originals), max(n.stop for n in originals))
        target = case.strip("target", min(n.start for n in copies), max(n.stop for n in copies))
        pairs = {pair.target: pair for pair in self._possible(matches(source, target, case.alike()), target)}
        pairs.update((pair.target, pair) for pair in certain)
        best: Pair | None = None
        following: Pair | None = None
        counted: set[int] = set()
        for run in self._runs([pairs[at] for at in sorted(pairs)], set(certain)):
            filled = list(self._filled(run))
            counted.update(pair.target for pair in filled)
            read = [pair for pair in filled if pair.target <= self.last]
            if read and (best is None or read[-1].source > best.source):
                best = read[-1]
                following = next((pair for pair in filled if pair.target > self.last), None)
        consumed = zip(target.offsets, target.tokens, strict=True)
        loose = tuple(token for at, token in consumed if at <= self.last and at not in counted)
        return _Stretch(best, following, loose)

    def _possible(self, found: list[Pair], copies: Strip) -> Iterator[Pair]:
        """Leaves out pairs between the two syncs that cannot be.

        An original beyond the upper sync; and where nothing was copied twice a copy whose like occurs there once
        more: the cleaner may have left one original of several.
        """
        low, high = self.low, self.high
        if low is None or high is None:
            yield from found
            return
        twice = max(0, (high.target - low.target) - (high.source - low.source))
        inside = [t for at, t in zip(*copies, strict=True) if low.target < at < high.target] if not twice else []
        often = {token for token, times in Counter(inside).items() if times > 1}
        tokens = dict(zip(*copies, strict=True)) if often else {}
        for pair in found:
            between = low.target < pair.target < high.target
            if not between or (pair.source <= high.source + twice and tokens.get(pair.target) not in often):
                yield pair

    def _runs(self, order: list[Pair], certain: set[Pair]) -> Iterator[list[Pair]]:
        """Yields the runs that count."""
        for run in runs(order):
            piece: list[Pair] = []
            for pair in run:
                # a single pair beyond a jump may have come about by chance: values repeat
                if piece and self._jumps(piece[-1], pair):
                    yield from self._counted(piece, certain)
                    piece = []
                piece.append(pair)
            yield from self._counted(piece, certain)

    def _counted(self, run: list[Pair], certain: set[Pair]) -> Iterator[list[Pair]]:
        anchored = not certain.isdisjoint(run)
        if self.shared:
            anchored = self.low is not None and self.low in run
        alone = self.inverse.syncs is None and self.case.bounds.target_start == 0 and self._whole()
        long = alone or len(run) >= UNANCHORED_RUN
        if anchored or (long and not self.shared):
            yield run

    def _jumps(self, low: Pair, high: Pair) -> bool:
        """Says whether originals between two pairs have no copy between them."""
        case = self.case
        if not case.source.covers(low.source + 1, high.source):
            return True
        return case.source.count(low.source + 1, high.source) > case.target.count(low.target + 1, high.target)

    def _filled(self, run: list[Pair]) -> Iterator[Pair]:
        """Yields a run's pairs and those between them where the logs agree record by record."""
        case = self.case
        for low, high in pairwise(run):
            yield low
            copies = case.strip("target", low.target + 1, high.target)
            if not copies.offsets or not case.target.covers(low.target + 1, high.target):
                continue
            originals = case.strip("source", low.source + 1, high.source)
            if case.source.covers(low.source + 1, high.source) and list(originals.tokens) == list(copies.tokens):
                yield from map(Pair, copies.offsets, originals.offsets)
        yield run[-1]

    # -- what earlier runs copied ---------------------------------------------------------------------

    def _older(self, best: Pair) -> Generator[list[Need], None, Pair]:
        """Takes a higher original that an earlier history names, if it is the record its copy is of."""
        syncs, case = self.inverse.syncs, self.case
        if syncs is None or self.index < 0:
            return best
        reach = self.inverse.reach(self.index)
        if reach <= best.source:
            return best
        between = case.clip("source", best.source + 1, reach + 1)
        named = sorted((up, at) for at, up in enumerate(syncs.ups[: self.index]) if up > best.source)[-NAMED:]
        pairs = [Pair(syncs.downs[at], up) for up, at in reversed(named)]
        needs = [between, *(case.clip("target", pair.target, pair.target + 1) for pair in pairs)]
        if case.affords(needs):
            yield from case.read(needs)
        for pair in pairs:
            original, copy = case.token("source", pair.source), case.token("target", pair.target)
            if original is not None and original == copy:
                best = pair
                break
            if original is not None and copy is not None:
                self.oldest = syncs.starts[syncs.history_of(self.index)]  # the originals were made anew since
                return best
        start = best.source + 1
        known = case.source.covers(start, between.stop)
        self.doubt += case.source.count(start, between.stop) if known else max(0, between.stop - start)
        return best

    def _breaks(self, best: Pair) -> Generator[list[Need], None, Pair]:
        """Reads the breaks below in which a run that was killed may have copied further."""
        syncs, case = self.inverse.syncs, self.case
        if syncs is None or self.index < 0:
            return best
        best = yield from self._lead(best, syncs)
        seen: set[int] = set()
        while True:
            tails = [t for t in self.inverse.tails(self.index, best.source + 1) if t[0] not in seen]
            tails = [(after, most) for after, most in tails if after >= self.oldest]
            if not tails:
                return best
            after, most = tails[0]
            seen.add(after)
            start, stop = syncs.downs[after], min(syncs.downs[after + 1] + 1, self.copied)
            lowest = min(syncs.ups[after], syncs.ups[after + 1])
            needs = [
                case.clip("target", start, stop),
                case.clip("source", lowest - case.width, best.source + most + REACH),
            ]
            if start < case.bounds.target_start or not case.affords(needs):
                self.doubt += max(most, stop - start - 1)
                continue
            yield from case.read(needs)
            if self._stopped():
                return best
            # a sync that names a higher original was not found to speak of these originals
            certain = Pair(start, syncs.ups[after])
            found = self._pair(needs, [certain] if certain.source <= best.source else [])
            self.loose.extend(found.loose)
            self.doubt += self._hidden(after, start, stop)
            if found.best is not None and found.best.source > best.source:
                best = found.best

    def _lead(self, best: Pair, syncs: Syncs) -> Generator[list[Need], None, Pair]:
        """Looks before the first sync, which may be that of a run that has not passed yet what those before it copied.

        Only the end of that stretch is read, where the run before it ended; where that one went further, a longer end:
        it may itself not have passed yet what one before it copied.
        """
        case, start, first, reach = self.case, syncs.downs[0], syncs.ups[0], 4 * REACH
        while True:
            needs = [
                case.clip("target", start - reach, start + 1),
                case.clip("source", first - reach, best.source + reach),
            ]
            if self.oldest or self.inverse.mirrored(first, best.source + 1) >= start or not case.affords(needs):
                return best
            yield from case.read(needs)
            if self._stopped():
                return best
            found = self._pair(needs, [Pair(start, first)] if first <= best.source else [])
            self.loose.extend(found.loose)
            if found.best is None or found.best.source <= best.source:
                return best
            best, reach = found.best, 2 * reach

    def _hidden(self, after: int, start: int, stop: int) -> int:
        """Counts slots of a break without a record in which copies of higher originals may have been.

        Within one history a first copy of the sync's own original must have been there, too.
        """
        syncs = self.inverse.syncs
        assert syncs is not None
        missing = stop - start - self.case.target.count(start, stop)
        return max(0, missing if after + 1 in syncs.starts else missing - 1)

    # -- how sure it is -------------------------------------------------------------------------------

    def _following(self, best: Pair) -> Generator[list[Need], None, set[int] | None]:
        """Reads the originals that follow; returns their tokens, None when they could not be read."""
        case, stop = self.case, best.source + 1 + REACH
        end = case.bounds.source_end or 0
        while True:
            needs = [case.clip("source", best.source + 1, stop)]
            if case.open(needs) and needs[0].stop - needs[0].start > case.left:
                return None
            yield from case.read(needs)
            if case.fault is not None:
                return None
            strip = case.strip("source", best.source + 1, stop)
            if len(strip.offsets) >= FOLLOWING or stop >= end:
                return set(strip.tokens)
            stop = min(end, stop + 8 * (stop - best.source))

    def _weigh(self, found: _Stretch, best: Pair, ahead: set[int] | None) -> None:
        """Counts the consumed copies since the sync that may be of higher originals than ``best`` still."""
        case, low, bounds = self.case, self.low, self.case.bounds
        following = found.next
        if low is not None and best == found.best and following is not None and self._read_back():
            grows = following.target - low.target > following.source - low.source and found.loose
            between = (best.source + 1, following.source)
            if not grows and case.source.covers(*between) and not case.source.count(*between):
                return
        if ahead is None or not ahead.isdisjoint(found.loose):
            self.doubt += max(1, len(found.loose))
        here = best == found.best
        start = best.target + 1 if here else (bounds.target_start if low is None else low.target + 1)
        if start >= bounds.target_start and case.target.covers(start, self.last + 1):
            # slots without a record: markers, or copies that the cleaner has taken
            self.doubt += max(0, self.last + 1 - start - case.target.count(start, self.last + 1))
        else:
            self.doubt += max(0, self.last + 1 - start)
        if low is None:
            if not (bounds.target_start == 0 and case.target.covers(0, self.last + 1)):
                self.doubt = bounds.source_end or 0
        elif here and not (self._read_back() and low.target + 1 >= bounds.target_start):
            self.doubt += max(0, (best.target - low.target) - (best.source - low.source))

    def _answer(self, best: Pair) -> Translation:
        case, offset = self.case, best.source + 1
        most = max(0, min(self.doubt, (case.bounds.source_end or 0) - offset))
        if self.inverse.syncs is not None and self.inverse.syncs.voided and most:
            most = max(0, (case.bounds.source_end or 0) - offset)
        return Translation(
            self.copied,
            offset,
            Precision.BOUNDED if most else Precision.EXACT,
            Proof.CONTENT,
            min(most, self.doubt),
            most,
            (f"original {best.source} is the last consumed: its copy at {best.target} lies below {self.copied}",),
        )
