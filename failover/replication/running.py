"""Replicates a flow from its configuration to its end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from failover.config.clients import ClientSettings
from failover.config.flow import Config, FlowConfig, SelectedFlow
from failover.config.mm2_keys import CHECKPOINT, CONNECTORS, HEARTBEAT, SOURCE
from failover.errors import ConfigError, Refused
from failover.inventory.flow import Flow, flow_of
from failover.kafka.tokens import Tokens
from failover.kafka.wire.cluster import WireCluster
from failover.kafka.wire.transactions import describe_transactions
from failover.mm2.internal_topics import lag_group
from failover.replication.acl_sync import AclSync
from failover.replication.beside import look_beside
from failover.replication.checkpointing import beside_copying, checkpoint_options, shards_topic
from failover.replication.config_sync import ConfigSync
from failover.replication.engine import Engine
from failover.replication.heartbeats import Heartbeats, heartbeat_settings
from failover.replication.lag_group import EVERY_SECONDS, LagGroup
from failover.replication.loops import Loops
from failover.replication.options import read_options
from failover.replication.owners import Owners
from failover.replication.parts import Parts
from failover.replication.positions import Positions, positions_topic
from failover.replication.repeating import repeat, while_so
from failover.replication.share import Share
from failover.replication.sharing import Sharing, member
from failover.replication.switch import Switch, Target, obey, under
from failover.replication.syncs import Syncs, syncs_topic
from failover.replication.topic_configs import ConfigRule
from failover.replication.topics import Topics, topic_settings

_log = logging.getLogger(__name__)

Started = Callable[[Engine], None]
Work = Callable[[], Coroutine[Any, Any, None]]
"""Is work that goes on beside the copying until it is cancelled, and never ends it."""

_LEAST_SECONDS = 1.0
_RECONNECT_SECONDS = 5.0


async def replicate(
    config: Config,
    flow_config: FlowConfig,
    *,
    source_silence: float,
    target_silence: float,
    alongside: bool = False,
    owners: Owners | None = None,
    started: Started = lambda _: None,
    switches: Mapping[str, Switch] | None = None,
    opened: Callable[[Parts], None] = lambda _: None,
    share: Share | None = None,
) -> None:
    """Replicates one flow until its engine is stopped; ``started`` is given the engine, ``opened`` all of its parts.

    ``switches``: what is wanted of each connector (a key of ``FlowConfig.connectors``) meanwhile; by default, to work.
    ``source_silence``, ``target_silence``: seconds without an answer after which a broker counts as lost.
    ``share``: the part that this worker does, by default all. ``alongside``: a running MirrorMaker 2 of the flow is no
    reason to refuse. ``owners``: shared by the flows of one process. Raises ``ConfigError``, ``Refused`` (one runs,
    another worker took over, or the group is used by others), ``ClusterError``.
    """
    share = share or Share()
    options = read_options(config, flow_config)
    settings = topic_settings(config, flow_config)
    flow = flow_rules(config, flow_config)
    loops = Loops(flows_of(config))
    loops.refuse(flow, flow_config)
    connector = flow_config.connectors[SOURCE]
    switches = switches or {connector: Switch() for connector in CONNECTORS}
    beside = _Beside(flow_config, flow, switches, share.leads)
    checkpointing = checkpoint_options(config, flow_config, flow)
    owners = owners or Owners()
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(owners.left, flow)
        clusters = _Clusters(stack)
        target = await clusters.open(flow.target, flow_config.client("target", "producer"), target_silence)
        target_admin = await clusters.open(flow.target, flow_config.client("target", "admin"), target_silence)
        await look_beside(target_admin, flow.internal.connect_group, flow=flow_config.name, alongside=alongside)
        source = await clusters.open(flow.source, flow_config.client("source", "consumer"), source_silence)
        source_admin = await clusters.open(flow.source, flow_config.client("source", "admin"), source_silence)
        _two_clusters(source_admin, target_admin)
        topics = Topics(source_admin, target_admin, flow, settings, loops=loops, owners=owners, makes=share.leads)
        # Connections of their own: what is asked there may take long, and copying waits for nobody.
        apart = _Clusters(stack)
        from_source = await apart.open(flow.source, flow_config.client("source", "admin"), source_silence)
        from_target = await apart.open(flow.target, flow_config.client("target", "admin"), target_silence)
        checkpoints = beside_copying(flow, from_source, from_target, checkpointing, share.leads)
        lag: list[Work] = []
        if options.lag_group:
            group = LagGroup(from_source, lag_group(flow.target), lambda: engine.routes)
            what = f"lag group of {flow_config.name}"
            lag.append(partial(repeat, group.commit, seconds=EVERY_SECONDS, what=what))
        on_source = flow.internal.offset_syncs_on == flow.source
        engine = Engine(
            flow,
            source,
            target,
            topics=topics,
            positions=Positions(
                target_admin, positions_topic(flow.internal, flow_config.worker), source=flow.source, part=share.part
            ),
            syncs=Syncs(
                source_admin if on_source else target_admin,
                syncs_topic(flow.internal, connector),
                enabled=flow_config.emit_offset_syncs_enabled,
            ),
            options=options,
            beside=[
                lambda: obey(switches[SOURCE], engine.hold),
                *beside.work(from_source, from_target, target, topics, settings.configs),
                *(partial(under, switches[CHECKPOINT], each) for each in checkpoints.work),
                *lag,
            ],
            share=share,
        )
        if share.group:
            tokens = await member(
                flow,
                flow_config.client("target", "admin"),
                target_admin,
                shards_topic(flow, checkpointing),
                group=share.group,
                session=options.session,
            )
            share.membership = tokens
            stack.push_async_callback(_leave, share, tokens)
            engine.beside(Sharing(engine, tokens, owners=partial(describe_transactions, target_admin)).run)
        if switches[SOURCE].target is not Target.RUNNING:
            engine.hold.pause()
        started(engine)
        opened(
            Parts(
                flow,
                engine,
                topics,
                checkpoints,
                beside.heartbeats,
                checkpointing,
                switches,
                target_admin.cluster_id,
            )
        )
        await engine.run()


async def _leave(share: Share, tokens: Tokens) -> None:
    """Leaves the group once all is on record, so that others go on at once."""
    await asyncio.to_thread(tokens.close)
    share.membership = None
    share.shards.clear()


def _two_clusters(source: WireCluster, target: WireCluster) -> None:
    """Raises ``Refused`` where both aliases lead to one cluster: records would be copied beside themselves."""
    if source.cluster_id is not None and source.cluster_id == target.cluster_id:
        raise Refused(
            f"same-cluster: {source.alias} and {target.alias} are both cluster {source.cluster_id}",
            hint="correct bootstrap.servers of one of them",
        )


def flow_rules(config: Config, flow_config: FlowConfig) -> Flow:
    """Works out a flow's rules; those of other flows, if they cannot be, are no reason to fail."""
    selected = SelectedFlow(flow_config, flow_config.source.alias, flow_config.target.alias)
    ends = {flow_config.source.alias, flow_config.target.alias}
    both = tuple(flow for flow in config.flows if {flow.source.alias, flow.target.alias} == ends)
    try:
        return flow_of(msgspec.structs.replace(config, flows=both), selected, unofficial=True)
    except ConfigError:
        return flow_of(msgspec.structs.replace(config, flows=(flow_config,)), selected, unofficial=True)


