"""The values the rest of the program reads: a configuration, its clusters and its flows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from failover.config.clients import ClientSettings
from failover.config.java_client import read_client
from failover.config.mm2 import Role, Side, client_properties, with_prefix
from failover.config.mm2_keys import ASSUMED_VERSION, CHECKPOINT, HEARTBEAT, SOURCE
from failover.config.providers import NO_PROVIDERS, Providers, Resolved
from failover.config.settings import Note, Setting, Settings


class ClusterConfig(msgspec.Struct, frozen=True):
    """Is one cluster: its properties as MM2 reads them, and this tool's own connection settings over them.

    ``overrides`` are the ``failover.cluster.<alias>.`` settings, prefix removed; an empty one unsets MM2's.
    """

    alias: str
    properties: Settings
    overrides: Mapping[str, Setting]
    providers: Providers = NO_PROVIDERS

    def client(self, role: Role = "admin") -> ClientSettings:
        """Gives the connection settings of a role outside any flow; raises ConfigError if they cannot be used."""
        return self.client_from({**self.properties, **with_prefix(self.properties, f"{role}.")})

    def client_from(self, properties: Mapping[str, Setting]) -> ClientSettings:
        """Gives the connection settings that Java client properties mean once the overrides lie over them."""
        merged = {**properties, **self.overrides}
        for key, setting in self.overrides.items():
            # An empty algorithm is a value of its own: it switches the host name check off.
            if not setting.trimmed and key != "ssl.endpoint.identification.algorithm":
                del merged[key]
        own = f"failover.cluster.{self.alias}."
        # Brokers' quotas go by client ids: the one among the properties is MM2's.
        client_id = self.overrides["client.id"].trimmed if "client.id" in self.overrides else None
        return read_client(Resolved(merged, self.providers, own), alias=self.alias, client_id=client_id)


class FlowConfig(msgspec.Struct, frozen=True):
    """Is one direction of mirroring, source->target, with the effective settings of its three connectors.

    ``connectors`` has the keys ``source``, ``checkpoint`` and ``heartbeat``; from an mm2.properties file they differ
    only in name, class and defaults. ``enabled`` means that records are mirrored; the driver runs a flow that is
    not enabled for its heartbeats alone. Intervals are in seconds. A property raises ConfigError, naming key, file and
    line, if its value is one that MM2 refuses.
    """

    source: ClusterConfig
    target: ClusterConfig
    enabled: bool
    connectors: Mapping[str, Settings]
    worker: Settings

    @property
    def name(self) -> str:
        """Gives ``A->B``."""
        return f"{self.source.alias}->{self.target.alias}"

    def __str__(self) -> str:
        return self.name

    def has(self, connector: str) -> bool:
        """Tells whether there is such a connector: on Connect one may be missing; the driver runs all three."""
        switch = "enabled" if connector == SOURCE else f"emit.{connector}s.enabled"
        return self.connectors[connector][switch].origin.kind != "absent"

    def client(self, side: Side, role: Role = "admin") -> ClientSettings:
        """Gives the connection settings of one of the flow's clients; raises ConfigError if they cannot be used."""
        cluster = self.source if side == "source" else self.target
        return cluster.client_from(client_properties(self.connectors[SOURCE], side, role))

    # -- naming ----------------------------------------------------------------------------------

    @property
    def replication_policy_class(self) -> str:
        """Gives the Java class that names topics on the target."""
        return self.connectors[SOURCE].text("replication.policy.class")

    @property
    def separator(self) -> str:
        """Gives the separator of remote topic names, untrimmed as the policy receives it."""
        return self.connectors[SOURCE].resolved("replication.policy.separator").text

    # -- what is mirrored ------------------------------------------------------------------------

    @property
    def topics(self) -> tuple[str, ...]:
        """Gives the patterns (Java regexes) of topics to mirror."""
        return self.connectors[SOURCE].strings("topics")

    @property
    def topics_exclude(self) -> tuple[str, ...]:
        """Gives the patterns of topics not to mirror; they win."""
        return self.connectors[SOURCE].strings("topics.exclude")

    @property
    def groups(self) -> tuple[str, ...]:
        """Gives the patterns of groups to checkpoint."""
        return self.connectors[CHECKPOINT].strings("groups")

    @property
    def groups_exclude(self) -> tuple[str, ...]:
        """Gives the patterns of groups not to checkpoint; they win."""
        return self.connectors[CHECKPOINT].strings("groups.exclude")

    @property
    def topic_filter_class(self) -> str:
        """Gives the Java class that filters topics."""
        return self.connectors[SOURCE].text("topic.filter.class")

    @property
    def group_filter_class(self) -> str:
        """Gives the Java class that filters groups."""
        return self.connectors[CHECKPOINT].text("group.filter.class")

    @property
    def heartbeats_replication_enabled(self) -> bool:
        """Tells whether heartbeats are mirrored whatever the topic filter says (MM2 4.0)."""
        return self.connectors[SOURCE].boolean("heartbeats.replication.enabled")

    @property
    def isolation_level(self) -> str:
        """Gives the isolation level the mirror reads with; without one Kafka's default, read_uncommitted."""
        setting = client_properties(self.connectors[SOURCE], "source", "consumer").get("isolation.level")
        return setting.trimmed.lower() if setting is not None else "read_uncommitted"

    # -- offset syncs, checkpoints, heartbeats ---------------------------------------------------

    @property
    def offset_syncs_location(self) -> Literal["source", "target"]:
        """Gives the side that holds the offset-syncs topic."""
        location = self.connectors[SOURCE].choice("offset-syncs.topic.location", ("source", "target"))
        return "source" if location == "source" else "target"

    @property
    def emit_offset_syncs_enabled(self) -> bool:
        """Tells whether offset syncs are written (MM2 3.9)."""
        return self.connectors[SOURCE].boolean("emit.offset-syncs.enabled")

    @property
    def offset_lag_max(self) -> int:
        """Gives how far, in records, the target may run on without a new offset sync."""
        return self.connectors[SOURCE].integer("offset.lag.max")

    @property
    def emit_checkpoints_enabled(self) -> bool:
        """Tells whether checkpoints are written."""
        return self.connectors[CHECKPOINT].boolean("emit.checkpoints.enabled")

    @property
    def emit_checkpoints_interval_seconds(self) -> int:
        """Gives the time between two checkpoints of a group."""
        return self.connectors[CHECKPOINT].integer("emit.checkpoints.interval.seconds")

    @property
    def refresh_groups_interval_seconds(self) -> int:
        """Gives the time between two looks for new groups."""
        return self.connectors[CHECKPOINT].integer("refresh.groups.interval.seconds")

    @property
    def refresh_topics_interval_seconds(self) -> int:
        """Gives the time between two looks for new topics."""
        return self.connectors[SOURCE].integer("refresh.topics.interval.seconds")

    @property
    def sync_group_offsets_enabled(self) -> bool:
        """Tells whether MM2 itself commits offsets of idle groups on the target.

        The task that would do it is there only where checkpoints are written (MM2: MirrorCheckpointConnector).
        """
        checkpoint = self.connectors[CHECKPOINT]
        emits = self.emit_checkpoints_enabled and self.emit_checkpoints_interval_seconds >= 0
        return checkpoint.boolean("sync.group.offsets.enabled") and emits

    @property
    def sync_group_offsets_interval_seconds(self) -> int:
        """Gives the time between two such commits."""
        return self.connectors[CHECKPOINT].integer("sync.group.offsets.interval.seconds")

    @property
    def emit_heartbeats_enabled(self) -> bool:
        """Tells whether heartbeats are written."""
        return self.connectors[HEARTBEAT].boolean("emit.heartbeats.enabled")

    @property
    def emit_heartbeats_interval_seconds(self) -> int:
        """Gives the time between two heartbeats."""
        return self.connectors[HEARTBEAT].integer("emit.heartbeats.interval.seconds")


