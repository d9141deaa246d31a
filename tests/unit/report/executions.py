"""Constructed plans with MM2's own answers, and executions of plans, for the reports."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec

from failover.model.execution import (
    CommitRecord,
    ExecutedGroup,
    ExecutedPartition,
    Execution,
    Now,
    Outcome,
    Status,
    Verified,
    VerifiedGroup,
)
from failover.model.plan import Action, Plan, PlannedGroup
from tests.unit.report import plans

BATCH = 20
_STATUS = {Action.COMMIT: Status.COMMITTED, Action.SKIP: Status.SKIPPED, Action.REFUSE: Status.REFUSED}


def against_mm2(groups: int = 49, partitions: int = 12, **more: Any) -> Plan:
    """The story of a dead source, where MM2 would start each group further back, another distance each."""
    snapshot = plans.big(groups, partitions, **more)
    answers = {
        name: dict.fromkeys(found, 1995 - 37 * (number % 17))
        for number, (name, found) in enumerate(snapshot.translations.items())
    }
    return plans.build(msgspec.structs.replace(snapshot, mm2_answers=answers))


def executed(plan: Plan, outcome: Outcome = Outcome.PARTIAL, **more: Any) -> Execution:
    """An execution of a plan in batches, after six seconds of watching that commits stand still."""
    started = plan.created + timedelta(seconds=70)
    groups = tuple(
        _group(group, started + timedelta(seconds=6 + number // BATCH * 0.11))
        for number, group in enumerate(plan.groups)
    )
    fields: dict[str, Any] = {
        "version": 1,
        "id": "e-84a7e6",
        "plan_id": plan.id,
        "fingerprint": plan.fingerprint,
        "started": started,
        "finished": max((g.finished for g in groups if g.finished), default=started) + timedelta(milliseconds=300),
        "outcome": outcome,
        "tool_version": "0.1.0",
        "operator": "kim",
        "reason": "primary lost",
        "source_alias": plan.source.alias,
        "target_alias": plan.target.alias,
        "target_cluster_id": plan.target.cluster_id,
        "groups": groups,
    }
    return Execution(**(fields | more))


def _group(group: PlannedGroup, at: Any) -> ExecutedGroup:
    partitions = tuple(
        ExecutedPartition(
            topic=p.topic,
            partition=p.partition,
            before=CommitRecord(p.target_committed) if p.target_committed is not None else None,
            planned=p.offset,
            written=p.offset,
            read_back=p.offset,
            status=_STATUS[p.action],
            reason=p.reason,
            reread=p.reread,
            lag_after=p.lag_after,
        )
        for p in group.partitions
    )
    message = "has members" if group.members else ""
    reasons = group.reasons if group.members else ()
    return ExecutedGroup(
        group.group, group.exists, group.state, group.members, reasons, partitions, message=message, finished=at
    )


def altered(execution: Execution, group: str, number: int, **changes: Any) -> Execution:
    """The same execution with another story for one partition."""

    def one(found: ExecutedGroup) -> ExecutedGroup:
        if found.group != group:
            return found
        changed = list(found.partitions)
        changed[number] = msgspec.structs.replace(changed[number], **changes)
        return msgspec.structs.replace(found, partitions=tuple(changed))

    return msgspec.structs.replace(execution, groups=tuple(one(found) for found in execution.groups))


def verified(execution: Execution, exit_code: int = 4) -> Execution:
    """The same execution looked at for five minutes: everything held, the last group never came back."""
    groups = tuple(
        msgspec.structs.replace(
            group,
            partitions=tuple(
                msgspec.structs.replace(p, now=p.written, verdict=Now.HELD) if p.written is not None else p
                for p in group.partitions
            ),
        )
        for group in execution.groups
    )
    written = [group for group in groups if any(p.verdict is not None for p in group.partitions)]
    looked = tuple(
        VerifiedGroup(
            group.group, "Stable", (), group is not written[-1], 40, 3, "" if group is not written[-1] else "not back"
        )
        for group in written
    )
    at = execution.started + timedelta(minutes=6)
    return msgspec.structs.replace(execution, groups=groups, verified=Verified(at, 300.0, exit_code, looked))
