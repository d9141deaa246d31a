"""A recorded partition answered for again: the engine's input from the capture, and the record-level judge.

Every record's id is known on both sides, so what an answer passes over or reads again is counted.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

from failover.lab.capture import Capture, Log
from failover.model import Record, TopicPartition, Translation, Window, WindowRequest
from failover.translate.content import Question, locate, run
from failover.translate.history import SyncHistory
from failover.translate.segments import Syncs
from failover.translate.sync_rule import LogBounds, translate


class Replay:
    """Is one partition of a capture, by default as it was left; ``until``: when the target's end was there.

    An earlier moment has the target's records below it and the syncs that had arrived when the first of
    a later record did.
    """

    def __init__(self, capture: Capture, source: TopicPartition, *, until: int | None = None) -> None:
        self.source_tp = source
        self.target_tp = _copy(capture, source)
        self.source = capture.log("source", self.source_tp)
        self.target = _cut(capture.log("target", self.target_tp), until)
        self._records = {
            "source": capture.records("source", self.source_tp),
            "target": capture.records("target", self.target_tp)[: len(self.target.offsets)],
        }
        self.syncs = _syncs(capture, source, self.target.end)
        self.bounds = LogBounds(
            target_start=self.target.start,
            target_end=self.target.end,
            source_start=self.source.start,
            source_end=self.source.end,
        )
        self._last = dict(zip(self.target.ids, self.target.offsets, strict=True))
        self._origin = dict(zip(self.source.ids, self.source.offsets, strict=True))
        # by source record: the last copies of it and of all after it, and of it and all before it
        lasts = [self._last.get(number) for number in self.source.ids]
        ends = [self.target.end if last is None else last for last in lasts]
        self._lowest = [*reversed(list(accumulate(reversed(ends), min))), self.target.end]
        self._highest = [-1, *accumulate((-1 if last is None else last for last in lasts), max)]

    def records(self, side: str) -> list[Record]:
        """Gives one side's data records."""
        return self._records[side]

    # -- asking ------------------------------------------------------------------------------------

    def located(self, upstreams: Iterable[int], *, source: bool = True) -> dict[int, Translation]:
        """Asks for committed offsets with records compared, all in one question."""
        question = Question(
            source=self.source_tp,
            target=self.target_tp,
            upstreams=tuple(upstreams),
            syncs=self.syncs,
            bounds=self.bounds,
            source_readable=source,
        )
        return run({0: locate(question)}, self._read)[0]

    def by_syncs(self, upstream: int) -> Translation:
        """Asks for one committed offset by the syncs alone."""
        return translate(upstream, self.syncs, self.bounds)

    def every_offset(self) -> range:
        """Gives every offset a group can have committed."""
        return range(self.source.start, self.source.end + 1)

    def _read(self, requests: Sequence[WindowRequest]) -> Mapping[WindowRequest, Window]:
        return {request: self._window(request) for request in requests}

    def _window(self, request: WindowRequest) -> Window:
        log = self.source if request.side == "source" else self.target
        stop = min(request.stop, log.end)
        low, high = bisect_left(log.offsets, request.start), bisect_left(log.offsets, stop)
        records: list[Record] = self._records[request.side][low:high]
        return Window(tuple(records), stop, log.start, log.end)

    # -- judging -----------------------------------------------------------------------------------

    def true_position(self, upstream: int) -> int:
        """Gives the first target offset from which on nothing would be passed over if it were higher."""
        return self._lowest[bisect_left(self.source.offsets, upstream)]

    def reread(self, offset: int, upstream: int) -> int:
        """Counts the consumed records at or beyond ``offset``; one that the source no longer holds does not count."""
        beyond = self._highest[bisect_left(self.source.offsets, upstream)] + 1
        consumed = self.target.ids[bisect_left(self.target.offsets, offset) : bisect_left(self.target.offsets, beyond)]
        return sum(self._origin.get(number, upstream) < upstream for number in consumed)

    def check(self, answer: Translation) -> None:
        """Asserts that an answer passes nothing unread and keeps its bound."""
        if answer.offset is None:
            assert answer.failure
            return
        assert self.target.start <= answer.offset <= self.target.end, answer
        truth = self.true_position(answer.upstream)
        assert answer.offset <= truth, f"{answer} passes the true position {truth}"
        assert answer.reread_max is not None, answer
        again = self.reread(answer.offset, answer.upstream)
        assert again <= answer.reread_max, f"{answer} reads {again} again"


def partitions(capture: Capture) -> list[TopicPartition]:
    """Gives the source partitions of a capture."""
    return [TopicPartition(topic, number) for topic, logs in capture.source.items() for number in logs]


def _cut(log: Log, until: int | None) -> Log:
    if until is None:
        return log
    stop = bisect_left(log.offsets, until)
    return Log(log.start, max(log.start, until), log.offsets[:stop], log.ids[:stop], log.timestamps[:stop])


def _syncs(capture: Capture, source: TopicPartition, end: int) -> Syncs | None:
    log, copies = capture.log("source", source), capture.log("target", _copy(capture, source))
    origin, placed = dict(zip(log.offsets, log.ids, strict=True)), dict(zip(copies.offsets, copies.ids, strict=True))
    history = SyncHistory()
    for sync in capture.syncs:
        if (sync.topic, sync.partition) != source:
            continue
        # one that names another record is from before the target was made anew, so it was there already
        if sync.downstream >= end and origin.get(sync.upstream) == placed.get(sync.downstream, -1):
            break  # it and what arrived later belongs to a later moment
        history.append(*source, sync.upstream, sync.downstream)
    return history.freeze().get(source)


def _copy(capture: Capture, source: TopicPartition) -> TopicPartition:
    return TopicPartition(capture.remote(source.topic), source.partition)
