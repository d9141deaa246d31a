"""`failover run PLAYBOOK`: runs a playbook's steps, with a journal, from where it stands."""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING

import click

from failover.cli.frame import Command, Settings, asked, format_option, pass_settings, require_terminal
from failover.cli.params import MOMENT
from failover.cli.stop import Stop
from failover.cli.wiring import choose_flow, load, operator, state_folder, utc_now
from failover.errors import ConfigNotFound, FlowAmbiguous, Interrupted, PlaybookInvalid, Refused, UsageError

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from failover.runbook.playbook import Playbook, Value
    from failover.runbook.reach import Reach
    from failover.runbook.record import RunLog
    from failover.runbook.runner import Runner, Surroundings
    from failover.state.folder import StateFolder


@click.command(cls=Command)
@click.argument("playbook", required=False, default="")
@click.option("--var", "given", multiple=True, metavar="NAME=VALUE", help="A variable's value (repeatable).")
@click.option("--dry-run", is_flag=True, help="Say what every step would do; change nothing.")
@click.option("--resume", metavar="RUN", default="", help="Go on with a run that failed, was stopped or cut short.")
@click.option("--undo", is_flag=True, help="With --resume: put back what the run did.")
@click.option(
    "--from", "begin_at", metavar="STEP", default="", help="Begin at this step; those before are passed over."
)
@click.option("--at", type=MOMENT, help="Begin at this time, such as 2026-12-01T02:00:00Z.")
@click.option("--yes", is_flag=True, help="Answer every question with yes; what is done by hand is taken for done.")
@click.option("--self-approve", is_flag=True, help="The starter's own approval is enough.")
@format_option("table", "json", "yaml")
@pass_settings
def command(
    settings: Settings,
    /,
    *,
    playbook: str,
    given: tuple[str, ...],
    dry_run: bool,
    resume: str,
    undo: bool,
    begin_at: str,
    at: datetime | None,
    yes: bool,
    self_approve: bool,
) -> int:
    """Runs a playbook: one that comes along (failover playbook list), or a file of your own.

    Every step is in the journal before it acts. A failure puts back what was done, up to the point of no return that
    the playbook names. Ctrl-C stops after the step that is under way; --resume goes on there, also after a crash.
    """
    _check(playbook, resume, undo=undo, anew=bool(given or begin_at or dry_run))
    from failover.runbook.fitting import require_fitting
    from failover.runbook.kinds import kind
    from failover.runbook.library import playbook_text
    from failover.runbook.parse import parse
    from failover.runbook.variables import variables_of

    with _reach(settings) as reach:
        around = _surroundings(settings, reach, yes=yes, self_approve=self_approve)
        if resume:
            return _resume(settings, resume, around, undo=undo)
        text, where = playbook_text(playbook)
        read = parse(text, where)
        variables = variables_of(read, _pairs(given))
        require_fitting(read, variables)
        if begin_at and begin_at not in {step.id for step in read.steps}:
            raise UsageError(f"{read.name} has no step {begin_at!r}", hint=f"failover playbook show {playbook}")
        if dry_run:
            return _preview(settings, read, variables, around)
        if any(step.confirm is not None or kind(step.action.uses).asks for step in read.steps):
            require_terminal(assume_yes=yes)
        if at is not None:
            _wait_until(settings, at)
        return _start(settings, read, text, around, variables=variables, begin_at=begin_at)


def _start(
    settings: Settings,
    playbook: Playbook,
    text: str,
    around: Surroundings,
    *,
    variables: dict[str, Value],
    begin_at: str,
) -> int:
    from failover._version import __version__
    from failover.runbook.events import Started
    from failover.runbook.record import RunLog
    from failover.runbook.runner import Runner
    from failover.state.playbook_runs import new_playbook_run

    reach = around.reach
    _forecast(settings, playbook, reach.state)
    run_id, folder = new_playbook_run(reach.state, text)
    log = RunLog(folder)
    started = Started(
        at=utc_now(),
        run_id=run_id,
        playbook=playbook.name,
        digest=playbook.digest,
        variables=variables,
        operator=around.operator,
        host=socket.gethostname(),
        tool_version=__version__,
        source=reach.flow.source if reach.chosen else "",
        target=reach.flow.target if reach.chosen else "",
        begins_at=begin_at,
    )
    log.note(started)
    settings.say(f"run {run_id} of {playbook.name}; its journal is in {folder}")
    return _drive(settings, folder, Runner(playbook, [started], log, around), log)


def _forecast(settings: Settings, playbook: Playbook, state: StateFolder) -> None:
    """Says how long it will take, where earlier runs tell."""
    from failover.runbook.history import earlier_runs, forecast
    from failover.runbook.history_text import forecast_text

    found = forecast(playbook, earlier_runs(state, settings.say, playbook.name))
    if found is not None:
        settings.say(forecast_text(found))


def _check(playbook: str, resume: str, *, undo: bool, anew: bool) -> None:
    if resume and (playbook or anew):
        raise UsageError(
            "--resume goes on with the run's own playbook and variables", hint=f"failover run --resume {resume}"
        )
    if undo and not resume:
        raise UsageError("--undo needs --resume RUN", hint="failover history lists the runs")
    if not resume and not playbook:
        raise UsageError("which playbook?", hint="failover playbook list names those that come along")


