"""From a group's source offset to a target offset: one question for each group and mirrored partition.

``answer`` asks the evidence in stages. Offset syncs come first; what they leave inexact goes to
``refine``, where records are compared; MM2's checkpoint raises what is still below it. Partitions that
came from the target are asked about the other way round (``failover.translate.inverse``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import msgspec

from failover.inventory.tracked import counts
from failover.model.cluster import LogRange
from failover.model.groups import Commit
from failover.model.names import TopicPartition
from failover.model.snapshot import SeenCheckpoint, Tracked
from failover.model.translation import Precision, Proof, Translation
from failover.translate.inverse import Inverse, beside
from failover.translate.segments import Syncs
from failover.translate.sync_rule import LogBounds, translate


class Question(NamedTuple):
    """Asks where the source offset ``upstream`` of ``source`` lies on ``target``.

    ``group``: whose offset it is. ``checkpoint``: MM2's newest one of the group for the partition.
    """

    group: str
    target: TopicPartition
    source: TopicPartition
    upstream: int
    checkpoint: SeenCheckpoint | None


Answers: TypeAlias = dict[Question, Translation]
Refine: TypeAlias = Callable[[Sequence[Question]], Mapping[Question, Translation]]
"""Gets the questions whose answer is not exact; gives better answers for some of them."""


class Opposite(msgspec.Struct, frozen=True):
    """Is what the flow from the target to the source left (failback).

    ``name``: the flow's, as in ``a->b``. ``topics``: target topic → source topic that was brought from there.
    ``syncs``: its offset syncs by TARGET partition. ``shared``: names are kept, so both clusters write to one topic.
    """

    name: str
    topics: Mapping[str, str] = {}
    syncs: Mapping[TopicPartition, Syncs] = {}
    shared: bool = False


class Evidence(msgspec.Struct, frozen=True):
    """Is what answers are drawn from: syncs by source partition, and both logs, read after syncs and commits.

    ``opposite``: None when nothing came from the target. ``settled``: target offsets behind which this flow's copies
    begin, while all that was never brought to the source and lies before them is kept elsewhere: groups may pass it.
    """

    syncs: Mapping[TopicPartition, Syncs]
    source_logs: Mapping[TopicPartition, LogRange]
    target_logs: Mapping[TopicPartition, LogRange]
    opposite: Opposite | None = None
    settled: Mapping[TopicPartition, int] = {}

    def is_back(self, question: Question) -> bool:
        """Says whether the source partition of a question came from the target."""
        back = self.opposite
        return back is not None and back.topics.get(question.target.topic) == question.source.topic

    def backwards(self) -> tuple[str, ...]:
        """Names the target topics that are asked about backwards alone."""
        both = {source.topic for source in self.syncs}
        back = self.opposite
        return () if back is None else tuple(topic for topic, copy in back.topics.items() if copy not in both)

    def is_both(self, question: Question) -> bool:
        """Says whether records of the partition went both ways, one after the other: names are kept."""
        return self.is_back(question) and question.source in self.syncs


def questions_of(
    groups: Sequence[str],
    mirrored: Mapping[str, str],
    source_commits: Mapping[str, Mapping[TopicPartition, Commit]],
    checkpoints: Mapping[str, Mapping[TopicPartition, SeenCheckpoint]],
    tracked: Mapping[str, Mapping[TopicPartition, Tracked]],
) -> list[Question]:
    """Lists the questions: a group's committed offset where the source told it, else where it stood last.

    That is what MM2's checkpoint or a kept position says, the later of both. A group missing in ``source_commits``
    could not be asked about. A partition it has not committed
    there raises no question: its checkpoint is from before and no longer says where it stands.
    """
    targets: dict[str, list[str]] = {}
    for topic, source_topic in mirrored.items():
        targets.setdefault(source_topic, []).append(topic)
    questions = []
    for group in groups:
        seen = checkpoints.get(group, {})
        commits = source_commits.get(group)
        if commits is None:
            kept = tracked.get(group, {})
            for tp in {**seen, **kept}:
                source = TopicPartition(mirrored[tp.topic], tp.partition)
                last = kept[tp] if counts(kept.get(tp), seen.get(tp)) else seen[tp]
                questions.append(Question(group, tp, source, last.upstream, seen.get(tp)))
            continue
        for source, commit in commits.items():
            for topic in targets.get(source.topic, ()):
                tp = TopicPartition(topic, source.partition)
                questions.append(Question(group, tp, source, commit.offset, seen.get(tp)))
    return questions


def answer(questions: Sequence[Question], evidence: Evidence, refine: Refine | None = None) -> Answers:
    """Answers the questions that any evidence speaks to; the others are left out.

    No answer lies past the true position as far as its evidence can tell (each rule says when).
    """
    answers = _by_syncs(questions, evidence)
    if refine is not None:
        rest = [each for each in questions if each not in answers or answers[each].precision is not Precision.EXACT]
        answers.update(refine(rest))
    answers.update(_joined(questions, evidence, answers))
    for each in questions:
        if evidence.is_back(each) and each in answers and answers[each].offset is not None:
            continue  # a checkpoint under a topic's own name is an old one, never translated (MM2 before 3.3)
        better = _by_checkpoint(each, answers.get(each), evidence.target_logs.get(each.target))
        if better is not None:
            answers[each] = better
    return answers


def bounds_of(evidence: Evidence, source: TopicPartition, target: TopicPartition) -> LogBounds:
    """Gives where both logs of a partition begin and end; the target's must be known."""
    log, source_log = evidence.target_logs[target], evidence.source_logs.get(source)
    return LogBounds(
        target_start=log.start,
        target_end=log.end,
        source_start=None if source_log is None else source_log.start,
        source_end=None if source_log is None else source_log.end,
    )


