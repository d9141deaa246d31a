"""Which source topics a flow mirrors, and why not the others."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from failover.mm2.filters import NameFilter, topic_filter
from failover.mm2.internal_topics import RUNS_TOPIC_KEY, is_own_topic, runs_topic
from failover.mm2.replication_policy import ReplicationPolicy, is_cycle
from failover.mm2.versions import at_least

HEARTBEATS_REPLICATION_KEY = "heartbeats.replication.enabled"


class TopicSelection(msgspec.Struct, frozen=True, kw_only=True):
    """Decides for the flow ``source`` -> ``target`` which topics it mirrors (MM2: MirrorSourceConnector).

    ``heartbeats_replication``: heartbeats topics are mirrored whatever the topic filter says. ``own``: topics
    of this tool that the configuration renames.
    """

    source: str
    target: str
    policy: ReplicationPolicy
    topics: NameFilter
    heartbeats_replication: bool = True
    own: frozenset[str] = frozenset()

    def is_own(self, topic: str) -> bool:
        """Says whether this tool made the topic for itself, by whatever name."""
        return topic in self.own or is_own_topic(topic)

    def should_replicate(self, topic: str) -> bool:
        """Says whether the flow mirrors the source topic."""
        return self.why_not(topic) is None

    def why_not(self, topic: str) -> str | None:
        """Gives the reason why the source topic is not mirrored; None when it is."""
        if self.is_own(topic):
            return "a topic of this tool"
        if self.policy.is_internal_topic(topic):
            return "internal topic"
        if not (self.heartbeats_replication and self.policy.is_heartbeats_topic(topic)):
            filtered = self.topics.why_not(topic)
            if filtered is not None:
                return filtered
        if is_cycle(self.policy, self.source, self.target, topic):
            return f"cycle: it came from {self.target} or from {self.source} itself"
        if not self.policy.mirrors(topic):
            return "the topic map says not to mirror it"
        return None


def selection_from(
    settings: Mapping[str, str], source: str, target: str, policy: ReplicationPolicy, *, unofficial: bool = False
) -> TopicSelection:
    """Makes a flow's topic selection from its effective settings; raises ConfigError.

    ``unofficial`` as in topic_filter. ``heartbeats.replication.enabled`` counts from 4.0 on.
    """
    switch = settings.get(HEARTBEATS_REPLICATION_KEY, "true").strip().lower()
    renamed = runs_topic(settings.get(RUNS_TOPIC_KEY), source)
    return TopicSelection(
        source=source,
        target=target,
        policy=policy,
        topics=topic_filter(settings, policy.mm2_version, unofficial=unofficial),
        heartbeats_replication=switch != "false" or not at_least(policy.mm2_version, 4, 0),
        own=frozenset() if renamed is None else frozenset({renamed}),
    )
