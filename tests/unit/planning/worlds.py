"""Small worlds to plan in: one topic, chosen commits and checkpoints, every default harmless."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from failover.model import Precision, Proof, TopicPartition, Translation
from failover.model.cluster import ClusterState, ClusterStatus, LogRange, TopicInfo
from failover.model.groups import Commit, GroupInfo, GroupType, Member
from failover.model.plan import Plan, PlannedGroup, PlannedPartition, PlanOptions
from failover.model.snapshot import ClusterView, FlowInfo, SeenCheckpoint, Snapshot
from failover.planning.build import make_plan

TAKEN = datetime(2026, 11, 5, 3, 14, 7, tzinfo=UTC)
T0 = TopicPartition("primary.orders", 0)
S0 = TopicPartition("orders", 0)
MEMBER = Member("app-1", "/10.0.3.7", "app-1-6f1c")


def millis(seconds_ago: float = 60.0) -> int:
    return int((TAKEN - timedelta(seconds=seconds_ago)).timestamp() * 1000)


def checkpoint(upstream: int, downstream: int, ago: float = 60.0, **more: Any) -> SeenCheckpoint:
    return SeenCheckpoint(upstream, downstream, millis(ago), **more)


def exact(upstream: int, offset: int) -> Translation:
    return Translation(upstream, offset, Precision.EXACT, Proof.SYNC_MATCH, 0, 0, (f"sync {upstream} -> {offset}",))


def world(
    *,
    partitions: int = 1,
    source_commits: Mapping[int, int] | None = None,
    target_commits: Mapping[int, int] | None = None,
    checkpoints: Mapping[int, SeenCheckpoint] | None = None,
    translations: Mapping[int, Translation] | None = None,
    target_log: tuple[int, int] = (0, 1000),
    source_log: tuple[int, int] = (0, 1000),
    source: ClusterState = ClusterState.UP,
    info: GroupInfo | None = None,
    source_info: GroupInfo | None = None,
    group: str = "payments",
    **more: Any,
) -> Snapshot:
    """Gives a snapshot of one group reading ``primary.orders``; keys of the mappings are partitions."""
    answers = source in (ClusterState.UP, ClusterState.DEGRADED)
    numbers = range(partitions)
    view = ClusterView(ClusterStatus("primary", "SRC" if answers else None, source, silent_since=None))
    if answers:
        view = ClusterView(
            view.status,
            topics={"orders": TopicInfo("orders", partitions)},
            logs={TopicPartition("orders", n): LogRange(*source_log) for n in numbers},
            groups={} if source_info is None else {group: source_info},
            commits={group: {TopicPartition("orders", n): Commit(o) for n, o in (source_commits or {}).items()}},
        )
    standing = {TopicPartition("primary.orders", n): Commit(o) for n, o in (target_commits or {}).items()}
    target = ClusterView(
        ClusterStatus("standby", "TGT", ClusterState.UP),
        topics={"primary.orders": TopicInfo("primary.orders", partitions, "id-1")},
        logs={TopicPartition("primary.orders", n): LogRange(*target_log) for n in numbers},
        groups={group: info or empty(group, exists=bool(standing))},
        commits={group: standing},
    )
    fields: dict[str, Any] = {
        "taken": TAKEN,
        "flow": FlowInfo("primary", "standby", "DefaultReplicationPolicy", "."),
        "source": view,
        "target": target,
        "mirrored": {"primary.orders": "orders"},
        "groups": (group,),
        "checkpoints": {group: {TopicPartition("primary.orders", n): c for n, c in (checkpoints or {}).items()}},
        "translations": {group: {TopicPartition("primary.orders", n): t for n, t in (translations or {}).items()}},
    }
    return Snapshot(**(fields | more))


def empty(group: str = "payments", *, exists: bool = True, **more: Any) -> GroupInfo:
    kind = GroupType.CLASSIC if exists else GroupType.UNKNOWN
    return GroupInfo(group, exists, kind, "Empty" if exists else "Dead", **more)


def plan(snapshot: Snapshot, options: PlanOptions | None = None, **more: Any) -> Plan:
    fields: dict[str, Any] = {
        "plan_id": "7f3a1c",
        "operator": "kim",
        "reason": "",
        "ttl_seconds": 3600.0,
        "tool_version": "0.1.0",
    }
    return make_plan(snapshot, options or PlanOptions(), **(fields | more))


def only_group(snapshot: Snapshot, options: PlanOptions | None = None, **more: Any) -> PlannedGroup:
    (group,) = plan(snapshot, options, **more).groups
    return group


def only(snapshot: Snapshot, options: PlanOptions | None = None, **more: Any) -> PlannedPartition:
    (partition,) = only_group(snapshot, options, **more).partitions
    return partition
