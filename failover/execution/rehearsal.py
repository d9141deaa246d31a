"""The dry run of an execution: the re-check of every group, and nothing written anywhere."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from failover.execution.recheck import Writes, decide, left
from failover.kafka.port import Cluster
from failover.model.cluster import LogRange
from failover.model.execution import Rehearsal, RehearsedGroup
from failover.model.groups import Commit, GroupInfo
from failover.model.names import Fault, TopicPartition
from failover.model.plan import Action, Plan, PlannedGroup, Verdict
from failover.planning.drift import TargetNow, refusal
from failover.state.journal import Intent, Left


def look_at_place(cluster: Cluster, groups: Sequence[PlannedGroup]) -> TargetNow:
    """Looks at the topics and logs that the plan commits into; a fault concerns its partitions alone."""
    partitions = {
        TopicPartition(p.topic, p.partition) for group in groups for p in group.partitions if p.action is Action.COMMIT
    }
    topics = cluster.describe_topics({tp.topic for tp in partitions})
    logs = cluster.log_ranges(partitions)
    return TargetNow(topics, {tp: log for tp, log in logs.items() if isinstance(log, LogRange)})


def held(plan: Plan, writes: Mapping[str, Writes]) -> set[str]:
    """Names the groups that had commits on the target when the plan was made, or were given some by it since."""
    seen = {group.group for group in plan.groups if any(p.target_committed is not None for p in group.partitions)}
    return seen | {name for name, places in writes.items() if any(write.landed for write in places.values())}


def rehearse(
    plan: Plan,
    cluster: Cluster,
    selected: Collection[str],
    at: datetime,
    writes: Mapping[str, Writes] | None = None,
) -> Rehearsal:
    """Decides every selected group by what is true now and what earlier executions of the plan wrote."""
    writes = writes or {}
    groups = [group for group in plan.groups if group.group in selected]
    decided: list[Intent | Left] = []
    if groups:
        place = look_at_place(cluster, groups)
        names = [group.group for group in groups]
        had = held(plan, writes)
        infos = cluster.describe_groups(names)
        committed = cluster.committed(names, lambda name, found: bool(found) or name not in had)
        decided = [
            _refused(plan, g, infos[g.group], committed[g.group], at)
            or decide(plan, g, infos[g.group], committed[g.group], place, at=at, earlier=writes.get(g.group))
            for g in groups
        ]
    return Rehearsal(
        plan_id=plan.id,
        at=at,
        target_alias=plan.target.alias,
        groups=tuple(rehearsed(event) for event in decided),
        exit_code=_exit_code(groups, decided),
    )


def _refused(
    plan: Plan, group: PlannedGroup, info: GroupInfo, commits: Mapping[TopicPartition, Commit] | Fault, at: datetime
) -> Left | None:
    """Tells why the plan itself commits nothing for a group, by what is true now where that still holds."""
    if group.verdict is not Verdict.REFUSED or any(p.action is Action.COMMIT for p in group.partitions):
        return None
    code, text = refusal(info, commits, plan.target.alias) or (group.reasons[0], f"the plan refused {group.group}")
    return left(info, at, code, text)


def rehearsed(event: Intent | Left) -> RehearsedGroup:
    """Tells what an intent would do, or why nothing is."""
    if isinstance(event, Left):
        return RehearsedGroup(event.group, event.state, event.members, 0, 0, event.refused, event.reason, event.message)
    return RehearsedGroup(
        event.group,
        event.state,
        (),
        len(event.partitions),
        len(event.unchanged),
        event.refused,
        changes=tuple(
            (p.topic, p.partition, p.before.offset if p.before else None, p.planned.offset if p.planned else None)
            for p in event.partitions
        ),
        removes=event.removes,
    )


def _exit_code(groups: Sequence[PlannedGroup], decided: Sequence[Intent | Left]) -> int:
    """Gives the exit status ``execute`` would end with, as far as can be known without writing."""
    alone = [event for event in decided if isinstance(event, Left)]
    if alone and len(alone) == len(decided):
        return 5 if all(event.stale for event in alone) else 3
    odd = any(group.verdict in (Verdict.PARTIAL, Verdict.REFUSED) for group in groups)
    odd = odd or any(event.refused for event in decided if isinstance(event, Intent))
    return 4 if alone or odd else 0
