"""Checks of a week: settings that drift apart, topics nobody uses, groups that stand still, disks, versions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from failover.checks.look import count, some, span
from failover.kafka.tools import shell, tool
from failover.model.health import HealthFacts
from failover.model.names import TopicPartition
from failover.model.plan import Finding, Severity

STUCK_SECONDS = 1_800.0
"""How long a group with members may leave records unread before it counts as standing still."""

UNUSED_SECONDS = 7 * 86_400.0
LARGE_BYTES = 1 << 30
EXPIRE_SHARE = 0.7
"""The part of a cluster's retention of offsets after which groups without members are named."""

DRIFT = ("cleanup.policy", "retention.ms", "retention.bytes", "max.message.bytes")
"""Topic settings that decide what consumers find on the target."""

FETCH = 1
RELEASES = {
    18: "4.1 or newer",
    17: "3.9 or 4.0",
    16: "3.7 or 3.8",
    15: "3.5 or 3.6",
    14: "3.5",
    13: "3.1 to 3.4",
    12: "2.7 to 3.0",
    11: "2.3 to 2.6",
}
"""Kafka releases by the newest Fetch request their brokers speak (Kafka: FetchRequest's message schema)."""


def topic_not_mirrored(facts: HealthFacts) -> Iterator[Finding]:
    """A topic that the flow takes is not on the target (MM2: refresh.topics.interval.seconds)."""
    snapshot = facts.snapshot
    if not snapshot.source.status.answers:
        return
    missing = [
        source_topic
        for topic, source_topic in snapshot.mirrored.items()
        if topic not in snapshot.target.topics
        and topic not in snapshot.target.hidden
        and source_topic in snapshot.source.topics
    ]
    if missing:
        alias = snapshot.target.status.alias
        yield Finding(
            "topic-not-mirrored",
            Severity.WARNING,
            some(missing),
            f"{count(len(missing), 'topic')} of the flow missing on {alias}: {some(missing)}",
            f"new topics come within {facts.refresh_seconds} s (refresh.topics.interval.seconds); after that see the "
            "mirror's log for the topic's name, and its right to create topics",
        )


def topic_unused(facts: HealthFacts) -> Iterator[Finding]:
    """Nobody has committed on a mirrored topic, and nothing was written to it for a week."""
    snapshot = facts.snapshot
    if not snapshot.source.status.answers or not snapshot.source.complete or not facts.last_records:
        return
    used = {tp.topic for commits in snapshot.source.commits.values() for tp in commits}
    now = snapshot.taken.timestamp() * 1000
    written = {tp.topic for tp, at in facts.last_records.items() if now - at < UNUSED_SECONDS * 1000}
    unused = [topic for topic in snapshot.mirrored.values() if topic not in used | written]
    unused = [topic for topic in unused if topic in snapshot.source.topics]
    if unused:
        yield Finding(
            "topic-unused",
            Severity.INFO,
            some(unused),
            f"{count(len(unused), 'mirrored topic')} no group reads and nobody wrote to for a week: {some(unused)}",
            "if nobody needs them, topics.exclude saves their traffic and their disk",
        )


def group_stuck(facts: HealthFacts) -> Iterator[Finding]:
    """A group has members and records to read, and its commit has not moved since its last checkpoint."""
    snapshot = facts.snapshot
    targets: dict[str, list[str]] = {}
    for topic, source_topic in snapshot.mirrored.items():
        targets.setdefault(source_topic, []).append(topic)
    stuck: dict[str, tuple[float, int]] = {}
    for group, commits in snapshot.source.commits.items():
        info = snapshot.source.groups.get(group)
        if info is None or not info.members:
            continue
        for origin, commit in commits.items():
            log = snapshot.source.logs.get(origin)
            for topic in targets.get(origin.topic, ()):
                seen = snapshot.checkpoints.get(group, {}).get(TopicPartition(topic, origin.partition))
                if log is None or seen is None or seen.upstream != commit.offset or log.end <= commit.offset:
                    continue
                age = snapshot.taken.timestamp() - seen.timestamp / 1000
                if age >= STUCK_SECONDS:
                    stuck[group] = max(stuck.get(group, (0.0, 0)), (age, log.end - commit.offset))
    if stuck:
        worst = max(stuck, key=lambda group: (stuck[group], group))
        age, behind = stuck[worst]
        yield Finding(
            "group-stuck",
            Severity.WARNING,
            some(stuck),
            f"{count(len(stuck), 'group')} with members {'does' if len(stuck) == 1 else 'do'} not get on: {worst} has "
            f"{behind:,} records to read and stands still for {span(age)}",
            "see the consumers' logs (a record that fails again and again?); after a failover they hang there too",
        )


def offsets_expiring(facts: HealthFacts) -> Iterator[Finding]:
    """A group without members on the source stood still for most of the time after which Kafka drops its offsets.

    Kafka (KIP-211): ``offsets.retention.minutes`` counts from when the group became empty, which is at the earliest
    when it last committed; MM2's checkpoint of that commit tells when.
    """
    snapshot = facts.snapshot
    minutes = snapshot.source.settings.get("offsets.retention.minutes", "")
    if not minutes.isdigit():
        return
    keeps = int(minutes) * 60.0
    old: dict[str, float] = {}
    for group, commits in snapshot.source.commits.items():
        info = snapshot.source.groups.get(group)
        if info is None or info.members or not commits:
            continue
        times = [seen.timestamp / 1000 for seen in snapshot.checkpoints.get(group, {}).values()]
        if times and (age := snapshot.taken.timestamp() - max(times)) >= EXPIRE_SHARE * keeps:
            old[group] = age
    if old:
        worst = max(old, key=lambda group: (old[group], group))
        alias = snapshot.source.status.alias
        yield Finding(
            "offsets-expiring",
            Severity.WARNING,
            some(old),
            f"{count(len(old), 'group')} without members on {alias} may lose their offsets soon: {worst} last moved "
            f"{span(old[worst])} ago, and {alias} keeps them for {span(keeps)}",
            f"start its consumers, or raise offsets.retention.minutes on {alias}; failover checkpoint keeps its place",
        )


