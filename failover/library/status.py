"""How a flow stands now, as `failover status` tells it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from failover.checks.status_checks import Limits
    from failover.inventory.status import Beside
    from failover.library.connectors import OnConnect
    from failover.library.open_flow import OpenFlow
    from failover.model.names import TopicPartition
    from failover.model.plan import Plan
    from failover.model.snapshot import Snapshot
    from failover.model.status import Status
    from failover.planning.status import Looks


def take_status(look: OpenFlow, on_connect: OnConnect) -> Status:
    """Looks at both clusters and weighs what is there; writes nothing to either.

    ``on_connect``: what a Kafka Connect cluster told. Raises what ``take_snapshot`` raises.
    """
    from failover.planning.status import make_status

    return make_status(take_looks(look, on_connect), usual_limits(look))


def usual_limits(look: OpenFlow) -> Limits:
    """Gives from when on a flow is found wanting."""
    from failover.checks.status_checks import Limits

    own = look.mirror.selected.flow.connectors["source"]
    return Limits(tasks_max=own.integer("tasks.max") if "tasks.max" in own else None)


def take_looks(look: OpenFlow, on_connect: OnConnect) -> Looks:
    """Looks at both clusters, and at the target as it would be without the source."""
    from failover.inventory.selection import Selection
    from failover.inventory.status import read_beside
    from failover.library.memory import last_written, recall, undecided
    from failover.planning.status import Looks

    flow = look.mirror.selected.flow
    memory = recall(look.state, look.mirror.selected)
    both = look.snapshot(Selection(), content=False, earlier=memory.earlier)
    alone = None
    if both.source.status.answers and not look.flow.info.reversed:
        # The same target without the source: what there would be to go by if it died this second.
        alone = look.snapshot(Selection(), content=False, source_down=True, earlier=memory.earlier)
    both, beside = read_beside(look.flow, both, look.open)
    places = undecided(both)
    for group, partitions in ({} if alone is None else undecided(alone)).items():
        places.setdefault(group, set()).update(partitions)
    # without it this tool's own commits would be taken for those of somebody who is at work there
    written = last_written(look.state, look.mirror.selected, places)
    plan = _plan(both, memory.plan, written)
    return Looks(
        both=both,
        plan=plan,
        alone=both if alone is None else alone,
        alone_plan=plan if alone is None else _plan(alone, memory.plan, written),
        beside=_with_positions(beside, on_connect),
        heartbeats=flow.emit_heartbeats_enabled and flow.heartbeats_replication_enabled,
        connectors=on_connect.states,
    )


def _with_positions(beside: Beside, on_connect: OnConnect) -> Beside:
    """Adds what Connect tells of partitions whose positions are in no topic that could be read."""
    positions = {**on_connect.positions, **beside.positions.by_partition}
    return msgspec.structs.replace(beside, positions=beside.positions._replace(by_partition=positions))


def _plan(snapshot: Snapshot, earlier: Plan | None, written: dict[str, dict[TopicPartition, int]]) -> Plan:
    from failover._version import __version__
    from failover.model.plan import PlanOptions
    from failover.planning.build import make_plan

    return make_plan(
        snapshot,
        PlanOptions(),
        plan_id="status",
        operator="",
        reason="",
        ttl_seconds=0,
        tool_version=__version__,
        earlier=earlier,
        written=written,
    )