def flows_of(config: Config, flow_configs: Sequence[FlowConfig] | None = None) -> list[Flow]:
    """Works out the rules of every enabled flow, or of these, that has usable ones."""
    found = []
    for flow_config in config.enabled_flows if flow_configs is None else flow_configs:
        with contextlib.suppress(ConfigError):  # that flow's own run says it
            found.append(flow_rules(config, flow_config))
    return found


async def beat(
    config: Config,
    flow_config: FlowConfig,
    *,
    silence: float,
    switch: Switch | None = None,
    opened: Callable[[Heartbeats], None] = lambda _: None,
    leads: Callable[[], bool] = lambda: True,
) -> None:
    """Writes the heartbeats of a flow that copies nothing, until cancelled, whatever is wrong with its target.

    ``leads``: only then are they written here. ``switch``: whether they are wanted; ``opened`` is given what writes
    them. MM2's driver runs such flows, too, A->B's opposite above all: its heartbeats are those that A->B copies.
    """
    work = partial(_beat, config, flow_config, silence, opened)
    what = f"heartbeats of {flow_config.name}"
    repeated = partial(repeat, work, seconds=_RECONNECT_SECONDS, what=what)
    await under(switch or Switch(), partial(while_so, leads, repeated))


async def _beat(config: Config, flow_config: FlowConfig, silence: float, opened: Callable[[Heartbeats], None]) -> None:
    flow = flow_rules(config, flow_config)
    settings = heartbeat_settings(flow_config, flow.internal.heartbeats)
    if settings is None:
        return
    async with contextlib.AsyncExitStack() as stack:
        clusters = _Clusters(stack)
        target = await clusters.open(flow.target, flow_config.client("target", "producer"), silence)
        admin = await clusters.open(flow.target, flow_config.client("target", "admin"), silence)
        beats = Heartbeats(target, admin, settings)
        opened(beats)
        await beats.run()


