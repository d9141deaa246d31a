"""Pure: what earlier executions of a plan mean for the next one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from failover.execution.aims import freed
from failover.model.execution import Execution, Status
from failover.model.names import TopicPartition
from failover.model.plan import Action, Plan
from failover.planning.drift import EarlierWrite

_DONE = (Status.COMMITTED, Status.UNCHANGED)


def earlier_writes(runs: Iterable[Execution]) -> dict[str, dict[TopicPartition, EarlierWrite]]:
    """Gathers what executions of one plan wrote or found done, oldest first.

    The oldest ``before`` is kept; a partition counts as landed once any execution saw it there.
    """
    found: dict[str, dict[TopicPartition, EarlierWrite]] = {}
    for run in runs:
        for group in run.groups:
            for p in group.partitions:
                if p.planned is None or (p.written is None and p.status is not Status.UNCHANGED):
                    continue
                tp = TopicPartition(p.topic, p.partition)
                known = found.setdefault(group.group, {}).get(tp)
                before = known.before if known is not None else p.before.offset if p.before is not None else None
                landed = p.status in _DONE or (known is not None and known.landed)
                found[group.group][tp] = EarlierWrite(before, p.planned, landed)
    return found


def begun(runs: Iterable[Execution]) -> bool:
    """Says whether an execution of a plan has written something."""
    return any(p.written is not None for run in runs for group in run.groups for p in group.partitions)


def complete(plan: Plan, runs: Sequence[Execution], *, when_free: bool = False) -> bool:
    """Says whether all that a plan commits is done, by one execution or by several together.

    ``when_free``: groups that the plan refused for their state count as well.
    """
    if not runs:
        return False
    finished = {
        (group.group, p.topic, p.partition)
        for run in runs
        for group in run.groups
        for p in group.partitions
        if p.status in _DONE
    }
    wanted = {
        (group.group, p.topic, p.partition)
        for group in (freed(plan) if when_free else plan).groups
        for p in group.partitions
        if p.action is Action.COMMIT
    }
    return wanted <= finished and bool(wanted)


def rolled_back(runs: Iterable[Execution], undoings: Iterable[Execution]) -> str:
    """Names the execution among ``runs`` that was rolled back, "" when none was."""
    undone = {undoing.undoes for undoing in undoings if begun_to_undo(undoing)}
    return next((run.id for run in runs if run.id in undone), "")


def begun_to_undo(undoing: Execution) -> bool:
    """Says whether a roll back changed something."""
    return any(p.sent for group in undoing.groups for p in group.partitions)
