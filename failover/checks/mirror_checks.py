"""Checks of how far the mirror is, and whether what it copied still is what the source holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from failover.checks.look import Look, count, some, span
from failover.model.cluster import LogRange
from failover.model.names import TopicPartition
from failover.model.plan import Finding, Severity
from failover.model.snapshot import Snapshot

STALLED_SECONDS = 300.0
"""How long a record waits for its copy before the mirror counts as standing still, where no earlier look tells."""

WATCHED_SECONDS = 60.0
"""How far two looks must lie apart to say that the mirror stood still between them."""


class _Seen(NamedTuple):
    """Is where both logs of a partition ended at an earlier look."""

    source_end: int
    target_end: int


def mirror_stalled(look: Look) -> Iterator[Finding]:
    """Records wait for their copies, and the mirror does not come to them.

    Sure, where an earlier plan saw the same end of the target and the first missing record was there
    already. Else a sign: the first missing record was written long ago (wrong for records with old
    timestamps). A partition that moved since the earlier plan is behind, and does not stand still.
    """
    snapshot = look.snapshot
    earlier, seconds = _earlier(look)
    stalled: dict[TopicPartition, float] = {}
    for topic, source_topic in snapshot.mirrored.items():
        info = snapshot.target.topics.get(topic)
        for number in range(info.partitions if info is not None else 0):
            tp, origin = TopicPartition(topic, number), TopicPartition(source_topic, number)
            first, log = mirrored_to(snapshot, tp), snapshot.target.logs.get(tp)
            waits, before = snapshot.waiting.get(origin), earlier.get(tp)
            theirs = snapshot.source.logs.get(origin)
            if first is None or log is None or theirs is None or first >= theirs.end or origin in snapshot.caught_up:
                continue
            age = 0.0 if waits is None or waits.timestamp < 0 else _age(snapshot, waits.timestamp)
            if before is not None and before.target_end != log.end:
                continue
            if before is not None and first < before.source_end:
                stalled[origin] = max(age, seconds)
            elif age >= STALLED_SECONDS:
                stalled[origin] = age
    if stalled:
        yield _stalled(snapshot, stalled)


def _stalled(snapshot: Snapshot, stalled: dict[TopicPartition, float]) -> Finding:
    targets = {source: topic for topic, source in snapshot.mirrored.items()}
    worst = max(stalled, key=lambda tp: (stalled[tp], tp))
    place = TopicPartition(targets[worst.topic], worst.partition)
    first = mirrored_to(snapshot, place)
    waits = snapshot.waiting.get(worst)
    where = f"replication of {worst} stopped at {first:,}: its next record has waited for {span(stalled[worst])}"
    more = f"; {count(len(stalled) - 1, 'more partition')}" if len(stalled) > 1 else ""
    limit = snapshot.target.topic_settings.get(place.topic, {}).get("max.message.bytes", "")
    target = snapshot.flow.target
    if waits is not None and limit.isdigit() and waits.size > int(limit):
        return Finding(
            "mirror-stalled",
            Severity.WARNING,
            some(str(tp) for tp in stalled),
            f"{where}; it has {waits.size:,} bytes and {place.topic} takes {int(limit):,} (max.message.bytes){more}",
            f"raise max.message.bytes of {place.topic} and {target}.producer.max.request.size, then restart the task",
        )
    return Finding(
        "mirror-stalled",
        Severity.WARNING,
        some(str(tp) for tp in stalled),
        where + more,
        "see MM2's log, or GET /connectors/NAME/status: a failed task's trace says why; "
        "POST /connectors/NAME/restart?includeTasks=true&onlyFailed=true starts it again",
    )


def source_truncated(look: Look) -> Iterator[Finding]:
    """The source's log starts beyond what is mirrored: retention deleted records before they were copied.

    MM2 goes on at the log start without a word. Told until it has, since afterwards a gap looks like any
    other. Counted in offsets, and so at most.
    """
    snapshot = look.snapshot
    lost: dict[TopicPartition, int] = {}
    for tp in snapshot.newest_syncs:
        origin = TopicPartition(snapshot.mirrored.get(tp.topic, tp.topic), tp.partition)
        first, log = mirrored_to(snapshot, tp), snapshot.source.logs.get(origin)
        if first is not None and log is not None and first < log.start:
            lost[origin] = log.start - first
    if lost:
        worst = max(lost, key=lambda tp: (lost[tp], tp))
        log = snapshot.source.logs[worst]
        yield Finding(
            "source-truncated",
            Severity.ERROR,
            some(str(tp) for tp in lost),
            f"up to {sum(lost.values()):,} records were deleted on {snapshot.flow.source} before they were copied: "
            f"{worst} is mirrored to {log.start - lost[worst]:,} and its log starts at {log.start:,}",
            f"they are lost; raise retention.ms or retention.bytes of the topic on {snapshot.flow.source} above the "
            "mirror's longest pause",
        )


def source_recreated(look: Look) -> Iterator[Finding]:
    """A source topic was deleted and made again, or lost its end: what was known of it belongs to the old one.

    Its id is another than in the plan before, or a sync names a record beyond its end.
    """
    snapshot = look.snapshot
    before = look.earlier.source_topic_ids if look.earlier is not None else {}
    found = {
        name
        for name, old in before.items()
        if (info := snapshot.source.topics.get(name)) is not None and info.topic_id and info.topic_id != old
    }
    for tp, (upstream, _) in snapshot.newest_syncs.items():
        origin = TopicPartition(snapshot.mirrored.get(tp.topic, tp.topic), tp.partition)
        log = snapshot.source.logs.get(origin)
        if log is not None and upstream > log.end:
            found.add(origin.topic)
    if found:
        yield Finding(
            "source-recreated",
            Severity.WARNING,
            some(found),
            f"{count(len(found), 'topic')} on {snapshot.flow.source} made anew, or cut at the end: syncs and "
            "checkpoints from before speak of other records",
            "wait for offset syncs and checkpoints of the new topic (or restart MM2's source connector); plan again",
        )


def two_writers(look: Look) -> Iterator[Finding]:
    """MM2 and this tool's own replicator both run for the flow: what both select is copied twice."""
    writers = look.snapshot.writers
    programs = set(writers.values())
    if {"MirrorMaker 2", "failover replicate"} <= programs:
        flow = f"{look.snapshot.flow.source}->{look.snapshot.flow.target}"
        yield Finding(
            "two-writers",
            Severity.WARNING,
            some(writers),
            f"MirrorMaker 2 and failover replicate both run {flow}: records and checkpoints may be written twice",
            "stop one of them, unless they mirror different topics",
        )


