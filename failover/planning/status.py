"""How a flow stands now: what is mirrored, and what a failover this very second would find. Pure.

Two looks are weighed: one at both clusters, and one at the target alone, which is all there is once the source has
died. What the second places is held against where the first knows groups to stand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import msgspec

from failover.checks.status_checks import Limits, status_findings
from failover.inventory.positions import Position
from failover.inventory.status import Beside
from failover.model.names import TopicPartition
from failover.model.plan import Finding, Plan, PlannedGroup, PlannedPartition, Severity, Unreplicated, Verdict
from failover.model.snapshot import Snapshot
from failover.model.status import (
    Bound,
    ConnectorState,
    Cost,
    GroupStatus,
    HeartbeatStatus,
    KnownBy,
    MirroredPartition,
    Readiness,
    Replicator,
    Status,
)
from failover.model.translation import Precision
from failover.planning.asked import NEWER
from failover.planning.losses import losses

NOT_NOW = frozenset({"source-active", "subscription-changes", "position-unknown"})
"""Findings of a plan that say nothing about a flow at work: consumers run on the source, as they should."""


AT_FAILOVER = frozenset({"mm2-group-sync", "local-topic-missing", "local-topic-uncovered"})
"""Findings about what has to be done when a failover begins: remarks until then."""


class Looks(msgspec.Struct, frozen=True):
    """Is what a status is made from.

    ``both``: the look at both clusters, ``plan`` what was decided from it; ``alone``, ``alone_plan``: the target alone
    (the same ones where the source gives no answer, and on the way back). ``heartbeats``: whether they are to be
    expected.
    """

    both: Snapshot
    plan: Plan
    alone: Snapshot
    alone_plan: Plan
    beside: Beside
    heartbeats: bool
    connectors: tuple[ConnectorState, ...] = ()


def make_status(looks: Looks, limits: Limits = Limits()) -> Status:  # noqa: B008 - frozen
    """Weighs both looks and gives the status with its findings, errors first."""
    both = looks.both
    live = both.source.status.answers and bool(both.source.logs)
    partitions = _partitions(looks, live=live)
    groups = _groups(looks, live=live)
    status = Status(
        taken=both.taken,
        source=looks.plan.source,
        target=looks.plan.target,
        readiness=Readiness.READY,
        as_of=None if live else _last_known(both),
        back=both.flow.reversed,
        cost=_cost(looks, partitions, groups),
        heartbeat=_heartbeat(looks),
        replicators=tuple(_replicators(looks)),
        connectors=looks.connectors,
        partitions=tuple(sorted(partitions, key=_by_lag)),
        groups=tuple(sorted(groups, key=_by_trouble)),
        skipped=looks.beside.skipped,
        findings=(),
    )
    findings = [*status_findings(status, limits), *_of_plan(looks.plan)]
    findings.sort(key=lambda finding: _ORDER[finding.severity])
    heaviest = findings[0].severity if findings else Severity.INFO
    words = {Severity.ERROR: Readiness.NOT_READY, Severity.WARNING: Readiness.WARNINGS}
    return msgspec.structs.replace(
        status, readiness=words.get(heaviest, Readiness.READY), findings=tuple(_once(findings))
    )


_ORDER = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}


# -- partitions --------------------------------------------------------------------------------------


def _partitions(looks: Looks, *, live: bool) -> list[MirroredPartition]:
    both = looks.both
    found, unplaced = losses(both)
    lost = {TopicPartition(row.topic, row.partition): row for row in found or ()}
    unknown = set(unplaced) if found is not None else None
    ends = {tp: log.end for tp, log in both.source.logs.items()} if live else both.last_source_ends
    rows = []
    for topic, source_topic in both.mirrored.items():
        if topic in both.originals:
            continue  # it came from the target: nothing of it is copied to there
        infos = (both.target.topics.get(topic), both.source.topics.get(source_topic))
        for number in range(max((info.partitions for info in infos if info is not None), default=0)):
            tp, origin = TopicPartition(topic, number), TopicPartition(source_topic, number)
            told = unknown is not None and origin not in unknown
            rows.append(_partition(looks, tp, origin, ends.get(origin), lost.get(tp), told=told, live=live))
    return rows


def _partition(
    looks: Looks,
    tp: TopicPartition,
    origin: TopicPartition,
    end: int | None,
    lost: Unreplicated | None,
    *,
    told: bool,
    live: bool,
) -> MirroredPartition:
    both, beside = looks.both, looks.beside
    records: int | None = None
    bound: Bound | None = None
    known_by: KnownBy = "nothing"
    if end is not None and told:
        records = 0 if lost is None else lost.records
        bound = ("exact" if lost is None else lost.bound) if live else "at-least"
        known_by = _known_by(both, tp, bound, live=live)
    position, log = beside.positions.by_partition.get(origin), both.target.logs.get(tp)
    # an empty target with a position has lost its records: the position speaks of a topic that was there before
    if position is not None and end is not None and log is not None and log.end > 0:
        behind = max(0, end - position.next)
        if records is None or behind < records:
            # what lies before the position is on the target; how much of what lies behind is, nobody says
            records, known_by = behind, "position"
            bound = ("exact" if behind == 0 else "at-most") if live else "at-least"
    there, here = beside.source_times.get(origin), beside.target_times.get(tp)
    return MirroredPartition(
        source_topic=origin.topic,
        topic=tp.topic,
        partition=tp.partition,
        source_end=end,
        target_end=None if log is None else log.end,
        mirrored_to=_mirrored_to(end, records, position),
        known_by=known_by,
        records=records,
        bound=bound,
        seconds=_seconds(records, _waited(looks, origin), there, here) if live else None,
        last_record=_time(there),
        last_mirrored=_time(here),
        position=None if position is None else position.next,
        position_time=None if position is None else _time(position.timestamp),
    )


def _known_by(both: Snapshot, tp: TopicPartition, bound: Bound, *, live: bool) -> KnownBy:
    if not live:
        return "kept"
    return "sync" if tp in both.newest_syncs or bound != "at-least" else "checkpoint"


def _mirrored_to(end: int | None, records: int | None, position: Position | None) -> int | None:
    if end is not None and records is not None:
        return end - records
    return None if position is None else position.next


def _waited(looks: Looks, origin: TopicPartition) -> float | None:
    waiting = looks.both.waiting.get(origin)
    if waiting is None or waiting.timestamp < 0:
        return None
    return max(0.0, looks.both.taken.timestamp() - waiting.timestamp / 1000)


def _seconds(records: int | None, waited: float | None, there: int | None, here: int | None) -> float | None:
    """Tells how long the first missing record has waited; by the newest records of both sides where it was not read."""
    if not records:
        return None if records is None else 0.0
    if waited is not None:
        return waited
    return None if there is None or here is None else max(0.0, (there - here) / 1000)


def _by_lag(row: MirroredPartition) -> tuple[bool, int, str, int]:
    return row.records is not None, -(row.records or 0), row.source_topic, row.partition


# -- groups ------------------------------------------------------------------------------------------


def _groups(looks: Looks, *, live: bool) -> list[GroupStatus]:
    alone = {group.group: group for group in looks.alone_plan.groups}
    now = {group.group: group for group in looks.plan.groups}
    left = {one.group for one in (*looks.plan.not_planned, *looks.alone_plan.not_planned) if one.why == NEWER}
    rows = []
    for name in sorted({*alone, *now, *left}):
        known, seen = alone.get(name), now.get(name)
        if all(each is None or each.verdict is Verdict.NOTHING for each in (known, seen)) and name not in left:
            continue  # it stands on nothing that is mirrored
        rows.append(_group(looks, name, known, seen, live=live))
    return rows


def _group(
    looks: Looks, name: str, known: PlannedGroup | None, seen: PlannedGroup | None, *, live: bool
) -> GroupStatus:
    lost = known is None or known.verdict is Verdict.NOTHING
    shown = known if known is not None else seen
    bounds = [] if known is None else [_reread(looks, name, p, live=live) for p in known.partitions]
    bounds = [bound for bound in bounds if bound is not _NO_START]
    kept = looks.alone.tracked.get(name, {}).values()
    checkpoints = looks.both.checkpoints.get(name, looks.alone.checkpoints.get(name, {})).values()
    return GroupStatus(
        group=name,
        ready=not lost and known is not None and known.verdict is Verdict.READY,
        verdict="unknown" if lost or known is None else str(known.verdict),
        reasons=(NEWER,) if lost or known is None else known.reasons,
        source_state=None if seen is None else seen.source_state,
        source_members=None if seen is None else seen.source_members,
        target_state="Dead" if shown is None else shown.state,
        target_members=0 if shown is None else len(shown.members),
        partitions=0 if shown is None else len(shown.partitions),
        reread_max=None if lost or None in bounds else sum(bound for bound in bounds if bound is not None),
        checkpoint_age=_age(looks.both, (seen.timestamp for seen in checkpoints)),
        exact_age=_age(looks.both, (one.as_of for one in kept)),
    )


_NO_START = -1
"""Stands for a partition at which nobody starts by this plan."""


def _reread(looks: Looks, name: str, p: PlannedPartition, *, live: bool) -> int | None:
    """Tells how many records would be read again at most: from where consumers start to where the group stands."""
    start = p.position_after.offset
    if start is None:
        return _NO_START
    stands = looks.both.translations.get(name, {}).get(TopicPartition(p.topic, p.partition))
    if live and stands is not None and stands.offset is not None:
        if stands.precision is Precision.EXACT:
            return max(0, stands.offset - start)
        if stands.reread_max is not None:
            return max(0, stands.offset + stands.reread_max - start)
    return p.reread_max


def _by_trouble(row: GroupStatus) -> tuple[bool, bool, int, str]:
    return row.ready, row.reread_max is not None, -(row.reread_max or 0), row.group


def _age(both: Snapshot, times: Iterable[int]) -> float | None:
    newest = max(times, default=None)
    return None if newest is None else max(0.0, both.taken.timestamp() - newest / 1000)


# -- the whole ---------------------------------------------------------------------------------------


def _cost(looks: Looks, partitions: Sequence[MirroredPartition], groups: Sequence[GroupStatus]) -> Cost:
    known = [row for row in partitions if row.records is not None]
    waits = [row.seconds for row in known if row.records and row.seconds is not None]
    bounds = {row.bound for row in known if row.records or row.bound == "at-least"}
    unknown = len(partitions) - len(known)
    bound: Bound = "exact" if bounds <= {"exact"} else "at-most"
    if unknown or "at-least" in bounds:
        bound = "at-least"
    ready = [row for row in groups if row.ready]
    rereads = [row.reread_max for row in ready]
    return Cost(
        records=sum(row.records or 0 for row in known) if known or not partitions else None,
        bound=bound,
        seconds=max(waits, default=0.0 if known and not any(row.records for row in known) else None),
        unknown_partitions=unknown,
        reread_max=None if None in rereads else sum(each or 0 for each in rereads),
        groups_ready=len(ready),
        groups=len(groups),
        execute_seconds=looks.alone_plan.summary.execute_seconds,
    )


def _last_known(both: Snapshot) -> datetime | None:
    """Tells when the source was last known: by what was kept, else by the newest checkpoint."""
    if both.last_source_seen is not None:
        return both.last_source_seen
    times = [seen.timestamp for places in both.checkpoints.values() for seen in places.values()]
    return _time(max(times, default=None))


def _heartbeat(looks: Looks) -> HeartbeatStatus:
    newest = looks.both.last_heartbeat
    if newest is None:
        return HeartbeatStatus("none" if looks.heartbeats else "off")
    age = max(0.0, looks.both.taken.timestamp() - newest / 1000)
    return HeartbeatStatus("on", _time(newest), age)


def _replicators(looks: Looks) -> Iterable[Replicator]:
    target = looks.both.target.status.alias
    for group, program in sorted(looks.both.writers.items()):
        yield Replicator(program, running=True, detail=f"group {group} on {target} has members")
    newest: dict[str, int] = {}
    for position in looks.beside.positions.by_partition.values():
        who = f"failover replicate on {position.worker}" if position.worker else f"connector {position.connector}"
        newest[who] = max(newest.get(who, -1), position.timestamp)
    for who, at in sorted(newest.items()):
        if at < 0:
            continue  # told by Connect, with the connector's state
        kept = f"its newest position was kept {_time(at):%Y-%m-%d %H:%M:%S} UTC"
        yield Replicator(who, running=None, detail=kept)


def _of_plan(plan: Plan) -> Iterable[Finding]:
    for finding in plan.findings:
        if finding.code in NOT_NOW:
            continue
        weight = Severity.INFO if finding.code in AT_FAILOVER else finding.severity
        yield msgspec.structs.replace(finding, severity=weight)


def _once(findings: Iterable[Finding]) -> Iterable[Finding]:
    seen: set[tuple[str, str]] = set()
    for finding in findings:
        if (finding.code, finding.message) not in seen:
            seen.add((finding.code, finding.message))
            yield finding


def _time(milliseconds: int | None) -> datetime | None:
    return None if milliseconds is None or milliseconds < 0 else datetime.fromtimestamp(milliseconds / 1000, UTC)
