"""Checks of the clusters themselves."""

from __future__ import annotations

from collections.abc import Iterator

from failover.checks.look import Look, count, some, span
from failover.checks.missing_rights import missing_rights
from failover.kafka.tools import shell, tool
from failover.model.cluster import ClusterState
from failover.model.plan import Finding, Severity

SHORT_RETENTION_MINUTES = 1440

SOON = 0.75
"""The part of the retention time after which a commit counts as about to expire."""

SKEW_SECONDS = 5.0

SECURITY_DISABLED, UNSUPPORTED = 54, 35
"""Kafka: SECURITY_DISABLED, UNSUPPORTED_VERSION."""


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
    """Commits of a group without members vanish after the target's retention time; some are old already.

    Kafka (KIP-211): ``offsets.retention.minutes`` counts from when the group became empty, or
    from the commit for a group that never had members. Brokers do not tell when a commit was made:
    one that equals MM2's checkpoint was made by MM2 soon after that. A plan that commits begins the
    time anew; where a group stands already, nothing does.
    """
    minutes = _number(look.snapshot.target.settings.get("offsets.retention.minutes"))
    if minutes is None or not look.groups:
        return
    alias = look.snapshot.target.status.alias
    raised = f"raise offsets.retention.minutes in {alias}'s server.properties (its brokers must be restarted)"
    old: dict[str, float] = {}
    for group in look.groups:
        for p in group.partitions:
            seen = p.checkpoint
            idle = p.reason == "already-there" and not group.members
            if idle and seen is not None and p.target_committed == seen.downstream:
                old[group.group] = max(old.get(group.group, 0.0), seen.age_seconds)
    soon = {group: age for group, age in old.items() if age >= SOON * minutes * 60}
    if soon:
        left = max(0.0, minutes * 60 - max(soon.values()))
        yield Finding(
            "offsets-expire",
            Severity.WARNING,
            some(soon),
            f"commits of {count(len(soon), 'group')} on {alias} are up to {span(max(soon.values()))} old and dropped "
            f"after {span(minutes * 60)}; this plan does not renew them",
            f"start their consumers within {span(left)}, or {raised}"
            if left
            else f"start their consumers, or {raised}",
        )
    short = minutes <= SHORT_RETENTION_MINUTES
    yield Finding(
        "offsets-expire",
        Severity.WARNING if short else Severity.INFO,
        alias,
        f"{alias} drops the offsets of a group without members after {span(minutes * 60)}",
        f"start the consumers before that, or {raised}",
    )


def min_isr_unsatisfiable(look: Look) -> Iterator[Finding]:
    """Mirrored topics have fewer replicas than ``min.insync.replicas`` asks for.

    Brokers up to 3.6 then refuse every write with acks=all; since 3.7 the smaller number counts
    (measured on Kafka 3.9.1 and 4.1.1). The topic's own setting counts where it was told, else the brokers'.
    """
    target = look.snapshot.target
    general = _number(target.settings.get("min.insync.replicas"))
    thin: dict[str, int] = {}
    for name in look.snapshot.mirrored:
        own = target.topic_settings.get(name, {}).get("min.insync.replicas")
        wanted, info = _number(own) if own is not None else general, target.topics.get(name)
        if info is not None and wanted is not None and 0 < info.replication_factor < wanted:
            thin[name] = wanted
    if not thin:
        return
    first = min(thin)
    old = _version(target.settings.get("inter.broker.protocol.version", "")) <= (3, 6)
    entity = ["--alter", "--entity-type", "topics", "--entity-name", shell(first)]
    yield Finding(
        "min-isr-unsatisfiable",
        Severity.ERROR if old else Severity.WARNING,
        some(thin),
        f"{count(len(thin), 'topic')} on {target.status.alias}: fewer replicas than min.insync.replicas="
        f"{max(thin.values())}"
        + ("; no write with acks=all can succeed" if old else "; brokers from 3.7 on go by the replicas there are"),
        "raise the replication factor (kafka-reassign-partitions.sh; replication.factor for new topics), or "
        + tool("kafka-configs", target.bootstrap, *entity, "--add-config", "min.insync.replicas=1"),
    )


