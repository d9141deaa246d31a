"""The names of a flow's internal topics: MirrorMaker 2's, Connect's and this tool's own."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from failover.errors import ConfigError
from failover.mm2.replication_policy import ReplicationPolicy
from failover.mm2.versions import at_least

LOCATION_KEY = "offset-syncs.topic.location"
RUNS_TOPIC_KEY = "failover.runs.topic"
_OFF = ("", "off", "none", "false", "-")

CANARY_TOPIC = "failover-canary"
DRILL_GROUP_PREFIX = "drill."
LAG_GROUP_PREFIX = "mirrormaker2-cluster-"
_OWN_GROUP_PREFIXES = (DRILL_GROUP_PREFIX, "failover.replicate.", "failover.checkpoint.", LAG_GROUP_PREFIX)
_OWN_TOPIC = re.compile(r"mm2-(?:failover-runs|exact-checkpoints|failover-shards)\..+\.internal|failover-canary")


class InternalTopics(msgspec.Struct, frozen=True, kw_only=True):
    """Names the internal topics of the flow ``source`` -> ``target``.

    ``offset_syncs`` lives on the cluster ``offset_syncs_on``; ``heartbeats`` on each cluster, written
    there by the flow that ends there; everything else lives on the target. ``remote_heartbeats`` is
    the mirrored copy of the source's heartbeats. The three Connect topics and ``connect_group`` are
    those of dedicated mode, whose names always use dots.
    """

    source: str
    target: str
    offset_syncs: str
    offset_syncs_on: str
    checkpoints: str
    heartbeats: str
    remote_heartbeats: str
    connect_configs: str
    connect_offsets: str
    connect_status: str
    connect_group: str
    exact_checkpoints: str
    failover_shards: str

    @classmethod
    def of_flow(
        cls,
        settings: Mapping[str, str],
        source: str,
        target: str,
        policy: ReplicationPolicy,
        worker: Mapping[str, str] | None = None,
    ) -> InternalTopics:
        """Finds the names from a flow's effective settings and, in dedicated mode, its worker's.

        ``offset-syncs.topic.location`` counts from 3.0 on. Raises ConfigError when it is neither
        ``source`` nor ``target``.
        """
        worker = worker or {}
        location = settings.get(LOCATION_KEY, "source").strip()
        if location not in ("source", "target"):
            raise ConfigError(f"{LOCATION_KEY}: {location!r}", hint="write source or target")
        on_source = location == "source" or not at_least(policy.mm2_version, 3, 0)
        return cls(
            source=source,
            target=target,
            offset_syncs=policy.offset_syncs_topic(target if on_source else source),
            offset_syncs_on=source if on_source else target,
            checkpoints=policy.checkpoints_topic(source),
            heartbeats=policy.heartbeats_topic(),
            remote_heartbeats=policy.format_remote_topic(source, policy.heartbeats_topic()),
            connect_configs=worker.get("config.storage.topic", f"mm2-configs.{source}.internal"),
            connect_offsets=worker.get("offset.storage.topic", f"mm2-offsets.{source}.internal"),
            connect_status=worker.get("status.storage.topic", f"mm2-status.{source}.internal"),
            connect_group=worker.get("group.id", f"{source}-mm2"),
            exact_checkpoints=f"mm2-exact-checkpoints.{source}.internal",
            failover_shards=f"mm2-failover-shards.{source}.internal",
        )

    @property
    def offset_syncs_location(self) -> str:
        """Says on which side the offset syncs are: ``source`` or ``target``."""
        return "source" if self.offset_syncs_on == self.source else "target"


def runs_topic(setting: str | None, source: str) -> str | None:
    """Names the topic on the target where executions of a flow claim it and tell other machines what they did.

    ``setting``: ``failover.runs.topic``, which may rename it, or switch it off (None then).
    """
    if setting is None:
        return f"mm2-failover-runs.{source}.internal"
    return None if setting.strip().lower() in _OFF else setting.strip()


def replicate_group(source: str, target: str) -> str:
    """Names the group by which workers of ``replicate`` share the shards of a flow."""
    return f"failover.replicate.{source}-{target}"


def checkpoint_group(source: str, target: str) -> str:
    """Names the group by which exact checkpointers of a flow elect their leader."""
    return f"failover.checkpoint.{source}-{target}"


def lag_group(target: str) -> str:
    """Names the group under which ``replicate`` may commit its positions on the source."""
    return f"{LAG_GROUP_PREFIX}{target}"


def is_own_topic(topic: str) -> bool:
    """Says whether this tool made the topic for itself; such topics stay out of plans and mirrors."""
    return _OWN_TOPIC.fullmatch(topic) is not None


def is_own_group(group: str) -> bool:
    """Says whether this tool uses the group for itself; such groups stay out of plans and lists."""
    return group.startswith(_OWN_GROUP_PREFIXES)
