"""Whether a plan still holds: what changed on the target since, judged by what it means."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

import msgspec

from failover.model.cluster import LogRange, TopicInfo
from failover.model.groups import Commit, GroupInfo, GroupType, Member
from failover.model.names import Fault, TopicPartition
from failover.model.plan import Action, Plan, PlannedGroup, PlannedPartition
from failover.planning.decide import key
from failover.planning.group_rules import denied, may


class FreshTarget(msgspec.Struct, frozen=True):
    """Is a fresh look at the target for a plan's groups.

    ``topics`` and ``logs`` hold what was looked at; what is absent from a non-empty mapping is
    gone. ``checkpoints``: group → partition → newest downstream, {} when not read: a standing
    commit that only followed it is MM2's group sync at work.
    """

    cluster_id: str | None
    groups: Mapping[str, GroupInfo] = {}
    commits: Mapping[str, Mapping[TopicPartition, Commit]] = {}
    group_faults: Mapping[str, Fault] = {}
    topics: Mapping[str, TopicInfo] = {}
    logs: Mapping[TopicPartition, LogRange] = {}
    checkpoints: Mapping[str, Mapping[TopicPartition, int]] = {}


class GroupDrift(msgspec.Struct, frozen=True):
    """Is what became of one group since the plan.

    ``status``: ``ok`` (what is planned may be written), ``refused`` (by ``code``, as a plan made
    now would), or ``changed`` (the plan is stale for this group). ``texts``: one line each, naming
    the partition. ``unchanged``: partitions that stand at their planned offset already.
    """

    group: str
    status: Literal["ok", "refused", "changed"]
    code: str = ""
    texts: tuple[str, ...] = ()
    members: tuple[Member, ...] = ()
    unchanged: tuple[TopicPartition, ...] = ()


def expired(plan: Plan, now: datetime) -> bool:
    """Says whether the plan's time is over."""
    return now >= plan.expires


def wrong_cluster(plan: Plan, cluster_id: str | None) -> str:
    """Says in one line that this is not the cluster the plan was made for; "" when it is."""
    planned = plan.target.cluster_id
    if planned is None or cluster_id is None or planned == cluster_id:
        return ""
    return f"{plan.target.alias} is cluster {cluster_id} now; the plan was made for cluster {planned}"


def drift(plan: Plan, fresh: FreshTarget) -> dict[str, GroupDrift]:
    """Judges every group of the plan by the fresh look; pure, in the plan's order."""
    return {group.group: _group(plan, group, fresh) for group in plan.groups}


def _group(plan: Plan, group: PlannedGroup, fresh: FreshTarget) -> GroupDrift:
    name = group.group
    info = fresh.groups.get(name)
    code = _refusal(info, fresh.group_faults.get(name))
    if code:
        members = info.members if info is not None else ()
        return GroupDrift(name, "refused", code=code, members=members, texts=(_refusal_text(code, info),))
    commits = fresh.commits.get(name, {})
    texts: list[str] = []
    unchanged: list[TopicPartition] = []
    for partition in group.partitions:
        tp = key(partition)
        commit = commits.get(tp)
        text = _place_text(plan, partition, fresh) or _commit_text(
            partition, commit.offset if commit is not None else None, fresh.checkpoints.get(name, {}).get(tp)
        )
        if text:
            texts.append(f"{tp}: {text}")
        elif partition.action is Action.COMMIT and commit is not None and commit.offset == partition.offset:
            unchanged.append(tp)
    return GroupDrift(name, "changed" if texts else "ok", texts=tuple(texts), unchanged=tuple(unchanged))


def _refusal(info: GroupInfo | None, fault: Fault | None) -> str:
    if denied(fault) or (info is not None and (denied(info.fault) or not may(info.operations, "READ"))):
        return "not-authorized"
    if fault is not None:
        return "target-unavailable"
    if info is None or info.fault is not None or info.state in ("Unknown", ""):
        return "group-state-unknown"
    if info.exists and info.type not in (GroupType.CLASSIC, GroupType.CONSUMER):
        return "group-type-unsupported"
    return "" if info.inactive else "group-active"


def _refusal_text(code: str, info: GroupInfo | None) -> str:
    if code == "group-active" and info is not None:
        return f"the group is {info.state} with {len(info.members)} members"
    if code == "group-type-unsupported" and info is not None:
        return f"the group is a {info.type} group now"
    if info is not None and info.fault is not None:
        return str(info.fault)
    return "the target gave no answer for the group"


def _place_text(plan: Plan, partition: PlannedPartition, fresh: FreshTarget) -> str:
    """Says what happened to the partition itself; only where something is to be committed."""
    if partition.action is not Action.COMMIT or partition.offset is None:
        return ""
    planned_id = plan.topic_ids.get(partition.topic)
    info = fresh.topics.get(partition.topic)
    if fresh.topics and info is None:
        return "the topic is gone"
    if info is not None and planned_id and info.topic_id and info.topic_id != planned_id:
        return "the topic was recreated (another topic id)"
    log = fresh.logs.get(key(partition))
    if log is None:
        return "the log's range could not be read" if fresh.logs else ""
    if partition.offset < log.start:
        return f"the log starts at {log.start} now, beyond the planned {partition.offset}"
    if partition.offset > log.end:
        return f"the log ends at {log.end} now, before the planned {partition.offset}"
    return ""


def _commit_text(partition: PlannedPartition, now: int | None, checkpoint: int | None) -> str:
    """Says whether the standing commit's change matters.

    Where something is to be committed, only a value beyond the planned offset matters: writing
    would move it back (a plan that rewinds on purpose rewinds the value it saw, no other). A value
    below it, or none, is overtaken by the commit. Where the plan
    leaves a standing commit alone, any other value means consumers start elsewhere than it says;
    MM2's group sync following its newest checkpoint is its ordinary work.
    """
    before = partition.target_committed
    if now == before:
        return ""
    was = "none" if before is None else str(before)
    if partition.action is Action.COMMIT:
        if now is None or partition.offset is None or now <= partition.offset:
            return ""
        return f"the committed offset is {now} now (was {was}), beyond the planned {partition.offset}"
    if partition.reason == "already-there" and now is not None and checkpoint is not None and now == checkpoint:
        return ""
    if partition.action is Action.REFUSE:
        return ""
    return f"the committed offset is {'none' if now is None else now} now (was {was})"
