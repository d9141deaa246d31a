"""Checks of the groups themselves."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from failover.checks.look import Look, count, some
from failover.kafka.tools import shell, tool
from failover.model.plan import Action, Finding, Severity


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
            "failover plan --allow-rewind moves the target's commits back too",
        )


def rollback_limited(look: Look) -> Iterator[Finding]:
    """A commit where none stood before could not be taken away again.

    Kafka: OffsetDelete and DeleteGroups need DELETE on the group. Authorized operations are believed;
    a broker that does not tell them is believed to allow it.
    """
    limited = set()
    for group in look.groups:
        info = look.snapshot.target.groups.get(group.group)
        operations = info.operations if info is not None else None
        if operations is None or "DELETE" in operations or "ALL" in operations:
            continue
        if any(p.action is Action.COMMIT and p.target_committed is None for p in group.partitions):
            limited.add(group.group)
    if limited:
        target = look.snapshot.target
        allow = "--allow-principal", "User:NAME", "--operation", "Delete"
        yield Finding(
            "rollback-limited",
            Severity.WARNING,
            some(limited),
            f"{count(len(limited), 'group')}: a rollback could put offsets back, but not take away those that are new",
            "allow this tool's user DELETE on the group: "
            + tool("kafka-acls", target.bootstrap, "--add", *allow, "--group", shell(min(limited))),
        )


def streams_state(look: Look) -> Iterator[Finding]:
    """A group is a Kafka Streams application, which has state beside its offsets.

    Told by the names of its topics (Kafka Streams: ``<application id>-<store>-changelog`` and
    ``-repartition``, the application id being the group). Both are copied apart from the offsets,
    and the names with the source's alias are none that the application looks for.
    """
    source, target = look.snapshot.source.topics, look.snapshot.target.topics
    names = sorted({*source, *look.snapshot.mirrored.values(), *target})
    own: dict[str, list[str]] = {}
    for group in look.groups:
        prefix = f"{group.group}-"
        for at in range(bisect_left(names, prefix), len(names)):
            if not names[at].startswith(prefix):
                break
            if names[at].endswith(("-changelog", "-repartition")):
                own.setdefault(group.group, []).append(names[at])
    if own:
        topics = [topic for found in own.values() for topic in found]
        one = len(own) == 1
        what = "is a Kafka Streams application: its" if one else "are Kafka Streams applications: their"
        yield Finding(
            "streams-state",
            Severity.WARNING,
            some(own),
            f"{count(len(own), 'group')} {what} state ({some(topics)}) is not moved by a plan",
            "let it build its state anew on the target, from its input topics there: start it with an empty state.dir "
            f"after kafka-streams-application-reset.sh --application-id {shell(min(own))} --input-topics TOPICS",
        )


def group_excluded(look: Look) -> Iterator[Finding]:
    """Groups that the flow's own filters leave out of every checkpoint; planned ones among them were named by hand."""
    outside = frozenset(look.snapshot.outside_filters)
    planned = [group.group for group in look.groups if group.group in outside]
    if planned:
        yield Finding(
            "group-excluded",
            Severity.INFO,
            some(planned),
            f"{count(len(planned), 'group')} planned by name though the flow's groups and groups.exclude leave "
            f"{'it' if len(planned) == 1 else 'them'} out: MM2 writes no checkpoints there",
            "plan while the source is up; for later add the name to groups, or take it out of groups.exclude",
        )
    excluded = [left.group for left in look.snapshot.not_planned if left.why == "excluded" and left.group in outside]
    if excluded:
        are = "is" if len(excluded) == 1 else "are"
        yield Finding(
            "group-excluded",
            Severity.INFO,
            some(excluded),
            f"{count(len(excluded), 'group')} {are} excluded by the flow's groups and groups.exclude",
            "name one with --group to plan it all the same, or change the filters",
        )
