"""Between which two copied records a committed offset lies, among the records read on both sides."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Final, NamedTuple

from failover.translate.align import Pair, Strip, matches, runs, straddle
from failover.translate.comparison import Case, Need

UNANCHORED_RUN: Final = 8
"""Fewest records in a row that must pair where no sync lies below the committed offset."""


class Region(NamedTuple):
    """Is the stretch in which a committed offset must lie, as far as the syncs bound it.

    ``low``, ``high``: pairs at its ends; ``high`` is None where another history begins or the end
    is unknown. ``stop``: target offset at its end. ``sync``: index of the nearest sync strictly below, -1 for none.
    """

    low: Pair
    high: Pair | None
    stop: int
    sync: int


class Enclosing(NamedTuple):
    """Is the pair consumed last and the pair unread first of the last run that has both.

    ``ceiling``: the first target offset from which on each unread record that was found is found once
    more or for the last time; above the pairs unless the target lost records in between.
    ``unclear``: records of later runs that were consumed, or perhaps.
    """

    low: Pair
    high: Pair
    ceiling: int
    unclear: int


def enclose(case: Case, upstream: int, region: Region, targets: list[Need], source: Need) -> Enclosing | None:
    """Returns the last neighbouring pairs of one run, consumed and unread, between which the offset falls."""
    certain = [region.low]
    if region.high is not None and region.high.target > region.low.target:
        certain.append(region.high)
    if case.syncs is not None:
        downs = case.syncs.downs
        for need in targets:
            certain += [case.pair(i) for i in range(bisect_left(downs, need.start), bisect_left(downs, need.stop))]
    strip = case.strip("source", source.start, source.stop)
    if len(targets) == 1 and region.sync >= 0:
        target = case.strip("target", targets[0].start, targets[0].stop)
        if (near := _in_step(case, upstream, certain, strip, target)) is not None:
            case.ceilings[upstream] = near.high
            return near
    told = {pair for pair in certain if pair.source >= 0 and pair.source != case.bounds.source_end}
    strip = _with_lost(case, strip, certain)
    pairs: dict[int, Pair] = {}
    for need in targets:
        copies = matches(strip, case.strip("target", need.start, need.stop), case.alike())
        pairs.update({pair.target: pair for pair in copies})
    matched = {pair.source: at for at, pair in sorted(pairs.items())}
    for pair in certain:
        if pairs.setdefault(pair.target, pair) != pair or _displaced(case, pair, matched):
            case.distrusted = True
            return None
    order = [pairs[at] for at in sorted(pairs)]
    once = case.syncs is None or not case.syncs.breaks.after
    synced = set(certain)
    last = {
        pair.source: pair.target
        for pair in order
        if pair.source >= upstream
        and (once or not (_of_a_log_before(case, pair, told=pair in synced) or _again_later(case, pair)))
    }
    last.update(_seen_again(case, [pair for pair in certain if last.get(pair.source) == pair.target], targets))
    nobody = Pair(case.bounds.target_end, upstream)
    case.ceilings[upstream] = min((Pair(at, source) for source, at in last.items()), default=nobody)
    ceiling = case.ceilings[upstream].target
    unclear = 0
    following: Pair | None = None
    if case.copies_again_below(upstream):
        first = next((found for run in runs(order) if (found := straddle(run, upstream))), None)
        return None if first is None else Enclosing(*first, ceiling, case.bounds.target_end)
    for run in reversed(runs(order)):
        if following is not None:
            between = case.target.count(run[-1].target + 1, following.target)
            unclear += min(between, _lost_below(strip, following.source, upstream))
        following = run[0]
        found = straddle(run, upstream)
        if found is None and run[0].source == upstream:
            found = Pair(run[0].target - 1, upstream - 1), run[0]
        inside = found is not None and (case.wall is None or found[1].target <= case.wall)
        trusted = region.sync >= 0 or len(run) >= UNANCHORED_RUN or not told.isdisjoint(run)
        if found is not None and inside and trusted:
            unclear += _unseen(case, found[1], upstream, matched)
            unclear += _perhaps_again(case, upstream, [p for p in order if p.target >= found[1].target], targets)
            if unclear:
                beyond = case.target.count(found[1].target + 1, case.bounds.target_end)
                unclear = beyond - sum(1 for p in order if p.source >= upstream and p.target > found[1].target)
            return Enclosing(*found, ceiling, max(0, unclear))
        unclear += sum(1 for pair in run if pair.source < upstream)
    return None


def _in_step(case: Case, upstream: int, certain: list[Pair], source: Strip, target: Strip) -> Enclosing | None:
    """Answers where both windows hold the same records, each once, at the distance that all syncs have.

    So it is nearly always, and pairing every record would lead to the same. Returns None in all other cases.
    """
    offsets, count = source.offsets, len(source.offsets)
    at = bisect_left(offsets, upstream)
    if not 0 < at < count or count != len(target.offsets) or source.tokens != target.tokens:
        return None
    step = target.offsets[0] - offsets[0]
    whole = offsets[-1] - offsets[0] == target.offsets[-1] - target.offsets[0] == count - 1
    unique = len(set(source.tokens)) == count and case.alike().keys().isdisjoint(source.tokens)
    if not whole or not unique or any(pair.target - pair.source != step for pair in certain):
        return None
    high = Pair(upstream + step, upstream)
    if case.syncs is None or len(case.syncs.starts) > 1 or case.copies_again_below(upstream):
        return None
    if case.wall is not None and high.target > case.wall:
        return None
    return Enclosing(Pair(high.target - 1, upstream - 1), high, high.target, 0)


def _lost_below(strip: Strip, source: int, upstream: int) -> int:
    """Returns how many consumed records just below a source record are gone: a run may have begun with those."""
    at = bisect_left(strip.offsets, source)
    below = strip.offsets[at - 1] if at else -1
    return max(0, min(source, upstream) - below - 1)


def sync_after(case: Case, region: Region) -> int:
    """Returns the index of the sync that follows the region's own; as many as there are syncs where none does."""
    return region.sync + 1 if region.sync >= 0 else case.own


