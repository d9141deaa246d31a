"""Pure: what to do with a group by what is true now: an intent to write, or why it is left.

Whether a change matters is ``failover.planning.drift``'s to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import msgspec

from failover.execution.commits import planned_commit, to_record
from failover.model.groups import Commit, GroupInfo
from failover.model.names import Fault, TopicPartition
from failover.model.plan import Action, Plan, PlannedGroup
from failover.planning.drift import EarlierWrite, TargetNow, differences, done, refusal
from failover.state.journal import IntendedPartition, Intent, Left

Writes = Mapping[TopicPartition, EarlierWrite]

PLAN_HOLDS = frozenset(
    {"group-active", "group-state-unknown", "group-type-unsupported", "not-authorized", "target-unavailable"}
)
"""Refusals that say nothing about the plan: it holds, and cannot be carried out now."""


def decide(
    plan: Plan,
    group: PlannedGroup,
    info: GroupInfo,
    commits: Mapping[TopicPartition, Commit] | Fault,
    place: TargetNow,
    *,
    at: datetime,
    moving: str = "",
    earlier: Writes | None = None,
) -> Intent | Left:
    """Decides what happens to a group by what is true now.

    One bad partition does not hold back the others, and what an earlier execution of the plan did
    stays done, whatever the group's state is by now. ``moving``: text of commits that do not stand
    still, "" when they do. ``earlier``: what earlier executions of this plan wrote.
    """
    held = refusal(info, commits, plan.target.alias) or (("commits-moving", moving) if moving else None)
    if isinstance(commits, Fault):
        code, text = held or ("target-unavailable", str(commits))
        return left(info, at, code, text)
    finished = _finished(group, commits, earlier or {})
    open_partitions = [
        p for p in group.partitions if p.action is Action.COMMIT and (p.topic, p.partition) not in finished
    ]
    unchanged = [(tp.topic, tp.partition, offset) for tp, offset in finished.items()]
    if held is not None and open_partitions:
        code, text = held
        if not earlier:
            return left(info, at, code, text)
        alike = tuple((p.topic, p.partition, code, text) for p in open_partitions)
        return Intent(at, group.group, info.exists, info.state, (), tuple(unchanged), alike)
    found = differences(plan, group, commits, place, earlier)
    refusals = {d.partition: d for d in found if d.refuses}
    partitions: list[IntendedPartition] = []
    for planned in open_partitions:
        tp = TopicPartition(planned.topic, planned.partition)
        if tp in refusals:
            continue
        new, standing = planned_commit(planned), commits.get(tp)
        if standing is not None and (standing.offset, standing.metadata) == (new.offset, new.metadata):
            unchanged.append((tp.topic, tp.partition, new.offset))
        else:
            before = to_record(standing) if standing is not None else None
            partitions.append(IntendedPartition(tp.topic, tp.partition, before, to_record(new)))
    refused = tuple((tp.topic, tp.partition, d.code, d.text) for tp, d in refusals.items())
    if refused and not partitions and not unchanged and not earlier:
        texts = "; ".join(dict.fromkeys(text for _, _, _, text in refused))
        stale = not PLAN_HOLDS.issuperset(code for _, _, code, _ in refused)
        return msgspec.structs.replace(left(info, at, refused[0][2], texts, stale=stale), refused=refused)
    return Intent(
        at,
        group.group,
        info.exists or bool(commits),
        info.state,
        tuple(partitions),
        tuple(unchanged),
        refused,
        notes=tuple(d.text for d in found if not d.refuses),
    )


def left(info: GroupInfo, at: datetime, reason: str, message: str, *, stale: bool = False) -> Left:
    """Notes that nothing is written for a group."""
    return Left(at, info.name, info.exists, info.state, info.members, reason, message, stale)


def waits(event: Intent | Left) -> bool:
    """Says whether a group was left only because it has members now."""
    if isinstance(event, Left):
        return event.reason == "group-active"
    return not event.partitions and any(code == "group-active" for _, _, code, _ in event.refused)


def _finished(
    group: PlannedGroup, commits: Mapping[TopicPartition, Commit], earlier: Writes
) -> dict[TopicPartition, int]:
    """Finds what an earlier execution finished, with where it stands now."""
    found: dict[TopicPartition, int] = {}
    for planned in group.partitions:
        tp = TopicPartition(planned.topic, planned.partition)
        write, commit = earlier.get(tp), commits.get(tp)
        if planned.action is Action.COMMIT and write is not None and commit is not None and done(write, commit.offset):
            found[tp] = commit.offset
    return found
