"""`failover report`: an execution, a run of a playbook, or a plan, as one file for people who were not there."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from failover.cli.frame import Command, Settings, format_option, pass_settings
from failover.cli.past import locate, plan_of, undone_by
from failover.cli.wiring import state_folder
from failover.errors import PlanNotFound, RunNotFound, UsageError
from failover.state.playbook_runs import PLAYBOOK_RUN
from failover.state.runs import is_file

if TYPE_CHECKING:
    from failover.model.execution import Execution
    from failover.model.plan import Plan
    from failover.runbook.record import RunRecord
    from failover.state.folder import StateFolder


@click.command(cls=Command)
@click.argument("reference", metavar="RUN|PLAN")
@click.option("-o", "--output", "output", metavar="FILE", help="Write the report there.")
@format_option("html", "markdown", "json", "yaml")
@pass_settings
def command(settings: Settings, /, *, reference: str, output: str | None) -> int:
    """Writes one self-contained HTML file about an execution, a run of a playbook or a plan, by id or file.

    It opens anywhere, without a network: verdict first, then what was lost, read again, skipped and
    left, or what each step came to and what is left to do, with charts and tables that sort and search.
    On a terminal, without -o, it becomes a file in the current folder. Markdown is for tickets.
    """
    from failover.cli.plan import require_place, write_out

    if output is not None:
        require_place(Path(output).expanduser())
    name, text = _written(settings, state_folder(settings), reference)
    if output is None and settings.format == "html" and sys.stdout.isatty():
        output = f"failover-{name}.html"
    if output is None:
        settings.emit(text)
        return 0
    target = Path(output).expanduser()
    write_out(target, text)
    settings.say(f"report of {name}: {target.absolute()}")
    return 0


def _written(settings: Settings, state: StateFolder, reference: str) -> tuple[str, str]:
    """Gives the id of what is reported and the report's text."""
    from failover.planning.plan_file import decode_plan
    from failover.state.plans import find_plan, read_plan
    from failover.state.runs import EVICTION

    if reference.startswith(EVICTION) and not is_file(reference):
        raise UsageError(f"{reference} is an eviction, which has no report", hint=f"failover show {reference}")
    if reference.startswith(PLAYBOOK_RUN) or is_file(reference):
        from failover.runbook.record import find_record

        record = find_record(state, reference)
        if record is not None:
            return record.id, of_run(settings, record)
    if not _is_plan_file(reference):
        try:
            located = locate(settings, state, reference)
        except RunNotFound as error:
            if is_file(reference):
                raise
            missing = error
        else:
            undone = undone_by(state, located.execution)
            return located.execution.id, of_execution(settings, located.execution, plan_of(located.folder), undone)
    else:
        missing = RunNotFound(f"there is no plan {reference}")
    try:
        path = find_plan(state, reference)
    except PlanNotFound:
        hint = missing.hint or "failover history lists what this machine knows"
        raise RunNotFound(f"there is no execution and no plan {reference} in {state.path}", hint=hint) from None
    plan = decode_plan(read_plan(path), str(path))
    return f"plan-{plan.id}", of_plan(settings, plan)


def _is_plan_file(reference: str) -> bool:
    """Says whether a reference is a file that calls itself a plan; whether it is a good one is found out later."""
    import msgspec

    class Head(msgspec.Struct):
        kind: str = ""

    if not is_file(reference):
        return False
    try:
        return msgspec.json.decode(Path(reference).expanduser().read_bytes(), type=Head).kind == "failover.plan"
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return False


def of_plan(settings: Settings, plan: Plan) -> str:
    """Writes a plan's report in the asked format."""
    from failover.report.html import plan_html
    from failover.report.plan_markdown import plan_markdown

    return settings.written(plan, {"html": lambda: plan_html(plan), "markdown": lambda: plan_markdown(plan)})


def of_run(settings: Settings, record: RunRecord) -> str:
    """Writes the report of a playbook's run in the asked format."""
    from failover.runbook.run_report import run_html, run_markdown

    return settings.written(record, {"html": lambda: run_html(record), "markdown": lambda: run_markdown(record)})


def of_execution(settings: Settings, execution: Execution, plan: Plan | None, undone: str = "") -> str:
    """Writes an execution's report in the asked format."""
    from failover.report.execution_markdown import execution_markdown
    from failover.report.html import execution_html

    return settings.written(
        execution,
        {
            "html": lambda: execution_html(execution, plan, undone=undone),
            "markdown": lambda: execution_markdown(execution, plan, undone=undone),
        },
    )
