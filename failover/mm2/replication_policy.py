"""Replication policies: what a source topic is called on the target, and back.

The rules are MirrorMaker 2's own, with the release from which each holds. A policy object is one
flow's; aliases are cluster aliases of the configuration.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from failover.errors import ConfigError
from failover.mm2.topic_map import TopicMap, parse_topic_map
from failover.mm2.versions import Mm2Version, at_least

CLASS_KEY = "replication.policy.class"
SEPARATOR_KEY = "replication.policy.separator"
INTERNAL_SEPARATOR_KEY = "replication.policy.internal.topic.separator.enabled"
OWN_CLASS_KEY = "failover.replication.policy.class"
TOPIC_MAP_KEY = "failover.replication.policy.topic.map"

HEARTBEATS_TOPIC = "heartbeats"
_JAVA_PACKAGE = "org.apache.kafka.connect.mirror."
DEFAULT_CLASS = f"{_JAVA_PACKAGE}DefaultReplicationPolicy"


class DefaultReplicationPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Names remote topics ``<alias><separator><topic>`` (MM2: DefaultReplicationPolicy).

    ``source_alias``: the flow's source. ``internal_topic_separator_enabled``: a custom separator
    also goes into the names of MirrorMaker 2's internal topics.
    """

    source_alias: str
    separator: str = "."
    internal_topic_separator_enabled: bool = True
    mm2_version: Mm2Version | None = None

    @property
    def name(self) -> str:
        """Names the policy in plans and reports."""
        return "default"

    @property
    def internal_separator(self) -> str:
        """Gives the separator of internal names: "." up to 3.0, from then on the policy's unless switched off."""
        return self.separator if at_least(self.mm2_version, 3, 1) and self.internal_topic_separator_enabled else "."

    def format_remote_topic(self, alias: str, topic: str) -> str:
        """Gives the name that ``topic`` of the cluster ``alias`` has on the other side."""
        return f"{alias}{self.separator}{topic}"

    def topic_source(self, topic: str) -> str | None:
        """Gives the alias a topic's name starts with; None when it names no cluster.

        Any text before the first separator counts, whether or not it is an alias. Names with nothing
        but separators behind it have no source (Java: String.split drops trailing empty parts).
        """
        if not self.separator:
            # An empty separator splits between all characters; it was a way to keep names before 3.0.
            return topic[0] if len(topic) > 1 else None
        source, *rest = topic.split(self.separator)
        return source if any(rest) else None

    def upstream_topic(self, topic: str) -> str | None:
        """Gives the name the topic has one cluster closer to where it was written; None when it is local."""
        source = DefaultReplicationPolicy.topic_source(self, topic)
        return None if source is None else topic[len(source) + len(self.separator) :]

    def original_topic(self, topic: str) -> str:
        """Follows upstream_topic to the name under which the topic was written."""
        while (upstream := self.upstream_topic(topic)) is not None and upstream != topic:
            topic = upstream
        return topic

    def mirrors(self, topic: str) -> bool:  # noqa: ARG002
        """Says whether the policy lets a source topic be mirrored at all; only a topic map can say no."""
        return True

    def heartbeats_topic(self) -> str:
        """Gives the name of the heartbeats topic; no separator affects it."""
        return HEARTBEATS_TOPIC

    def offset_syncs_topic(self, alias: str) -> str:
        """Gives the name of the offset-syncs topic; ``alias`` is the OTHER cluster of the flow, not where it lives."""
        s = self.internal_separator
        return f"mm2-offset-syncs{s}{alias}{s}internal"

    def checkpoints_topic(self, alias: str) -> str:
        """Gives the name of the checkpoints topic for the source ``alias``."""
        return alias + self._checkpoints_suffix()

    def is_heartbeats_topic(self, topic: str) -> bool:
        """Says whether the topic is a heartbeats topic or a mirrored copy of one."""
        return self.original_topic(topic) == HEARTBEATS_TOPIC

    def is_checkpoints_topic(self, topic: str) -> bool:
        """Says whether the topic's name is that of a checkpoints topic."""
        return topic.endswith(self._checkpoints_suffix())

    def is_mm2_internal_topic(self, topic: str) -> bool:
        """Says whether MirrorMaker 2 takes the topic for its own; up to 3.9 every name that ends so is."""
        internal = topic.endswith(f"{self.internal_separator}internal")
        if at_least(self.mm2_version, 4, 0):
            return (internal and topic.startswith("mm2")) or self.is_checkpoints_topic(topic)
        return internal

    def is_internal_topic(self, topic: str) -> bool:
        """Says whether the topic is never mirrored because it is internal to Kafka or MirrorMaker 2."""
        if topic.startswith(("__", ".")) or self.is_mm2_internal_topic(topic):
            return True
        return not at_least(self.mm2_version, 4, 0) and topic.endswith(("-internal", ".internal"))

    def _checkpoints_suffix(self) -> str:
        s = self.internal_separator
        return f"{s}checkpoints{s}internal"


