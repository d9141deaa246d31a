"""`failover history`: executions, roll backs and evictions on record."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from failover.cli.frame import Command, Settings, format_option, pass_settings
from failover.cli.wiring import state_folder, utc_now
from failover.errors import FailoverError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from failover.model.execution import RunSummary
    from failover.runbook.history import Drill
    from failover.runbook.record import RunRecord
    from failover.state.folder import StateFolder


@click.command(cls=Command)
@click.option("--plan", "plan_id", metavar="PLAN", help="Only executions of this plan.")
@click.option("-n", "limit", type=click.IntRange(1), default=30, show_default=True, help="How many to list.")
@click.option("--local", is_flag=True, help="Only this machine's: contact no cluster.")
@format_option("table", "json", "yaml")
@pass_settings
def command(settings: Settings, /, *, plan_id: str | None, limit: int, local: bool) -> int:
    """Lists past executions, newest first, what became of them, and what verify said last; then runs of playbooks.

    With a configuration the target is asked for a moment what other machines did.
    """
    import msgspec

    from failover.execution.summary import summaries
    from failover.model.execution import History
    from failover.report.history_text import history_text
    from failover.runbook.history import drills
    from failover.state.runs import all_runs

    state = state_folder(settings)
    found, unreadable = summaries(all_runs(state))
    elsewhere, notes = ([], []) if local else _elsewhere(settings, {run.id for run in found})
    found = sorted([*found, *elsewhere], key=lambda run: run.started, reverse=True)
    if plan_id is not None:
        found = [run for run in found if run.of.startswith(plan_id)]
    shown = [run if run.elsewhere else _with_look(state, run) for run in found[:limit]]
    playbooks, broken = _playbook_runs(state, limit) if plan_id is None else ([], [])
    tried = drills(playbooks)
    history = History(tuple(shown), (*unreadable, *broken), "; ".join(notes))

    def text() -> str:
        from failover.runbook.text import runs_text

        told = history_text(history, utc_now())
        return "\n".join([told, *([runs_text(playbooks)] if playbooks else []), *_drills_text(tried)])

    emitted = {**msgspec.to_builtins(history), "playbook_runs": playbooks, "drills": tried}
    settings.emit_value(emitted, {"table": text})
    return 0


def _playbook_runs(state: StateFolder, limit: int) -> tuple[list[RunRecord], list[str]]:
    """Reads the newest runs of playbooks, and a line for each that is unreadable."""
    from itertools import islice

    from failover.runbook.record import read_run, record_of
    from failover.state.playbook_runs import all_playbook_runs

    found, unreadable = [], []
    for folder in islice(all_playbook_runs(state), limit):
        try:
            found.append(record_of(*read_run(folder)))
        except FailoverError as error:
            unreadable.append(f"{folder.name}: {error.message}")
    return found, unreadable


def _drills_text(tried: Sequence[Drill]) -> list[str]:
    if not tried:
        return []
    from failover.runbook.history import trend
    from failover.runbook.history_text import drills_text, trend_text

    line = trend_text(trend(tried))
    return [f"{drills_text(tried)}\n", *([f"{line}\n"] if line else [])]


def _with_look(state: StateFolder, run: RunSummary) -> RunSummary:
    import msgspec

    from failover.execution.summary import last_look

    return msgspec.structs.replace(run, verified=last_look(state.executions / run.id))


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
