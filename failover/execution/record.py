"""Pure: turns the events of a journal into the record of the execution, for what it aimed at.

The record is always derived, never kept beside the journal, so that a crash at any moment
leaves one truth. Rules: an intent without answer or read-back is ``unknown``; what was read
back beats what was answered; a value beyond the planned one counts as committed when the group
has members by then (its consumers moved on).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from failover.execution.aims import AimedGroup, AimedPartition, aims_of_events, aims_of_plan, aims_of_undo
from failover.execution.recheck import PLAN_HOLDS
from failover.model.execution import CommitRecord, ExecutedGroup, ExecutedPartition, Execution, Outcome, Status
from failover.model.names import TopicPartition
from failover.model.plan import Plan
from failover.state.journal import (
    Answer,
    Event,
    Evicted,
    Evicting,
    Finished,
    IntendedPartition,
    Intent,
    Left,
    ReadBack,
    Seen,
    Started,
    Warned,
    intended,
)

NOT_REACHED = "not-reached"
ACTIVE = ("UNKNOWN_MEMBER_ID", "GROUP_SUBSCRIBED_TO_TOPIC", "NON_EMPTY_GROUP")
"""Kafka: what a coordinator answers to a commit, an OffsetDelete and a DeleteGroups of a group with members."""


_REFUSALS = (
    *((word, "group-active") for word in ACTIVE),
    ("TOPIC_AUTHORIZATION_FAILED", "not-authorized"),
    ("GROUP_AUTHORIZATION_FAILED", "not-authorized"),
    ("GROUP_ID_NOT_FOUND", "group-type-unsupported"),
)
"""What a coordinator answers when nothing is written and nothing is wrong. Kafka: a commit from outside makes an absent
group, so that it finds none only where the id is of a group without consumer commits (share, streams)."""


class _Story:
    """Holds the newest events of one group; a later ``Left`` or ``Intent`` supersedes earlier ones."""

    def __init__(self) -> None:
        self.head: Intent | Left | None = None
        self.left: Left | None = None
        self.before: dict[tuple[str, int], CommitRecord | None] = {}
        self.sent: dict[tuple[str, int], IntendedPartition] = {}
        self.unchanged: dict[tuple[str, int], int | None] = {}
        self.refused: dict[tuple[str, int], tuple[str, str]] = {}
        self.notes: tuple[str, ...] = ()
        self.answer: Answer | None = None
        self.read_back: ReadBack | None = None
        self.found: dict[tuple[str, int], int] = {}
        self.faults: dict[tuple[str, int], str] = {}
        self.seen = False
        self.at: datetime | None = None

    def take(self, event: Left | Intent | Answer | ReadBack | Seen) -> None:
        self.at = event.at
        if isinstance(event, Left):
            self.head, self.left = self.head or event, event
        elif isinstance(event, Intent):
            self.left, self.answer, self.read_back = None, None, None
            self.found, self.faults = {}, {}
            self.head = event if self.head is None or isinstance(self.head, Left) else self.head
            for partition in event.partitions:
                self.before.setdefault(intended(partition), partition.before)
                self.sent[intended(partition)] = partition
            self.unchanged |= {(topic, number): offset for topic, number, offset in event.unchanged}
            self.refused = {(topic, number): (code, text) for topic, number, code, text in event.refused}
            self.notes = event.notes
        elif isinstance(event, Answer):
            self.answer = event
            self.faults = {(topic, number): text for topic, number, text in event.faults}
        elif isinstance(event, Seen):
            self.seen = True
        else:
            self.read_back = event
            self.found = {(topic, number): offset for topic, number, offset in event.found}

    @property
    def stale(self) -> bool:
        """Says whether nothing was written because the plan no longer holds."""
        if self.left is not None:
            return self.left.stale
        return any(code not in PLAN_HOLDS for code, _ in self.refused.values())


class _Run:
    """Holds what the events say of the execution as a whole."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.starts: list[Started] = []
        self.finished: Finished | None = None
        self.warnings: list[str] = []
        self.stories: dict[str, _Story] = {}
        for event in events:
            if isinstance(event, Started):
                self.starts.append(event)
                self.finished = None
            elif isinstance(event, Finished):
                self.finished = event
            elif isinstance(event, Warned):
                self.warnings.append(event.message)
            elif not isinstance(event, Evicting | Evicted):
                self.stories.setdefault(event.group, _Story()).take(event)
        if not self.starts:
            raise ValueError("a journal begins with its started event")


