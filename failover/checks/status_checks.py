"""Checks of a flow at work: is a failover ready, how far is the mirror, does anything come at all."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import msgspec

from failover.checks.look import count, some, span
from failover.kafka.tools import shell
from failover.model.plan import Finding, Severity
from failover.model.status import Status


class Limits(msgspec.Struct, frozen=True):
    """Is from when on a flow is found wanting.

    Records and seconds of lag must both be exceeded: few records are few, and young ones come soon. ``tasks_max``:
    the configured number of tasks, None if it is not known.
    """

    lag_records: int = 1_000
    lag_seconds: float = 60.0
    high_lag_records: int = 10_000
    high_lag_seconds: float = 600.0
    heartbeat_seconds: float = 60.0
    tasks_max: int | None = None


def status_findings(status: Status, limits: Limits) -> Iterator[Finding]:
    """Runs the checks of a status, causes first."""
    yield from source_silent(status)
    yield from connectors_not_running(status)
    yield from groups_not_ready(status)
    yield from replication_lag(status, limits)
    yield from heartbeat_stale(status, limits)
    yield from position_outside(status)
    yield from tasks_idle(status, limits)


def source_silent(status: Status) -> Iterator[Finding]:
    """The source gives no answer: what is shown are its last known values."""
    source = status.source
    if source.state in ("up", "degraded", "not-asked"):
        return
    yield Finding(
        "source-silent",
        Severity.WARNING,
        source.alias,
        f"{source.alias} gives no answer: {source.detail or source.state}",
        "if it is gone, go on with: failover plan; else find out why it cannot be reached from here",
    )


def groups_not_ready(status: Status) -> Iterator[Finding]:
    """Some groups could not be moved completely if the source died now; an error when none could."""
    waiting = [row for row in status.groups if not row.ready]
    if not waiting:
        return
    none = status.cost.groups_ready == 0
    reasons = sorted({reason for row in waiting for reason in row.reasons})
    why = f" ({some(reasons)})" if reasons else ""
    without = "" if status.back else f" without {status.source.alias}"
    yield Finding(
        "groups-not-ready",
        Severity.ERROR if none else Severity.WARNING,
        some(row.group for row in waiting),
        f"{'none' if none else f'{len(waiting):,}'} of {count(len(status.groups), 'group')} would "
        f"{'be ready' if none else 'be left behind or moved in part'}{without}{why}",
        f"failover plan --{'' if status.back else 'source-down --'}group {shell(waiting[0].group)} says what is missing"
        + ("" if status.back else "; failover checkpoint keeps it"),
    )


def replication_lag(status: Status, limits: Limits) -> Iterator[Finding]:
    """The mirror is behind by many records, and has been for long."""
    behind = [
        row
        for row in status.partitions
        if (row.records or 0) >= limits.lag_records and (row.seconds is None or row.seconds >= limits.lag_seconds)
    ]
    total = sum(row.records or 0 for row in behind)
    if not behind:
        return
    waits = max((row.seconds for row in behind if row.seconds is not None), default=None)
    high = total >= limits.high_lag_records and waits is not None and waits >= limits.high_lag_seconds
    since = "" if waits is None else f", the oldest for {span(waits)}"
    yield Finding(
        "replication-lag",
        Severity.ERROR if high else Severity.WARNING,
        some(f"{row.source_topic}-{row.partition}" for row in behind),
        f"{total:,} records of {count(len(behind), 'partition')} wait for their copies{since}",
        "see whether the mirror runs (tasks, its log), then its throughput: tasks.max, producer.batch.size, network",
    )


def heartbeat_stale(status: Status, limits: Limits) -> Iterator[Finding]:
    """Heartbeats were mirrored and no longer are, or none ever was although they are switched on."""
    beat, target = status.heartbeat, status.target.alias
    if status.back:
        return
    if beat.state == "none":
        yield Finding(
            "heartbeat-missing",
            Severity.INFO,
            target,
            f"no heartbeat of {status.source.alias} is mirrored to {target}",
            f"{target}->{status.source.alias}.emit.heartbeats.enabled lets MM2 write them; without them lag is known"
            " by records alone",
        )
    elif beat.age_seconds is not None and beat.age_seconds >= limits.heartbeat_seconds:
        yield Finding(
            "heartbeat-stale",
            Severity.WARNING,
            target,
            f"the newest heartbeat mirrored to {target} is {span(beat.age_seconds)} old",
            "either heartbeats are no longer written on the source, or nothing is mirrored any more: see the lag",
        )


def position_outside(status: Status) -> Iterator[Finding]:
    """A kept position lies beyond the source's end: the topic was made anew, or cut, since."""
    beyond = [
        row
        for row in status.partitions
        if status.as_of is None and None not in (row.position, row.source_end) and row.position > row.source_end  # type: ignore[operator]
    ]
    if beyond:
        first = beyond[0]
        yield Finding(
            "source-recreated",
            Severity.WARNING,
            some(f"{row.source_topic}-{row.partition}" for row in beyond),
            f"{first.source_topic}-{first.partition} was copied up to {first.position:,} and ends at "
            f"{first.source_end:,} now: it was made anew, or cut at its end",
            "MM2 may skip the first records of the new topic: compare both ends, and let it start there from 0",
        )


def tasks_idle(status: Status, limits: Limits) -> Iterator[Finding]:
    """More tasks than partitions: the rest of them has nothing to do (MM2: MirrorSourceConnector.taskConfigs)."""
    if limits.tasks_max is not None and 0 < len(status.partitions) < limits.tasks_max:
        yield Finding(
            "tasks-idle",
            Severity.INFO,
            f"{status.source.alias}->{status.target.alias}",
            f"tasks.max is {limits.tasks_max} and only {count(len(status.partitions), 'partition')} are mirrored",
            "more tasks than partitions bring nothing",
        )


def connectors_not_running(status: Status) -> Iterator[Finding]:
    """Kafka Connect says that a connector, or a task of one, does not run."""
    halted: dict[str, list[str]] = {}
    for one in status.connectors:
        if one.state == "RUNNING" and all(task == "RUNNING" for task in one.tasks):
            continue
        if "FAILED" not in (one.state, *one.tasks):
            halted.setdefault(f"{one.state}, with {some(one.tasks) or 'no'} tasks", []).append(one.name)
            continue
        reason = f": {one.reason}" if one.reason else ""
        yield Finding(
            "connector-not-running",
            Severity.ERROR,
            one.name,
            f"connector {one.name} is {one.state}, its tasks {some(one.tasks) or 'none'}{reason}",
            # Strimzi's names hold ->, which a shell takes for its own
            f"failover connect restart {shlex.quote(one.name)}",
        )
    for state, names in halted.items():
        yield Finding(
            "connector-not-running",
            Severity.WARNING,
            some(names),
            f"{count(len(names), 'connector')} {'is' if len(names) == 1 else 'are'} {state}: {some(names)}",
            f"failover connect resume {' '.join(map(shlex.quote, names))}",
        )