class IdentityReplicationPolicy(DefaultReplicationPolicy, frozen=True, kw_only=True):
    """Keeps topic names (MM2 3.0: IdentityReplicationPolicy).

    Topics whose names end with ``heartbeats`` are named by the default policy all the same.
    """

    @property
    def name(self) -> str:
        """Names the policy in plans and reports."""
        return "identity"

    def format_remote_topic(self, alias: str, topic: str) -> str:
        """Gives the same name, except for what looks like heartbeats."""
        return super().format_remote_topic(alias, topic) if _looks_like_heartbeats(topic) else topic

    def topic_source(self, topic: str) -> str | None:
        """Gives the flow's source for every topic, except for what looks like heartbeats."""
        return super().topic_source(topic) if _looks_like_heartbeats(topic) else self.source_alias

    def upstream_topic(self, topic: str) -> str | None:
        """Gives the same name, except for what looks like heartbeats."""
        return super().upstream_topic(topic) if _looks_like_heartbeats(topic) else topic


class MappedReplicationPolicy(DefaultReplicationPolicy, frozen=True, kw_only=True):
    """Names the topics of the flow's source by a map, and all others by the policy underneath.

    Heartbeats topics and topics of other clusters are the policy's underneath, ``base``.
    """

    base: DefaultReplicationPolicy
    topic_map: TopicMap

    @property
    def name(self) -> str:
        """Names the policy in plans and reports."""
        return "map"

    def format_remote_topic(self, alias: str, topic: str) -> str:
        """Gives the mapped name; a topic the map forbids to mirror keeps the name it would have without the map."""
        mapped = None
        if alias == self.source_alias and not _looks_like_heartbeats(topic):
            mapped = self.topic_map.target_of(topic)
        return self.base.format_remote_topic(alias, topic) if mapped is None else mapped

    def topic_source(self, topic: str) -> str | None:
        """Gives the flow's source for the target names of the map."""
        return self.base.topic_source(topic) if self._source_name(topic) is None else self.source_alias

    def upstream_topic(self, topic: str) -> str | None:
        """Gives the source name of a target name of the map."""
        upstream = self._source_name(topic)
        return self.base.upstream_topic(topic) if upstream is None else upstream

    def original_topic(self, topic: str) -> str:
        """Undoes the map once, then follows the policy underneath."""
        upstream = self._source_name(topic)
        return self.base.original_topic(topic if upstream is None else upstream)

    def mirrors(self, topic: str) -> bool:
        """Says no for the topics the map gives the target ``-``."""
        return not self.topic_map.forbids(topic)

    def _source_name(self, topic: str) -> str | None:
        return None if _looks_like_heartbeats(topic) else self.topic_map.source_of(topic)


ReplicationPolicy: TypeAlias = DefaultReplicationPolicy
"""Any replication policy; the others are kinds of the default one, as in MirrorMaker 2."""

_BY_CLASS: dict[str, type[DefaultReplicationPolicy]] = {
    DEFAULT_CLASS: DefaultReplicationPolicy,
    f"{_JAVA_PACKAGE}IdentityReplicationPolicy": IdentityReplicationPolicy,
}
_BY_NAME: dict[str, type[DefaultReplicationPolicy]] = {
    "default": DefaultReplicationPolicy,
    "identity": IdentityReplicationPolicy,
}


