"""A checklist gone through, as `failover health` does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from failover.checks.status_checks import Limits
    from failover.library.open_flow import OpenFlow
    from failover.model.health import Health, Period
    from failover.model.status import ConnectorState

HEARTBEAT_INTERVALS = 10
"""How many heartbeats may be missing: at MM2's one a second that is the 10 s of the usual checklists."""


def take_health(
    look: OpenFlow, period: Period, connectors: tuple[ConnectorState, ...] = (), limits: Limits | None = None
) -> Health:
    """Looks at both clusters and answers the list of a day or of a week; writes nothing to either.

    ``connectors``: their states where a Kafka Connect cluster was asked. ``limits``: from when on the flow is found
    wanting, None: the usual ones. Raises what ``take_snapshot`` raises.
    """
    from failover.inventory.health import internal_topics, read_sides
    from failover.library.status import take_looks
    from failover.model.health import HealthFacts, Sides
    from failover.planning.health import make_health
    from failover.planning.status import make_status

    flow = look.mirror.selected.flow
    looks = take_looks(look, connectors)
    status = make_status(looks, limits or usual_limits(look))
    source, target = Sides(), Sides()
    if period == "weekly":
        source, target = read_sides(look.flow, looks.both, look.open)
    connector = flow.connectors["source"]
    key = "sync.topic.configs.enabled"
    return make_health(
        HealthFacts(
            period=period,
            status=status,
            snapshot=looks.both,
            source=source,
            target=target,
            internal=internal_topics(look.flow),
            refresh_seconds=flow.refresh_topics_interval_seconds,
            configs_synced=key not in connector or connector.boolean(key),
            last_records=looks.beside.source_times,
        )
    )


def usual_limits(look: OpenFlow) -> Limits:
    """Gives those of a status, with less patience for heartbeats: they come every second or so."""
    from failover.library import status

    patience = max(10.0, HEARTBEAT_INTERVALS * look.mirror.selected.flow.emit_heartbeats_interval_seconds)
    return msgspec.structs.replace(status.usual_limits(look), heartbeat_seconds=patience)
