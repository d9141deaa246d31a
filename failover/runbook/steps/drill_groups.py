"""The groups a drill commits to on the target, and how those of a run that was killed are told from anybody else's.

Every offset of a drill's group carries a mark in its metadata: the run, and until when that run may still be at it.
Only groups that carry it in each of their offsets are this tool's own; no other is written to or deleted.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping

from failover.errors import RunNotFound, StateError, StepFailed
from failover.mm2.internal_topics import DRILL_GROUP_PREFIX
from failover.model.groups import Commit
from failover.model.names import Fault, TopicPartition
from failover.runbook.kinds import Context
from failover.runbook.record import RunLog
from failover.state.playbook_runs import find_playbook_run

_MARK = "failover-drill"
_SLACK = 60.0
"""Seconds by which two machines' clocks may differ."""
_NOT_THERE = 69  # Kafka: GROUP_ID_NOT_FOUND


def drill_group(group: str) -> str:
    """Names the group a drill uses in place of ``group``."""
    return f"{DRILL_GROUP_PREFIX}{group}"


def mark(context: Context) -> bytes:
    """Makes the mark of this run's groups."""
    return f"{_MARK} {context.run_id} {time.time() + context.remaining():.0f}".encode()


def standing(context: Context, wanted: Collection[str] = ()) -> tuple[list[str], list[str]]:
    """Finds the drill groups on the target: those that a run which is over left behind, and all others.

    ``wanted``: groups to look at although they are not listed. Raises ``StepFailed`` where they cannot be seen.
    """
    target = context.reach.target
    listed, _ = target.list_groups()
    names = [name for name in sorted({*listed, *wanted}) if name.startswith(DRILL_GROUP_PREFIX)]
    names = [name for name, info in target.describe_groups(names).items() if info.exists] if names else []
    left: list[str] = []
    others: list[str] = []
    for name, commits in (target.committed(names) if names else {}).items():
        if isinstance(commits, Fault):
            raise StepFailed(f"group {name} cannot be looked at on {context.reach.flow.target}: {commits}")
        (left if _abandoned(commits, context) else others).append(name)
    return left, others


def _abandoned(commits: Mapping[TopicPartition, Commit], context: Context) -> bool:
    marks = {commit.metadata for commit in commits.values()}
    if len(marks) != 1:
        return False
    words = marks.pop().decode("utf-8", "replace").split(" ")
    if len(words) != 3 or words[0] != _MARK or not words[2].isdigit():
        return False
    return words[1] == context.run_id or _over(words[1], int(words[2]), context)


def _over(run_id: str, until: int, context: Context) -> bool:
    """Says whether a run is over: here nobody holds its journal, elsewhere its time is up."""
    try:
        folder = find_playbook_run(context.reach.state, run_id)
    except RunNotFound:
        return time.time() > until + _SLACK
    try:
        RunLog(folder).close()
    except StateError:
        return False
    return True


def delete(context: Context, groups: Collection[str]) -> int:
    """Deletes groups of this tool's; gives how many there were. Raises ``StepFailed`` naming those that stay."""
    if not groups:
        return 0
    answers = context.reach.target.delete_groups(groups)
    stay = {name: fault for name, fault in answers.items() if fault is not None and fault.number != _NOT_THERE}
    if stay:
        said = "; ".join(f"{name}: {fault}" for name, fault in list(stay.items())[:5])
        raise StepFailed(
            f"{len(stay)} groups of the drill stay on {context.reach.flow.target}: {said}",
            hint=f"kafka-consumer-groups --delete --group {next(iter(stay))}; the next drill tries again",
        )
    return sum(fault is None for fault in answers.values())
