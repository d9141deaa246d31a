"""What the screen and the ticket both say about a plan's groups: one row a group, the same words."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from failover.model.plan import Action, Plan, PlannedGroup, PlannedPartition, Verdict
from failover.report.phrases import phrase
from failover.report.values import at_most, count, members, things

PRECISIONS = ("none", "conservative", "bounded", "exact")
HARMLESS = frozenset({"already-there", "source-never-committed"})

_ORDER = {Verdict.REFUSED: 1, Verdict.PARTIAL: 3, Verdict.READY: 4, Verdict.NOTHING: 5}


class GroupRow(NamedTuple):
    """Is one group summed up.

    ``severity``: 0 skips records, 1 refused, 2 unknown, 3 partial, 4 ready, or withheld by ``--all-or-nothing``, 5
    nothing.
    """

    group: PlannedGroup
    severity: int
    commits: int
    left: int
    refused: int
    reread: int | None
    reread_max: int | None
    skipped: int
    unknown: int
    lag_after: int | None
    why: str

    @property
    def withheld(self) -> bool:
        """Says whether nothing but ``--all-or-nothing`` keeps the group from being committed."""
        return self.group.reasons == ("all-or-nothing",)

    @property
    def plain(self) -> bool:
        """Says whether the group needs no line of its own where there are many."""
        return self.group.verdict is Verdict.READY or self.withheld

    @property
    def state(self) -> str:
        """Gives the group's state on the target, ``absent`` when it is not there."""
        return self.group.state if self.group.exists else "absent"

    def cells(self) -> tuple[str, ...]:
        """Gives the row as text, in the order of ``HEADERS``."""
        refused = self.group.verdict in (Verdict.REFUSED, Verdict.NOTHING)
        return (
            self.group.group,
            self.state,
            str(self.group.verdict),
            count(self.commits),
            count(self.left),
            count(self.refused),
            "-" if refused else at_most(self.reread, self.reread_max),
            "-" if refused else count(self.lag_after),
            self.why,
        )


HEADERS = ("GROUP", "TARGET", "VERDICT", "COMMIT", "LEFT", "REFUSED", "RE-READ", "LAG AFTER", "WHY")
NUMBERS = frozenset({"COMMIT", "LEFT", "REFUSED", "RE-READ", "LAG AFTER"})


def rows(plan: Plan) -> list[GroupRow]:
    """Sums up every group, worst first; among equals the one that skips more, then by name."""
    return sorted((_row(group) for group in plan.groups), key=lambda row: (row.severity, -row.skipped, row.group.group))


def plainly_ready(partition: PlannedPartition) -> bool:
    """Says whether a partition needs no line of its own."""
    if partition.action is Action.COMMIT:
        return partition.reason in ("translated", "gone-back") and partition.skipped == 0
    return partition.action is Action.SKIP and partition.reason in HARMLESS


def told_by_group(group: PlannedGroup, partition: PlannedPartition) -> bool:
    """Says whether the group's own line tells all: one refused as a whole names its reason once."""
    return group.verdict is Verdict.REFUSED and group.reasons == (partition.reason,) and not partition.ahead


def _row(group: PlannedGroup) -> GroupRow:
    actions = Counter(p.action for p in group.partitions)
    placed = [p for p in group.partitions if p.position_after.offset is not None]
    skipped = sum(p.skipped or 0 for p in group.partitions)
    unknown = 0
    if group.verdict is not Verdict.REFUSED:
        unknown = sum(p.skipped is None and p.reason != "source-never-committed" for p in group.partitions)
    severity = _ORDER[Verdict.READY] if group.reasons == ("all-or-nothing",) else _ORDER[group.verdict]
    if group.verdict is Verdict.PARTIAL and (skipped or unknown):
        severity = 0 if skipped else 2
    return GroupRow(
        group=group,
        severity=severity,
        commits=actions[Action.COMMIT],
        left=actions[Action.SKIP],
        refused=actions[Action.REFUSE],
        reread=_sum(p.reread for p in placed),
        reread_max=_sum(p.reread_max for p in placed),
        skipped=skipped,
        unknown=unknown,
        lag_after=_sum(p.lag_after for p in placed),
        why=_why(group),
    )


def _sum(numbers: object) -> int | None:
    total = 0
    for number in numbers:  # type: ignore[attr-defined]
        if number is None:
            return None
        total += number
    return total


def _why(group: PlannedGroup) -> str:
    """Says in a line why a group is not plainly ready: skips first, then refusals, then what is unknown."""
    if group.verdict is Verdict.REFUSED and len(group.reasons) == 1 and group.reasons[0] in _GROUP_PHRASES:
        return members(group.members) if group.members else _GROUP_PHRASES[group.reasons[0]]
    parts = []
    ahead = [p for p in group.partitions if p.ahead]
    if ahead:
        parts.append(_ahead(ahead))
    odd = [p for p in group.partitions if not plainly_ready(p) and not p.ahead]
    by_reason = Counter(p.reason for p in sorted(odd, key=_weight))
    for reason, number in by_reason.items():
        where = name(next(p for p in odd if p.reason == reason)) if number == 1 else things(number, "partition")
        parts.append(f"{where}: {phrase(reason)}" if phrase(reason) else where)
    return "; ".join(parts)


def _weight(partition: PlannedPartition) -> tuple[bool, bool, str]:
    # what is withheld is only the consequence of what comes first
    return partition.reason == "all-or-nothing", partition.action is not Action.REFUSE, partition.reason


def _ahead(ahead: list[PlannedPartition]) -> str:
    worst = max(ahead, key=lambda p: p.ahead or 0)
    if len(ahead) == 1:
        return f"{name(worst)} stands {count(worst.ahead)} AHEAD"
    return f"{len(ahead)} partitions stand AHEAD, {name(worst)} by {count(worst.ahead)}"


_GROUP_PHRASES = {
    code: phrase(code)
    for code in (
        "group-active",
        "group-state-unknown",
        "group-unknown",
        "group-type-unsupported",
        "commits-moving",
        "same-cluster",
        "not-authorized",
        "target-unavailable",
        "locked",
        "source-active",
    )
}


def name(partition: PlannedPartition) -> str:
    """Names a partition as its owners know it: by the source's topic, or, on its way back, by the original's.

    A local topic is nowhere on the source.
    """
    source, topic = partition.source_topic, partition.topic
    return f"{topic if not source or source.endswith(topic) else source}-{partition.partition}"


def precision_of(group: PlannedGroup) -> str:
    """Gives the worst precision among the partitions whose position is known, "none" without any."""
    found = [PRECISIONS.index(p.precision) for p in group.partitions if p.precision in PRECISIONS[1:]]
    return PRECISIONS[min(found)] if found else "none"
