"""`failover health`: the checklists of a day and of a week."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from failover.cli.frame import Command, Settings, format_option, pass_settings
from failover.cli.looking import looking
from failover.cli.status import limits, take_looks
from failover.cli.wiring import choose_flow, load

if TYPE_CHECKING:
    from typing import Literal

    from failover.cli.looking import Looking
    from failover.model.health import Health
    from failover.model.status import ConnectorState

HEARTBEAT_INTERVALS = 10
"""How many heartbeats may be missing: at MM2's one a second that is the 10 s of the usual checklists."""


@click.command(cls=Command)
@click.argument("period", type=click.Choice(["daily", "weekly"]), default="daily")
@format_option("table", "json", "yaml", "markdown")
@pass_settings
def command(settings: Settings, /, *, period: Literal["daily", "weekly"]) -> int:
    """Goes through a checklist: what is well, what is not, and what to do about it.

    daily: the mirror runs, its lag by three ways, heartbeats, checkpoints, groups. weekly: also new topics,
    groups that stand still, rights, settings and retention, partition counts, offsets about to expire, unused
    topics, disks, versions. Ends with 0 when nothing is above info, 3 for an error, 4 for a warning.
    """
    from failover.cli.connect_states import connector_states
    from failover.report.health_text import health_markdown, health_text

    config = load(settings)
    selected = choose_flow(settings, config, allow_reverse=True)
    with looking(settings, config, selected) as look:
        health = take_health(settings, look, period, connector_states(settings, config, selected))
    settings.emit_value(
        health,
        {
            "table": lambda: health_text(health, verbosity=settings.verbosity),
            "markdown": lambda: health_markdown(health),
        },
    )
    return health.exit_code


def take_health(
    settings: Settings,
    look: Looking,
    period: Literal["daily", "weekly"],
    connectors: tuple[ConnectorState, ...] = (),
) -> Health:
    """Looks at both clusters and answers the list; ``connectors``: states, where a Connect cluster was asked."""
    from failover.inventory.health import internal_topics, read_sides
    from failover.model.health import HealthFacts, Sides
    from failover.planning.health import make_health
    from failover.planning.status import make_status

    flow = look.selected.flow
    looks = take_looks(settings, look, connectors)
    patience = max(10.0, HEARTBEAT_INTERVALS * flow.emit_heartbeats_interval_seconds)
    status = make_status(looks, limits(look, heartbeat_seconds=patience))
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
