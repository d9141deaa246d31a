"""Pure: what an execution is to bring about, group by group, whatever asked for it.

A plan's commits, the way back of a roll back, or, where neither is at hand, what a journal's events
name. The record (``failover.execution.record``) is made by laying a journal's events over this.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from failover.model.execution import Execution, Status
from failover.model.groups import Member
from failover.model.plan import Action, Plan, PlannedGroup, PlannedPartition, Verdict
from failover.planning.verdict import verdict
from failover.state.journal import Event, Intent, Left


class AimedPartition(msgspec.Struct, frozen=True, gc=False):
    """Is one partition. ``acts``: something is to be written; then ``offset`` None means: delete.

    ``otherwise``: the status of a partition that nothing is to be done with, or nothing was.
    """

    topic: str
    partition: int
    offset: int | None
    acts: bool
    otherwise: Status
    reason: str
    reread: int | None = None
    lag_after: int | None = None


class AimedGroup(msgspec.Struct, frozen=True):
    """Is one group. ``odd``: it is not whole even when everything aimed at is done.

    ``members``: those for which the plan refused it, as the plan saw them.
    """

    group: str
    exists: bool
    state: str
    odd: bool
    partitions: tuple[AimedPartition, ...]
    members: tuple[Member, ...] = ()


def freed(plan: Plan) -> Plan:
    """Gives the plan as it holds once groups that it refused for their state alone are empty."""
    if not any(group.when_free for group in plan.groups):
        return plan
    groups = tuple(_freed(group) if group.when_free else group for group in plan.groups)
    return msgspec.structs.replace(plan, groups=groups)


def _freed(group: PlannedGroup) -> PlannedGroup:
    return msgspec.structs.replace(
        group, partitions=group.when_free, when_free=(), verdict=verdict(group.when_free, None, True, True), reasons=()
    )


def aims_of_plan(plan: Plan, *, when_free: bool) -> list[AimedGroup]:
    """Gives what a plan commits."""
    plan = freed(plan) if when_free else plan
    return [
        AimedGroup(
            group.group,
            group.exists,
            group.state,
            group.verdict in (Verdict.PARTIAL, Verdict.REFUSED),
            tuple(_planned(group, p) for p in group.partitions),
            group.members if group.verdict is Verdict.REFUSED else (),
        )
        for group in plan.groups
    ]


def _planned(group: PlannedGroup, planned: PlannedPartition) -> AimedPartition:
    acts = planned.action is Action.COMMIT
    refused = planned.action is Action.REFUSE or (acts and group.verdict is Verdict.REFUSED)
    return AimedPartition(
        planned.topic,
        planned.partition,
        planned.offset,
        acts,
        Status.REFUSED if refused else Status.SKIPPED,
        planned.reason,
        planned.reread,
        planned.lag_after,
    )


def aims_of_undo(undone: Execution) -> list[AimedGroup]:
    """Gives the way back: for every partition that was written, what stood before."""
    return [
        AimedGroup(
            group.group,
            True,
            "",
            False,
            tuple(
                AimedPartition(
                    p.topic, p.partition, p.before.offset if p.before else None, True, Status.SKIPPED, "rolled-back"
                )
                for p in group.partitions
                if p.sent
            ),
        )
        for group in undone.groups
        if any(p.sent for p in group.partitions)
    ]


def aims_of_events(events: Sequence[Event]) -> list[AimedGroup]:
    """Gives what the events themselves name."""
    found: dict[str, dict[tuple[str, int], AimedPartition]] = {}
    existed: dict[str, bool] = {}
    for event in events:
        if isinstance(event, Left | Intent):
            existed.setdefault(event.group, event.existed)
            kept = found.setdefault(event.group, {})
            if isinstance(event, Intent):
                kept.update(_named(event))
    return [AimedGroup(name, existed[name], "", False, tuple(parts.values())) for name, parts in found.items()]


def _named(intent: Intent) -> Iterable[tuple[tuple[str, int], AimedPartition]]:
    for topic, number, code, _ in intent.refused:
        yield (topic, number), AimedPartition(topic, number, None, True, Status.REFUSED, code)
    for topic, number, offset in intent.unchanged:
        yield (topic, number), AimedPartition(topic, number, offset, True, Status.SKIPPED, "translated")
    for p in intent.partitions:
        offset = p.planned.offset if p.planned else None
        yield (p.topic, p.partition), AimedPartition(p.topic, p.partition, offset, True, Status.SKIPPED, "translated")
