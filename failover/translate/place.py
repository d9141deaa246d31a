"""Where one committed offset lies, by comparing the records around its predicted place."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Generator
from itertools import islice

from failover.model.translation import Precision, Proof, Translation
from failover.translate.align import EMPTY, Pair, Settled, settle
from failover.translate.comparison import AHEAD, Case, Need
from failover.translate.enclose import Enclosing, Region, disputed, enclose, sync_after, told_again

Placing = Generator[list[Need], None, Translation | None]


def place(case: Case, upstream: int) -> Placing:
    """Finds a committed offset by content; returns None when the syncs' own answer must stand.

    Yields what it wants read and reads nothing else; ``case`` must be prepared.
    """
    ahead = case.copies_again_below(upstream)
    region = _region_once(case, upstream) if ahead else _region(case, upstream)
    yield from _holes(case, upstream, region)
    later = _unpassed(case) if ahead else _later(case, upstream, region)
    blind = 0
    answer: Translation | None = None
    if region.stop < case.bounds.target_start:
        answer = _retained(case, upstream, later)
        if not later:
            return answer
    if not (yield from _originals(case, region, later)) and case.syncs is not None:
        if _breaks(case, region.sync):
            return answer
        blind, later = sum(need.stop - need.start for need in later), []
    width, lowered = case.width, False
    while True:
        source, target = _window(case, upstream, region, width)
        whole = _covers(case, region, source, target)
        if not case.affords([source, target, *later]):
            if case.syncs is None or not case.affords([source, target]):
                return answer
            blind += sum(need.stop - need.start for need in later)
            later = []
        yield from case.read([source, target, *later, *told_again(case, upstream, region, [target, *later])])
        yield from case.read(disputed(case, [target, *later], source))
        if case.fault is not None or not _verified(case, region):
            return answer
        enclosing = enclose(case, upstream, region, [target, *later], source)
        if case.distrusted:
            return None
        if upstream in case.ceilings and (enclosing is None or enclosing.ceiling < enclosing.high.target):
            yield from _lower_ceiling(case, upstream)
            enclosing = enclosing and enclosing._replace(ceiling=case.ceilings[upstream].target)
        if enclosing is not None:
            settled = yield from _settle(case, upstream, enclosing, width)
            if settled is not None:
                answer = _answer(case, upstream, enclosing, settled, blind)
                lowered = enclosing.ceiling < settled.offset
                if settled.doubt == 0 and not lowered:
                    return answer
        # what lowers an answer may have been copied once more right behind what was read
        if whole and not (lowered and width < 8 * case.width):
            return (
                _nothing_unread(case, upstream, region, source, [target, *later])
                if ahead and answer is None
                else answer
            )
        width *= 8


def _region(case: Case, upstream: int) -> Region:
    bounds, syncs = case.bounds, case.syncs
    end = None if bounds.source_end is None else Pair(bounds.target_end, max(bounds.source_end, upstream))
    start = Pair(bounds.target_start - 1, -1)
    if syncs is None:
        return Region(start, end, bounds.target_end, -1)
    index = syncs.below(upstream - 1, len(syncs) - 1)
    if index < case.own:
        high = case.pair(case.own)
        return Region(start, high, high.target, -1)
    low = case.pair(index)
    if index == len(syncs) - 1:
        return Region(low, end, bounds.target_end, index)
    following = case.pair(index + 1)
    return Region(low, following if following.source > low.source else None, following.target, index)


def _retained(case: Case, upstream: int, later: list[Need]) -> Translation:
    """Answers with the target's log start where the target has lost the place and all that was consumed before it."""
    start = case.bounds.target_start
    gone = Enclosing(Pair(start - 1, upstream - 1), Pair(start, upstream), start, 0)
    return _answer(case, upstream, gone, Settled(start, 0), sum(need.stop - need.start for need in later))


