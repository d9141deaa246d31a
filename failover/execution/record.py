"""Pure: turns a plan and the events of its journal into the record of the execution.

The record is always derived, never kept beside the journal, so that a crash at any moment
leaves one truth. Rules: an intent without answer or read-back is ``unknown``; what was read
back beats what was answered; a value beyond the planned one counts as committed when the group
has members by then (its consumers moved on).
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from datetime import datetime

from failover.model.execution import (
    CommitRecord,
    ExecutedGroup,
    ExecutedPartition,
    Execution,
    Outcome,
    Status,
)
from failover.model.groups import Commit
from failover.model.names import TopicPartition
from failover.model.plan import Action, Plan, PlannedGroup, PlannedPartition, Verdict
from failover.state.journal import (
    Answer,
    Event,
    Finished,
    IntendedPartition,
    Intent,
    Left,
    ReadBack,
    Started,
    Warned,
    intended,
)


def to_record(commit: Commit) -> CommitRecord:
    """Writes a commit down for a file; metadata that is not UTF-8 goes in base64."""
    try:
        return CommitRecord(commit.offset, commit.metadata.decode(), commit.leader_epoch)
    except UnicodeDecodeError:
        encoded = base64.b64encode(commit.metadata).decode()
        return CommitRecord(commit.offset, commit.metadata.decode(errors="replace"), commit.leader_epoch, encoded)


def to_commit(record: CommitRecord) -> Commit:
    """Reads a commit from a file, byte for byte."""
    if record.metadata_base64 is not None:
        return Commit(record.offset, base64.b64decode(record.metadata_base64), record.leader_epoch)
    return Commit(record.offset, record.metadata.encode(), record.leader_epoch)


def planned_commit(partition: PlannedPartition) -> Commit:
    """Gives the commit a plan asks for. The source's leader epoch is never part of it."""
    if partition.offset is None:
        raise ValueError(f"{partition.topic}-{partition.partition} has nothing to commit")
    if partition.metadata_base64 is not None:
        return Commit(partition.offset, base64.b64decode(partition.metadata_base64))
    return Commit(partition.offset, partition.metadata.encode())


NOT_REACHED = "not-reached"


class _Story:
    """Holds the newest events of one group; a later ``Left`` or ``Intent`` supersedes earlier ones."""

    def __init__(self) -> None:
        self.head: Intent | Left | None = None
        self.left: Left | None = None
        self.before: dict[tuple[str, int], CommitRecord | None] = {}
        self.sent: dict[tuple[str, int], IntendedPartition] = {}
        self.unchanged: dict[tuple[str, int], int] = {}
        self.refused: dict[tuple[str, int], tuple[str, str]] = {}
        self.answer: Answer | None = None
        self.read_back: ReadBack | None = None
        self.found: dict[tuple[str, int], int] = {}
        self.faults: dict[tuple[str, int], str] = {}
        self.at: datetime | None = None

    def take(self, event: Left | Intent | Answer | ReadBack) -> None:
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
        elif isinstance(event, Answer):
            self.answer = event
            self.faults = {(topic, number): text for topic, number, text in event.faults}
        else:
            self.read_back = event
            self.found = {(topic, number): offset for topic, number, offset in event.found}


def build(plan: Plan, events: Iterable[Event]) -> Execution:
    """Derives the execution's record. The first event must be ``Started``."""
    started: Started | None = None
    finished: datetime | None = None
    warnings: list[str] = []
    stories: dict[str, _Story] = {}
    for event in events:
        if isinstance(event, Started):
            started = started or event
        elif isinstance(event, Finished):
            finished = event.at
        elif isinstance(event, Warned):
            warnings.append(event.message)
        else:
            finished = None
            stories.setdefault(event.group, _Story()).take(event)
    if started is None:
        raise ValueError("a journal begins with its started event")
    wanted = set(started.selected)
    groups = tuple(_group(group, stories.get(group.group)) for group in plan.groups if group.group in wanted)
    return Execution(
        version=1,
        id=started.execution_id,
        plan_id=started.plan_id,
        fingerprint=started.fingerprint,
        started=started.at,
        finished=finished,
        outcome=_outcome(plan, groups),
        tool_version=started.tool_version,
        operator=started.operator,
        reason=started.reason,
        source_alias=started.source_alias,
        target_alias=started.target_alias,
        target_cluster_id=started.target_cluster_id,
        groups=groups,
        warnings=tuple(warnings),
    )


