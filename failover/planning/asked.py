"""What the operator asked of a plan: which options go together, which groups are meant, and what was not done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from failover.checks.look import count, some
from failover.errors import UsageError
from failover.inventory.selection import pattern_of
from failover.model.names import TopicPartition
from failover.model.plan import Action, Finding, PlannedGroup, PlannedPartition, PlanOptions, Severity
from failover.model.snapshot import NotPlanned, Snapshot
from failover.planning.decide import key
from failover.planning.missing import BY_TIME
from failover.planning.verdict import newer_than_checkpoints

NEWER = "newer-than-checkpoints"
"""Why a group is left out that MM2 has not checkpointed yet and nothing else places."""

Elsewhere = Mapping[str, Sequence[str]]
"""Group → source topics that it stands on and that ``--topic`` leaves out."""


def check(options: PlanOptions, snapshot: Snapshot) -> None:
    """Raises ``UsageError`` for options that contradict each other, or that this look was not taken for."""
    missing = options.missing
    if missing.startswith(BY_TIME):
        if snapshot.by_time is None:
            raise UsageError(
                f"--missing {missing}: offsets by time were not looked up for this plan",
                hint="use --missing earliest or leave",
            )
    elif missing not in ("leave", "earliest", "latest", "fail"):
        raise UsageError(f"--missing {missing}: no such policy", hint="leave, earliest, latest, at=TIME, ago=D or fail")
    if missing == "latest" and not options.allow_skip:
        raise UsageError(
            "--missing latest starts consumers beyond records they never read",
            hint="add --allow-skip if that is meant, or use --missing earliest",
        )
    if options.local_topics not in ("none", "earliest"):
        raise UsageError(f"--local-topics {options.local_topics}: no such policy", hint="none or earliest")
    if options.local_topics == "earliest" and not snapshot.plain:
        raise UsageError(
            "--local-topics earliest: topics by their plain names were not looked at for this plan",
            hint="take the snapshot with local_topics='earliest'",
        )
    if options.precision not in ("exact", "bounded", "conservative"):
        raise UsageError(f"--precision {options.precision}: no such precision", hint="exact, bounded or conservative")
    back = snapshot.gone_back
    if options.rewind_by and (back is None or back.seconds != options.rewind_by):
        raise UsageError("--rewind-by: how far back that is was not looked up for this plan", hint="plan without it")


def selected(snapshot: Snapshot, options: PlanOptions) -> list[str]:
    """Gives the groups to decide; one named by hand is decided though the snapshot lacks it."""
    names = set(snapshot.groups)
    if options.group_pattern is not None:
        pattern = pattern_of(options.group_pattern)
        names = {name for name in names if pattern.fullmatch(name)} | set(options.groups)
    elif options.groups:
        names = set(options.groups)
    return sorted(names - set(options.exclude_groups))


def placed(
    groups: Iterable[PlannedGroup], snapshot: Snapshot, options: PlanOptions, elsewhere: Elsewhere
) -> tuple[tuple[PlannedGroup, ...], tuple[NotPlanned, ...]]:
    """Gives the groups of the plan and those left out of it; one named by hand stays in the plan.

    Left out are also groups that are newer than MM2's checkpoints (where these could not be read, or there are none at
    all, no group is newer than they are), and those that stand on none of the topics asked for.
    """
    target = snapshot.target.status.alias
    checkpoints = any(
        "checkpoints" in reading.topic and reading.cluster == target and reading.fault is None
        for reading in snapshot.readings
        if reading.newest is not None
    )
    kept: list[PlannedGroup] = []
    left: list[NotPlanned] = []
    for group in groups:
        name = group.group
        if name in options.groups:
            kept.append(group)
        elif checkpoints and newer_than_checkpoints(group):
            left.append(NotPlanned(name, NEWER, tuple(dict.fromkeys(p.source_topic for p in group.partitions))))
        elif options.topics and not group.partitions:
            left.append(NotPlanned(name, "excluded", tuple(elsewhere.get(name, ()))))
        else:
            kept.append(group)
    if not left:
        return tuple(kept), snapshot.not_planned
    return tuple(kept), tuple(sorted((*snapshot.not_planned, *left), key=lambda one: one.group))


def asked_findings(
    groups: Sequence[PlannedGroup],
    not_planned: Iterable[NotPlanned],
    snapshot: Snapshot,
    options: PlanOptions,
    elsewhere: Elsewhere,
) -> Iterator[Finding]:
    """Names what the operator asked for and this plan does not do, and what it leaves behind."""
    newer = [left.group for left in not_planned if left.why == NEWER]
    if newer:
        yield Finding(
            "newer-than-checkpoints",
            Severity.WARNING,
            some(newer),
            f"{count(len(newer), 'group')} left behind: MM2 has no checkpoint of {'it' if len(newer) == 1 else 'them'} "
            "yet, and nothing else places what was committed",
            "wait for MM2's first checkpoint (refresh.groups.interval.seconds) and plan again; or name one with "
            "--group and --missing earliest",
        )
    others = {group.group: elsewhere[group.group] for group in groups if elsewhere.get(group.group)}
    if others:
        topics = {topic for names in others.values() for topic in names}
        yield Finding(
            "topics-left-out",
            Severity.WARNING,
            some(others),
            f"{count(len(others), 'group')} of this plan also {'stands' if len(others) == 1 else 'stand'} on "
            f"{count(len(topics), 'topic')} that --topic leaves out: {some(topics)}",
            "plan these too before the groups' consumers start",
        )
    yield from _not_applied(groups, snapshot, options)


def _not_applied(groups: Sequence[PlannedGroup], snapshot: Snapshot, options: PlanOptions) -> Iterator[Finding]:
    decided = [(group, p) for group in groups for p in (group.partitions if not group.when_free else group.when_free)]
    if options.missing.startswith(BY_TIME) and snapshot.by_time is not None:
        known = snapshot.by_time.offsets
        unplaced = [(group, p) for group, p in decided if _left_to_reset(p)]
        yield from _left(
            [one for one in unplaced if key(one[1]) in known],
            f"--missing {options.missing} would pass over records that nobody is known to have read",
            "--allow-skip accepts that; --missing earliest skips nothing",
        )
        yield from _left(
            [one for one in unplaced if key(one[1]) not in known],
            f"--missing {options.missing}: {snapshot.target.status.alias} did not tell where that is",
            "plan again, or use --missing earliest",
        )
    if options.rewind_by and snapshot.gone_back is not None:
        back = snapshot.gone_back.offsets
        yield from _left(
            [(group, p) for group, p in decided if p.reason == "would-rewind" and not p.skipped],
            "--rewind-by moves no commit back that stands already",
            "--allow-rewind moves these back too",
        )
        yield from _left(
            [(group, p) for group, p in decided if _not_back(p, back)],
            "--rewind-by: no record with a timestamp lies right before the position",
            "these are committed where they stand; reset them by hand if they must go back",
        )


def _left_to_reset(p: PlannedPartition) -> bool:
    return (
        p.action is Action.SKIP
        and p.position_after.by == "auto.offset.reset"
        and p.reason not in ("topic-missing", "partition-missing", "would-rewind", "already-there")
    )


def _not_back(p: PlannedPartition, back: Mapping[TopicPartition, Mapping[int, int]]) -> bool:
    return (
        p.offset is not None
        and p.reason in ("translated", "at-log-end")
        and p.proof != "timestamp"
        and p.precision != "none"
        and p.offset != p.target_start
        and p.offset not in back.get(key(p), {})
    )


def _left(found: Sequence[tuple[PlannedGroup, PlannedPartition]], why: str, remedy: str) -> Iterator[Finding]:
    if found:
        groups = {group.group for group, _ in found}
        yield Finding(
            "option-not-applied",
            Severity.WARNING,
            some(groups),
            f"{why}: {count(len(found), 'partition')} of {count(len(groups), 'group')} left as "
            f"{'it is' if len(found) == 1 else 'they are'}",
            remedy,
        )
