"""From where on the source the copying of one partition goes on: the rule, without any reading.

Sans-IO: ``locating`` yields the stretches of both logs it wants and receives them, so that one driver answers the
generators of all partitions with a few requests a broker.

Two independent witnesses are asked.

*The count.* An anchor says that the source from ``upstream`` on is on the target from ``downstream`` on. The target's
data records from there to its end are counted, and as many are passed on the source. A record that is gone from either
log (compaction, retention) makes the count a range.

*The content.* The last records of the target must be those of the source before the position. They settle a range;
they find the position where the count is wrong (a killed MirrorMaker 2 copied a stretch twice and its offset sync was
lost), where the target lost its end, and where no anchor tells anything. Records that are alike are told apart by the
count alone: it is trusted as far as MirrorMaker 2 writes an offset sync with the first record of each of its runs.

Where both are silent or speak against each other in a way that nothing here explains, the answer is ``Unknown``.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import NamedTuple

import msgspec

from failover.kafka.wire.metadata import NO_TOPIC_ID
from failover.replication.anchor import Anchor
from failover.replication.locate_answer import How, Located, Question, Unknown, same_topic
from failover.replication.locate_count import Passed, passed
from failover.replication.locate_match import COMPARED, SURE, Found, Sample, sample
from failover.replication.locate_reads import MARGIN, Logs, Steps
from failover.replication.reading import Stretch

_NEAR = 256
_ANCHORS_TRIED = 4
_FIRST_WIDTH, _WIDER = 1_000, 8


class _Clue(NamedTuple):
    """Is a count that the content does not bear out. ``exact``: it is one position, not a range.

    ``same_log``: the source is surely the same topic and has the record before the anchor at the same offset and of the
    same leader epoch, so up to there it is what it was (Kafka: KIP-101).
    """

    passed: Passed
    anchor: Anchor
    exact: bool
    same_log: bool = False


def locating(question: Question) -> Steps[Located | Unknown]:
    """Finds the position; drive it with ``send``: it yields wants and takes a stretch for each."""
    return _Search(question.narrowed()).run()


class _Search:
    """Looks for one partition's position; keeps what was read."""

    def __init__(self, question: Question) -> None:
        self.question = question
        self.source, self.target = question.source, question.target
        self._logs = Logs(question.source, question.target, limit=question.max_records)
        self._clues: list[_Clue] = []
        self._notes: list[str] = []
        self._recreated: Anchor | None = None
        self._countable = 10 * question.max_records
        self._anchors = self._usable()
        self._floor = next((anchor.upstream for anchor in self._anchors if anchor.downstream is None), None)
        self._counted = [anchor for anchor in self._anchors if anchor.downstream is not None]

    def run(self) -> Steps[Located | Unknown]:
        chosen = self._chosen()
        if chosen is not None:
            return chosen
        yield from self._first_look()
        tail = yield from self._logs.tail(COMPARED)
        if self._recreated is not None:
            return (yield from self._from_another_source(self._recreated))
        if not tail.rows and tail.start == self.target.start:
            return (yield from self._without_records(tail))
        for anchor in self._counted[:_ANCHORS_TRIED]:
            found = yield from self._by_count(anchor, tail)
            if found is not None:
                return found
        return (yield from self._by_content(tail))

    def _chosen(self) -> Located | None:
        """Takes what somebody chose as it is: behind the fence it begins at the target's end, whatever lies there."""
        newest = next(iter(self.question.anchors), None)
        if newest is None or not newest.chosen:
            return None
        where, detail = newest.upstream, "chosen by somebody"
        if not where:
            where = self.question.beginning
            detail = "its position was removed"
        found = self._located(where, None, how="chosen", detail=detail)
        return msgspec.structs.replace(found, since=self.target.end)

    # -- which anchors count ---------------------------------------------------------------------

    def _usable(self) -> list[Anchor]:
        """Chooses the anchors that may be true of these two topics, up to the target's end."""
        source_id, target_id = self.question.source_topic_id, self.question.target_topic_id
        end = self.target.end if self.question.whole is None else min(self.target.end, self.question.whole)
        usable: list[Anchor] = []
        for place, anchor in enumerate(self.question.anchors):
            same_source = same_topic(anchor.source_topic_id, source_id)
            same_target = same_topic(anchor.target_topic_id, target_id)
            if same_source is False:
                if not place:
                    self._recreated = anchor
                break  # what is older is of the other topic, too
            if same_target is False:
                self._notes.append("the target's topic was made anew")
                break
            if anchor.downstream is not None and anchor.downstream > end:
                self._notes.append(f"the target ended at {end}, below the recorded offset {anchor.downstream}")
                continue
            usable.append(anchor)
        return usable

    # -- reading ---------------------------------------------------------------------------------

    def _first_look(self) -> Steps[None]:
        """Asks at once for what a position that has hardly moved needs."""
        end = self.target.end
        wants = [self._logs.want("target", end - MARGIN, end)]
        if self._counted:
            upstream, downstream = self._counted[0].upstream, self._counted[0].downstream or 0
            moved = end - downstream
            if moved <= _NEAR:
                wants = [
                    self._logs.want("target", min(downstream, end - MARGIN), end),
                    self._logs.want("source", upstream - MARGIN, upstream + 2 * moved + MARGIN),
                ]
        yield from self._logs.get(wants)

    # -- the count -------------------------------------------------------------------------------

    def _count(self, anchor: Anchor) -> Steps[Passed | None]:
        """Counts on the target from an anchor and passes as many on the source; None where that is too much to read."""
        since = anchor.downstream
        assert since is not None
        if self.target.end - since > self._countable:
            return None
        [copied] = yield from self._logs.get([self._logs.want("target", since, self.target.end, records=False)])
        least = copied.records
        most = least + copied.missing + max(0, self.target.start - since)
        return (yield from self._pass(anchor.upstream, least, most))

    def _pass(self, upstream: int, least: int, most: int) -> Steps[Passed | None]:
        """Reads as much of the source as holds so many records."""
        start, end = self.source
        if upstream > end:
            return Passed(end, end, least, most, None, upstream - end + least)
        stop = begin = max(upstream, start)
        walked = Stretch(begin, begin)
        while most and walked.records <= most and stop < end:
            if stop - begin > most + self._countable:
                return None
            stop = min(stop + max(most - walked.records + 1, MARGIN), end)
            [piece] = yield from self._logs.get([self._logs.want("source", walked.stop, stop, records=False)])
            walked.extend(piece)
        return passed(upstream, walked, least, most)

    def _by_count(self, anchor: Anchor, tail: Stretch) -> Steps[Located | None]:
        """Counts from one anchor and compares; None, and a clue, where the content does not bear the count out."""
        count = yield from self._count(anchor)
        if count is None:
            return None
        if count.beyond:
            self._notes.append(f"{_of(anchor)}, the count leads {count.beyond} records beyond the source's end")
            self._clues.append(_Clue(count, anchor, exact=False))
            return None
        around = yield from self._logs.around(count.low, count.high + 1)
        beside = self._beside(around, tail)
        first, last = (bisect_left(beside.source.offsets, offset) for offset in (count.low, count.high))
        detail = f"{_of(anchor)}, {count.records} on"
        if first == last:
            agreement = beside.agreement(first)
            if agreement.broken is None:
                return self._located(count.low, around, how=_how(count), detail=detail)
            epoch = anchor.leader_epoch
            known = same_topic(anchor.source_topic_id, self.question.source_topic_id) is True  # all begin with epoch 0
            same_log = known and epoch >= 0 and around.epoch_before(anchor.upstream) == epoch
            self._clues.append(_Clue(count, anchor, exact=True, same_log=same_log))
            at, record = agreement.broken
            self._notes.append(
                f"{detail} is {count.low}, but target record {beside.target.offsets[record]} is not "
                f"source record {beside.source.offsets[at]}"
            )
            return None
        good = {cut: found for cut in range(first, last + 1) if (found := beside.agreement(cut)).agrees}
        alike = [cut for cut, found in good.items() if found.pairs and not found.repeats] or list(good)
        if len(alike) == 1:
            offset = _offset(beside, alike[0], count.low)
            return self._located(offset, around, how=_how(count), detail=f"{detail}, settled by the last records")
        natural = count.natural
        if natural is not None and count.behind_start and bisect_left(beside.source.offsets, natural) in good:
            return self._located(natural, around, how=_how(count), detail=detail)
        self._notes.append(f"{detail} is {count.low} to {count.high}")
        self._clues.append(_Clue(count, anchor, exact=False))
        return None

    # -- the content -----------------------------------------------------------------------------

    def _by_content(self, tail: Stretch) -> Steps[Located | Unknown]:
        """Searches the source for the target's last records, in ever wider windows around where they should be."""
        nothing = yield from self._nothing_left(self.source.start)
        if nothing is not None:
            return nothing
        low, high = yield from self._guess()
        width = _FIRST_WIDTH
        while True:
            want = self._logs.want("source", low - width, high + width)
            [window] = yield from self._logs.get([want])
            everything = want.start == self.source.start and want.stop == self.source.end
            last = everything or want.stop - want.start >= self.question.max_records
            found = self._judge(window, tail, last=last, everything=everything) or (
                yield from self._truncated(window, tail, last=last)
            )
            if found is not None:
                return found
            if last:
                return self._unknown("the target's last records are not found on the source")
            width *= _WIDER

    def _guess(self) -> Steps[tuple[int, int]]:
        """Says between which source offsets the position should be."""
        places = [clue.passed.low for clue in self._clues[:1]]
        if self._floor is not None:
            places.append(self._floor)
        if not places and self._counted:
            anchor = self._counted[0]
            places = [anchor.upstream + self.target.end - (anchor.downstream or 0)]
        if not places and self.target.start == 0 and self.target.end <= self._countable:
            [copied] = yield from self._logs.get([self._logs.want("target", 0, self.target.end, records=False)])
            whole = yield from self._pass(self.source.start, copied.records, copied.records)
            places = [] if whole is None else [whole.low]
        start, end = self.source
        places = [min(max(place, start), end) for place in places or [end]]
        low, high = min(places), max(places)
        return (low, high) if high - low < self.question.max_records else (places[0], places[0])

    def _judge(self, window: Stretch, tail: Stretch, *, last: bool, everything: bool) -> Located | Unknown | None:
        """Decides by one window; None where a wider one may tell more.

        One place in a window is the only one in the log if the window is all of it, or if the records carry their own
        times, which no other records repeat. Without these, whatever was sent twice fits twice: then all that may be
        read must have been, with none of the records in it twice.
        """
        beside = self._beside(window, tail)
        if beside.target.gaps[-1]:
            return self._unknown("the target's very last records are gone")
        whole, begun = beside.candidates()
        whole = self._above_floor(beside, [found for found in whole if not found.dropped])
        sure = [found for found in whole if found.pairs >= SURE]
        if not sure:
            for clue in self._clues:
                if clue.exact and window.start <= clue.passed.low <= window.stop and _believed(clue, beside):
                    detail = f"{_of(clue.anchor)} {clue.passed.records} on; what the target holds before is older"
                    return self._located(clue.passed.low, window, how=_how(clue.passed), detail=detail)
        found = sure or whole or self._above_floor(beside, begun)
        if len(found) > 1 and (sure or last):
            offsets = " and ".join(str(_offset(beside, one.cut)) for one in found[:2])
            return self._unknown(f"the target's last records fit the source at {offsets}")
        if len(found) == 1 and (everything or self._only(beside, found[0], last=last)):
            offset = _offset(beside, found[0].cut)
            return self._located(offset, window, how="content", detail=f"{found[0].pairs} records compared")
        return None

    def _only(self, beside: Sample, found: Found, *, last: bool) -> bool:
        return found.pairs >= SURE and (beside.timed or (last and beside.singular(found)))

    def _above_floor(self, beside: Sample, found: list[Found]) -> list[Found]:
        """Leaves out what lies below MirrorMaker 2's own position, unless all does: it may have copied on, not back."""
        if self._floor is None:
            return found
        floor = bisect_left(beside.source.offsets, self._floor)
        return [one for one in found if one.cut >= floor] or found

    def _truncated(self, window: Stretch, tail: Stretch, *, last: bool) -> Steps[Located | None]:
        """Looks for the end of the source's log as it was left, where the target has records that came after it.

        A count must agree: it leads as far beyond that end as the target has such records, or, once this was noticed
        and the copying went on from there, to that end.
        """
        beside = self._beside(window, tail)
        if last and not any(token in beside.source.places for token in beside.target.tokens):
            longer = yield from self._logs.tail(64 * COMPARED)
            beside = self._beside(window, longer)
        whole, _ = beside.candidates()
        if len(whole) != 1 or not whole[0].dropped or whole[0].pairs < SURE:
            return None
        [found] = whole
        left = len(beside.source.offsets) - found.cut
        for clue in self._clues:
            if clue.passed.beyond:
                agrees = window.stop == self.source.end and left + clue.passed.beyond == found.dropped
            else:
                ahead = bisect_left(beside.source.offsets, clue.passed.low) - found.cut
                agrees = clue.exact and ahead in (0, found.dropped)
            if agrees:
                return self._located(
                    _offset(beside, found.cut),
                    window,
                    how="source-truncated" if clue.passed.beyond else "diverged",
                    diverged=found.dropped,
                    detail=f"the last {found.dropped} records of the target are not on the source",
                )
        return None

    # -- the rarer cases -------------------------------------------------------------------------

    def _without_records(self, tail: Stretch) -> Steps[Located | Unknown]:
        """Decides where the target holds no data record: none was copied, or all are gone."""
        never = self.target.start == 0 and not tail.missing
        counted = self._counted
        if never:
            # What is not sure to be about this topic says nothing, as there never was a record on it. Of several
            # anchors the lowest holds: what came behind it was lost with the target's end.
            known = any(NO_TOPIC_ID not in (anchor.source_topic_id, anchor.target_topic_id) for anchor in counted)
            counted = [min(counted, key=lambda anchor: anchor.upstream)] if known else []
        for anchor in counted:
            count = yield from self._count(anchor)
            if count is None or count.natural is None or not self._expired(anchor, count):
                self._notes.append(f"{_of(anchor)}, the records on the target cannot be counted")
                continue
            around = yield from self._logs.around(count.natural, count.natural + 1)
            detail = f"{_of(anchor)}, {count.records} on, which the target no longer holds"
            return self._located(count.natural, around, how=_how(count), detail=detail)
        if never:
            return self._located(
                self.source.start if self.question.anchors else self.question.beginning,
                None,
                how="start",
                detail="the target never held a record",
            )
        nothing = yield from self._nothing_left(self.source.start if self._floor is None else self._floor)
        return nothing or self._unknown("the target's records are gone, and no anchor counts them")

    def _nothing_left(self, lowest: int) -> Steps[Located | None]:
        """Decides where the source has nothing from the lowest possible position on, so that all are alike."""
        start, end = self.source
        if not end - _FIRST_WIDTH <= max(lowest, start) <= end:
            return None
        [ahead] = yield from self._logs.get([self._logs.want("source", lowest, end)])
        if ahead.rows:
            return None
        upstream = start if self._floor is None or self._floor > end else self._floor
        beyond = max((clue.passed.beyond for clue in self._clues), default=0)
        how: How = "source-truncated" if beyond else "content"
        return self._located(upstream, ahead, how=how, diverged=beyond, detail="the source has nothing to copy")

    def _expired(self, anchor: Anchor, count: Passed) -> bool:
        """Says whether all that is gone since an anchor, below the target's log start, was data, so that offsets count.

        It was since an anchor of ours: who fences a partition records one behind the marker. Between the records of
        MirrorMaker 2 there may be markers, so here its own position must agree; what its offset syncs name are records.
        """
        hidden = max(0, self.target.start - (anchor.downstream or 0))
        if count.most - count.least > hidden:
            return False
        known = NO_TOPIC_ID not in (anchor.source_topic_id, anchor.target_topic_id)
        return known or hidden <= 1 or count.natural == self._floor

    def _from_another_source(self, anchor: Anchor) -> Steps[Located | Unknown]:
        """Goes on with a source topic that was made anew: from its start, but for what was already copied of it."""
        since = self.target.start
        if (
            anchor.downstream is not None
            and same_topic(anchor.target_topic_id, self.question.target_topic_id) is not False
        ):
            since = min(max(anchor.downstream, since), self.target.end)
        start, detail = self.source.start, "the source's topic was made anew"
        if self.target.end - since > self.question.max_records:
            return self._unknown(f"{detail}, and the target has grown by {self.target.end - since} since")
        [copied] = yield from self._logs.get([self._logs.want("target", since, self.target.end)])
        grown = copied.stop - copied.start
        [head] = yield from self._logs.get([self._logs.want("source", start, start + 2 * grown + MARGIN)])
        if head.rows and copied.rows:
            beside = sample(head, copied, bottom=True)
            whole = [found for found in beside.candidates()[0] if not found.dropped]
            if len(whole) > 1:
                return self._unknown(f"{detail}, and the target's last records fit it in several places")
            if whole:
                return self._located(_offset(beside, whole[0].cut), head, how="source-recreated", detail=detail)
        return self._located(start, None, how="source-recreated", lost=start, detail=detail)

    # -- answers ---------------------------------------------------------------------------------

    def _beside(self, source: Stretch, tail: Stretch) -> Sample:
        return sample(source, tail, bottom=source.start == self.source.start)

    def _located(
        self,
        upstream: int,
        around: Stretch | None,
        *,
        how: How,
        detail: str,
        diverged: int = 0,
        lost: int | None = None,
    ) -> Located:
        return Located(
            upstream=upstream,
            downstream=self.target.end,
            leader_epoch=-1 if around is None else around.epoch_before(upstream),
            how=how,
            lost=max(0, self.source.start - upstream) if lost is None else lost,
            diverged=diverged,
            detail="; ".join([*self._notes, detail]),
            since=self.question.since,
        )

    def _unknown(self, why: str) -> Unknown:
        start, end = self.source
        where = f"source {start} to {end}, target {self.target.start} to {self.target.end}"
        if self._floor is not None:
            self._notes.append(f"MirrorMaker 2's position is {self._floor}")
        return Unknown("; ".join([why, *self._notes, where]))


