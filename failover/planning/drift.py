"""What changed on the target since a plan was made, and whether it matters.

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
from failover.model.cluster import LogRange, TopicInfo
from failover.model.groups import Commit, GroupInfo, GroupType, Member
from failover.model.names import Fault, TopicPartition
from failover.model.plan import Action, Plan, PlannedGroup, PlannedPartition
from failover.planning.decide import key
from failover.planning.group_rules import denied, may

_NEW_PLAN = "failover plan makes a new one"
_NO_SUCH_TOPIC = 3  # Kafka: UNKNOWN_TOPIC_OR_PARTITION


class Difference(msgspec.Struct, frozen=True):
    """Is one thing that is no longer as the plan saw it.

    ``refuses``: committing would break a guarantee. ``code``: the reason code then.
    """

    partition: TopicPartition
    code: str
    text: str
    refuses: bool


class TargetNow(msgspec.Struct, frozen=True):
    """Is a fresh look at the target: topics, or why one could not be described, and the logs that were read."""

    topics: Mapping[str, TopicInfo | Fault]
    logs: Mapping[TopicPartition, LogRange]


class EarlierWrite(msgspec.Struct, frozen=True):
    """Is a commit that an earlier execution of the same plan sent, or found done.

    ``before``: what stood then. ``landed``: the target was seen to hold ``offset`` afterwards;
    False where a crash or a lost answer left that open.
    """

    before: int | None
    offset: int
    landed: bool


def check_usable(
    plan: Plan,
    *,
    now: datetime,
    target_cluster_id: str | None,
    written_before: bool,
    complete: bool,
    rolled_back: str = "",
) -> None:
    """Raises ``StalePlan`` when nothing of the plan may be executed any more.

    ``written_before``: an execution of this plan has begun to write, so its expiry counts no
    more; ``complete``: everything it commits is done, so the plan is used up; ``rolled_back``: the
    execution of it that was rolled back, "" for none.
    """
    if rolled_back:
        raise StalePlan(
            f"plan {plan.id} was executed by {rolled_back} and rolled back since",
            hint=f"failover show {rolled_back} tells what it did; {_NEW_PLAN}",
        )
    if complete:
        raise StalePlan(
            f"plan {plan.id} was executed completely already", hint=f"failover history shows it; {_NEW_PLAN}"
        )
    if now >= plan.expires and not written_before:
        raise StalePlan(f"plan {plan.id} expired at {plan.expires:%Y-%m-%d %H:%M:%S} UTC", hint=_NEW_PLAN)
    check_cluster(plan.target.alias, plan.target.cluster_id, target_cluster_id, f"plan {plan.id}")


def check_cluster(alias: str, planned: str | None, found: str | None, what: str) -> None:
    """Raises ``StalePlan`` when an alias leads to another cluster than the one that ``what`` is about."""
    if planned is not None and found is not None and planned != found:
        raise StalePlan(
            f"{what} was made for cluster {planned}, but {alias} now leads to cluster {found}",
            hint=f"check the bootstrap servers of {alias}",
        )


def refusal(info: GroupInfo, commits: object, alias: str) -> tuple[str, str] | None:
    """Finds why nothing may be committed for a group now: the code a plan made now would give, and a text.

    ``commits``: what it has committed, or the fault of reading that.
    """
    name = info.name
    fault = commits if isinstance(commits, Fault) else None
    if info.exists and info.fault is None and info.type not in (GroupType.CLASSIC, GroupType.CONSUMER):
        return "group-type-unsupported", f"{name} is a {info.type} group on {alias}: it has no commits to set"
    if denied(fault) or denied(info.fault) or not may(info.operations, "READ"):
        return "not-authorized", f"this user may not commit for {name} on {alias}: READ on the group is missing"
    if info.fault is not None or info.state in ("Unknown", ""):
        return "group-state-unknown", f"the state of {name} on {alias} cannot be read: {info.fault or info.state}"
    if not info.inactive:
        return "group-active", active_text(name, alias, info.state, info.members)
    if fault is not None:
        return "target-unavailable", f"the offsets of {name} on {alias} cannot be read: {fault}"
    return None


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


def differences(
    plan: Plan,
    group: PlannedGroup,
    commits: Mapping[TopicPartition, Commit],
    now: TargetNow,
    earlier: Mapping[TopicPartition, EarlierWrite] | None = None,
) -> list[Difference]:
    """Compares each partition of a group with what the target holds now; pure.

    ``earlier``: what earlier executions of this plan wrote; where one is, the commit is compared with
    that instead of with what the plan saw.
    """
    found = []
    for planned in group.partitions:
        tp = key(planned)
        commit = commits.get(tp)
        current = commit.offset if commit is not None else None
        if planned.action is Action.COMMIT and planned.offset is not None:
            write = (earlier or {}).get(tp)
            if write is not None and done(write, current):
                continue
            standing = (
                _standing(planned, tp, planned.offset, current)
                if write is None
                else _since(write, tp, current, synced=synced(plan))
            )
            difference = _place(plan, tp, planned.offset, now) or standing
        else:
            difference = _left_alone(planned, tp, current)
        if difference is not None:
            found.append(difference)
    return found


def synced(plan: Plan) -> bool:
    """Says whether MirrorMaker 2 commits for the plan's groups by itself."""
    return any(finding.code == "mm2-group-sync" for finding in plan.findings)


