"""Checks of the clusters themselves."""

from __future__ import annotations

from collections.abc import Iterator

from failover.checks.look import Look, count, some
from failover.model.cluster import ClusterState
from failover.model.plan import Finding, Severity

SHORT_RETENTION_MINUTES = 1440


def source_degraded(look: Look) -> Iterator[Finding]:
    """Part of the source does not answer: what it would have said is missing from the plan."""
    source = look.snapshot.source
    if source.status.state is ClusterState.DEGRADED or (source.status.answers and not source.complete):
        yield Finding(
            "source-degraded",
            Severity.WARNING,
            source.status.alias,
            f"{source.status.alias} answers only in part: {source.status.detail or 'some brokers gave no answer'}",
            "groups whose broker is silent are planned from MM2's checkpoints; plan again once all brokers are back",
        )


def offsets_expire(look: Look) -> Iterator[Finding]:
    """Commits of a group without members vanish after the target's retention time.

    Kafka (KIP-211): ``offsets.retention.minutes`` counts from when the group became empty, or
    from the commit for a group that never had members.
    """
    minutes = _number(look.snapshot.target.settings.get("offsets.retention.minutes"))
    if minutes is None or not look.groups:
        return
    alias = look.snapshot.target.status.alias
    short = minutes <= SHORT_RETENTION_MINUTES
    span = f"{minutes / 1440:g} days" if minutes > SHORT_RETENTION_MINUTES else f"{minutes / 60:g} hours"
    yield Finding(
        "offsets-expire",
        Severity.WARNING if short else Severity.INFO,
        alias,
        f"{alias} drops the offsets of a group without members after {span}",
        "start the consumers before that, or raise offsets.retention.minutes on the target",
    )


def min_isr_unsatisfiable(look: Look) -> Iterator[Finding]:
    """Mirrored topics have fewer replicas than ``min.insync.replicas`` asks for.

    Brokers up to 3.6 then refuse every write with acks=all; since 3.7 the smaller number counts
    (measured on Kafka 3.9.1 and 4.1.1). A topic's own setting is not looked at here.
    """
    target = look.snapshot.target
    wanted = _number(target.settings.get("min.insync.replicas"))
    if wanted is None:
        return
    thin = [
        name
        for name in look.snapshot.mirrored
        if (info := target.topics.get(name)) is not None and 0 < info.replication_factor < wanted
    ]
    if not thin:
        return
    old = _version(target.settings.get("inter.broker.protocol.version", "")) <= (3, 6)
    yield Finding(
        "min-isr-unsatisfiable",
        Severity.ERROR if old else Severity.WARNING,
        some(thin),
        f"{count(len(thin), 'topic')} on {target.status.alias}: fewer replicas than min.insync.replicas={wanted}"
        + ("; no write with acks=all can succeed" if old else ""),
        "raise the replication factor, or lower min.insync.replicas for these topics",
    )


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None


def _version(text: str) -> tuple[int, ...]:
    """Reads ``3.6-IV2``; brokers since 4.0 no longer have the setting, so that "" means new."""
    parts = text.split("-", maxsplit=1)[0].split(".")
    return tuple(int(part) for part in parts[:2]) if all(part.isdigit() for part in parts) else (4, 0)