def _region_once(case: Case, upstream: int) -> Region:
    """Returns where an offset beyond the present position of a mirror that copies again was copied for the first time.

    Records from there on lie nowhere else; those the mirror copies again at present were consumed.
    """
    bounds, syncs = case.bounds, case.syncs
    start = Pair(bounds.target_start - 1, -1)
    if syncs is None:
        return Region(start, None, bounds.target_end, -1)
    beyond = syncs.first_beyond(upstream - 1)
    if beyond >= 0:
        high = case.pair(beyond)
        return Region(case.pair(beyond - 1) if beyond else start, high, high.target, beyond - 1)
    last = syncs.usable_to()
    stop = syncs.downs[last + 1] if last + 1 < len(syncs) else bounds.target_end
    return Region(case.pair(last), None, stop, last)


def _unpassed(case: Case) -> list[Need]:
    """Returns the stretches in which a killed run may have copied beyond the mirror's present position."""
    syncs, end = case.syncs, case.bounds.target_end
    if syncs is None:
        return [Need("target", case.bounds.target_start, end)]
    usable = syncs.usable_to()
    spans = [Need("target", syncs.downs[i], syncs.downs[i + 1] + 1) for i in syncs.breaks.after if i >= usable]
    return [*spans, Need("target", syncs.downs[-1], end)]


def _nothing_unread(case: Case, upstream: int, region: Region, source: Need, targets: list[Need]) -> Translation | None:
    """Answers with the target's end where no stretch that could hold a record from ``upstream`` on holds one."""
    end = case.bounds.target_end
    if not case.drained(upstream):
        unread = set(case.strip("source", upstream, source.stop).tokens)
        if (
            region.high is not None
            or not unread
            or upstream not in case.ceilings
            or case.ceilings[upstream].target < end
        ):
            return None
        if any(not unread.isdisjoint(case.strip("target", need.start, need.stop).tokens) for need in targets):
            return None
    return _answer(case, upstream, Enclosing(region.low, Pair(end, upstream), end, 0), Settled(end, 0), 0)


def _covers(case: Case, region: Region, source: Need, target: Need) -> bool:
    wide_source = case.clip("source", region.low.source, _source_stop(case, region))
    wide_target = case.clip("target", region.low.target, region.stop + 1)
    return (
        source.start <= wide_source.start
        and source.stop >= wide_source.stop
        and target.start <= wide_target.start
        and target.stop >= wide_target.stop
    )


def _source_stop(case: Case, region: Region) -> int:
    return (case.bounds.source_end or 0) if region.high is None else region.high.source + 1


def _window(case: Case, upstream: int, region: Region, width: int) -> tuple[Need, Need]:
    """Returns windows around the place predicted from both ends, wider than these predictions differ."""
    low, high, stop = region.low, region.high, region.stop
    guesses = []
    if region.sync >= 0:
        guesses.append(low.target + upstream - low.source)
    elif case.bounds.source_start is not None:
        guesses.append(case.bounds.target_start + upstream - case.bounds.source_start)
    if high is not None:
        guesses.append(high.target - (high.source - upstream))
    guesses = [min(max(guess, low.target), stop) for guess in guesses or [stop]]
    half = max(guesses) - min(guesses) + width
    if high is None:
        half += stop - low.target
    # neighbouring spans are seen as far as the width goes: a copy there may be one the syncs do not show
    source = case.clip(
        "source",
        max(low.source - width, upstream - half),
        min(_source_stop(case, region) + width, upstream + half),
    )
    target = case.clip("target", max(low.target - width, min(guesses) - half), min(stop + width, max(guesses) + half))
    return source, target


