"""What one look at the topics of both clusters finds, and what two looks differ in. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from failover.errors import ConfigError
from failover.inventory.flow import Flow
from failover.kafka.wire.metadata import NO_TOPIC_ID
from failover.mm2.internal_topics import is_own_topic
from failover.model.names import TopicPartition
from failover.replication.loops import Loops

_LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")  # Kafka: Topic.validate
_OWN_OF_FLOW = ("offset_syncs", "checkpoints", "heartbeats", "connect_configs", "connect_offsets", "connect_status")


class Pair(NamedTuple):
    """Is one partition and where it is copied to. Topic ids are ``NO_TOPIC_ID`` where a cluster has none."""

    source: TopicPartition
    target: TopicPartition
    source_id: bytes
    target_id: bytes


class TopicFault(NamedTuple):
    """Is why a source topic, or some of its partitions, cannot be copied now. ``code``: a word of ``explain``."""

    topic: str
    target: str
    code: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        said = f"{self.code}: {self.message}"
        return f"{said}; {self.hint}" if self.hint else said


class Notice(NamedTuple):
    """Is one line for the log about a source topic.

    ``code``: topic-skipped, topic-fault, more-partitions (they last), topic-created, partitions-added,
    config-left-out, low-replication (they happen).
    """

    code: str
    topic: str
    text: str


class TopicsSeen(msgspec.Struct, frozen=True):
    """Is one look at both clusters.

    ``pairs``: by source partition, what can be copied. ``wanted``: source topic → partitions to be copied, whether they
    can be or not. ``missing``: pairs as they were last known, whose target partition is not there. ``skipped``: source
    topic → why it is none of the flow's. ``created``: target topics made by this look. ``grown``: target topic →
    (partitions before, now). ``news``: the notices that the look before did not give.
    """

    pairs: Mapping[TopicPartition, Pair] = {}
    wanted: Mapping[str, int] = {}
    missing: Mapping[TopicPartition, Pair] = {}
    skipped: Mapping[str, str] = {}
    faults: tuple[TopicFault, ...] = ()
    created: tuple[str, ...] = ()
    grown: Mapping[str, tuple[int, int]] = {}
    notices: tuple[Notice, ...] = ()
    news: tuple[Notice, ...] = ()


class Changes(msgspec.Struct, frozen=True):
    """Is what a look differs in from the one before.

    ``added`` and ``gone``: pairs to begin and to end; a source topic that was deleted, or partitions that its successor
    lacks, are gone. ``source_recreated``, ``target_recreated``: the pairs as they are now, whose log on that side began
    anew since they were last seen; one may be in both. ``target_missing``: pairs whose target partition is not there
    any more, though their source is.
    """

    added: tuple[Pair, ...] = ()
    gone: tuple[Pair, ...] = ()
    source_recreated: tuple[Pair, ...] = ()
    target_recreated: tuple[Pair, ...] = ()
    target_missing: tuple[Pair, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.gone or self.source_recreated or self.target_recreated or self.target_missing)


def changes(before: TopicsSeen, after: TopicsSeen) -> Changes:
    """Compares two looks. Where a cluster has no topic ids, a topic that was made anew cannot be told."""
    known = {**before.missing, **before.pairs}
    both = [(known[tp], pair) for tp, pair in after.pairs.items() if tp in known]
    return Changes(
        added=tuple([pair for tp, pair in after.pairs.items() if tp not in known]),
        gone=tuple([pair for tp, pair in known.items() if tp not in after.pairs and tp not in after.missing]),
        source_recreated=tuple([now for old, now in both if _other_id(old.source_id, now.source_id)]),
        target_recreated=tuple([now for old, now in both if _other_id(old.target_id, now.target_id)]),
        target_missing=tuple([pair for tp, pair in after.missing.items() if tp in before.pairs]),
    )


def missing(
    before: TopicsSeen, pairs: Mapping[TopicPartition, Pair], wanted: Mapping[str, int]
) -> dict[TopicPartition, Pair]:
    """Gives the pairs known before that are still wanted and cannot be copied now."""
    known = {**before.missing, **before.pairs}
    return {tp: pair for tp, pair in known.items() if tp not in pairs and tp.partition < wanted.get(tp.topic, 0)}


class Choice(NamedTuple):
    """Is what a flow does with the source's topics, by their names alone. ``targets``: source topic → target topic."""

    targets: dict[str, str]
    skipped: dict[str, str]
    faults: list[TopicFault]


def choose(flow: Flow, topics: Iterable[str], loops: Loops | None = None) -> Choice:
    """Sorts topics into those the flow mirrors, those it does not, and those whose target name cannot be used."""
    loops = loops or Loops()
    targets: dict[str, str] = {}
    skipped: dict[str, str] = {}
    faults: list[TopicFault] = []
    for topic in sorted(topics):
        try:
            if why := flow.topics.why_not(topic) or loops.echo(flow, topic):
                skipped[topic] = why
            else:
                targets[topic] = flow.target_topic(topic)
        except ConfigError as error:  # a policy of somebody's own met a name that it does not know what to do with
            said = f"topic {topic} of {flow.source} is not copied: {error}"
            faults.append(TopicFault(topic, "", "policy-failed", said, error.hint or ""))
    sources: dict[str, list[str]] = {}
    for topic, target in targets.items():
        sources.setdefault(target, []).append(topic)
    faults += [
        fault for topic, target in targets.items() if (fault := _misnamed(flow, topic, target, sources[target], loops))
    ]
    for fault in faults:
        targets.pop(fault.topic, None)
    return Choice(targets, skipped, faults)


def _misnamed(flow: Flow, topic: str, target: str, sources: list[str], loops: Loops) -> TopicFault | None:
    where = f"topic {topic} of {flow.source}"
    if len(sources) > 1:
        others = ", ".join(other for other in sources if other != topic)
        return TopicFault(
            topic,
            target,
            "name-collision",
            f"{where} and {others} would both become {target} on {flow.target}; none of them is copied",
            "give each its own target in failover.replication.policy.topic.map, or exclude one",
        )
    if _LEGAL_NAME.fullmatch(target) is None or target in (".", ".."):
        return TopicFault(
            topic,
            target,
            "invalid-name",
            f"{where}: a topic cannot be called {target!r} on {flow.target} ({len(target)} characters)",
            "a name has at most 249 characters, letters, digits, '.', '_' and '-'; exclude the topic or rename it in "
            "failover.replication.policy.topic.map",
        )
    if path := loops.path(flow, topic):
        return TopicFault(
            topic,
            target,
            "loop",
            f"{where} becomes {target} on {flow.target} and would come back as itself ({' -> '.join(path)}); it is not"
            " copied",
            "let one direction alone select it: topics.exclude in the other",
        )
    own = {getattr(flow.internal, name) for name in _OWN_OF_FLOW}
    if target in own or target.startswith("__") or is_own_topic(target):
        return TopicFault(
            topic,
            target,
            "reserved-name",
            f"{where} would become {target} on {flow.target}, which is an internal topic there",
            "give it another target in failover.replication.policy.topic.map",
        )
    return None


def _other_id(before: bytes, after: bytes) -> bool:
    return before != after and NO_TOPIC_ID not in (before, after)
