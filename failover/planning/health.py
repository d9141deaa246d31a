"""The checklists: each point with its answer, and the findings behind those that are not well. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from failover.checks.health_checks import WEEKLY, release
from failover.checks.look import count
from failover.model.health import CheckPoint, Health, HealthFacts, Lag, Period, PointName, Result
from failover.model.plan import Finding, Severity
from failover.model.status import Status

_ORDER = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}
_RESULTS: dict[Severity, Result] = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "remark"}


class _Point(NamedTuple):
    """Is one point: which findings answer it, and what is said where there are none (None: nothing can be said)."""

    name: PointName
    question: str
    codes: frozenset[str]
    well: Callable[[HealthFacts], str | None]
    weekly: bool = False


def make_health(facts: HealthFacts) -> Health:
    """Answers each point of the period's list; findings that no point is about are told as well."""
    weekly = facts.period == "weekly"
    found = [*facts.status.findings]
    if weekly:
        found += [finding for check in WEEKLY for finding in check(facts)]
    found.sort(key=lambda finding: _ORDER[finding.severity])
    status = facts.status
    return Health(
        period=facts.period,
        taken=status.taken,
        source=status.source,
        target=status.target,
        readiness=status.readiness,
        lags=tuple(lags(status)),
        points=tuple(_answered(point, facts, found) for point in _POINTS if weekly or not point.weekly),
        findings=tuple(found),
    )


def point_names(period: Period) -> tuple[PointName, ...]:
    """Names the points of a list, in its order."""
    return tuple(point.name for point in _POINTS if period == "weekly" or not point.weekly)


def findings_about(name: PointName, health: Health) -> list[Finding]:
    """Gives the findings that answer one point, heaviest first."""
    return _about(next(point for point in _POINTS if point.name == name), health.findings)


def lags(status: Status) -> Iterator[Lag]:
    """Gives the lag as each of three ways has it; they are measured apart, so that one may contradict another."""
    by_offsets = [row for row in status.partitions if row.records is not None and row.known_by != "position"]
    known = sum(row.records or 0 for row in by_offsets)
    waits = [row.seconds for row in by_offsets if row.records and row.seconds is not None]
    unknown = len(status.partitions) - len(by_offsets)
    yield Lag(
        "offsets",
        known if by_offsets else None,
        max(waits, default=0.0) if by_offsets and (waits or not known) else None,
        f"source end less what is mirrored, {len(by_offsets):,} partitions"
        + (f", {unknown:,} unknown" * bool(unknown)),
    )
    beat = status.heartbeat
    told = {"on": "the newest heartbeat mirrored", "off": "heartbeats are off", "none": "no heartbeat is mirrored"}
    yield Lag("heartbeats", None, beat.age_seconds, told[beat.state])
    kept = [row for row in status.partitions if row.position is not None and row.source_end is not None]
    times = [row.position_time for row in kept if row.position_time is not None]
    oldest = None if not times else max(0.0, (status.taken - max(times)).total_seconds())
    yield Lag(
        "connect-offsets",
        sum(max(0, (row.source_end or 0) - (row.position or 0)) for row in kept) if kept else None,
        oldest,
        f"source end less kept positions, {count(len(kept), 'partition')}" + ("; the newest's age" if times else "")
        if kept
        else "none is told (Kafka Connect's: failover.connect.url)",
    )


def _about(point: _Point, found: Iterable[Finding]) -> list[Finding]:
    return [finding for finding in found if finding.code in point.codes]


def _answered(point: _Point, facts: HealthFacts, found: list[Finding]) -> CheckPoint:
    mine = _about(point, found)
    if mine:
        more = f" (and {len(mine) - 1} more)" if len(mine) > 1 else ""
        return CheckPoint(point.name, point.question, _RESULTS[mine[0].severity], mine[0].message + more)
    well = point.well(facts)
    if well is None:
        return CheckPoint(point.name, point.question, "unknown", _UNKNOWN[point.name])
    return CheckPoint(point.name, point.question, "ok", well)


# -- what is said where all is well ------------------------------------------------------------------


def _lag(facts: HealthFacts) -> str | None:
    cost = facts.status.cost
    if cost.records is None or not facts.snapshot.source.status.answers:
        return None
    return count(cost.records, "record") + ("" if cost.seconds is None else f", {cost.seconds:,.0f} s")


def _heartbeat(facts: HealthFacts) -> str | None:
    beat = facts.status.heartbeat
    return "off" if beat.state == "off" else None if beat.age_seconds is None else f"{beat.age_seconds:,.0f} s old"


def _checkpoints(facts: HealthFacts) -> str | None:
    ages = [row.checkpoint_age for row in facts.status.groups if row.checkpoint_age is not None]
    return f"the newest is {min(ages):,.0f} s old" if ages else None


def _groups(facts: HealthFacts) -> str | None:
    cost = facts.status.cost
    return f"{cost.groups_ready:,} of {count(cost.groups, 'group')}"