def _by_syncs(questions: Sequence[Question], evidence: Evidence) -> Answers:
    answers: Answers = {}
    inverses: dict[TopicPartition, Inverse] = {}
    # groups at one offset, at the log end above all, ask the same
    known: dict[tuple[TopicPartition, TopicPartition, int], Translation] = {}
    for each in questions:
        log = evidence.target_logs.get(each.target)
        back = evidence.opposite if evidence.is_back(each) else None
        if log is None or (back is None and not evidence.syncs and each.source not in evidence.source_logs):
            continue
        key = each.source, each.target, each.upstream
        if key not in known:
            bounds = bounds_of(evidence, each.source, each.target)
            if back is not None and each.target not in inverses:
                inverses[each.target] = Inverse(back.syncs.get(each.target), bounds)
            if back is not None and not evidence.is_both(each):
                known[key] = named(inverses[each.target].place(each.upstream), back)
            else:
                known[key] = translate(each.upstream, evidence.syncs.get(each.source), bounds)
        answers[each] = known[key]
    return answers


def _joined(questions: Sequence[Question], evidence: Evidence, answers: Answers) -> Answers:
    """Keeps answers by this flow's own syncs from passing what neither flow brought to the source."""
    joined: Answers = {}
    back = evidence.opposite
    for each in questions:
        if back is None or each not in answers or not evidence.is_both(each):
            continue
        theirs, end = back.syncs.get(each.target), evidence.target_logs[each.target].end
        first = max(theirs.ups) + 1 if theirs is not None and len(theirs) else end
        stop = min((down for down in evidence.syncs[each.source].downs if down >= first), default=end)
        inverse = Inverse(theirs, bounds_of(evidence, each.source, each.target)).place(each.upstream)
        own = answers[each]
        settled = evidence.settled.get(each.target, first)
        # the first sync may name a later copy than the first: what lies before it and behind the file is this flow's
        if settled > first:
            if own.offset is not None and own.offset > first:
                passed = f"passes records {first} to {settled - 1}: they never came from here, and are exported"
                own = msgspec.structs.replace(own, evidence=(*own.evidence, passed))
            first = stop
        joined[each] = beside(own, named(inverse, back), (first, stop), end)
    return joined


def named(found: Translation, back: Opposite) -> Translation:
    """Says in the evidence that the partition came from the target."""
    origin = f"came from {back.name.partition('->')[0]}: by the inverse of {back.name}'s offset syncs"
    return msgspec.structs.replace(found, evidence=(origin, *found.evidence))


def _by_checkpoint(question: Question, found: Translation | None, log: LogRange | None) -> Translation | None:
    """Gives MM2's own answer where it is the best there is.

    A checkpoint at or below the committed offset never lies past the true position (MM2: a sync's
    downstream plus one at most, checkpoints of a rewound group are written again). One above it is
    from before the group was rewound and would skip. One that contradicts the syncs' own bound, or
    lies beyond the log, is not believed here.
    """
    checkpoint = question.checkpoint
    if checkpoint is None or checkpoint.upstream > question.upstream:
        return None
    evidence = f"checkpoint {checkpoint.upstream} -> {checkpoint.downstream}"
    if found is None or found.offset is None:
        if found is not None and found.failure == "target-recreated":
            return None
        lines = (evidence,) if found is None else (*found.evidence, evidence)
        return Translation(
            question.upstream, checkpoint.downstream, Precision.CONSERVATIVE, Proof.CHECKPOINT, evidence=lines
        )
    raised = checkpoint.downstream - found.offset
    contradicts = found.reread_max is not None and raised > found.reread_max
    beyond = log is not None and checkpoint.downstream > log.end
    if found.precision is Precision.EXACT or raised <= 0 or contradicts or beyond:
        return None
    return msgspec.structs.replace(
        found,
        offset=checkpoint.downstream,
        proof=Proof.CHECKPOINT,
        reread=None if found.reread is None else max(0, found.reread - raised),
        reread_max=None if found.reread_max is None else found.reread_max - raised,
        evidence=(*found.evidence, evidence),
    )
