"""`failover history`: executions, roll backs and evictions on record."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from failover.cli.frame import Command, Settings, format_option, pass_settings
from failover.cli.wiring import state_folder, utc_now
from failover.errors import FailoverError

if TYPE_CHECKING:
    from failover.model.execution import RunSummary


@click.command(cls=Command)
@click.option("--plan", "plan_id", metavar="PLAN", help="Only executions of this plan.")
@click.option("-n", "limit", type=click.IntRange(1), default=30, show_default=True, help="How many to list.")
@click.option("--local", is_flag=True, help="Only this machine's: contact no cluster.")
@format_option("table", "json", "yaml")
@pass_settings
def command(settings: Settings, /, *, plan_id: str | None, limit: int, local: bool) -> int:
    """Lists past executions, newest first, and what became of them.

    With a configuration the target is asked for a moment what other machines did.
    """
    from failover.execution.summary import summaries
    from failover.model.execution import History
    from failover.report.history_text import history_text
    from failover.state.runs import all_runs

    found, unreadable = summaries(all_runs(state_folder(settings)))
    elsewhere, notes = ([], []) if local else _elsewhere(settings, {run.id for run in found})
    found = sorted([*found, *elsewhere], key=lambda run: run.started, reverse=True)
    if plan_id is not None:
        found = [run for run in found if run.of.startswith(plan_id)]
    history = History(tuple(found[:limit]), tuple(unreadable), "; ".join(notes))
    settings.emit_value(history, {"table": lambda: history_text(history, utc_now())})
    return 0


def _elsewhere(settings: Settings, known: set[str]) -> tuple[list[RunSummary], list[str]]:
    from failover.cli.past import others
    from failover.execution.summary import of_events

    found: list[RunSummary] = []
    notes: list[str] = []
    for flow, shared in others(settings):
        if isinstance(shared, FailoverError):
            notes.append(f"of {flow} only what this machine did: {shared.message}")
            continue
        for name, run in shared.runs.items():
            if name not in known:
                host = run.started.host or "another machine"
                found.append(of_events(run.started, run.closed(), elsewhere=host))
    return found, notes
