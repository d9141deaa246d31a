"""Checks of what comes after: the topics that moved producers write on the target, and who reads them there."""

from __future__ import annotations

from collections.abc import Iterator

from failover.checks.look import Look, count, some
from failover.kafka.tools import shell, tool
from failover.model.plan import Finding, LocalTopic, Severity


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


def local_topic_missing(look: Look) -> Iterator[Finding]:
    """Producers that move to the target find no topic by its plain name there.

    Where brokers create topics by themselves they do so with ``num.partitions``, else the producers fail.
    """
    target = look.snapshot.target
    missing: dict[str, LocalTopic] = {
        local.topic: local
        for group in look.groups
        for local in group.local_topics
        if not local.exists and local.topic not in target.hidden
    }
    if not missing:
        return
    first = missing[min(missing)]
    partitions = first.expected_partitions or 1
    made, them = "", "it" if len(missing) == 1 else "them"
    if (
        target.settings.get("auto.create.topics.enable") == "true"
        and target.settings.get("num.partitions", "").isdigit()
    ):
        partitioned = count(int(target.settings["num.partitions"]), "partition")
        made = f"; brokers would create {them} with {partitioned} at the first write"
    create = tool(
        "kafka-topics", target.bootstrap, "--create", "--topic", shell(first.topic), "--partitions", str(partitions)
    )
    more = " (likewise the others)" if len(missing) > 1 else ""
    are = "is" if len(missing) == 1 else "are"
    yield Finding(
        "local-topic-missing",
        Severity.WARNING,
        some(missing),
        f"{count(len(missing), 'topic')} that producers will write {are} not on {target.status.alias}: "
        f"{some(missing)}{made}",
        create + more,
    )


def local_topic_uncovered(look: Look) -> Iterator[Finding]:
    """A group has no commit on a local topic that it must read, so its ``auto.offset.reset`` decides there.

    With ``latest`` the first records that producers write after the failover may be passed over.
    """
    bare = {
        (group.group, local.topic)
        for group in look.groups
        for local in group.local_topics
        if local.exists and not local.committed and all(p.topic != local.topic for p in group.partitions)
    }
    if bare:
        groups, topics = {group for group, _ in bare}, {topic for _, topic in bare}
        verb = "has" if len(groups) == 1 else "have"
        yield Finding(
            "local-topic-uncovered",
            Severity.WARNING,
            some(groups),
            f"{count(len(groups), 'group')} {verb} no commit on {some(topics)} of "
            f"{look.snapshot.target.status.alias}: auto.offset.reset=latest may pass over what is written there first",
            "failover plan --local-topics earliest commits the log start there; or set auto.offset.reset=earliest",
        )
