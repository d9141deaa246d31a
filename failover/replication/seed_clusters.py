"""Opens the clusters of a flow to be seeded, once nothing mirrors between them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import NamedTuple

import msgspec

from failover.config.flow import Config, FlowConfig
from failover.config.mm2_keys import SOURCE
from failover.connect.client import ConnectClient
from failover.inventory.flow import Flow
from failover.kafka.wire.cluster import WireCluster
from failover.replication.beside import look_beside
from failover.replication.positions import Positions, positions_topic
from failover.replication.running import flow_rules
from failover.replication.seed_carry import Carrying
from failover.replication.seed_connect import ConnectPositions, kept, source_connector
from failover.replication.seeding import Kept, Seeding
from failover.replication.syncs import Syncs, syncs_topic


class Place(NamedTuple):
    """Is what keeps the positions: a topic of the target, or a Connect cluster (its address) and a connector there."""

    topic: str
    connector: str = ""


@contextlib.asynccontextmanager
async def seeding(
    config: Config,
    flow_config: FlowConfig,
    *,
    source_silence: float,
    target_silence: float,
    connect: ConnectClient | None = None,
    connector: str | None = None,
    carry: bool = False,
) -> AsyncIterator[tuple[Seeding, Place]]:
    """Gives what seeds a flow, and where its positions are kept.

    ``connect``: they are those of the flow's source connector there, of this name if one is given. ``carry``: they are
    taken from where the flow's mirror kept them until now, not from what the opposite flow copied. Raises
    ``ConfigError``, ``MirrorMakerRuns`` while MirrorMaker 2 runs either direction, ``Refused`` while the connector is
    not stopped, ``ClusterError``.
    """
    flow = flow_rules(config, flow_config)
    back = flow.opposite
    assert back is not None
    back_config = _between(config, flow.target, flow.source) or flow_config
    topic = positions_topic(flow.internal, flow_config.worker)
    async with contextlib.AsyncExitStack() as stack:
        clusters = {
            alias: await stack.enter_async_context(WireCluster(settings, alias=alias, silence=silence))
            for alias, settings, silence in (
                (flow.target, flow_config.client("target", "admin"), target_silence),
                (flow.source, flow_config.client("source", "admin"), source_silence),
            )
        }
        source, target = clusters[flow.source], clusters[flow.target]
        # whose positions are carried stands still; the opposite flow may go on
        for cluster, rules in ((target, flow), (source, back))[: 1 if carry else 2]:
            await look_beside(cluster, rules.internal.connect_group, flow=_name(rules), alongside=None)
        mirrored = Positions(
            source, msgspec.structs.replace(topic, name=back.internal.connect_offsets), source=flow.target
        )
        syncs = msgspec.structs.replace(
            syncs_topic(back.internal, flow_config.connectors[SOURCE]), name=back.internal.offset_syncs
        )
        positions: Kept = Positions(target, topic, source=flow.source)
        where = Place(topic.name)
        if connect is not None:
            found = await asyncio.to_thread(source_connector, connect, flow.source, flow.target, connector)
            positions = ConnectPositions(connect, found.name, source=flow.source)
            where = Place(connect.access.shown, found.name)
        work = (Carrying if carry else Seeding)(
            flow,
            source,
            target,
            positions=positions,
            mirrored=Positions(target, topic, source=flow.source) if carry else mirrored,
            syncs=Syncs(clusters[back.internal.offset_syncs_on], syncs),
            committed=back_config.isolation_level == "read_committed",
            **({"kept": kept} if connect is not None else {}),
        )
        yield work, where


def _between(config: Config, source: str, target: str) -> FlowConfig | None:
    return next((flow for flow in config.flows if (flow.source.alias, flow.target.alias) == (source, target)), None)


def _name(flow: Flow) -> str:
    return f"{flow.source}->{flow.target}"
