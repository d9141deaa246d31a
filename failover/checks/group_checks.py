"""Checks of the groups themselves."""

from __future__ import annotations

from collections.abc import Iterator

from failover.checks.look import Look, count, some
from failover.model.plan import Finding, Severity


def source_active(look: Look) -> Iterator[Finding]:
    """Consumers still run on the source: their offsets go on moving after this plan."""
    active = [group.group for group in look.groups if group.source_members]
    if active:
        alias = look.snapshot.source.status.alias
        yield Finding(
            "source-active",
            Severity.WARNING,
            some(active),
            f"{count(len(active), 'group')} still {'consumes' if len(active) == 1 else 'consume'} on {alias}: "
            "what is read there from now on is read again",
            f"for a planned switchover stop them on {alias} first, then plan again",
        )


def offsets_pending(look: Look) -> Iterator[Finding]:
    """An open transaction on the source holds newer offsets (Kafka: UNSTABLE_OFFSET_COMMIT)."""
    pending = {name: tps for name, tps in look.snapshot.source.pending.items() if tps}
    if pending:
        partitions = sum(len(tps) for tps in pending.values())
        yield Finding(
            "offsets-pending",
            Severity.WARNING,
            some(pending),
            f"{count(len(pending), 'group')}: open transactions hold newer offsets of "
            f"{count(partitions, 'partition')}; the committed ones are used",
            "stop the transactional consumers cleanly, or accept that their last transaction is done again",
        )


def rewound_upstream(look: Look) -> Iterator[Finding]:
    """The group was set back on the source; MM2 never lowers a commit on the target for it.

    MM2 (MirrorCheckpointTask) writes a checkpoint again when its upstream goes back.
    """
    rewound = {
        group
        for group, checkpoints in look.snapshot.checkpoints.items()
        for seen in checkpoints.values()
        if seen.earlier_upstream is not None
    }
    for group in look.groups:
        for p in group.partitions:
            now, seen = p.source_committed, p.checkpoint
            if now is not None and seen is not None and now < seen.upstream:
                rewound.add(group.group)
    if rewound:
        yield Finding(
            "rewound-upstream",
            Severity.WARNING,
            some(rewound),
            f"{count(len(rewound), 'group')} went back on {look.snapshot.source.status.alias}; "
            "a commit on the target from before stays ahead",
            "--allow-rewind moves the target's commits back too",
        )


def subscription_changes(look: Look) -> Iterator[Finding]:
    """Names change on the target: consumers must read the mirrored topics and the local ones.

    MM2 (DefaultReplicationPolicy) puts the source's alias before each mirrored topic; producers
    that move to the target write the plain name.
    """
    changed = [group.group for group in look.groups if group.local_topics]
    if changed:
        topics = {name for group in look.groups if group.local_topics for name in group.subscribe}
        yield Finding(
            "subscription-changes",
            Severity.INFO,
            some(changed),
            f"{count(len(changed), 'group')} must read other topics on {look.snapshot.target.status.alias}: "
            f"{some(topics, 4)}",
            "change their subscription before they start (each group's list: subscribe in --format json)",
        )


def group_excluded(look: Look) -> Iterator[Finding]:
    """Groups that the flow's own filters leave out of every checkpoint."""
    excluded = [left.group for left in look.snapshot.not_planned if left.why == "excluded"]
    if excluded:
        are = "is" if len(excluded) == 1 else "are"
        yield Finding(
            "group-excluded",
            Severity.INFO,
            some(excluded),
            f"{count(len(excluded), 'group')} {are} excluded by the flow's groups and groups.exclude",
            "name one with --group to plan it all the same, or change the filters",
        )