def config_drift(facts: HealthFacts) -> Iterator[Finding]:
    """Settings of a topic and of its copy differ so that consumers would find less on the target."""
    harmful: list[str] = []
    other: list[str] = []
    topics: set[str] = set()
    for topic, source_topic in facts.snapshot.mirrored.items():
        here, there = facts.source.settings.get(source_topic), facts.target.settings.get(topic)
        for name in DRIFT if here is not None and there is not None else ():
            mine, copy = (here or {}).get(name), (there or {}).get(name)
            if mine is None or copy is None or mine == copy:
                continue
            topics.add(source_topic)
            said = f"{source_topic} {name}={mine}, its copy {copy}"
            (harmful if _less(name, mine, copy) else other).append(said)
    for found, severity in ((harmful, Severity.WARNING), (other, Severity.INFO)):
        if found:
            sync = "MM2 copies what is set on the topic itself" if facts.configs_synced else "sync.topic.configs is off"
            yield Finding(
                "config-drift",
                severity,
                some(topics),
                f"{count(len(found), 'difference')} between topics and their copies on {facts.status.target.alias}: "
                f"{some(found, 2)}",
                f"{sync}: set it on the topic, or on the copy with kafka-configs.sh (the brokers' defaults may differ)",
            )


def internal_disk(facts: HealthFacts) -> Iterator[Finding]:
    """An internal topic takes much disk, or is not compacted: its reader reads all of it at every start."""
    for view, side in ((facts.snapshot.source, facts.source), (facts.snapshot.target, facts.target)):
        alias, bootstrap = view.status.alias, view.bootstrap
        for topic in facts.internal.get(alias, ()):
            size = side.sizes.get(topic, 0)
            if size >= LARGE_BYTES:
                yield Finding(
                    "internal-topic-large",
                    Severity.WARNING,
                    topic,
                    f"{topic} on {alias} takes {size / (1 << 30):,.1f} GiB on disk, and is read whole at every start",
                    f"smaller segments are compacted sooner: {_set(bootstrap, topic, 'segment.bytes=16777216')}",
                )
            policy = side.settings.get(topic, {}).get("cleanup.policy")
            if policy is not None and policy != "compact":
                yield Finding(
                    "internal-topic-policy",
                    Severity.ERROR,
                    topic,
                    f"{topic} on {alias} has cleanup.policy={policy}: what it keeps is deleted in time",
                    _set(bootstrap, topic, "cleanup.policy=compact"),
                )


def version_skew(facts: HealthFacts) -> Iterator[Finding]:
    """Brokers of one cluster speak different versions, or the target is older than the source."""
    newest: dict[str, int] = {}
    for alias, side in ((facts.status.source.alias, facts.source), (facts.status.target.alias, facts.target)):
        spoken = {node: versions[FETCH] for node, versions in side.speaks.items() if FETCH in versions}
        if not spoken:
            continue
        newest[alias] = min(spoken.values())
        if len(set(spoken.values())) > 1:
            rows = ", ".join(f"broker {node}: {release(version)}" for node, version in sorted(spoken.items())[:4])
            yield Finding(
                "version-skew",
                Severity.WARNING,
                alias,
                f"brokers of {alias} are of different releases ({rows})",
                "finish the upgrade before a failover has to rely on them",
            )
    source, target = facts.status.source.alias, facts.status.target.alias
    if source in newest and target in newest and newest[target] < newest[source]:
        yield Finding(
            "version-skew",
            Severity.WARNING,
            target,
            f"{target} is older (Kafka {release(newest[target])}) than {source} ({release(newest[source])})",
            f"clients and settings that need the newer release fail on {target}: upgrade it first",
        )


def release(fetch: int) -> str:
    """Names the Kafka releases whose brokers speak this Fetch version at most."""
    known = max((version for version in RELEASES if version <= fetch), default=None)
    return RELEASES[known] if known is not None else "older than 2.3"


def _set(bootstrap: Sequence[str], topic: str, setting: str) -> str:
    """Writes the command that sets one setting of a topic."""
    place = ("--entity-type", "topics", "--entity-name", shell(topic))
    return tool("kafka-configs", bootstrap, "--alter", *place, "--add-config", setting)


def _less(name: str, mine: str, copy: str) -> bool:
    """Says whether the copy's value gives consumers less: shorter or smaller, or another way of cleaning up."""
    if name == "cleanup.policy":
        return set(mine.split(",")) != set(copy.split(","))
    limits = [int(text) if text.lstrip("-").isdigit() else 0 for text in (mine, copy)]
    # -1 stands for without end
    mine_limit, copy_limit = (float("inf") if limit < 0 else limit for limit in limits)
    return copy_limit < mine_limit


WEEKLY: tuple[Callable[[HealthFacts], Iterable[Finding]], ...] = (
    topic_not_mirrored,
    group_stuck,
    offsets_expiring,
    config_drift,
    internal_disk,
    version_skew,
    topic_unused,
)
"""The checks of ``failover health weekly`` beside the daily ones."""
