"""`failover rollback RUN`: puts back the offsets from before an execution."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import click

from failover.cli.frame import Command, Settings, confirm_typed, format_option, pass_settings, require_terminal
from failover.cli.past import locate, plan_of, target_of
from failover.cli.progress import ProgressBar
from failover.cli.shared import locked
from failover.cli.stop import Stop
from failover.cli.wiring import operator, state_folder, utc_now
from failover.errors import ClusterError, Interrupted, UsageError

if TYPE_CHECKING:
    from failover.cli.shared import Common
    from failover.kafka.port import Cluster
    from failover.model.execution import Execution
    from failover.state.folder import StateFolder


@click.command(cls=Command)
@click.argument("reference", metavar="RUN")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Show what would be put back now; write nothing.")
@click.option("--ignore-lock", is_flag=True, help="Go on although another process alive holds the lock.")
@click.option("--reason", default="", metavar="TEXT", help="Why, for the record.")
@format_option("table", "json", "yaml")
@pass_settings
def command(settings: Settings, /, *, reference: str, yes: bool, dry_run: bool, ignore_lock: bool, reason: str) -> int:
    """Puts back the offsets that stood before an execution.

    RUN is an id or the path of a run's JSON. Commits that did not exist are deleted, and so are
    groups that did not. Partitions on which consumers went on since are left as they are.
    """
    from failover.execution.record import exit_code
    from failover.execution.rollback import rehearse_undo, written_groups
    from failover.planning.drift import check_cluster
    from failover.report.execution_text import execution_text
    from failover.report.rollback_text import rollback_text

    if not dry_run:
        require_terminal(assume_yes=yes)
    state = state_folder(settings)
    located = locate(settings, state, reference)
    undone = located.execution
    if undone.undoes:
        raise UsageError(
            f"{undone.id} is itself a roll back of {undone.undoes}", hint="execute the plan anew: failover plan"
        )
    if not written_groups(undone):
        settings.say(f"{undone.id} wrote nothing: there is nothing to roll back")
        return 0
    cluster, topic = target_of(settings, undone)
    try:
        found = cluster.facts().cluster_id
        check_cluster(undone.target_alias, undone.target_cluster_id, found, f"execution {undone.id}")
        if dry_run:
            rehearsal = rehearse_undo(undone, cluster, utc_now())
            settings.emit_value(rehearsal, {"table": lambda: rollback_text(rehearsal, undone)})
            return rehearsal.exit_code
        with locked(settings, cluster, topic, f"rollback {undone.id}", ignore=ignore_lock) as common:
            rehearsal = rehearse_undo(undone, cluster, utc_now())
            if any(group.changes or group.removes for group in rehearsal.groups):
                confirm_typed(rollback_text(rehearsal, undone), undone.target_alias, assume_yes=yes)
            execution = _run(settings, cluster, state, undone, common=common, reason=reason)
    finally:
        cluster.close()
    plan = plan_of(located.folder)
    settings.emit_value(execution, {"table": lambda: execution_text(execution, plan, verbosity=settings.verbosity)})
    return exit_code(execution)


def _run(
    settings: Settings, cluster: Cluster, state: StateFolder, undone: Execution, *, common: Common, reason: str
) -> Execution:
    """Opens the journal and rolls back."""
    from failover._version import __version__
    from failover.execution.rollback import Undoer, written_groups
    from failover.execution.runlog import SharedJournal
    from failover.execution.runs import encode_execution, load_run
    from failover.state.journal import Journal, Started
    from failover.state.runs import JOURNAL, RECORD, ROLLBACK, UNDONE, new_run

    run_id, folder = new_run(state, ROLLBACK)
    state.write(folder / UNDONE, encode_execution(undone))
    started = Started(
        at=utc_now(),
        execution_id=run_id,
        plan_id=undone.plan_id,
        fingerprint=undone.fingerprint,
        tool_version=__version__,
        operator=operator(),
        reason=reason,
        source_alias=undone.source_alias,
        target_alias=undone.target_alias,
        target_cluster_id=undone.target_cluster_id,
        selected=tuple(group.group for group in written_groups(undone)),
        undoes=undone.id,
        host=socket.gethostname(),
    )
    again = f"failover rollback {undone.id} goes on: what is back already is not written again"
    journal = Journal(folder / JOURNAL)
    notebook = SharedJournal(journal, common.log, run_id, lambda text: settings.say(f"warning: {text}"))
    try:
        with ProgressBar(settings) as progress, Stop(settings) as stop:
            undoer = Undoer(undone, cluster, notebook, clock=utc_now, progress=progress, stop=stop)
            execution = undoer.run(started, common.warnings)
    except (Interrupted, KeyboardInterrupt) as error:
        number = error.signal_number if isinstance(error, Interrupted) else 2
        text = f"interrupted in {run_id}; what was under way may or may not be back"
        raise Interrupted(text, signal_number=number, hint=again) from error
    except ClusterError as error:
        error.hint = f"{error.hint}; then {again}" if error.hint else again
        raise
    finally:
        journal.close()
        state.write(folder / RECORD, encode_execution(load_run(folder)))
    if stop.number and any(p.reason == "not-reached" for group in execution.groups for p in group.partitions):
        raise Interrupted(
            f"stopped by {stop()} in {run_id}; nothing is under way", signal_number=stop.number, hint=again
        )
    return execution
