"""Pure: the way back of one group: what stood before an execution, where nobody went on since."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from failover.execution.commits import to_commit, to_record
from failover.execution.recheck import left
from failover.model.execution import CommitRecord, ExecutedGroup, ExecutedPartition
from failover.model.groups import Commit, GroupInfo
from failover.model.names import Fault, TopicPartition
from failover.planning.drift import refusal
from failover.planning.group_rules import may
from failover.state.journal import IntendedPartition, Intent, Left

PROGRESSED = "progressed"
"""Refusal: consumers went on from what was written; going back would make them read again."""


def decide_undo(
    group: ExecutedGroup,
    info: GroupInfo,
    commits: Mapping[TopicPartition, Commit] | Fault,
    alias: str,
    at: datetime,
) -> Intent | Left:
    """Decides the way back of a group by what is true now.

    A partition that stands where it was put goes back to what stood before, its commit deleted
    where none did; a group that did not exist is deleted as a whole unless it holds more by now. A
    partition that consumers moved on is refused with the count, and one that stands elsewhere too.
    """
    held = refusal(info, commits, alias)
    if held is not None or isinstance(commits, Fault):
        code, text = held or ("target-unavailable", str(commits))
        return left(info, at, code, text)
    back: list[IntendedPartition] = []
    unchanged: list[tuple[str, int, int | None]] = []
    refused: list[tuple[str, int, str, str]] = []
    for p in group.partitions:
        if not p.sent or p.removes:
            continue
        tp = TopicPartition(p.topic, p.partition)
        standing = commits.get(tp)
        why = _refusal(group.group, tp, p, standing)
        if why is not None:
            refused.append((tp.topic, tp.partition, *why))
        elif _is_back(p.before, standing):
            unchanged.append((tp.topic, tp.partition, standing.offset if standing is not None else None))
        else:
            before = to_record(standing) if standing is not None else None
            back.append(IntendedPartition(tp.topic, tp.partition, before, p.before))
    ours = {TopicPartition(p.topic, p.partition) for p in group.partitions if p.sent}
    removes = not group.existed and info.exists and not refused and set(commits) <= ours
    deletes = removes or any(p.planned is None for p in back)
    if deletes and not may(info.operations, "DELETE"):
        text = f"this user may not delete offsets of {group.group} on {alias}: DELETE on the group is missing"
        return left(info, at, "not-authorized", text)
    return Intent(
        at, group.group, info.exists, info.state, tuple(back), tuple(unchanged), tuple(refused), removes=removes
    )


def _is_back(before: CommitRecord | None, standing: Commit | None) -> bool:
    if before is None or standing is None:
        return before is None and standing is None
    return to_commit(before) == standing


def _refusal(
    group: str, tp: TopicPartition, done: ExecutedPartition, standing: Commit | None
) -> tuple[str, str] | None:
    """Says why a partition must not go back; None when it stands as it was put, stands back already, or is gone."""
    written = done.written
    if standing is None or written is None or standing.offset == written:
        return None
    if done.before is not None and standing.offset == done.before.offset:
        return None
    if standing.offset > written:
        text = (
            f"{group} went on from {written} to {standing.offset} on {tp} since: going back would undo "
            f"{standing.offset - written} records"
        )
        return PROGRESSED, text
    text = f"somebody set {group} from {written} back to {standing.offset} on {tp} since: it is left there"
    return "commits-moving", text
