"""A flow with its rules worked out: what its topics are called, what it mirrors, which groups it takes."""

from __future__ import annotations

import msgspec

from failover.config.flow import Config, FlowConfig, SelectedFlow
from failover.config.mm2_keys import CHECKPOINT, SOURCE
from failover.mm2.filters import NameFilter, group_filter
from failover.mm2.internal_topics import InternalTopics
from failover.mm2.replication_policy import TOPIC_MAP_KEY, ReplicationPolicy, policy_from
from failover.mm2.topic_selection import TopicSelection, selection_from
from failover.mm2.versions import Mm2Version
from failover.model.snapshot import FlowInfo


class Flow(msgspec.Struct, frozen=True, kw_only=True):
    """Is the flow ``source`` -> ``target`` as a look at both clusters needs it.

    ``rivals``: the other enabled flows into the same target, each with this flow's own rules seen
    from there (their ``rivals`` are empty). ``mm2_version``: None stands for the newest release. ``reads_committed``:
    the mirror does not copy what was aborted.
    """

    info: FlowInfo
    policy: ReplicationPolicy
    topics: TopicSelection
    groups: NameFilter
    internal: InternalTopics
    group_offsets_synced: bool = False
    rivals: tuple[Flow, ...] = ()
    opposite: Flow | None = None
    mm2_version: Mm2Version | None = None
    reads_committed: bool = False

    @property
    def source(self) -> str:
        """Gives the source's alias."""
        return self.info.source

    @property
    def target(self) -> str:
        """Gives the target's alias."""
        return self.info.target

    def source_topic(self, topic: str) -> str | None:
        """Gives the source's name of a target topic, None when the flow does not bring it.

        A plain topic of the target is one that the source holds under the target's alias: it came
        from here (MM2: MirrorCheckpointTask renames its checkpoints back).
        """
        if self.policy.topic_source(topic) == self.source:
            return self.policy.upstream_topic(topic)
        return None

    def came_from_target(self, topic: str) -> str:
        """Gives the name a plain topic of the target has on the source when it was mirrored there."""
        return self.policy.format_remote_topic(self.target, topic)

    def target_topic(self, topic: str) -> str:
        """Gives the target's name of a source topic."""
        return self.policy.format_remote_topic(self.source, topic)

    def original_topic(self, topic: str) -> str | None:
        """Gives the target's name of a source topic that the opposite flow brought from there, None for any other."""
        return None if self.opposite is None else self.opposite.source_topic(topic)


def flow_of(config: Config, selected: SelectedFlow, *, unofficial: bool = False) -> Flow:
    """Works out the rules of the selected flow; raises ``ConfigError`` for settings MM2 itself would refuse.

    ``unofficial``: filters also read what only guides write (``topics.regex``), which MM2 does not.
    """
    others = (
        _flow(config, other, other.source.alias, other.target.alias)
        for other in config.enabled_flows
        if other.target.alias == selected.target and other.source.alias != selected.source
    )
    flow = _flow(
        config, selected.flow, selected.source, selected.target, reversed_=selected.reversed, unofficial=unofficial
    )
    back = selected.flow if selected.reversed else _flow_between(config, selected.target, selected.source)
    # A flow that is not even configured may have been; then it most likely was like the one that is.
    opposite = _flow(config, back or selected.flow, selected.target, selected.source, reversed_=back is None)
    return msgspec.structs.replace(flow, rivals=tuple(others), opposite=opposite)


def _flow_between(config: Config, source: str, target: str) -> FlowConfig | None:
    """Finds a flow whether or not it is enabled: what it mirrored stays."""
    return next((flow for flow in config.flows if (flow.source.alias, flow.target.alias) == (source, target)), None)


def _flow(
    config: Config, flow: FlowConfig, source: str, target: str, *, reversed_: bool = False, unofficial: bool = False
) -> Flow:
    own = {f"failover.{key}": setting.text for key, setting in config.failover.items()}
    settings = _filters_of(flow, SOURCE, unofficial=unofficial) | own
    if reversed_:
        settings.pop(TOPIC_MAP_KEY, None)  # it names the topics of the other cluster
    policy = policy_from(settings, source, config.mm2_version)
    worker = {key: setting.text for key, setting in flow.worker.items()}
    # A reversed flow's own worker does not exist; its topics then have the names they would have by default.
    internal = InternalTopics.of_flow(settings, source, target, policy, None if reversed_ else worker)
    checkpoint = _filters_of(flow, CHECKPOINT, unofficial=unofficial)
    return Flow(
        info=FlowInfo(source, target, policy.name, policy.separator, reversed=reversed_),
        policy=policy,
        topics=selection_from(settings, source, target, policy, unofficial=unofficial),
        groups=group_filter(checkpoint, config.mm2_version, unofficial=unofficial),
        internal=internal,
        group_offsets_synced=flow.sync_group_offsets_enabled and not reversed_,
        mm2_version=config.mm2_version,
        reads_committed=flow.isolation_level == "read_committed",
    )


def _filters_of(flow: FlowConfig, connector: str, *, unofficial: bool) -> dict[str, str]:
    """Gives a connector's settings; with ``unofficial`` without defaults of lists, which must not hide other names."""
    settings = flow.connectors[connector]
    lists = ("topics", "topics.exclude", "groups", "groups.exclude") if unofficial else ()
    return {key: text for key, text in settings.texts().items() if key not in lists or settings.is_given(key)}