def told_again(case: Case, upstream: int, region: Region, targets: list[Need]) -> list[Need]:
    """Returns the source records of the region's and ``targets``' syncs that a later run may have copied once more.

    Its own syncs say so, or it lost the first of them, so that only the place where it began shows: a break.
    """
    syncs = case.syncs
    if syncs is None or not syncs.breaks.after:
        return []
    last = syncs.breaks.after[-1]
    following = sync_after(case, region)
    indexes = {following} if following < len(syncs) else set()
    for need in targets:
        indexes.update(range(bisect_left(syncs.downs, need.start), bisect_left(syncs.downs, need.stop)))
    pairs = [(index, case.pair(index)) for index in sorted(indexes)]
    return [
        Need("source", pair.source, pair.source + 1)
        for index, pair in pairs
        if pair.source >= upstream and (index <= last or _reached_again(case, pair) is not None)
    ]


def _seen_again(case: Case, pairs: Sequence[Pair], targets: list[Need]) -> dict[int, int]:
    """Returns the last copies of syncs' source records that were read in ``targets`` beyond the syncs' own.

    A sync may lie outside the source window, so that its record is among none of the pairs there.
    """
    alike = case.alike()
    sources: dict[int, int] = {}
    found: dict[int, int] = {}
    for pair in pairs:
        token = case.token("source", pair.source)
        if token is not None and token not in alike and token == case.token("target", pair.target):
            sources[token], found[pair.source] = pair.source, pair.target
    for need in targets if sources else ():
        for offset, token in zip(*case.strip("target", need.start, need.stop), strict=True):
            if (source := sources.get(token)) is not None:
                found[source] = max(offset, found[source])
    return found


def disputed(case: Case, targets: list[Need], source: Need) -> list[Need]:
    """Returns the unread source records of syncs in ``targets`` whose copies look like records of ``source``.

    Two source records may be alike: only its own tells whether a sync is still true.
    """
    syncs = case.syncs
    if syncs is None:
        return []
    tokens: set[int] = set()
    found: list[Need] = []
    for need in targets:
        for index in range(bisect_left(syncs.downs, need.start), bisect_left(syncs.downs, need.stop)):
            if wanted := case.open([Need("source", syncs.ups[index], syncs.ups[index] + 1)]):
                tokens = tokens or set(case.strip("source", source.start, source.stop).tokens)
                found += wanted if case.token("target", syncs.downs[index]) in tokens else []
    return found