def done(write: EarlierWrite, current: int | None) -> bool:
    """Says whether a partition needs no more writing: it stands where an earlier execution put it, or beyond.

    Beyond it, the group's consumers went on since; writing again would move them back. A plan
    that rewinds on purpose starts from beyond: there a crash that left the write open counts as
    not written while what stood before still stands.
    """
    if current is None or current < write.offset:
        return False
    return write.landed or current == write.offset or current != write.before


def _since(write: EarlierWrite, tp: TopicPartition, current: int | None, *, synced: bool) -> Difference | None:
    """Compares the commit that stands now with an earlier execution's write that is not done."""
    if write.landed:
        if current is None:
            text = f"the commit on {tp} that was written as {write.offset} is gone: it expired or was deleted"
            return Difference(tp, "expired", text, True)
        text = f"somebody set {tp} back from {write.offset} to {current} since it was written"
        return Difference(tp, "commits-moving", f"{text}: writing again would undo that", True)
    if current == write.before:
        return None
    if current is None:
        return Difference(tp, "expired", f"the group's commit on {tp} ({write.before}) is gone: no effect", False)
    text = f"the commit on {tp} moved from {_text(write.before)} to {current}"
    if synced and (write.before is None or current > write.before):
        return Difference(tp, "moved", f"{text}, still not past the planned {write.offset}", False)
    text = f"{text} since an execution was interrupted there: the group was used meanwhile"
    return Difference(tp, "commits-moving", text, True)


def _place(plan: Plan, tp: TopicPartition, offset: int, now: TargetNow) -> Difference | None:
    """Checks that the offset still names the same place, and that this client may commit there."""
    info = now.topics.get(tp.topic)
    if isinstance(info, Fault) and info.number != _NO_SUCH_TOPIC and not denied(info):
        return Difference(tp, "target-unavailable", f"topic {tp.topic} cannot be described: {info}", True)
    if denied(info if isinstance(info, Fault) else None) or (
        isinstance(info, TopicInfo) and not may(info.operations, "READ")
    ):
        text = f"this user may not commit on {tp.topic} of {plan.target.alias}: READ on the topic is missing"
        return Difference(tp, "not-authorized", text, True)
    if not isinstance(info, TopicInfo):
        return Difference(tp, "topic-missing", f"topic {tp.topic} is gone from the target", True)
    if tp.partition >= info.partitions:
        text = f"topic {tp.topic} has {info.partitions} partitions on the target now: {tp} is gone"
        return Difference(tp, "partition-missing", text, True)
    planned_id = plan.topic_ids.get(tp.topic)
    if planned_id is not None and info.topic_id is not None and planned_id != info.topic_id:
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


def _standing(planned: PlannedPartition, tp: TopicPartition, offset: int, current: int | None) -> Difference | None:
    """Compares the commit that stands now with the one the plan saw."""
    before = planned.target_committed
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


def _left_alone(planned: PlannedPartition, tp: TopicPartition, current: int | None) -> Difference | None:
    """Compares the commit of a partition that the plan leaves as it is; consumers start from it all the same."""
    before = planned.target_committed
    if current == before or planned.action is Action.REFUSE:
        return None
    where = "auto.offset.reset decides" if current is None else f"consumers start at {current}"
    text = f"the commit on {tp}, which the plan leaves alone, moved from {_text(before)} to {_text(current)}: {where}"
    return Difference(tp, "moved", text, False)


def _text(offset: int | None) -> str:
    return "nothing" if offset is None else str(offset)
