"""What changed between two plans of one flow: the sums, the groups, their partitions, the findings."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from failover.model.plan import Finding, Plan, PlannedGroup, PlannedPartition, PlanOptions, Verdict

FIELDS = ("action", "reason", "offset", "target_committed", "precision", "reread_max", "skipped", "lag_after")
"""What is compared of a partition; all of it is what the operator decides by."""


class Side(msgspec.Struct, frozen=True):
    """Is one of the two plans."""

    id: str
    created: datetime
    operator: str


class Change(msgspec.Struct, frozen=True):
    """Is one value in both plans."""

    what: str
    old: Any
    new: Any


class PartitionDiff(msgspec.Struct, frozen=True):
    """Is one partition that is not as it was; without ``changes`` it is only in one of the plans."""

    topic: str
    partition: int
    kind: str
    changes: tuple[Change, ...] = ()


class GroupDiff(msgspec.Struct, frozen=True):
    """Is one group that is not as it was. ``kind``: added, gone or changed; ``old`` and ``new``: verdicts.

    ``why``: for a group that is gone, why the new plan leaves it out, "" when it does not know the group.
    """

    group: str
    kind: str
    old: Verdict | None
    new: Verdict | None
    changes: tuple[Change, ...] = ()
    partitions: tuple[PartitionDiff, ...] = ()
    why: str = ""


class PlanDiff(msgspec.Struct, frozen=True, tag_field="kind", tag="failover.plan-diff"):
    """Is what changed from one plan to another. ``same``: groups that are as they were."""

    version: int
    source: str
    target: str
    old: Side
    new: Side
    summary: tuple[Change, ...]
    options: tuple[Change, ...]
    groups: tuple[GroupDiff, ...]
    same: int
    findings_new: tuple[Finding, ...]
    findings_gone: tuple[Finding, ...]


def plan_diff(old: Plan, new: Plan) -> PlanDiff:
    """Compares two plans; groups in the order worst first: refused, partial, gone, then what got better."""
    before = {group.group: group for group in old.groups}
    after = {group.group: group for group in new.groups}
    left_out = {left.group: left.why for left in new.not_planned}
    found = [
        diff
        for name in sorted(before.keys() | after.keys())
        if (diff := _group(before.get(name), after.get(name), left_out)) is not None
    ]
    told_before = {(f.code, f.subject, f.severity) for f in old.findings}
    told_now = {(f.code, f.subject, f.severity) for f in new.findings}
    return PlanDiff(
        version=1,
        source=new.source.alias,
        target=new.target.alias,
        old=Side(old.id, old.created, old.operator),
        new=Side(new.id, new.created, new.operator),
        summary=tuple(change for change in _sums(old, new) if change.old != change.new),
        options=tuple(
            Change(name, getattr(old.options, name), getattr(new.options, name))
            for name in PlanOptions.__struct_fields__
            if getattr(old.options, name) != getattr(new.options, name)
        ),
        groups=tuple(sorted(found, key=_weight)),
        same=len(before.keys() & after.keys()) - sum(diff.kind == "changed" for diff in found),
        findings_new=tuple(f for f in new.findings if (f.code, f.subject, f.severity) not in told_before),
        findings_gone=tuple(f for f in old.findings if (f.code, f.subject, f.severity) not in told_now),
    )


_ORDER = {Verdict.REFUSED: 0, Verdict.PARTIAL: 1, None: 2, Verdict.READY: 3, Verdict.NOTHING: 4}


def _weight(diff: GroupDiff) -> tuple[bool, int, str]:
    return diff.old is diff.new, _ORDER[diff.new], diff.group


def _sums(old: Plan, new: Plan) -> list[Change]:
    one, two = old.summary, new.summary
    return [
        Change("source", old.source.state, new.source.state),
        Change("target", old.target.state, new.target.state),
        *(
            Change(f"groups {name}", getattr(one.groups, name), getattr(two.groups, name))
            for name in ("ready", "partial", "refused", "nothing", "not_planned")
        ),
        *(
            Change(f"partitions {name}", getattr(one.partitions, name), getattr(two.partitions, name))
            for name in ("commit", "skip", "refuse")
        ),
        *(
            Change(name, getattr(one, name), getattr(two, name))
            for name in ("unreplicated", "reread_max", "skipped", "unknown")
        ),
    ]


def _group(old: PlannedGroup | None, new: PlannedGroup | None, left_out: dict[str, str]) -> GroupDiff | None:
    """Compares one group; None when it is as it was."""
    if old is None or new is None:
        one = old or new
        assert one is not None
        gone = new is None
        return GroupDiff(
            group=one.group,
            kind="gone" if gone else "added",
            old=one.verdict if gone else None,
            new=None if gone else one.verdict,
            why=left_out.get(one.group, "") if gone else "",
        )
    changes = tuple(
        Change(what, was, now)
        for what, was, now in (
            ("verdict", str(old.verdict), str(new.verdict)),
            ("reasons", old.reasons, new.reasons),
            ("members", len(old.members), len(new.members)),
            ("state", old.state if old.exists else "absent", new.state if new.exists else "absent"),
            ("subscribe", old.subscribe, new.subscribe),
        )
        if was != now
    )
    partitions = _partitions(old, new)
    if not changes and not partitions:
        return None
    return GroupDiff(new.group, "changed", old.verdict, new.verdict, changes, partitions)


def _partitions(old: PlannedGroup, new: PlannedGroup) -> tuple[PartitionDiff, ...]:
    before = {(p.topic, p.partition): p for p in old.partitions}
    after = {(p.topic, p.partition): p for p in new.partitions}
    found = []
    for place in sorted(before.keys() | after.keys()):
        one, two = before.get(place), after.get(place)
        if one is None or two is None:
            found.append(PartitionDiff(*place, "added" if one is None else "gone"))
            continue
        changes = _changes(one, two)
        if changes:
            found.append(PartitionDiff(*place, "changed", changes))
    return tuple(found)


def _changes(old: PlannedPartition, new: PlannedPartition) -> tuple[Change, ...]:
    changes = [Change(name, getattr(old, name), getattr(new, name)) for name in FIELDS]
    changes.append(Change("position_after", old.position_after.offset, new.position_after.offset))
    return tuple(change for change in changes if change.old != change.new)
