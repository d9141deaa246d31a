"""Replicates a flow from its configuration to its end."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable

from failover.config.clients import ClientSettings
from failover.config.flow import Config, FlowConfig, SelectedFlow
from failover.config.mm2_keys import SOURCE
from failover.inventory.flow import flow_of
from failover.kafka.wire.cluster import WireCluster
from failover.replication.beside import look_beside
from failover.replication.engine import Engine
from failover.replication.options import read_options
from failover.replication.positions import Positions, positions_topic
from failover.replication.syncs import Syncs, syncs_topic
from failover.replication.topics import Topics, topic_settings

_log = logging.getLogger(__name__)

Started = Callable[[Engine], None]


async def replicate(
    config: Config,
    flow_config: FlowConfig,
    *,
    source_silence: float,
    target_silence: float,
    alongside: bool = False,
    started: Started = lambda _: None,
) -> None:
    """Replicates one flow until its engine is stopped; ``started`` is given the engine.

    ``source_silence``, ``target_silence``: seconds without an answer after which a broker counts as lost.
    ``alongside``: a running MirrorMaker 2 of the flow is no reason to refuse. Raises ``ConfigError``, ``Refused`` (one
    runs, or another worker took over), ``ClusterError``.
    """
    options = read_options(config, flow_config)
    settings = topic_settings(config, flow_config)
    flow = flow_of(config, SelectedFlow(flow_config, flow_config.source.alias, flow_config.target.alias))
    connector = flow_config.connectors[SOURCE]
    async with contextlib.AsyncExitStack() as stack:
        clusters = _Clusters(stack)
        target = await clusters.open(flow.target, flow_config.client("target", "producer"), target_silence)
        target_admin = await clusters.open(flow.target, flow_config.client("target", "admin"), target_silence)
        await look_beside(target_admin, flow.internal.connect_group, flow=flow_config.name, alongside=alongside)
        source = await clusters.open(flow.source, flow_config.client("source", "consumer"), source_silence)
        source_admin = await clusters.open(flow.source, flow_config.client("source", "admin"), source_silence)
        on_source = flow.internal.offset_syncs_on == flow.source
        engine = Engine(
            flow,
            source,
            target,
            topics=Topics(source_admin, target_admin, flow, settings),
            positions=Positions(target_admin, positions_topic(flow.internal, flow_config.worker), source=flow.source),
            syncs=Syncs(
                source_admin if on_source else target_admin,
                syncs_topic(flow.internal, connector),
                enabled=flow_config.emit_offset_syncs_enabled,
            ),
            options=options,
        )
        started(engine)
        await engine.run()


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
