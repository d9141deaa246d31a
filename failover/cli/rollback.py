"""`failover rollback RUN`: puts back the offsets from before an execution."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from failover.cli.frame import Command, Settings, confirm_typed, format_option, pass_settings, require_terminal
from failover.cli.past import locate, plan_of, target_of
from failover.cli.shared import locked
from failover.cli.wiring import operator, state_folder, utc_now
from failover.errors import UsageError

if TYPE_CHECKING:
    from failover.model.execution import Execution, Rehearsal


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
    from failover.cli.running import run_session
    from failover.execution.record import exit_code
    from failover.execution.rollback import rehearse_undo, written_groups
    from failover.execution.session import Session
    from failover.planning.drift import check_cluster
    from failover.report.execution_text import execution_text
    from failover.report.inert import inert_line
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
        nothing = f"{undone.id} wrote nothing: there is nothing to roll back"
        settings.emit_value(
            _empty_rehearsal(undone) if dry_run else _empty_run(undone, reason), {"table": lambda: inert_line(nothing)}
        )
        return 0
    cluster, topic, *_ = target_of(settings, undone)
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
            execution = run_session(
                settings,
                common,
                reason,
                lambda ways: Session.of_undo(undone, state, cluster, ways),
                again=lambda _: f"failover rollback {undone.id} goes on: what is back already is not written again",
            )
    finally:
        cluster.close()
    plan = plan_of(located.folder)
    settings.emit_value(execution, {"table": lambda: execution_text(execution, plan, verbosity=settings.verbosity)})
    return exit_code(execution)


def _empty_rehearsal(undone: Execution) -> Rehearsal:
    from failover.model.execution import Rehearsal

    return Rehearsal(undone.plan_id, utc_now(), undone.target_alias, (), 0, undoes=undone.id)


def _empty_run(undone: Execution, reason: str) -> Execution:
    """Is the answer where nothing is to be put back: no run is begun, so it has no id."""
    from failover._version import __version__
    from failover.model.execution import Execution, Outcome

    now = utc_now()
    return Execution(
        version=undone.version,
        id="",
        plan_id=undone.plan_id,
        fingerprint=undone.fingerprint,
        started=now,
        finished=now,
        outcome=Outcome.DONE,
        tool_version=__version__,
        operator=operator(),
        reason=reason,
        source_alias=undone.source_alias,
        target_alias=undone.target_alias,
        target_cluster_id=undone.target_cluster_id,
        groups=(),
        undoes=undone.id,
    )