def _holes(case: Case, upstream: int, region: Region) -> Generator[list[Need], None, None]:
    """Counts which source offsets hold no record within breaks that matter only where they lack enough of them.

    What a break has room for is counted in offsets by the syncs. Transaction markers and compacted records within it
    leave room for as many records copied twice. Where that is too much to read, all of them may be missing.
    """
    syncs = case.syncs
    if syncs is None or not case.source_readable:
        return
    while True:
        known = case.lacking
        found = [after for after, _ in syncs.recopies(upstream, max(region.sync, 0), lacking=known, own=True)]
        wanted = {
            after: Need("source", syncs.ups[after] + 1, syncs.ups[after + 1]) for after in found if after not in known
        }
        if not wanted:
            return
        affordable = case.affords(wanted.values())
        if affordable:
            yield from case.read(wanted.values())
        for after, (_, start, stop) in wanted.items():
            there = case.source.count(start, stop) if affordable and case.fault is None else 0
            case.lacking[after] = max(0, stop - start - there)


def _later(case: Case, upstream: int, region: Region) -> list[Need]:
    """Returns where runs that began at or below ``upstream`` may have copied it once more, beyond the region."""
    syncs, end = case.syncs, case.bounds.target_end
    if syncs is None:
        # nothing bounds the place: only the whole of the target shows that there is no later copy
        return [Need("target", case.bounds.target_start, end)]
    found = [
        Need("target", syncs.downs[after], syncs.downs[after + 1] + 1)
        for after, _ in syncs.recopies(upstream, max(region.sync, 0), lacking=case.lacking)
        if after != region.sync
    ]
    # without the source nobody knows whether a run that copies again has reached what the one before it had
    if case.tail and region.stop < end and case.source_readable:
        found.append(Need("target", syncs.downs[-1], end))
    return found


def _originals(case: Case, region: Region, later: list[Need]) -> Generator[list[Need], None, bool]:
    """Reads all source records that what lies in breaks may be a copy of; returns False where that is too much.

    Invariant: a break holds the end of a run that was killed and the beginning of the one that followed. The first goes
    on from the sync before the break, the second leads up to the sync behind it, so each is of as many source records
    from there as the break has room for. A copy in it then pairs with none but its own, however alike records are.
    It could fail where several runs in a row left no sync: what they copied may be from further below.
    """
    syncs, end = case.syncs, case.bounds.target_end
    if not case.source_readable:
        return True
    if syncs is None:
        wanted = [case.clip("source", 0, case.bounds.source_end or 0)] if later else []
        if affordable := case.affords([*wanted, *later]):
            yield from case.read(wanted)
        return affordable
    spans = {bisect_right(syncs.downs, need.start) - 1 for need in later}
    if _breaks(case, region.sync):
        spans.add(region.sync)
    ends: list[tuple[int, int, int]] = []
    for span in spans:
        last = span + 1 == len(syncs)
        behind = (case.newest.source if case.newest is not None else syncs.ups[span]) if last else syncs.ups[span + 1]
        ends.append((syncs.ups[span], behind, (end if last else syncs.downs[span + 1]) - syncs.downs[span]))
    first, stop, reach = case.bounds.source_start or 0, case.bounds.source_end or 0, 1
    while ends:
        wanted = [case.clip("source", up, up + reach * room + 1) for up, _, room in ends]
        wanted += [case.clip("source", behind - reach * room, behind + 1) for _, behind, room in ends]
        if not case.affords([*wanted, *later]):
            return False
        yield from case.read(wanted)
        if case.fault is not None:
            break
        # where the source has holes, as many records lie further apart
        ends = [
            (up, behind, room)
            for up, behind, room in ends
            if (case.source.count(up, up + reach * room + 1) < room and up + reach * room < stop)
            or (case.source.count(behind - reach * room, behind + 1) < room and behind - reach * room > first)
        ]
        reach *= 2
    return True


def _breaks(case: Case, span: int) -> bool:
    """Says whether a span between two syncs is a break."""
    breaks = () if case.syncs is None else case.syncs.breaks.after
    at = bisect_left(breaks, span)
    return at < len(breaks) and breaks[at] == span