def clock_skew(look: Look) -> Iterator[Finding]:
    """Records that MM2 wrote bear times that have not come yet by this machine's clock.

    A clock that is behind cannot be told from a program that stands still, and is not told.
    """
    snapshot = look.snapshot
    now = snapshot.taken.timestamp() * 1000
    newest = [(reading.newest, f"{reading.topic} on {reading.cluster}") for reading in snapshot.readings]
    newest.append((snapshot.last_heartbeat, f"the heartbeats on {snapshot.target.status.alias}"))
    ahead = {where: (at - now) / 1000 for at, where in newest if at is not None and at - now > SKEW_SECONDS * 1000}
    if ahead:
        worst = max(ahead, key=lambda where: ahead[where])
        yield Finding(
            "clock-skew",
            Severity.WARNING,
            some(ahead),
            f"{worst}: records are {span(ahead[worst])} ahead of this machine's clock, so ages in this plan are too "
            "small by that",
            "compare the clocks (chronyc tracking, timedatectl) here and where MM2 runs",
        )


def authorizer_missing(look: Look) -> Iterator[Finding]:
    """The target's brokers have no authorizer, so whoever reaches them may do anything.

    Told as a warning where the source has ACLs; MM2 logs it once and copies none (sync.topic.acls.enabled).
    """
    snapshot = look.snapshot
    reason = snapshot.target.untold.get("ACLs")
    if reason is None or reason.number != SECURITY_DISABLED:
        return
    source, alias = snapshot.source, snapshot.target.status.alias
    acls = source.acls or ()
    there = f"; {source.status.alias} has {count(len(acls), 'ACL')}" if acls else ""
    yield Finding(
        "authorizer-missing",
        Severity.WARNING if acls else Severity.INFO,
        alias,
        f"ACL sync off: no authorizer on {alias}{there}",
        "set authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer on its brokers and "
        "controllers, if rights are to hold there as well",
    )


def acl_missing(look: Look) -> Iterator[Finding]:
    """Rights and users that applications have on the source are not on the target.

    Says what is written down, not what is in effect: super users, and brokers with
    ``allow.everyone.if.no.acl.found``, need no ACL. See ``failover.checks.missing_rights``.
    """
    acls, users = missing_rights(look.snapshot, look.groups)
    if not acls and not users:
        return
    source, target = look.snapshot.source.status.alias, look.snapshot.target.status.alias
    what = [count(len(acls), "ACL")] * bool(acls) + [count(len(users), "SCRAM user")] * bool(users)
    yield Finding(
        "acl-missing",
        Severity.WARNING,
        some([*(acl.principal for acl in acls), *(f"User:{user.name}" for user in users)]),
        f"missing on {target}: {' and '.join(what)} that {source} has for this flow's topics and groups",
        "failover plan --format kafka-acls prints the commands that create them",
    )


def not_checked(look: Look) -> Iterator[Finding]:
    """Something that findings go by was not told: for want of rights, or because no answer came in time."""
    snapshot = look.snapshot
    whys: dict[str, list[str]] = {}
    for view in (snapshot.source, snapshot.target):
        for what, reason in sorted(view.untold.items()):
            if reason.number not in (SECURITY_DISABLED, UNSUPPORTED):
                whys.setdefault(reason.name, []).append(f"{what} of {view.status.alias}")
    if whys:
        told = "; ".join(f"{', '.join(things)} ({why})" for why, things in whys.items())
        yield Finding(
            "not-checked",
            Severity.INFO,
            some(thing for things in whys.values() for thing in things),
            f"could not be read, so findings about it are not in this plan: {told}",
            "allow DESCRIBE and DESCRIBE_CONFIGS on the cluster to this tool's user, if they are wanted",
        )


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None


def _version(text: str) -> tuple[int, ...]:
    """Reads ``3.6-IV2``; brokers since 4.0 no longer have the setting, so that "" means new."""
    parts = text.split("-", maxsplit=1)[0].split(".")
    return tuple(int(part) for part in parts[:2]) if all(part.isdigit() for part in parts) else (4, 0)