def _of(anchor: Anchor) -> str:
    return f"from source {anchor.upstream} = target {anchor.downstream}"


def _how(count: Passed) -> How:
    return "counted" if count.most else "anchor"


def _believed(clue: _Clue, beside: Sample) -> bool:
    """Says whether a count stands though the content contradicts it somewhere.

    It does if the last records agree and what does not was copied otherwise: before the anchor; by an earlier run that
    had come further (Kafka Connect: a worker that was killed begins again at the position it noted last); from a source
    that was truncated since. If none agrees, at least the source must be known to be the same.
    """
    cut = bisect_left(beside.source.offsets, clue.passed.low)
    agreement = beside.agreement(cut)
    if agreement.broken is None:
        return True
    at, last = agreement.broken
    places = beside.source.places.get(beside.target.tokens[last], ())
    if not agreement.pairs:
        return clue.same_log and not clue.passed.most and not any(place < cut for place in places)
    since = len(beside.target.tokens) - 1 - last
    return not places or places[-1] > at or since == clue.passed.least == clue.passed.most


def _offset(beside: Sample, cut: int, least: int = 0) -> int:
    """Gives the source offset behind the last record below a cut."""
    offsets = beside.source.offsets
    return max(offsets[cut - 1] + 1 if cut else 0, least)
