"""Checks of the mirror: its checkpoints, its names, its own commits."""

from __future__ import annotations

from collections.abc import Iterator

from failover.checks.look import Look, count, some
from failover.kafka.tools import shell, tool
from failover.model.names import TopicPartition
from failover.model.plan import Finding, Severity
from failover.model.snapshot import InternalTopicReading

STALE_SECONDS = 300.0
"""Five of MM2's default checkpoint intervals (``emit.checkpoints.interval.seconds`` = 60)."""

FRESH_SECONDS = 120.0
"""Two of MM2's default group sync intervals (``sync.group.offsets.interval.seconds`` = 60)."""

UNCOVERED = frozenset({"no-checkpoint", "not-mirrored", "older-than-first-sync", "source-offset-expired"})


def mm2_group_sync(look: Look) -> Iterator[Finding]:
    """MM2 writes the target's group offsets too (``sync.group.offsets.enabled``).

    Live (error) when the configuration says so, when a commit moved to MM2's checkpoint between two looks, or when one
    equals a checkpoint of the last two minutes although nobody is there and this tool did not write it: something
    follows the checkpoints (MM2: every minute by default). One that equals an older checkpoint is a sign (warning): MM2
    may run with another configuration, or did so once. Wrong for a group that another machine moved, or that stopped on
    the target, just now. MM2 (MirrorCheckpointTask) skips groups with members, but a consumer that starts just then may
    be moved over records it has not read.
    """
    snapshot = look.snapshot
    alias = snapshot.target.status.alias
    flow = f"{snapshot.flow.source}->{snapshot.flow.target}"
    stop = (
        "stop MM2 before consumers start: failover connect stop (Kafka Connect), or end its process; "
        f"{flow}.sync.group.offsets.enabled=false switches it off"
    )
    if snapshot.group_offsets_synced:
        yield Finding(
            "mm2-group-sync",
            Severity.ERROR,
            flow,
            f"MM2's group offset sync is on: it writes group offsets on {alias} as well",
            stop,
        )
        return
    moved: set[str] = set()
    equal: set[str] = set()
    fresh: set[str] = set()
    lately = (snapshot.taken.timestamp() - FRESH_SECONDS) * 1000
    for group, checkpoints in snapshot.checkpoints.items():
        info = snapshot.target.groups.get(group)
        if info is None or not info.inactive:
            continue
        sample, written = snapshot.commit_samples.get(group), look.written.get(group, {})
        for tp, commit in snapshot.target.commits.get(group, {}).items():
            seen = checkpoints.get(tp)
            if seen is None or commit.offset != seen.downstream or commit.offset in (0, written.get(tp)):
                continue
            equal.add(group)
            if seen.timestamp >= lately:
                fresh.add(group)
            if sample is not None and sample.get(tp) != commit.offset:
                moved.add(group)
    if moved:
        message = f"offsets of {count(len(moved), 'group')} moved to MM2's checkpoints: its group offset sync is on"
        yield Finding("mm2-group-sync", Severity.ERROR, some(moved), message, stop)
    elif fresh:
        message = f"offsets of {count(len(fresh), 'empty group')} equal MM2's newest checkpoints: its group sync is on"
        yield Finding("mm2-group-sync", Severity.ERROR, some(fresh), message, stop)
    elif equal:
        message = f"offsets of {count(len(equal), 'empty group')} equal MM2's checkpoints: its group sync may be on"
        yield Finding("mm2-group-sync", Severity.WARNING, some(equal), message, stop)


def checkpoint_stale(look: Look) -> Iterator[Finding]:
    """A group's checkpoint is old while the group went on.

    MM2 writes no new checkpoint for a quiet group, so age alone is no fault: with the source's
    commit known, only a commit beyond the checkpoint counts. With the source silent, age alone is
    told, as information.
    """
    behind: dict[str, tuple[int, float]] = {}
    old: dict[str, float] = {}
    for group in look.groups:
        for partition in group.partitions:
            seen = partition.checkpoint
            if seen is None or seen.age_seconds < STALE_SECONDS:
                continue
            if partition.source_committed is None:
                old[group.group] = max(old.get(group.group, 0.0), seen.age_seconds)
            elif partition.source_committed > seen.upstream:
                missing, age = behind.get(group.group, (0, 0.0))
                behind[group.group] = (
                    max(missing, partition.source_committed - seen.upstream),
                    max(age, seen.age_seconds),
                )
    if behind:
        missing, age = max(behind.values())
        yield Finding(
            "checkpoint-stale",
            Severity.WARNING,
            some(behind),
            f"{count(len(behind), 'group')} went on since MM2's last checkpoint, by up to {missing:,} records "
            f"in {age / 60:,.0f} min",
            "failover connect status, or MM2's log: does MirrorCheckpointConnector run? (before 3.7.1, after a restart "
            "it waits for lagging groups)",
        )
    if old:
        yield Finding(
            "checkpoint-stale",
            Severity.INFO,
            some(old),
            f"checkpoints of {count(len(old), 'group')} are up to {max(old.values()) / 60:,.0f} min old "
            "(a quiet group gets no new ones)",
            "records consumed after a checkpoint are read again",
        )


