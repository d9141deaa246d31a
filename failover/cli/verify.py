"""`failover verify RUN`: looks at the target again, and watches consumers come back."""

from __future__ import annotations

import time
from datetime import datetime
from typing import TYPE_CHECKING

import click

from failover.cli.frame import Command, Settings, format_option, pass_settings
from failover.cli.params import DURATION
from failover.cli.past import locate, target_of
from failover.cli.progress import ProgressBar
from failover.cli.stop import Stop
from failover.cli.wiring import state_folder, utc_now
from failover.errors import Interrupted, StateError

if TYPE_CHECKING:
    from failover.cli.past import Located, Target
    from failover.execution.verify import GroupSync
    from failover.model.execution import Execution
    from failover.state.folder import StateFolder


@click.command(cls=Command)
@click.argument("reference", metavar="RUN")
@click.option("--for", "watch", type=DURATION, default=0.0, help="Watch that long which groups come back and get on.")
@format_option("table", "json", "yaml")
@pass_settings
def command(settings: Settings, /, *, reference: str, watch: float) -> int:
    """Reads the target again: does it still hold what an execution wrote, and who consumes.

    RUN is an id or the path of a run's JSON. At or beyond the written value, with members since, is
    success. With --for it ends early once every group is back. The result is kept with the run: show,
    report and history tell it.
    """
    from failover.execution.verify import verified_groups
    from failover.planning.drift import check_cluster
    from failover.report.inert import inert_line
    from failover.report.verify_text import verify_text

    state = state_folder(settings)
    located = locate(settings, state, reference)
    execution = located.execution
    if not verified_groups(execution):
        nothing = f"{execution.id} wrote nothing: there is nothing to verify"
        settings.emit_value(execution, {"table": lambda: inert_line(nothing)})
        return 0
    target = target_of(settings, execution)
    cluster = target.cluster
    try:
        found = cluster.facts().cluster_id
        check_cluster(execution.target_alias, execution.target_cluster_id, found, f"execution {execution.id}")
        execution, stopped = _verify(settings, state, target, located, watch)
    finally:
        cluster.close()
    verified = execution.verified
    if verified is None:
        raise AssertionError("a verified execution says so")
    settings.emit_value(execution, {"table": lambda: verify_text(execution, verified, verbosity=settings.verbosity)})
    if stopped and verified.exit_code == 4:
        raise Interrupted("stopped watching; the table is as of now", signal_number=stopped)
    return verified.exit_code


def _verify(
    settings: Settings, state: StateFolder, target: Target, located: Located, watch: float
) -> tuple[Execution, int]:
    """Watches, and keeps what was found; in the journal which groups had members: later looks rely on it."""
    from failover.execution.verify import Verifier
    from failover.state.journal import Journal, Seen, read_journal
    from failover.state.runs import JOURNAL

    execution, folder = located.execution, located.folder
    seen: set[str] = {group.group for group in execution.verified.groups if group.seen} if execution.verified else set()
    journal: Journal | None = None
    if folder is not None:
        seen |= {event.group for event in read_journal(folder / JOURNAL) if isinstance(event, Seen)}
        try:
            journal = Journal(folder / JOURNAL)
        except StateError as error:
            settings.say(f"what is seen now is not kept: {error.message}")

    def notice(group: str, members: int, at: datetime) -> None:
        if journal is not None:
            journal.append(Seen(at, group, members))

    try:
        with ProgressBar(settings) as progress, Stop(settings) as stop:
            verifier = Verifier(
                execution,
                target.cluster,
                clock=utc_now,
                sleep=time.sleep,
                progress=progress,
                stop=stop,
                seen=seen,
                noticed=notice,
                sync=lambda: _group_sync(target),
            )
            verified, number = verifier.run(watch), stop.number
        if folder is None or journal is not None:
            _keep(settings, state, located, verified)
        return verified, number
    finally:
        if journal is not None:
            journal.close()


def _group_sync(target: Target) -> GroupSync:
    """Reads MirrorMaker 2's checkpoints; none where they cannot be read, so that nothing is laid at its door."""
    from failover.execution.verify import GroupSync
    from failover.inventory.flow import flow_of
    from failover.inventory.internal_topics import read_checkpoints
    from failover.model.cluster import TopicInfo

    flow = flow_of(target.config, target.selected)
    topic = flow.internal.checkpoints
    exists = isinstance(target.cluster.describe_topics([topic])[topic], TopicInfo)
    checkpoints, _ = read_checkpoints(target.cluster, topic, exists=exists)
    return GroupSync(checkpoints, flow.group_offsets_synced)


def _keep(settings: Settings, state: StateFolder, located: Located, verified: Execution) -> None:
    """Keeps the result with the run, and says where that is not where runs are kept."""
    from failover.execution.runs import keep_look

    if located.path is None:
        settings.say("the result is not kept: only the target's topic knows this run. --format json > FILE keeps it")
        return
    try:
        kept = keep_look(state, located.path, verified)
    except StateError as error:
        settings.say(f"the result is not kept: {error.message}")
        return
    if located.folder is None:
        settings.say(f"the result is kept in {kept}")
