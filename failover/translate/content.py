"""Comparing the records themselves: exact offsets where the syncs alone only give a bound.

Sans-IO: ``locate_many`` yields the windows of both logs it wants and receives them, so one driver
can answer the generators of all partitions with one Fetch per broker and round. One generator a
partition answers all its committed offsets; their windows are merged and each record is reduced to
a number once.

How an offset is found. The syncs at both sides of a committed offset are certain pairs (source record,
target record) and leave a stretch of the target in which it must lie. Windows around the
predicted place are read on both sides; records that occur once pair up; the neighbouring pairs
below and above the committed offset enclose the answer, and what lies between them is settled
by ``align.settle``. Wider windows follow while the enclosing pairs lie too far apart, until the
stretch or ``max_records`` is used up. Then the syncs' own answer stands.

Why the answer never passes the true position. An answer d has a consumed record's copy below it
and no unread one's in the same run; all that this run and later ones copy from the committed
offset on lies at or beyond d, since a restart begins at or below what was copied. What is left: a run
that was killed had copied beyond the present reach. Its unread records then lie only before d. The
newest copied record z is found by comparison, too; while the mirror copies again what it had copied,
the source records after z are on the target already, before a break. They are looked for in each break
that could hold them and among all records read; where they are found, only answers
at or before them count (``Case.limit``).

What it relies on. A record pairs if no other source record read is like it in timestamp, key, value and
headers; so a pair is false only if its true original was not read, or is gone and a like one is left (then it is
a later one: the cleaner and retention take the earlier). Between syncs a window is wider than the uncertainty of
its place, so it holds the original. Breaks hold what came from elsewhere: the originals of all they can hold are read,
else they are not compared (``place``). Records that pair with nothing count as unread where the answer is
looked for, and as read again in ``reread_max``. What a break has room for is counted in records, not offsets,
wherever that could matter (``place``). ``reread_max`` beyond what was read rests on the counting of ``sync_rule``.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from typing import TypeVar

import msgspec

from failover.model.names import TopicPartition
from failover.model.records import Window, WindowRequest
from failover.model.translation import Precision, Translation
from failover.translate import sync_rule
from failover.translate.comparison import Case, Need, advance, merged
from failover.translate.place import place
from failover.translate.segments import Syncs
from failover.translate.sync_rule import LogBounds

Windows = Mapping[WindowRequest, Window]
Answers = dict[int, Translation]
_K = TypeVar("_K", bound=Hashable)
_T = TypeVar("_T")
Locator = Generator[tuple[WindowRequest, ...], Windows, Answers]


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """Asks where committed offsets of one source partition lie on the target.

    ``upstreams``: committed source offsets (next to read), any order. ``bounds`` as ``sync_rule``
    wants them. ``source_readable``: False when the source is silent or may not be read; the target
    alone then still proves one-to-one stretches. ``max_records``: most records read on both sides together.
    ``one_to_one``: see ``sync_rule.translate``.
    """

    source: TopicPartition
    target: TopicPartition
    upstreams: tuple[int, ...]
    syncs: Syncs | None
    bounds: LogBounds
    source_readable: bool = True
    max_records: int = 200_000
    one_to_one: bool = False


def locate(question: Question) -> Locator:
    """Finds all committed offsets of a question; the generator returns a translation for each.

    Drive it with ``send``: it yields requests that do not overlap and wants a window for each.
    """
    case = Case(
        (question.source, question.target),
        question.syncs,
        question.bounds,
        source_readable=question.source_readable,
        max_records=question.max_records,
        asked=len(question.upstreams),
    )
    if case.syncs is not None:
        case.own = len(case.syncs) - len(sync_rule.of_this_source(case.syncs, question.bounds)[0])
    yield from _all(case, [case.prepare()])
    order = sorted(set(question.upstreams))
    while True:
        known = case.limit, case.alike()
        found = yield from _all(case, [place(case, upstream) for upstream in order])
        if case.distrusted and case.syncs is not None:
            case.distrust()
            yield from _all(case, [case.prepare()])
            continue
        # among all that was read there may be copies that show the mirror copying again
        yield from _all(case, [case.find_limit()])
        if (case.limit, case.alike()) == known:
            break
    return {upstream: _best(question, case, upstream, answer) for upstream, answer in zip(order, found, strict=True)}


def _best(question: Question, case: Case, upstream: int, content: Translation | None) -> Translation:
    """Chooses between the compared records' answer and the syncs': both pass nothing, so the higher one if in doubt."""
    syncs = None if case.distrusted else question.syncs
    answer = sync_rule.translate(upstream, syncs, question.bounds, one_to_one=question.one_to_one)
    repeating = case.copies_again_below(upstream)
    floor = 0
    if content is not None and content.offset is not None and not case.unsure:
        if repeating or not content.reread or answer.offset is None or content.offset >= answer.offset:
            answer = content
        else:
            floor = (content.reread_max or 0) - case.target.count(content.offset, answer.offset)
    lines = [f"compared {len(case.source.offsets)} source and {len(case.target.offsets)} target records"]
    if case.fault is not None:
        lines.append(f"comparing records ended early: {case.fault}")
    if case.distrusted:
        lines.append("a sync's records differ: the target was truncated or recreated, no sync is used")
    if answer is not content and answer.offset is not None:
        again = case.again(upstream, answer.offset)
        lines += [f"{again} records at the target's end may be copies made twice"] if again else []
        answer = _bounded(answer, answer.offset, max((answer.reread_max or 0) + again, floor))
    highest = end = question.bounds.target_end
    if not case.drained(upstream):
        ceiling = case.ceilings.get(upstream)
        highest = end if ceiling is None else ceiling.target
        if case.limit is not None and not (repeating and answer is content):
            highest = min(highest, case.limit)
    if answer.offset is not None and answer.offset > highest:
        lines.append(f"lowered from {answer.offset}: unread records lie only from {highest} on")
        future = upstream - case.newest.source - 1 if case.newest is not None else upstream
        answer = _bounded(answer, highest, end - highest + max(0, future))
    return msgspec.structs.replace(answer, evidence=(*answer.evidence, *lines))


def _bounded(answer: Translation, offset: int, most: int) -> Translation:
    precision = Precision.BOUNDED if most else Precision.EXACT
    return msgspec.structs.replace(answer, offset=offset, precision=precision, reread_max=most)


_Step = Generator[list[Need], None, _T]


def _all(case: Case, steps: Sequence[_Step[_T]]) -> Generator[tuple[WindowRequest, ...], Windows, list[_T]]:
    """Advances several readings side by side, their needs merged into one round of requests."""
    results: dict[int, _T] = {}
    waiting = dict(enumerate(steps))
    while waiting:
        needs = advance(waiting, results)
        if needs:
            wanted = merged(case.names, needs)
            answers = yield wanted
            for request in wanted:
                case.absorb(request, answers[request])
    return [results[number] for number in range(len(steps))]


def run(
    locators: Mapping[_K, Locator], read_windows: Callable[[Sequence[WindowRequest]], Windows]
) -> dict[_K, Answers]:
    """Drives locators to their end, the requests of one round read together.

    ``read_windows`` answers every request; it decides how. Returns each locator's answers under its key.
    """
    done: dict[_K, Answers] = {}
    windows: dict[_K, Windows | None] = dict.fromkeys(locators)
    while windows:
        asked: dict[_K, tuple[WindowRequest, ...]] = {}
        for key, answer in windows.items():
            try:
                asked[key] = next(locators[key]) if answer is None else locators[key].send(answer)
            except StopIteration as stop:
                done[key] = stop.value
        batch = [request for requests in asked.values() for request in requests]
        read = read_windows(batch) if batch else {}
        windows = {key: {request: read[request] for request in requests} for key, requests in asked.items()}
    return done