def _group(planned: PlannedGroup, story: _Story | None) -> ExecutedGroup:
    story = story or _Story()
    partitions = tuple(_partition(planned, p, story) for p in planned.partitions)
    head, left = story.head, story.left
    newest = left or head
    reasons = {p.reason for p in partitions if p.status in (Status.REFUSED, Status.FAILED, Status.UNKNOWN)}
    return ExecutedGroup(
        group=planned.group,
        existed=head.existed if head else planned.exists,
        state=newest.state if newest else planned.state,
        members=left.members if left else (),
        reasons=tuple(sorted(reasons)),
        partitions=partitions,
        message=left.message if left else "",
        stale=left.stale if left else bool(story.refused),
        finished=story.at,
    )


def _partition(group: PlannedGroup, planned: PlannedPartition, story: _Story) -> ExecutedPartition:
    tp = TopicPartition(planned.topic, planned.partition)
    written: int | None = None
    read_back: int | None = None
    error: str | None = None
    reason = planned.reason
    if planned.action is not Action.COMMIT:
        status = Status.SKIPPED if planned.action is Action.SKIP else Status.REFUSED
    elif tp in story.refused:
        status, (reason, error) = Status.REFUSED, story.refused[tp]
    elif tp in story.sent:
        written, read_back = story.sent[tp].planned.offset, story.found.get(tp)
        status, error = _judge(tp, story.sent[tp], story, read_back)
        if status is Status.REFUSED:
            reason, written = "group-active", None
    elif tp in story.unchanged:
        status, read_back = Status.UNCHANGED, story.found.get(tp, story.unchanged[tp])
    elif story.left is not None:
        status, reason = Status.REFUSED, story.left.reason
    elif group.verdict is Verdict.REFUSED:
        status = Status.REFUSED
    else:
        status, reason = Status.SKIPPED, NOT_REACHED
    return ExecutedPartition(
        topic=planned.topic,
        partition=planned.partition,
        before=story.before.get(tp),
        planned=planned.offset,
        written=written,
        read_back=read_back,
        status=status,
        reason=reason,
        error=error,
    )


def _judge(
    tp: TopicPartition, intent: IntendedPartition, story: _Story, read_back: int | None
) -> tuple[Status, str | None]:
    """Weighs answer and read-back of one partition that was sent."""
    answer, looked = story.answer, story.read_back
    fault = story.faults.get(tp)
    refused = answer is not None and (fault is not None or (answer.fault is not None and not answer.lost))
    planned = intent.planned.offset
    if looked is not None and looked.fault is None:
        if read_back == planned:
            return Status.COMMITTED, None
        if refused:
            return _refusal(answer, fault)
        if read_back is not None and read_back > planned and looked.members:
            return Status.COMMITTED, None
        before = intent.before.offset if intent.before else None
        if (answer is None or answer.lost) and read_back == before:
            return Status.FAILED, "the connection broke before the answer, and the commit did not take effect"
        found = "nothing" if read_back is None else str(read_back)
        return Status.FAILED, f"read back {found} instead of {planned}"
    if refused:
        return _refusal(answer, fault)
    if answer is None or answer.lost:
        return Status.UNKNOWN, "sent; neither an answer nor reading back told the outcome"
    why = f": {looked.fault}" if looked is not None else ""
    return Status.UNKNOWN, f"accepted by the broker, but could not be read back{why}"


def _refusal(answer: Answer | None, fault: str | None) -> tuple[Status, str | None]:
    """Tells a group that became active (nothing was written, nothing is wrong) from other refusals."""
    text = fault or (answer.fault if answer is not None else None) or ""
    return (Status.REFUSED if text.startswith("UNKNOWN_MEMBER_ID") else Status.FAILED), text


def _outcome(plan: Plan, groups: tuple[ExecutedGroup, ...]) -> Outcome:
    statuses = {p.status for group in groups for p in group.partitions}
    verdicts = {group.group: group.verdict for group in plan.groups}
    if Status.UNKNOWN in statuses:
        return Outcome.UNKNOWN
    if Status.FAILED in statuses:
        return Outcome.FAILED
    written = statuses & {Status.COMMITTED, Status.UNCHANGED}
    left = any(
        group.message
        or verdicts[group.group] in (Verdict.PARTIAL, Verdict.REFUSED)
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
    return 5 if execution.groups and all(group.stale for group in execution.groups) else 3