def build(plan: Plan, events: Iterable[Event]) -> Execution:
    """Derives the record of an execution of a plan. The first event must be ``Started``."""
    run = _Run(events)
    return _build(run, aims_of_plan(plan, when_free=any(start.when_free for start in run.starts)))


def build_undo(undone: Execution, events: Iterable[Event]) -> Execution:
    """Derives the record of rolling an execution back."""
    return _build(_Run(events), aims_of_undo(undone))


def build_bare(events: Sequence[Event]) -> Execution:
    """Derives a record where neither plan nor record is at hand: of what was written, done or left."""
    return _build(_Run(events), aims_of_events(events))


def _build(run: _Run, aims: Sequence[AimedGroup]) -> Execution:
    first = run.starts[0]
    wanted = {name for start in run.starts for name in start.selected}
    aimed = [group for group in aims if group.group in wanted]
    groups = tuple(_group(group, run.stories.get(group.group) or _Story()) for group in aimed)
    return Execution(
        version=1,
        id=first.execution_id,
        plan_id=first.plan_id,
        fingerprint=first.fingerprint,
        started=first.at,
        finished=run.finished.at if run.finished else None,
        outcome=_outcome(aimed, groups),
        tool_version=first.tool_version,
        operator=first.operator,
        reason=first.reason,
        source_alias=first.source_alias,
        target_alias=first.target_alias,
        target_cluster_id=first.target_cluster_id,
        groups=groups,
        warnings=tuple(run.warnings),
        undoes=first.undoes,
        continues=first.continues,
        stopped=run.finished.stopped if run.finished else "",
        overrides=first.overrides,
    )


def _group(aimed: AimedGroup, story: _Story) -> ExecutedGroup:
    partitions = tuple(_partition(p, story) for p in aimed.partitions)
    head, left = story.head, story.left
    newest = left or head
    reasons = {p.reason for p in partitions if p.status in (Status.REFUSED, Status.FAILED, Status.UNKNOWN)}
    return ExecutedGroup(
        group=aimed.group,
        existed=head.existed if head else aimed.exists,
        state=newest.state if newest else aimed.state,
        members=left.members if left else () if head else aimed.members,
        reasons=tuple(sorted(reasons)),
        partitions=partitions,
        message=left.message if left else "; ".join(dict.fromkeys(text for _, text in story.refused.values())),
        stale=story.stale,
        finished=story.at,
        notes=story.notes,
    )


def _partition(aimed: AimedPartition, story: _Story) -> ExecutedPartition:
    tp = TopicPartition(aimed.topic, aimed.partition)
    sent = story.sent.get(tp)
    written = sent.planned.offset if sent is not None and sent.planned is not None else None
    read_back: int | None = story.found.get(tp)
    error: str | None = None
    reason = aimed.reason
    if not aimed.acts:
        status, read_back = aimed.otherwise, None
    elif tp in story.refused:
        status, (reason, error) = Status.REFUSED, story.refused[tp]
    elif sent is not None:
        status, error = _judge(tp, sent, story, read_back)
        if status is Status.REFUSED:
            reason, written = _refusal_code(error or ""), None
    elif tp in story.unchanged:
        status, read_back = Status.UNCHANGED, story.found.get(tp, story.unchanged[tp])
    elif story.left is not None:
        own = (code for topic, number, code, _ in story.left.refused if (topic, number) == tp)
        status, reason = Status.REFUSED, next(own, story.left.reason)
    else:
        status, reason = aimed.otherwise, NOT_REACHED if aimed.otherwise is Status.SKIPPED else reason
    return ExecutedPartition(
        topic=aimed.topic,
        partition=aimed.partition,
        before=story.before.get(tp),
        planned=aimed.offset,
        written=written,
        read_back=read_back,
        status=status,
        reason=reason,
        error=error,
        removes=aimed.acts and aimed.offset is None,
        reread=aimed.reread,
        lag_after=aimed.lag_after,
    )