def _pairs(given: tuple[str, ...]) -> dict[str, str]:
    pairs = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals:
            raise PlaybookInvalid(f"--var {each!r} has no value", hint="--var NAME=VALUE")
        pairs[name.strip()] = value
    return pairs


def _reach(settings: Settings) -> Reach:
    """Finds the flow and the state folder; a playbook without clusters needs no configuration."""
    from failover.library.flows import MirrorFlow
    from failover.runbook.reach import Reach

    timeouts = (settings.source_timeout(), settings.target_timeout())
    try:
        config = load(settings)
        selected = choose_flow(settings, config, allow_reverse=True)
    except (ConfigNotFound, FlowAmbiguous) as error:
        if settings.config or settings.source or settings.target:
            raise
        if settings.verbosity:
            settings.say(f"no flow is chosen: {error.message}")
        return Reach(None, state_folder(settings), timeouts=timeouts, source_down=settings.source_down)
    state = state_folder(settings, config)
    return Reach(MirrorFlow(config, selected), state, timeouts=timeouts, source_down=settings.source_down)


def _surroundings(settings: Settings, reach: Reach, *, yes: bool, self_approve: bool) -> Surroundings:
    from failover.runbook.runner import Surroundings

    return Surroundings(
        now=utc_now,
        clock=time.monotonic,
        sleep=time.sleep,
        ask=_asked,
        say=settings.say,
        stop=lambda: "",
        operator=operator(),
        reach=reach,
        assumed=yes,
        self_approve=self_approve,
    )


def _asked(question: str, typed: str) -> bool:
    from failover.report.inert import inert_line

    return asked(inert_line(question), inert_line(typed) or "yes")


def _resume(settings: Settings, reference: str, around: Surroundings, *, undo: bool) -> int:
    from failover.runbook.engine import fold
    from failover.runbook.events import Resumed, TurnedBack
    from failover.runbook.record import RunLog, read_run
    from failover.runbook.runner import Runner
    from failover.state.playbook_runs import find_playbook_run

    folder = find_playbook_run(around.reach.state, reference)
    log = RunLog(folder)  # first: while another process runs it, what is on disk is not all
    playbook, events = read_run(folder)
    was = fold(playbook, events)
    if was.finished is not None and was.finished.outcome in ("done", "undone"):
        raise Refused(
            f"run {folder.name} is over: {was.finished.outcome}", hint=f"a new one: failover run {playbook.name}"
        )
    if undo and was.final_begun:
        raise Refused(
            f"step {was.final_begun} of run {folder.name} has begun: there is no way back by itself",
            hint=f"failover show {folder.name} says what stands",
        )
    runner = Runner(playbook, events, log, around)
    reach = around.reach
    here = (reach.flow.source, reach.flow.target) if reach.chosen else ("", "")
    if here != runner.aliases:
        raise UsageError(
            f"run {folder.name} is about {'->'.join(filter(None, runner.aliases)) or 'no flow'}, "
            f"here it is {'->'.join(filter(None, here)) or 'none'}",
            hint="give the configuration it was started with; --source and --target choose the flow",
        )
    runner.add(Resumed(utc_now(), around.operator, socket.gethostname()))
    if undo:
        runner.add(TurnedBack(utc_now(), around.operator))
    return _drive(settings, folder, runner, log)


def _drive(settings: Settings, folder: Path, runner: Runner, log: RunLog) -> int:
    import msgspec

    from failover.report.encode import to_json
    from failover.runbook.record import read_run, record_of
    from failover.runbook.text import run_text
    from failover.state.playbook_runs import RECORD

    stopped: Interrupted | None = None
    try:
        with Stop(settings) as stop:
            runner.around = msgspec.structs.replace(runner.around, stop=stop)
            code = runner.run().exit_code
    except Interrupted as error:
        stopped, code = error, 128 + error.signal_number
    finally:
        log.close()
    record = record_of(*read_run(folder))
    runner.around.reach.state.write(folder / RECORD, to_json(record).encode())
    settings.emit_value(record, {"table": lambda: run_text(record)})
    if stopped is not None:
        raise stopped
    return code


def _preview(settings: Settings, playbook: Playbook, variables: dict[str, Value], around: Surroundings) -> int:
    from failover.runbook.runner import preview
    from failover.runbook.text import preview_text

    found = preview(playbook, variables, around)
    settings.emit_value(found, {"table": lambda: preview_text(playbook, found)})
    return 3 if any(each.problem for each in found) else 0


def _wait_until(settings: Settings, at: datetime) -> None:
    left = (at - utc_now()).total_seconds()
    if left <= 0:
        raise UsageError(f"{at:%Y-%m-%d %H:%M:%S} UTC is over", hint="name a time to come, or leave --at out")
    settings.say(f"begins at {at:%Y-%m-%d %H:%M:%S} UTC, in {left:.0f} s; Ctrl-C gives it up")
    while (left := (at - utc_now()).total_seconds()) > 0:
        time.sleep(min(left, 1.0))