def _connectors(facts: HealthFacts) -> str | None:
    states = facts.status.connectors
    if states:
        tasks = sum(len(one.tasks) for one in states)
        return f"{count(len(states), 'connector')} and {count(tasks, 'task')} run"
    running = [one for one in facts.status.replicators if one.running]
    return "; ".join(f"{one.program}: {one.detail}" for one in running) or None


def _topics(facts: HealthFacts) -> str | None:
    return count(len(facts.snapshot.mirrored), "topic") if facts.snapshot.source.status.answers else None


def _acls(facts: HealthFacts) -> str | None:
    if facts.snapshot.source.acls is None or facts.snapshot.target.acls is None:
        return None
    return "the target has every right that applications have on the source"


def _settings(facts: HealthFacts) -> str | None:
    both = [
        topic
        for topic, source_topic in facts.snapshot.mirrored.items()
        if topic in facts.target.settings and source_topic in facts.source.settings
    ]
    return f"{count(len(both), 'topic')} compared" if both else None


def _partitions(facts: HealthFacts) -> str | None:
    return _topics(facts)


def _expiry(facts: HealthFacts) -> str | None:
    minutes = facts.snapshot.target.settings.get("offsets.retention.minutes", "")
    return f"kept for {int(minutes) / 1440:g} days" if minutes.isdigit() else None


def _disk(facts: HealthFacts) -> str | None:
    sides = (facts.source, facts.target)
    if any("disk" in side.untold or "everything" in side.untold for side in sides):
        return None
    taken = sum(sum(side.sizes.values()) for side in sides)
    return f"{taken / (1 << 20):,.1f} MiB" if taken >= 1 << 20 else f"{taken:,} bytes"


def _versions(facts: HealthFacts) -> str | None:
    words = []
    for alias, side in ((facts.status.source.alias, facts.source), (facts.status.target.alias, facts.target)):
        spoken = [versions[1] for versions in side.speaks.values() if 1 in versions]
        if not spoken:
            return None
        words.append(f"{alias}: Kafka {release(min(spoken))}")
    return ", ".join(words)


def _used(facts: HealthFacts) -> str | None:
    return "each is read or written" if facts.snapshot.source.status.answers else None


def _moving(facts: HealthFacts) -> str | None:
    return "none stands still" if facts.snapshot.source.status.answers else None


_POINTS = (
    _Point(
        "connectors",
        "does the mirror run, every connector and task?",
        frozenset({"connector-not-running", "mirror-stalled", "two-writers"}),
        _connectors,
    ),
    _Point("lag", "less than 1,000 records or 60 s?", frozenset({"replication-lag", "source-truncated"}), _lag),
    _Point(
        "heartbeat",
        "is the newest mirrored heartbeat fresh?",
        frozenset({"heartbeat-stale", "heartbeat-missing"}),
        _heartbeat,
    ),
    _Point(
        "checkpoints",
        "are checkpoints fresh?",
        frozenset({"checkpoint-stale", "internal-topic-missing", "internal-topic-unreadable", "unreadable-records"}),
        _checkpoints,
    ),
    _Point("groups", "could every group be moved now?", frozenset({"groups-not-ready"}), _groups),
    _Point("new-topics", "is every topic of the flow there?", frozenset({"topic-not-mirrored"}), _topics, True),
    _Point("stuck-groups", "does every group get on?", frozenset({"group-stuck"}), _moving, True),
    _Point("acls", "do applications have their rights there?", frozenset({"acl-missing"}), _acls, True),
    _Point("configs", "are topic settings and retention equal?", frozenset({"config-drift"}), _settings, True),
    _Point(
        "partitions",
        "are partition counts equal?",
        frozenset({"partition-count-differs"}),
        _partitions,
        True,
    ),
    _Point(
        "offsets",
        "are committed offsets kept long enough?",
        frozenset({"offsets-expire", "offsets-expiring"}),
        _expiry,
        True,
    ),
    _Point("unused", "is every mirrored topic used?", frozenset({"topic-unused"}), _used, True),
    _Point(
        "disk",
        "are internal topics small and compacted?",
        frozenset({"internal-topic-large", "internal-topic-policy"}),
        _disk,
        True,
    ),
    _Point(
        "versions",
        "do the brokers' releases fit?",
        frozenset({"version-skew", "min-isr-unsatisfiable"}),
        _versions,
        True,
    ),
)

_UNKNOWN = {
    "connectors": "ask who copies: failover connect status, or /health of failover replicate --rest",
    "lag": "nothing tells how far the source is ahead of the mirror",
    "heartbeat": "no heartbeat is mirrored",
    "checkpoints": "no group has a checkpoint",
    "groups": "no group to move",
    "new-topics": "the source gives no answer",
    "stuck-groups": "the source gives no answer",
    "acls": "one of the clusters has no authorizer, or does not tell its ACLs",
    "configs": "no topic whose settings both clusters tell",
    "partitions": "the source gives no answer",
    "offsets": "the target does not tell offsets.retention.minutes",
    "unused": "the source gives no answer",
    "disk": "brokers do not tell (DESCRIBE on the cluster)",
    "versions": "brokers do not tell",
}