def _judge(
    tp: TopicPartition, intent: IntendedPartition, story: _Story, read_back: int | None
) -> tuple[Status, str | None]:
    """Weighs answer and read-back of one partition that was sent."""
    answer, looked = story.answer, story.read_back
    fault = story.faults.get(tp)
    refused = answer is not None and (fault is not None or (answer.fault is not None and not answer.lost))
    planned = intent.planned.offset if intent.planned is not None else None
    if looked is None and tp in story.unchanged:
        # found done when the execution was resumed, and no crash since could undo that
        return Status.COMMITTED, None
    if looked is not None and looked.fault is None:
        if read_back == planned:
            return Status.COMMITTED, None
        if refused:
            return _refusal(answer, fault)
        went_on = looked.members > 0 or looked.late or story.seen or tp in story.unchanged
        if planned is not None and read_back is not None and read_back > planned and went_on:
            return Status.COMMITTED, None
        before = intent.before.offset if intent.before else None
        if (answer is None or answer.lost) and read_back == before:
            return Status.FAILED, "no answer, and without effect"
        return Status.FAILED, f"read back {_text(read_back)} instead of {_text(planned)}"
    if refused:
        return _refusal(answer, fault)
    if answer is None or answer.lost:
        return Status.UNKNOWN, "sent; neither an answer nor reading back told the outcome"
    why = f": {looked.fault}" if looked is not None else ""
    return Status.UNKNOWN, f"accepted by the broker, but could not be read back{why}"


def _text(offset: int | None) -> str:
    return "nothing" if offset is None else str(offset)


def _refusal(answer: Answer | None, fault: str | None) -> tuple[Status, str | None]:
    """Tells what nothing is wrong with (a group that became active, a right withdrawn) from other refusals."""
    text = fault or (answer.fault if answer is not None else None) or ""
    return (Status.REFUSED if _refusal_code(text) else Status.FAILED), text


def _refusal_code(text: str) -> str:
    return next((code for word, code in _REFUSALS if text.startswith(word)), "")


def _outcome(aims: Sequence[AimedGroup], groups: tuple[ExecutedGroup, ...]) -> Outcome:
    statuses = {p.status for group in groups for p in group.partitions}
    if Status.UNKNOWN in statuses:
        return Outcome.UNKNOWN
    if Status.FAILED in statuses:
        return Outcome.FAILED
    written = statuses & {Status.COMMITTED, Status.UNCHANGED}
    odd = {aimed.group for aimed in aims if aimed.odd}
    left = any(
        group.group in odd
        or (group.message and not group.partitions)
        or any(p.status is Status.REFUSED or p.reason == NOT_REACHED for p in group.partitions)
        for group in groups
    )
    if not left:
        return Outcome.DONE
    return Outcome.PARTIAL if written else Outcome.REFUSED


def exit_code(execution: Execution) -> int:
    """Gives the exit status of an execution; where several apply: 7 before 6 before 5 before 4."""
    if execution.outcome is Outcome.UNKNOWN:
        return 7
    if execution.outcome is Outcome.FAILED:
        return 6
    if execution.outcome is Outcome.DONE:
        return 0
    if execution.outcome is Outcome.PARTIAL:
        return 4
    stale = bool(execution.groups) and all(group.stale for group in execution.groups)
    return 5 if stale and not execution.undoes else 3