def _verified(case: Case, region: Region) -> bool:
    if case.syncs is None:
        return True
    indexes = [index for index in (region.sync, sync_after(case, region)) if 0 <= index < len(case.syncs)]
    return all(case.verify(index) for index in indexes)


def _lower_ceiling(case: Case, upstream: int) -> Generator[list[Need], None, None]:
    """Moves a ceiling down to the first record of its run that may be unread although it pairs with none.

    It is like others, or the source has lost it. Invariant: the run that copied the ceiling's record copied the unread
    ones before it right before it: at most as many records as there are source offsets from ``upstream`` to it. Where
    a consumed record lies among these, they begin after that.
    """
    place, source = case.ceilings[upstream]
    if source <= upstream or not case.source_readable:
        return
    below = case.clip("source", upstream, source)
    most = reach = source - upstream
    while True:
        back = case.clip("target", place - reach, place)
        if not case.affords([below, back]):
            case.ceilings[upstream] = Pair(back.start, upstream)
            return
        yield from case.read([below, back])
        first = back.start <= case.bounds.target_start
        if case.fault is not None or first or case.target.count(back.start, place) >= most:
            break
        reach *= 2
    alike = case.alike()
    consumed = set(case.strip("source", 0, upstream).tokens).difference(case.strip("source", upstream, source).tokens)
    for offset, token in islice(reversed(list(zip(*case.strip("target", back.start, place), strict=True))), most):
        if token not in consumed:
            case.ceilings[upstream] = Pair(offset, upstream)
        elif token not in alike:
            break


def _settle(case: Case, upstream: int, enclosing: Enclosing, width: int) -> Generator[list[Need], None, Settled | None]:
    low, high = enclosing.low, enclosing.high
    inner = Need("target", low.target + 1, high.target)
    if inner.stop - inner.start > 8 * width and case.open([inner]):
        return None
    outer = Need("source", low.source + 1, high.source)
    wanted = [inner, Need("target", low.target, low.target + 1)]
    between = case.open([outer]) and inner.stop > inner.start
    comparable = not between or outer.stop - outer.start <= 16 * (inner.stop - inner.start + AHEAD)
    if between and comparable:
        wanted.append(outer)
    if not case.affords(wanted):
        return None
    yield from case.read(wanted)
    if case.fault is not None:
        return None
    target = case.strip("target", inner.start, inner.stop)
    if not target.offsets:
        return Settled(high.target, 0)
    source = case.strip("source", outer.start, outer.stop) if case.source_readable and comparable else EMPTY
    below = low if low.source >= 0 else None
    lost = case.source_readable and (case.bounds.source_start or 0) > low.source + 1
    return settle(upstream, below, high, source, target, twin=case.token("target", low.target), lost=lost)


def _answer(case: Case, upstream: int, enclosing: Enclosing, settled: Settled, blind: int) -> Translation:
    low, high = enclosing.low, enclosing.high
    offset = max(min(settled.offset, enclosing.ceiling), case.bounds.target_start)
    doubt = settled.doubt + enclosing.unclear + case.target.count(offset, settled.offset)
    lines = [f"lies between copies of source {low.source} at {low.target} and {high.source} at {high.target}"]
    again = case.again(upstream, max(offset, high.target))
    most = min(doubt + blind + again, case.bounds.target_end - offset)
    future = 0
    if case.newest is not None and case.newest.source < upstream:
        future = case.source.count(case.newest.source + 1, upstream)
        if case.source.missing(case.newest.source + 1, upstream):
            future = upstream - case.newest.source - 1
        if future > 0:
            lines.append(f"up to {future} consumed records are not mirrored yet")
    elif case.wall is not None:
        future = upstream
    most += future
    return Translation(
        upstream,
        offset,
        Precision.BOUNDED if most else Precision.EXACT,
        Proof.CONTENT if case.source_readable else Proof.EQUAL_DELTA,
        min(doubt, most),
        most,
        tuple(lines),
    )