def internal_topics(look: Look) -> Iterator[Finding]:
    """One of MM2's own topics is missing, may not be read, or holds records nobody can decode."""
    for reading in look.snapshot.readings:
        name = f"{reading.topic} on {reading.cluster}"
        if reading.fault is not None:
            yield Finding(
                "internal-topic-unreadable",
                Severity.WARNING,
                reading.topic,
                f"{name} could not be read: {reading.fault}",
                "allow it: " + _allow_reading(look, reading),
            )
        elif not reading.exists and "checkpoints" in reading.topic:
            yield Finding(
                "internal-topic-missing",
                Severity.WARNING,
                reading.topic,
                f"{name} does not exist: MM2 has written no checkpoint",
                "see whether emit.checkpoints.enabled is true and MM2's checkpoint connector runs",
            )
        if reading.unreadable:
            yield Finding(
                "unreadable-records",
                Severity.WARNING,
                reading.topic,
                f"{count(reading.unreadable, 'record')} of {name} could not be decoded and were left out"
                + (f"; the first: {reading.first_unreadable}" if reading.first_unreadable else ""),
                "find out who else writes to this topic",
            )


def _allow_reading(look: Look, reading: InternalTopicReading) -> str:
    snapshot = look.snapshot
    view = snapshot.target if reading.cluster == snapshot.target.status.alias else snapshot.source
    allow = "--add", "--allow-principal", "User:NAME", "--operation", "Read", "--operation", "Describe"
    return tool("kafka-acls", view.bootstrap, *allow, "--topic", shell(reading.topic))


def checkpoint_unconfirmed(look: Look) -> Iterator[Finding]:
    """A checkpoint has equal numbers on both sides and no offset sync confirms the mapping.

    MM2 before 3.3 copied the source's offset unchanged where it had no sync; such records stay in
    the compacted topic after an upgrade. Only told when the syncs could be read.
    """
    snapshot = look.snapshot
    if not snapshot.newest_syncs:
        return
    doubtful: list[str] = []
    for group in look.groups:
        for p in group.partitions:
            seen = p.checkpoint
            if seen is None or not 0 < seen.upstream == seen.downstream or p.proof != "checkpoint":
                continue
            if TopicPartition(p.topic, p.partition) not in snapshot.newest_syncs:
                doubtful.append(f"{p.topic}-{p.partition}")
    if doubtful:
        yield Finding(
            "checkpoint-unconfirmed",
            Severity.WARNING,
            some(doubtful),
            f"{count(len(set(doubtful)), 'partition')}: the checkpoint has the source's own number and no offset sync "
            "confirms it; an old MM2 may have copied it untranslated",
            "compare the topic's ends on both clusters before executing",
        )


def naming_mismatch(look: Look) -> Iterator[Finding]:
    """Checkpoints name topics the target lacks, while it has them under another policy's name.

    MM2: the replication policy must be the same on the source and the checkpoint connector.
    """
    snapshot = look.snapshot
    topics = snapshot.target.topics
    prefix = snapshot.flow.source + snapshot.flow.separator
    pairs: dict[str, str] = {}
    for checkpoints in snapshot.checkpoints.values():
        for tp in checkpoints:
            if tp.topic in topics or tp.topic in pairs:
                continue
            other = tp.topic.removeprefix(prefix) if tp.topic.startswith(prefix) else prefix + tp.topic
            if other in topics:
                pairs[tp.topic] = other
    if pairs:
        first = min(pairs)
        kinds = ("default", "identity") if first.startswith(prefix) else ("identity", "default")
        yield Finding(
            "naming-mismatch",
            Severity.ERROR,
            some(pairs),
            f"checkpoints use {kinds[0]} naming ({first}), data uses {kinds[1]} naming ({pairs[first]})",
            "set the same replication.policy.class and separator for every connector of the flow",
        )


def partition_uncovered(look: Look) -> Iterator[Finding]:
    """Partitions for which no position is known and nothing is committed."""
    bare = [
        (group.group, partition)
        for group in look.groups
        for partition in group.partitions
        if partition.reason in UNCOVERED and partition.position_after.offset is None
    ]
    if bare:
        groups = {group for group, _ in bare}
        yield Finding(
            "partition-uncovered",
            Severity.WARNING,
            some(f"{p.topic}-{p.partition}" for _, p in bare),
            f"{count(len(bare), 'partition')} in {count(len(groups), 'group')} have no known position: "
            "auto.offset.reset decides there",
            "failover plan --missing earliest starts them at the log start; else set auto.offset.reset of these "
            "consumers with care",
        )


def partition_count_differs(look: Look) -> Iterator[Finding]:
    """A mirrored topic has fewer partitions on the target, or a local one another number than expected.

    MM2 only grows topics; another number of partitions breaks the order of a key.
    """
    snapshot = look.snapshot
    odd = set()
    for topic, source_topic in snapshot.mirrored.items():
        here, there = snapshot.target.topics.get(topic), snapshot.source.topics.get(source_topic)
        if here is not None and there is not None and here.partitions != there.partitions:
            odd.add(topic)
    for group in look.groups:
        for local in group.local_topics:
            if local.exists and local.expected_partitions is not None and local.partitions != local.expected_partitions:
                odd.add(local.topic)
    if odd:
        yield Finding(
            "partition-count-differs",
            Severity.WARNING,
            some(odd),
            f"{count(len(odd), 'topic')} on {snapshot.target.status.alias} with another number of partitions than "
            f"on {snapshot.source.status.alias}",
            "add the missing ones before producers write there, or keys change partitions: "
            + tool("kafka-topics", snapshot.target.bootstrap, "--alter", "--topic", shell(min(odd)), "--partitions N"),
        )