def _of_a_log_before(case: Case, pair: Pair, *, told: bool) -> bool:
    """Says whether a copy is of a log that was there before the source's was made anew: nobody has that to read.

    The source's log does not reach its record any more, or holds another one where a sync (``told``) says it is.
    """
    if case.bounds.source_end is not None and pair.source >= case.bounds.source_end:
        return True
    if not told:
        return False
    ours, copy = case.token("source", pair.source), case.token("target", pair.target)
    return ours is not None and copy is not None and ours != copy


def _again_later(case: Case, pair: Pair) -> bool:
    """Says whether a later run copied a record once more beyond what was read.

    Only what the source still has, it has for certain; and where the place was read, seeing is believing.
    """
    place = _reached_again(case, pair)
    token = None if place is None else case.token("source", pair.source)
    if place is None or token is None:
        return False
    if not case.target.covers(place.start, place.stop):
        return True
    return token in case.strip("target", place.start, place.stop).tokens


def _reached_again(case: Case, pair: Pair) -> Need | None:
    """Returns where a later run copied a record once more, as its syncs tell: from at or below to at or beyond it.

    A run copies everything from where it begins, so it copied the record, too, if the source still had it.
    """
    syncs, upstream = case.syncs, pair.source
    if syncs is None or not syncs.breaks.after:
        return None
    following = bisect_right(syncs.downs, pair.target)
    for history in range(len(syncs.starts) - 1, -1, -1):
        first, beyond = syncs.bounds_of(history)
        first = max(first, following)
        if first >= beyond:
            return None
        if syncs.ups[first] <= upstream <= syncs.ups[beyond - 1]:
            index = bisect_right(syncs.ups, upstream, first, beyond) - 1
            return Need("target", syncs.downs[index], syncs.downs[min(index + 1, beyond - 1)] + 1)
    return None


def _with_lost(case: Case, strip: Strip, certain: list[Pair]) -> Strip:
    """Adds the records of syncs that the source has lost, as the target holds them: their second copies count too.

    One that looks like a record the source still has is left out: the two pair, and that the sync says otherwise
    shows that it is not true any more.
    """
    lost = [pair for pair in certain if not case.source.count(pair.source, pair.source + 1)]
    if not lost:
        return strip
    offsets, tokens = list(strip.offsets), list(strip.tokens)
    present = set(tokens)
    known: set[int] = set()
    for pair in lost:
        token = None if pair.source in known else case.token("target", pair.target)
        if token is not None and token not in present:
            known.add(pair.source)
            offsets.append(pair.source)
            tokens.append(token)
    if not known:
        return strip
    order = sorted(range(len(offsets)), key=offsets.__getitem__)
    return Strip([offsets[at] for at in order], [tokens[at] for at in order])


def _displaced(case: Case, pair: Pair, matched: dict[int, int]) -> bool:
    """Says whether a sync's target record is not there but an earlier copy is: no cleaner leaves that behind."""
    return (
        matched.get(pair.source, pair.target) < pair.target < case.bounds.target_end
        and case.target.covers(pair.target, pair.target + 1)
        and case.token("target", pair.target) is None
    )


def _unseen(case: Case, high: Pair, upstream: int, matched: dict[int, int]) -> int:
    """Returns how many records may be consumed ones copied once more although the source has lost them.

    They would lie before the last copy of the first unread record the source still has, unless each source offset
    up to that one has its one target offset.
    """
    first = min((source for source in matched if source >= upstream), default=high.source)
    place = max(matched.get(first, high.target), high.target)
    if place - high.target == first - high.source:
        return 0
    return case.target.count(high.target + 1, place)


def _perhaps_again(case: Case, upstream: int, beyond: Sequence[Pair], targets: list[Need]) -> int:
    """Returns how many records from the first of the pairs ``beyond`` on look like consumed ones and pair with none.

    They are none where what lies between two pairs of one run are records from between these on the source, in order.
    """
    alike = case.alike()
    if not alike:
        return 0
    found = 0
    ends = [*beyond[1:], Pair(case.bounds.target_end, case.bounds.source_end or 0)]
    for low, high in zip(beyond, ends, strict=True):
        between: dict[int, int] = {}
        for need in targets:
            strip = case.strip("target", max(need.start, low.target + 1), min(need.stop, high.target))
            between.update(zip(*strip, strict=True))
        tokens = [between[at] for at in sorted(between)]
        suspects = sum(1 for token in tokens if alike.get(token, upstream) < upstream)
        if suspects:
            originals = iter(case.strip("source", low.source + 1, high.source).tokens)
            found += 0 if all(token in originals for token in tokens) else suspects
    return found
