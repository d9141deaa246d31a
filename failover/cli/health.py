"""`failover health`: the checklists of a day and of a week."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from failover.cli.frame import Command, Settings, format_option, pass_settings
from failover.cli.looking import looking, on_connect
from failover.cli.wiring import choose_flow, load

if TYPE_CHECKING:
    from failover.model.health import Period


@click.command(cls=Command)
@click.argument("period", type=click.Choice(["daily", "weekly"]), default="daily")
@format_option("table", "json", "yaml", "markdown")
@pass_settings
def command(settings: Settings, /, *, period: Period) -> int:
    """Goes through a checklist: what is well, what is not, and what to do about it.

    daily: the mirror runs, its lag by three ways, heartbeats, checkpoints, groups. weekly: also new topics,
    groups that stand still, rights, settings and retention, partition counts, offsets about to expire, unused
    topics, disks, versions. Ends with 0 when nothing is above info, 3 for an error, 4 for a warning.
    `failover run health-daily` goes through the same points and keeps the answers.
    """
    from failover.library.health import Checkup
    from failover.report.health_text import health_markdown, health_text

    config = load(settings)
    selected = choose_flow(settings, config, allow_reverse=True)
    with looking(settings, config, selected) as look:
        health = Checkup(look, on_connect(settings, look)).health(period)
    settings.emit_value(
        health,
        {
            "table": lambda: health_text(health, verbosity=settings.verbosity),
            "markdown": lambda: health_markdown(health),
        },
    )
    return health.exit_code