def mirrored_to(snapshot: Snapshot, tp: TopicPartition) -> int | None:
    """Tells the source offset that a target partition is mirrored up to, or beyond; None where nothing tells.

    A sync (u, d) says that the target's records from d to its end are source records from u on. A target that
    never had a record is at the source's start.
    """
    log, pair = snapshot.target.logs.get(tp), snapshot.newest_syncs.get(tp)
    if log is None:
        return None
    if pair is None:
        theirs: LogRange | None = snapshot.source.logs.get(
            TopicPartition(snapshot.mirrored.get(tp.topic, tp.topic), tp.partition)
        )
        return theirs.start if theirs is not None and log.end == 0 else None
    upstream, downstream = pair
    return None if downstream > log.end else upstream + log.end - downstream


def _age(snapshot: Snapshot, timestamp: int) -> float:
    return snapshot.taken.timestamp() - timestamp / 1000


def _earlier(look: Look) -> tuple[dict[TopicPartition, _Seen], float]:
    """Gives where logs ended in the plan before, and how many seconds ago that was; nothing if it is too fresh."""
    if look.earlier is None:
        return {}, 0.0
    seconds = (look.snapshot.taken - look.earlier.created).total_seconds()
    if seconds < WATCHED_SECONDS:
        return {}, seconds
    seen = {
        TopicPartition(p.topic, p.partition): _Seen(p.source_end, p.target_end)
        for group in look.earlier.groups
        for p in group.partitions
        if p.source_end is not None and p.target_end is not None
    }
    return seen, seconds