def policy_from(
    settings: Mapping[str, str], source_alias: str, mm2_version: Mm2Version | None = None
) -> ReplicationPolicy:
    """Makes the replication policy of a flow from its effective settings.

    Reads ``replication.policy.class``, ``.separator`` and ``.internal.topic.separator.enabled``, and of
    this tool ``failover.replication.policy.class`` (``default``, ``identity`` or the name of an installed Python
    policy: how a Java class that is unknown here names topics) and ``failover.replication.policy.topic.map``.
    Raises ConfigError for a class that is unknown here.
    """
    # MM2 parses the flag as Java's Boolean.parseBoolean does, knows it from 3.6 (and 3.5.2) on, and looks
    # at it only beside an explicit separator, without which it makes no difference.
    flag = settings.get(INTERNAL_SEPARATOR_KEY, "true").lower() == "true" or not at_least(mm2_version, 3, 5, 2)
    base = _base_policy(
        settings,
        DefaultReplicationPolicy(
            source_alias=source_alias,
            separator=settings.get(SEPARATOR_KEY, "."),
            internal_topic_separator_enabled=flag,
            mm2_version=mm2_version,
        ),
    )
    topic_map = parse_topic_map(TOPIC_MAP_KEY, settings.get(TOPIC_MAP_KEY, ""))
    if topic_map is None:
        return base
    return MappedReplicationPolicy(
        source_alias=source_alias,
        separator=base.separator,
        internal_topic_separator_enabled=flag,
        mm2_version=mm2_version,
        base=base,
        topic_map=topic_map,
    )


def checkpointed_topic(policy: ReplicationPolicy, source: str, target: str, topic: str) -> str:
    """Gives the target topic under which a checkpoint for the source topic is written.

    A topic that came from the target gets its name there back (MM2: MirrorCheckpointTask).
    """
    if policy.topic_source(topic) == target:
        return policy.original_topic(topic)
    return policy.format_remote_topic(source, topic)


def is_cycle(policy: ReplicationPolicy, source: str, target: str, topic: str) -> bool:
    """Says whether mirroring the source topic would bring it back to where it came from.

    True when a cluster its name leads through is the target or, from 4.4 on where names tell, the
    source itself (MM2: MirrorSourceConnector). Identical names show no cycle at all.
    """
    if isinstance(policy, MappedReplicationPolicy):
        # Mapped names lead nowhere; the name a topic has on the source is of the policy underneath.
        policy = policy.base
    closed = {target}
    if policy.topic_source("") is None and at_least(policy.mm2_version, 4, 4):
        closed.add(source)
    while (origin := policy.topic_source(topic)) is not None:
        if origin in closed:
            return True
        upstream = policy.upstream_topic(topic)
        if upstream is None or upstream == topic:
            break
        topic = upstream
    return False


def _base_policy(settings: Mapping[str, str], default: DefaultReplicationPolicy) -> DefaultReplicationPolicy:
    """Gives the policy underneath a topic map; ``default`` holds what any policy of the flow is made of."""
    own, java = settings.get(OWN_CLASS_KEY, "").strip(), settings.get(CLASS_KEY, "").strip()
    name = own or java
    kind = (_BY_NAME.get(own) if own else None) or _BY_CLASS.get(name or DEFAULT_CLASS)
    if kind is not None:
        return kind(
            source_alias=default.source_alias,
            separator=default.separator,
            internal_topic_separator_enabled=default.internal_topic_separator_enabled,
            mm2_version=default.mm2_version,
        )
    # Only now, as looking through what is installed takes a while.
    from failover.mm2.python_policy import GROUP, installed_policies, python_policy

    found = python_policy(name, settings, default)
    if found is not None:
        return found
    there = installed_policies()
    installed = f"; installed ones: {', '.join(there)}" if there else ""
    if own:
        raise ConfigError(
            f"{OWN_CLASS_KEY}: unknown policy {own!r}",
            hint=f"write default, identity or the name of an entry point of the group {GROUP}{installed}",
        )
    near = next((full for full in _BY_CLASS if full.endswith(f".{java.rpartition('.')[2]}")), None)
    if near is not None:
        word = next(word for word, kind in _BY_NAME.items() if kind is _BY_CLASS[near])
        hint = (
            f"if MirrorMaker 2's own is meant, write {near}; if this one names topics as that does (Strimzi's does), "
            f"{OWN_CLASS_KEY}={word}, also behind --set"
        )
    else:
        hint = (
            f"if it names topics like MirrorMaker 2's own policies, set {OWN_CLASS_KEY}=default or identity, "
            f"and give other names in {TOPIC_MAP_KEY}; otherwise install its naming in Python, as the entry point "
            f"{java} of the group {GROUP}{installed}"
        )
    raise ConfigError(f"{CLASS_KEY}: {java} is a Java class whose naming is not known here", hint=hint)


def _looks_like_heartbeats(topic: str) -> bool:
    return topic.endswith(HEARTBEATS_TOPIC)
