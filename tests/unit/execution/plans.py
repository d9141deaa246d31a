"""Builds small plans by hand, so that the tests of executing them do not rest on the planner."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import msgspec

from failover.model.names import TopicPartition
from failover.model.plan import (
    Action,
    Finding,
    GroupCounts,
    PartitionCounts,
    Plan,
    PlannedCluster,
    PlannedGroup,
    PlannedPartition,
    PlanOptions,
    PositionAfter,
    Severity,
    Summary,
    Verdict,
)
from failover.model.snapshot import FlowInfo
from failover.planning.fingerprint import fingerprint

CREATED = datetime(2026, 11, 5, 3, 14, 7, tzinfo=UTC)


def partition(
    topic: str, number: int, offset: int | None, before: int | None = None, reason: str = ""
) -> PlannedPartition:
    """Makes a partition: to be committed at ``offset``, or skipped for ``reason``."""
    action = Action.SKIP if offset is None else Action.COMMIT
    return PlannedPartition(
        topic=topic,
        partition=number,
        source_topic=topic.partition(".")[2],
        source_committed=offset,
        source_end=offset,
        checkpoint=None,
        target_committed=before,
        target_start=0,
        target_end=1000,
        action=action,
        reason=reason or "translated",
        offset=offset,
        precision="exact",
        proof="sync-match",
        position_after=PositionAfter(offset, "plan" if offset is not None else "auto.offset.reset"),
        reread=0,
        reread_max=0,
        skipped=0,
        lag_after=0,
        metadata="m",
    )


def group(
    name: str, offsets: Mapping[TopicPartition, int], before: Mapping[TopicPartition, int] | None = None
) -> PlannedGroup:
    """Makes a ready group with these commits."""
    standing = before or {}
    return PlannedGroup(
        group=name,
        exists=bool(standing),
        type="classic",
        state="Empty",
        members=(),
        source_state="Empty",
        source_members=0,
        verdict=Verdict.READY,
        reasons=(),
        subscribe=("a.orders",),
        local_topics=(),
        partitions=tuple(partition(tp.topic, tp.partition, o, standing.get(tp)) for tp, o in offsets.items()),
    )


def plan(*groups: PlannedGroup, options: PlanOptions | None = None, mm2_syncs: bool = False) -> Plan:
    """Makes a plan of these groups for the cluster ``b`` of the fake's making."""
    topics = {p.topic for g in groups for p in g.partitions}
    findings = (Finding("mm2-group-sync", Severity.ERROR, "b", "on", "stop it"),) if mm2_syncs else ()
    made = Plan(
        version=1,
        id="7f3a1c",
        created=CREATED,
        expires=CREATED + timedelta(hours=1),
        tool_version="0",
        operator="ann",
        reason="",
        source=PlannedCluster("a", "id-of-a", "up"),
        target=PlannedCluster("b", "id-of-b", "up"),
        flow=FlowInfo("a", "b", "default", "."),
        options=options or PlanOptions(),
        groups=groups,
        not_planned=(),
        unreplicated=(),
        summary=Summary(GroupCounts(len(groups), 0, 0, 0, 0), PartitionCounts(1, 0, 0), 0, 0, 0, 0, 0, 1.0),
        findings=findings,
        topic_ids={name: f"b/{name}" for name in topics},
    )
    return msgspec.structs.replace(made, fingerprint=fingerprint(made))