class _Beside:
    """Knows what goes on beside the copying of a flow by its settings; raises ConfigError.

    ``heartbeats``: who writes them, once there is work. ``leads``: only then it is done here.
    """

    def __init__(
        self, flow_config: FlowConfig, flow: Flow, switches: Mapping[str, Switch], leads: Callable[[], bool]
    ) -> None:
        self._leads = leads
        self.heartbeats: Heartbeats | None = None
        self._switches = switches
        self._flow = flow
        self._name = flow_config.name
        self._beats = heartbeat_settings(flow_config, flow.internal.heartbeats)
        self._config_seconds = _every(flow_config, "sync.topic.configs")
        self._acl_seconds = _every(flow_config, "sync.topic.acls")

    def work(
        self, source: WireCluster, target: WireCluster, writing: WireCluster, topics: Topics, rule: ConfigRule
    ) -> list[Work]:
        """Gives the work; ``writing``: the target as data is written to it."""
        found: list[Work] = []
        if self._beats is not None:
            self.heartbeats = beats = Heartbeats(writing, target, self._beats)
            what = f"heartbeats of {self._name}"
            found.append(self._work(HEARTBEAT, partial(repeat, beats.run, seconds=_RECONNECT_SECONDS, what=what)))
        if self._config_seconds is not None:
            configs = ConfigSync(source, target, topics=topics.targets, rule=rule)

            async def sync_configs() -> None:
                await topics.looked.wait()
                await configs.sync()

            what = f"topic settings of {self._name}"
            found.append(self._work(SOURCE, partial(repeat, sync_configs, seconds=self._config_seconds, what=what)))
        if self._acl_seconds is not None:
            flow = self._flow
            acls = AclSync(source, target, replicates=flow.topics.should_replicate, rename=flow.target_topic)
            what = f"topic ACLs of {self._name}"
            found.append(self._work(SOURCE, partial(repeat, acls.sync, seconds=self._acl_seconds, what=what)))
        return found

    def _work(self, connector: str, work: Work) -> Work:
        """Makes work a connector's: done while that is to run, and by the worker that leads."""
        return partial(under, self._switches[connector], partial(while_so, self._leads, work))


def _every(flow_config: FlowConfig, what: str) -> float | None:
    """Gives the seconds between two rounds of ``what``, None where it is switched off; raises ConfigError."""
    connector = flow_config.connectors[SOURCE]
    seconds = connector.integer(f"{what}.interval.seconds")
    return max(float(seconds), _LEAST_SECONDS) if connector.boolean(f"{what}.enabled") and seconds >= 0 else None


class _Clusters:
    """Opens each cluster once for each set of credentials: data and administration usually share them."""

    def __init__(self, stack: contextlib.AsyncExitStack) -> None:
        self._stack = stack
        self._open: list[tuple[str, ClientSettings, WireCluster]] = []

    async def open(self, alias: str, settings: ClientSettings, silence: float) -> WireCluster:
        for name, other, cluster in self._open:
            if (name, other) == (alias, settings):
                return cluster
        cluster = await self._stack.enter_async_context(WireCluster(settings, alias=alias, silence=silence))
        self._open.append((alias, settings, cluster))
        return cluster
