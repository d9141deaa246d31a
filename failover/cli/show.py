"""`failover show`: one execution or plan in full; settles what an execution left unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from failover.cli.frame import Command, Settings, format_option, pass_settings
from failover.cli.past import plan_of, target_of
from failover.cli.wiring import state_folder, utc_now
from failover.errors import FailoverError, PlanNotFound, RunNotFound

if TYPE_CHECKING:
    from pathlib import Path

    from failover.model.execution import Execution
    from failover.state.folder import StateFolder


@click.command(cls=Command)
@click.argument("reference", metavar="RUN|PLAN")
@format_option("table", "json", "yaml")
@pass_settings
def command(settings: Settings, /, *, reference: str) -> int:
    """Shows one execution or one plan in full, by id or file.

    Where an execution left an outcome unknown, the target is asked what it holds; the answer is kept.
    """
    state = state_folder(settings)
    try:
        path = _find(state, reference)
    except RunNotFound as missing:
        return _show_plan(settings, state, reference, missing)
    return _show_run(settings, path)


def _find(state: StateFolder, reference: str) -> Path:
    """Finds an execution; a file that is a plan counts as not found here."""
    import msgspec

    from failover.state.runs import find_run

    class Head(msgspec.Struct):
        kind: str = ""

    path = find_run(state, reference)
    if path.is_file():
        try:
            kind = msgspec.json.decode(path.read_bytes(), type=Head).kind
        except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
            raise RunNotFound(f"{path} is no record of an execution and no plan: {error}") from error
        if kind == "failover.plan":
            raise RunNotFound(f"{path} is a plan")
    return path


def _show_plan(settings: Settings, state: StateFolder, reference: str, missing: RunNotFound) -> int:
    from failover.cli.plan import show
    from failover.planning.plan_file import decode_plan
    from failover.state.plans import find_plan, read_plan

    try:
        path = find_plan(state, reference)
    except PlanNotFound:
        raise RunNotFound(
            f"there is no execution and no plan {reference} in {state.path}", hint=missing.hint or "failover history"
        ) from None
    show(settings, decode_plan(read_plan(path)), evidence=settings.verbosity > 0)
    return 0


def _show_run(settings: Settings, path: Path) -> int:
    from failover.execution.runs import load_run
    from failover.execution.settle import unknown_groups
    from failover.report.execution_text import execution_text

    execution = load_run(path)
    if unknown_groups(execution) and path.is_dir():
        execution = _settled(settings, path, execution)
    plan = plan_of(path)
    settings.emit_value(execution, {"table": lambda: execution_text(execution, plan, verbosity=settings.verbosity)})
    return 7 if unknown_groups(execution) else 0


def _settled(settings: Settings, folder: Path, execution: Execution) -> Execution:
    """Asks the target; what cannot be asked now stays unknown and is told."""
    from failover.execution.settle import settle, unknown_groups

    count = len(unknown_groups(execution))
    try:
        cluster = target_of(settings, execution)
        try:
            settled = settle(folder, execution, cluster, utc_now())
        finally:
            cluster.close()
    except FailoverError as error:
        settings.say(f"the outcome of {count} groups is still unknown: {error.message}")
        return execution
    settings.say(f"{count - len(unknown_groups(settled))} of {count} unknown outcomes are settled by reading back")
    return settled
