"""`failover show`: one execution or plan in full; settles what an execution left unknown."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from failover.cli.frame import Command, Settings, format_option, pass_settings
from failover.cli.past import Located, locate, plan_of, target_of, undone_by
from failover.cli.wiring import state_folder, utc_now
from failover.errors import FailoverError, PlanNotFound, RunNotFound
from failover.state.playbook_runs import PLAYBOOK_RUN
from failover.state.runs import EVICTION, JOURNAL, find_run, is_file

if TYPE_CHECKING:
    from failover.model.execution import Execution
    from failover.runbook.record import RunRecord
    from failover.state.folder import StateFolder


@click.command(cls=Command)
@click.argument("reference", metavar="RUN|PLAN")
@format_option("table", "json", "yaml")
@pass_settings
def command(settings: Settings, /, *, reference: str) -> int:
    """Shows one execution, one run of a playbook or one plan in full, by id or file.

    Where an execution left an outcome unknown, the target is asked what it holds; the answer is kept.
    """
    state = state_folder(settings)
    if reference.startswith(EVICTION):
        return _show_eviction(settings, state, reference)
    if reference.startswith(PLAYBOOK_RUN) or is_file(reference):
        from failover.runbook.record import find_record

        record = find_record(state, reference)
        if record is not None:
            return _show_playbook_run(settings, record)
    plan = _plan_file(state, reference)
    if plan is not None:
        return _show_plan(settings, plan)
    return _show_run(settings, state, locate(settings, state, reference))


def _show_eviction(settings: Settings, state: StateFolder, reference: str) -> int:
    from failover.execution.evict import build_eviction
    from failover.report.evict_text import eviction_text
    from failover.state.journal import read_journal

    eviction = build_eviction(read_journal(find_run(state, reference) / JOURNAL))
    settings.emit_value(eviction, {"table": lambda: eviction_text(eviction)})
    return 0


def _show_playbook_run(settings: Settings, record: RunRecord) -> int:
    from failover.runbook.text import run_text

    settings.emit_value(record, {"table": lambda: run_text(record)})
    return 0


def _plan_file(state: StateFolder, reference: str) -> Path | None:
    """Finds a plan by file, or by id where no execution here has it."""
    import msgspec

    from failover.state.plans import find_plan

    class Head(msgspec.Struct):
        kind: str = ""

    if is_file(reference):
        path = Path(reference).expanduser()
        try:
            return path if msgspec.json.decode(path.read_bytes(), type=Head).kind == "failover.plan" else None
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return None
    try:
        find_run(state, reference)
    except RunNotFound:
        try:
            return find_plan(state, reference)
        except PlanNotFound:
            return None
    return None


def _show_plan(settings: Settings, path: Path) -> int:
    from failover.cli.plan import show
    from failover.planning.plan_file import decode_plan
    from failover.state.plans import read_plan

    show(settings, decode_plan(read_plan(path), str(path)), evidence=settings.verbosity > 0)
    return 0


def _show_run(settings: Settings, state: StateFolder, located: Located) -> int:
    from failover.execution.settle import unknown_groups
    from failover.report.execution_text import execution_text

    execution = located.execution
    if unknown_groups(execution) and located.folder is not None:
        execution = _settled(settings, located.folder, execution)
    plan = plan_of(located.folder)

    def text() -> str:
        return execution_text(execution, plan, undone=undone_by(state, execution), verbosity=settings.verbosity)

    settings.emit_value(execution, {"table": text})
    return 7 if unknown_groups(execution) else 0


def _settled(settings: Settings, folder: Path, execution: Execution) -> Execution:
    """Asks the target; what cannot be asked now stays unknown and is told."""
    from failover.execution.runs import with_last_look
    from failover.execution.settle import settle, unknown_groups
    from failover.report.values import things

    count = len(unknown_groups(execution))
    try:
        cluster = target_of(settings, execution).cluster
        try:
            settled = settle(folder, execution, cluster, utc_now())
        finally:
            cluster.close()
    except FailoverError as error:
        settings.say(f"the outcome of {things(count, 'group')} is still unknown: {error.message}")
        return execution
    settled = with_last_look(settled, folder)
    settings.say(f"{count - len(unknown_groups(settled))} of {count} unknown outcomes are settled by reading back")
    return settled
