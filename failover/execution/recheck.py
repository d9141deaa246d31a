"""Pure: what changed on the target since the plan, whether it matters, and what to do with a group now.

Only what would break a guarantee refuses: a commit that would move a group back, that would lie
outside the log, or that belongs to a topic that was made anew. Everything else is named and
allowed: the plan's offset stays right when the source's log grew, when the group's commit
expired, or when MirrorMaker 2's own group offset sync moved it forward but not past the plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from failover.errors import StalePlan
from failover.execution.commits import planned_commit, to_record
from failover.model.cluster import LogRange
from failover.model.groups import Commit, GroupInfo, GroupType, Member
from failover.model.names import Fault, TopicPartition
from failover.model.plan import Action, Plan, PlannedGroup, PlannedPartition
from failover.state.journal import IntendedPartition, Intent, Left


class Difference(msgspec.Struct, frozen=True):
    """Is one thing that is no longer as the plan saw it.

    ``refuses``: committing would break a guarantee. ``code``: the reason code then.
    """

    partition: TopicPartition
    code: str
    text: str
    refuses: bool


class TargetNow(msgspec.Struct, frozen=True):
    """Is a fresh look at the target. ``topic_ids`` lacks topics that are gone."""

    topic_ids: Mapping[str, str | None]
    logs: Mapping[TopicPartition, LogRange]


def check_usable(
    plan: Plan, *, now: datetime, target_cluster_id: str | None, written_before: bool, complete: bool
) -> None:
    """Raises ``StalePlan`` when nothing of the plan may be executed any more.

    ``written_before``: an execution of this plan has begun to write, so its expiry counts no
    more; ``complete``: one has finished everything, so the plan is used up.
    """
    if complete:
        raise StalePlan(
            f"plan {plan.id} was executed completely already",
            hint="failover history shows it; failover plan makes a new one",
        )
    if now >= plan.expires and not written_before:
        raise StalePlan(
            f"plan {plan.id} expired at {plan.expires:%Y-%m-%d %H:%M:%S} UTC", hint="failover plan makes a new one"
        )
    if plan.target.cluster_id != target_cluster_id:
        raise StalePlan(
            f"plan {plan.id} was made for cluster {plan.target.cluster_id}, but {plan.target.alias} now leads to "
            f"cluster {target_cluster_id}",
            hint="check the bootstrap servers of that alias; failover plan makes a new plan",
        )


def differences(
    plan: Plan, group: PlannedGroup, commits: Mapping[TopicPartition, Commit], now: TargetNow
) -> list[Difference]:
    """Compares each partition the plan commits with what the target holds now."""
    found = []
    for planned in group.partitions:
        if planned.action is Action.COMMIT and planned.offset is not None:
            tp = TopicPartition(planned.topic, planned.partition)
            difference = _place(plan, tp, planned.offset, now) or _standing(
                planned, tp, planned.offset, commits.get(tp)
            )
            if difference is not None:
                found.append(difference)
    return found


def _place(plan: Plan, tp: TopicPartition, offset: int, now: TargetNow) -> Difference | None:
    """Checks that the offset still names the same place: same topic, inside its log."""
    if tp.topic not in now.topic_ids:
        return Difference(tp, "topic-missing", f"topic {tp.topic} is gone from the target", True)
    planned_id, current_id = plan.topic_ids.get(tp.topic), now.topic_ids[tp.topic]
    if planned_id is not None and current_id is not None and planned_id != current_id:
        return Difference(
            tp,
            "target-recreated",
            f"topic {tp.topic} was deleted and made anew since the plan: its offsets mean nothing now",
            True,
        )
    log = now.logs.get(tp)
    if log is None:
        return Difference(tp, "target-unavailable", f"the log of {tp} cannot be read", True)
    if offset > log.end:
        return Difference(
            tp,
            "beyond-log-end",
            f"{tp} now ends at {log.end}, before the planned offset {offset}: it was truncated",
            True,
        )
    if offset < log.start:
        return Difference(
            tp,
            "target-truncated",
            f"{tp} now starts at {log.start}: retention removed {log.start - offset} records from the planned offset "
            f"{offset} on, and auto.offset.reset would decide",
            True,
        )
    return None


def _standing(planned: PlannedPartition, tp: TopicPartition, offset: int, commit: Commit | None) -> Difference | None:
    """Compares the commit that stands now with the one the plan saw."""
    before, current = planned.target_committed, commit.offset if commit is not None else None
    if current in (before, offset):
        return None
    if current is None:
        return Difference(tp, "expired", f"the group's commit on {tp} ({before}) is gone: no effect on the plan", False)
    if current > offset and (before is None or current > before):
        return Difference(
            tp,
            "would-rewind",
            f"the group moved on {tp} from {_text(before)} to {current} since the plan: committing {offset} would "
            f"move it back by {current - offset} records",
            True,
        )
    if before is not None and current < before:
        if offset < current:
            return Difference(
                tp, "moved", f"the commit on {tp} moved from {before} to {current}: no effect on the plan", False
            )
        return Difference(
            tp,
            "commits-moving",
            f"somebody set {tp} back from {before} to {current} since the plan: committing {offset} would undo that",
            True,
        )
    return Difference(
        tp,
        "moved",
        f"the commit on {tp} moved from {_text(before)} to {current}, still not past the planned {offset}",
        False,
    )


def _text(offset: int | None) -> str:
    return "nothing" if offset is None else str(offset)


def decide(
    plan: Plan,
    group: PlannedGroup,
    info: GroupInfo,
    commits: Mapping[TopicPartition, Commit] | Fault,
    place: TargetNow,
    *,
    at: datetime,
    moving: str = "",
) -> Intent | Left:
    """Decides what happens to a group by what is true now: an intent to write, or why it is left.

    One bad partition does not hold back the others. ``moving``: text of commits that do not stand
    still, "" when they do.
    """
    name = group.group
    if info.type in (GroupType.SHARE, GroupType.STREAMS):
        return left(info, at, "group-type-unsupported", f"{name} is a {info.type} group: it has no commits to set")
    if info.fault is not None:
        return left(info, at, "group-state-unknown", f"the state of {name} cannot be read: {info.fault}")
    if not info.inactive:
        return left(info, at, "group-active", active_text(name, plan.target.alias, info.state, info.members))
    if isinstance(commits, Fault):
        return left(info, at, "group-state-unknown", f"the offsets of {name} cannot be read: {commits}")
    if moving:
        return left(info, at, "commits-moving", moving)
    refusals = {d.partition: d for d in differences(plan, group, commits, place) if d.refuses}
    partitions: list[IntendedPartition] = []
    unchanged: list[tuple[str, int, int]] = []
    for planned in group.partitions:
        tp = TopicPartition(planned.topic, planned.partition)
        if planned.action is not Action.COMMIT or tp in refusals:
            continue
        new, standing = planned_commit(planned), commits.get(tp)
        if standing is not None and (standing.offset, standing.metadata) == (new.offset, new.metadata):
            unchanged.append((tp.topic, tp.partition, new.offset))
        else:
            before = to_record(standing) if standing is not None else None
            partitions.append(IntendedPartition(tp.topic, tp.partition, before, to_record(new)))
    if refusals and not partitions and not unchanged:
        texts = "; ".join(difference.text for difference in refusals.values())
        return left(info, at, next(iter(refusals.values())).code, texts, stale=True)
    refused = tuple((tp.topic, tp.partition, d.code, d.text) for tp, d in refusals.items())
    return Intent(at, name, info.exists, info.state, tuple(partitions), tuple(unchanged), refused)


def left(info: GroupInfo, at: datetime, reason: str, message: str, *, stale: bool = False) -> Left:
    """Notes that nothing is written for a group."""
    return Left(at, info.name, info.exists, info.state, info.members, reason, message, stale)


def active_text(group: str, alias: str, state: str, members: Sequence[Member]) -> str:
    """Says who keeps a group active, by client id and host."""
    if not members:
        return f"{group} is {state} on {alias}"
    who = ", ".join(_who(member) for member in members[:5])
    more = f" and {len(members) - 5} more" if len(members) > 5 else ""
    count = "1 member" if len(members) == 1 else f"{len(members)} members"
    return f"{group} is {state} on {alias} with {count}: {who}{more}"


def _who(member: Member) -> str:
    static = f" (static member {member.group_instance_id})" if member.group_instance_id else ""
    return f"{member.client_id} {member.host}{static}"
