"""Failback by content: which original the last consumed copies are copies of, by comparing the records themselves.

Sans-IO, driven like ``content``. The words are those of ``inverse``. Offsets of both logs are held as
the mirroring flow sees them (a ``Case``): its source are the originals, its target the copies. Only the
requests name sides as the plan does, the other way round.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

import msgspec

from failover.model.names import TopicPartition
from failover.model.records import WindowRequest
from failover.model.translation import Translation
from failover.translate.comparison import Case, advance, merged
from failover.translate.content import Locator, Windows
from failover.translate.inverse import Inverse
from failover.translate.inverse_search import Search
from failover.translate.segments import Syncs
from failover.translate.sync_rule import NO_SYNC, LogBounds


class InverseQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """Asks where offsets committed on the copies of one partition lie among the originals.

    ``copied``: committed offsets (next to read), any order. ``syncs``, ``bounds``: as ``Inverse`` wants
    them. ``shared``: both clusters write to the topic (names are kept), so records that follow the
    copies are no copies, and only what a sync leads to counts. ``max_records``: most records read on both sides.
    """

    copies: TopicPartition
    originals: TopicPartition
    copied: tuple[int, ...]
    syncs: Syncs | None
    bounds: LogBounds
    shared: bool = False
    max_records: int = 200_000


def locate(question: InverseQuestion) -> Locator:
    """Finds all offsets of a question; drive it as ``content.run`` does. Returns a translation for each."""
    inverse = Inverse(question.syncs, question.bounds)
    bounds = question.bounds
    case = Case(
        (question.originals, question.copies),
        inverse.syncs,
        LogBounds(
            target_start=bounds.source_start or 0,
            target_end=bounds.source_end or 0,
            source_start=bounds.target_start,
            source_end=bounds.target_end,
        ),
        source_readable=True,
        max_records=question.max_records,
        asked=len(question.copied),
    )
    order = sorted(set(question.copied))
    found = yield from _together(case, [Search(case, inverse, each, shared=question.shared) for each in order])
    if case.distrusted:
        case.distrust()
        inverse = Inverse(None, bounds)
        found = yield from _together(case, [Search(case, inverse, each, shared=question.shared) for each in order])
    return {copied: _best(case, inverse, copied, answer) for copied, answer in zip(order, found, strict=True)}


def _best(case: Case, inverse: Inverse, copied: int, content: Translation | None) -> Translation:
    answer = content if content is not None else inverse.place(copied)
    lines = [f"compared {len(case.target.offsets)} copies and {len(case.source.offsets)} originals"]
    if case.fault is not None:
        lines.append(f"comparing records ended early: {case.fault}")
    if case.distrusted:
        lines.append("a sync's records differ: a log was truncated or made anew, no sync is used")
        if answer.offset is None:
            answer = msgspec.structs.replace(answer, failure=NO_SYNC)
    return msgspec.structs.replace(answer, evidence=(*answer.evidence, *lines))


def _together(
    case: Case, searches: Sequence[Search]
) -> Generator[tuple[WindowRequest, ...], Windows, list[Translation | None]]:
    """Advances all searches of a partition side by side; requests name sides as the plan does."""
    results: dict[int, Translation | None] = {}
    waiting = dict(enumerate(search.steps() for search in searches))
    while waiting:
        wanted = merged(case.names, case.open(advance(waiting, results)))
        if wanted:
            asked = {request: _turned(request) for request in wanted}
            answers = yield tuple(asked.values())
            for request, as_planned in asked.items():
                case.absorb(request, answers[as_planned])
    return [results[number] for number in range(len(searches))]


def _turned(request: WindowRequest) -> WindowRequest:
    return request._replace(side="target" if request.side == "source" else "source")
