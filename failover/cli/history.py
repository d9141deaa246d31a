"""`failover history`: executions, roll backs and evictions on record."""

from __future__ import annotations

import click

from failover.cli.frame import Command, Settings, format_option, pass_settings
from failover.cli.wiring import state_folder, utc_now


@click.command(cls=Command)
@click.option("--plan", "plan_id", metavar="PLAN", help="Only executions of this plan.")
@click.option("-n", "limit", type=click.IntRange(1), default=30, show_default=True, help="How many to list.")
@format_option("table", "json", "yaml")
@pass_settings
def command(settings: Settings, /, *, plan_id: str | None, limit: int) -> int:
    """Lists past executions, newest first, and what became of them.

    Contacts no cluster.
    """
    from failover.execution.summary import summaries
    from failover.model.execution import History
    from failover.report.history_text import history_text
    from failover.state.runs import all_runs

    found, unreadable = summaries(all_runs(state_folder(settings)))
    if plan_id is not None:
        found = [run for run in found if run.of.startswith(plan_id)]
    history = History(tuple(found[:limit]), tuple(unreadable))
    settings.emit_value(history, {"table": lambda: history_text(history, utc_now())})
    return 0