class Config(msgspec.Struct, frozen=True):
    """Is a whole configuration: ``path`` names its file, ``failover`` holds the ``failover.`` settings, prefix removed.

    ``flows`` has every pair the driver would start a worker for, in the order of ``clusters``. ``mm2_version`` is the
    (major, minor) whose defaults hold: ``failover.mm2.version``, else the newest known. ``form``: what it was
    read from. ``driver``: what MM2's dedicated driver reads for itself, but for ``clusters``: its internal REST.
    """

    path: str
    clusters: Mapping[str, ClusterConfig]
    flows: tuple[FlowConfig, ...]
    failover: Settings
    notes: tuple[Note, ...] = ()
    mm2_version: tuple[int, int] = ASSUMED_VERSION
    form: Literal["properties", "connectors", "strimzi"] = "properties"
    driver: Mapping[str, Setting] = {}

    @property
    def enabled_flows(self) -> tuple[FlowConfig, ...]:
        """Gives the flows that mirror records."""
        return tuple(flow for flow in self.flows if flow.enabled)


class SelectedFlow(msgspec.Struct, frozen=True):
    """Is the flow a command works on, seen in the direction asked for.

    ``reversed``: B->A was asked for and only A->B is enabled (failback); ``flow`` is then A->B, whose settings apply,
    while ``source`` and ``target`` are the aliases as asked for.
    """

    flow: FlowConfig
    source: str
    target: str
    reversed: bool = False

    @property
    def name(self) -> str:
        """Gives ``source->target`` as asked for."""
        return f"{self.source}->{self.target}"

    def source_client(self, role: Role = "admin") -> ClientSettings:
        """Gives the connection settings for the source as asked for."""
        return self.flow.client("target" if self.reversed else "source", role)

    def target_client(self, role: Role = "admin") -> ClientSettings:
        """Gives the connection settings for the target as asked for."""
        return self.flow.client("source" if self.reversed else "target", role)
