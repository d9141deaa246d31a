"""Compares the records of both clusters for the offsets that syncs alone do not prove exact.

``failover.translate.content`` says which stretches it wants and weighs what it gets; here they are
read, both clusters at once, all partitions of a round together. Record contents stay in memory for
the moment of comparison and reach no result.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol, TypeAlias

from failover.errors import ClusterError
from failover.inventory.look import Report, in_background
from failover.inventory.questions import Answers, Evidence, Question, Refine, bounds_of, named
from failover.model.names import Fault, TopicPartition
from failover.model.records import Window, WindowRequest
from failover.translate.content import Locator, locate, run
from failover.translate.content import Question as Comparison
from failover.translate.inverse_content import InverseQuestion
from failover.translate.inverse_content import locate as locate_inverse

MAX_RECORDS = 200_000
"""Records of a partition compared at most before the safe bound is given (``failover.exact.max.records``)."""


class Windows(Protocol):
    """Reads stretches of a cluster's logs, as ``failover.kafka.port.Cluster`` does."""

    def windows(self, requests: Sequence[WindowRequest]) -> dict[WindowRequest, Window]:
        """Reads stretches of many partitions at once."""


_Pair: TypeAlias = tuple[TopicPartition, TopicPartition]


def record_comparison(
    source: Windows | None, target: Windows, evidence: Evidence, report: Report, *, max_records: int = MAX_RECORDS
) -> Refine:
    """Makes the stage that compares records. ``source`` None: it gives no answer; the target alone is read."""
    reader = _Reader(source, target, report)

    def refine(questions: Sequence[Question]) -> Answers:
        asked: dict[_Pair, set[int]] = {}
        backwards: set[_Pair] = set()
        for question in questions:
            pair = question.source, question.target
            if evidence.is_back(question) and not evidence.is_both(question):
                if question.source not in evidence.source_logs:
                    continue  # the copies cannot be read
                backwards.add(pair)
            if question.target in evidence.target_logs:
                asked.setdefault(pair, set()).add(question.upstream)
        comparisons = {
            pair: _inverse(evidence, pair, upstreams, max_records)
            if pair in backwards
            else locate(
                Comparison(
                    source=pair[0],
                    target=pair[1],
                    upstreams=tuple(upstreams),
                    syncs=evidence.syncs.get(pair[0]),
                    bounds=bounds_of(evidence, *pair),
                    source_readable=source is not None and pair[0] in evidence.source_logs,
                    max_records=max_records,
                )
            )
            for pair, upstreams in asked.items()
        }
        reader.begin(len(comparisons))
        found = run(comparisons, reader.read)
        answers = {
            question: found[question.source, question.target][question.upstream]
            for question in questions
            if (question.source, question.target) in found
        }
        back = evidence.opposite
        return {
            question: named(answer, back) if back and (question.source, question.target) in backwards else answer
            for question, answer in answers.items()
        }

    return refine


def _inverse(evidence: Evidence, pair: _Pair, copied: Collection[int], max_records: int) -> Locator:
    back = evidence.opposite
    assert back is not None
    copies, originals = pair
    question = InverseQuestion(
        copies=copies,
        originals=originals,
        copied=tuple(copied),
        syncs=back.syncs.get(originals),
        bounds=bounds_of(evidence, copies, originals),
        shared=back.shared,
        max_records=max_records,
    )
    return locate_inverse(question)


class _Reader:
    """Reads windows of both clusters and counts what was read, for whoever watches."""

    def __init__(self, source: Windows | None, target: Windows, report: Report) -> None:
        self._clusters = {"source": source, "target": target}
        self._report = report
        self._records = 0

    def begin(self, partitions: int) -> None:
        self._report(f"comparing records of {partitions} partitions", 0, None)

    def read(self, requests: Sequence[WindowRequest]) -> dict[WindowRequest, Window]:
        """Answers every request; a cluster that fell silent answers with a fault in each window."""
        of_source = [request for request in requests if request.side == "source"]
        of_target = [request for request in requests if request.side == "target"]
        at_source = in_background(lambda: self._of("source", of_source))
        windows = self._of("target", of_target)
        windows.update(at_source.result())
        self._records += sum(len(window.records) for window in windows.values())
        self._report("comparing records", self._records, None)
        return windows

    def _of(self, side: str, requests: Sequence[WindowRequest]) -> dict[WindowRequest, Window]:
        if not requests:
            return {}
        cluster = self._clusters[side]
        if cluster is None:
            return _unread(requests, Fault(-1, "NOT_ASKED", "the source is not asked"))
        try:
            return cluster.windows(requests)
        except ClusterError as error:
            self._clusters[side] = None
            return _unread(requests, Fault(-1, "UNREACHABLE", error.message))


def _unread(requests: Sequence[WindowRequest], fault: Fault) -> dict[WindowRequest, Window]:
    return {request: Window((), request.start, -1, -1, fault=fault) for request in requests}
