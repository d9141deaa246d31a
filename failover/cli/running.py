"""Runs an execution of a plan: what came before it, its journal, its signals, its record."""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING, NamedTuple

from failover.cli.progress import ProgressBar
from failover.cli.stop import Stop
from failover.cli.wiring import operator, utc_now
from failover.errors import ClusterError, Interrupted, UsageError
from failover.execution.earlier import begun, complete, earlier_writes, rolled_back
from failover.execution.record import build, build_bare
from failover.execution.runlog import SharedJournal
from failover.execution.runs import encode_execution, load_run, runs_of_plan, undoings
from failover.planning.drift import check_usable
from failover.planning.plan_file import decode_plan, encode_plan
from failover.state.journal import Event, Journal, Started, read_journal
from failover.state.runs import JOURNAL, PLAN, RECORD, UNDONE, find_run, new_run

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from failover.cli.frame import Settings
    from failover.cli.shared import Common
    from failover.execution.commit import Timing
    from failover.execution.runlog import Shared
    from failover.kafka.port import Cluster
    from failover.model.execution import Execution
    from failover.model.names import TopicPartition
    from failover.model.plan import Plan
    from failover.planning.drift import EarlierWrite
    from failover.state.folder import StateFolder


class Past(NamedTuple):
    """Is what came before: executions of the plan, oldest first, and the one among them that was rolled back."""

    runs: list[Execution]
    rolled_back: str = ""

    def writes(self) -> dict[str, dict[TopicPartition, EarlierWrite]]:
        """Gives what they wrote."""
        return earlier_writes(self.runs)

    def text(self, plan: Plan) -> str:
        """Says in one line that an execution continues earlier ones, "" when it does not."""
        if not begun(self.runs):
            return ""
        ids = ", ".join(run.id for run in self.runs)
        finished = sum(1 for group in self.writes().values() if all(write.landed for write in group.values()))
        return f"continues {ids}: {finished} of {len(plan.groups)} groups are done and are checked, not written again"


class Resumed(NamedTuple):
    """Is an execution to go on with, in its own folder."""

    folder: Path
    plan: Plan
    record: Execution
    events: list[Event]


def past(settings: Settings, state: StateFolder, plan: Plan, shared: Shared | None = None) -> Past:
    """Gathers earlier executions of a plan, other machines' included; says which ones here cannot be read."""
    runs, unreadable = runs_of_plan(state, plan.id)
    for line in unreadable:
        settings.say(f"warning: an execution of this plan cannot be read and is not considered: {line}")
    known = {run.id for run in runs}
    undone = undoings(state) if runs else []
    for name, events in (shared.runs if shared is not None else {}).items():
        first = events[0]
        if not isinstance(first, Started) or name in known:
            continue
        if first.undoes:
            undone.append(build_bare(events))
        elif (first.plan_id, first.fingerprint) == (plan.id, plan.fingerprint):
            runs.append(build(plan, events))
    runs.sort(key=lambda run: run.started)
    return Past(runs, rolled_back(runs, undone))


def check(plan: Plan, cluster: Cluster, before: Past, *, when_free: bool) -> None:
    """Raises ``StalePlan`` when nothing of the plan may be executed any more."""
    check_usable(
        plan,
        now=utc_now(),
        target_cluster_id=cluster.facts().cluster_id,
        written_before=begun(before.runs),
        complete=complete(plan, before.runs, when_free=when_free),
        rolled_back=before.rolled_back,
    )


def find_resumed(state: StateFolder, reference: str) -> Resumed:
    """Finds the execution to resume; raises ``UsageError`` for one that cannot be."""
    folder = find_run(state, reference)
    if not folder.is_dir():
        raise UsageError(
            f"{reference} is a copy; an execution is resumed where its journal is",
            hint="failover execute PLAN continues a plan on any machine",
        )
    if (folder / UNDONE).exists():
        raise UsageError(f"{folder.name} is a roll back", hint="failover rollback with the same run goes on with it")
    record = load_run(folder)
    return Resumed(folder, decode_plan((folder / PLAN).read_bytes()), record, read_journal(folder / JOURNAL))


def run_plan(
    settings: Settings,
    cluster: Cluster,
    state: StateFolder,
    plan: Plan,
    wanted: Sequence[str],
    *,
    timing: Timing,
    before: Past,
    common: Common,
    reason: str,
    resumed: Resumed | None = None,
) -> Execution:
    """Opens the journal and executes; a signal or a silent target leaves a position that is told."""
    from failover._version import __version__
    from failover.execution.commit import Executor

    if resumed is None:
        run_id, folder = new_run(state)
        state.write(folder / PLAN, encode_plan(plan))
    else:
        run_id, folder = resumed.record.id, resumed.folder
    started = Started(
        at=utc_now(),
        execution_id=run_id,
        plan_id=plan.id,
        fingerprint=plan.fingerprint,
        tool_version=__version__,
        operator=operator(),
        reason=reason,
        source_alias=plan.source.alias,
        target_alias=plan.target.alias,
        target_cluster_id=plan.target.cluster_id,
        selected=tuple(wanted),
        overrides=overrides(plan),
        continues=tuple(run.id for run in before.runs if run.id != run_id),
        when_free=timing.wait > 0,
        host=socket.gethostname(),
    )

    def warn(text: str) -> None:
        settings.say(f"warning: {text}")

    journal = Journal(folder / JOURNAL)
    execution: Execution | None = None
    try:
        with ProgressBar(settings) as progress, Stop(settings) as stop:
            executor = Executor(
                plan,
                cluster,
                SharedJournal(journal, common.log, run_id, warn),
                clock=utc_now,
                sleep=time.sleep,
                progress=progress,
                earlier=resumed.events if resumed else (),
                writes=before.writes(),
                stop=stop,
            )
            execution = executor.run(started, timing, common.warnings)
    except (Interrupted, KeyboardInterrupt) as error:
        number = error.signal_number if isinstance(error, Interrupted) else 2
        raise Interrupted(
            f"interrupted in {run_id}; what was under way may or may not be written",
            signal_number=number,
            hint=f"failover show {run_id} settles it by reading back; {_going_on(run_id)}",
        ) from error
    except ClusterError as error:
        error.hint = f"{error.hint}; then {_going_on(run_id)}" if error.hint else _going_on(run_id)
        raise
    finally:
        journal.close()
        state.write(folder / RECORD, encode_execution(execution or load_run(folder)))
    if stop.number and any(p.reason == "not-reached" for group in execution.groups for p in group.partitions):
        reached = sum(1 for g in execution.groups if not any(p.reason == "not-reached" for p in g.partitions))
        raise Interrupted(
            f"stopped by {stop()} in {run_id} after {reached} of {len(execution.groups)} groups; nothing is under way",
            signal_number=stop.number,
            hint=_going_on(run_id),
        )
    return execution


def _going_on(run_id: str) -> str:
    return f"failover execute --resume {run_id} goes on"


def overrides(plan: Plan) -> tuple[str, ...]:
    """Names the hazards the operator allowed, for the journal."""
    options = plan.options
    return tuple(
        name
        for name in ("allow_rewind", "allow_skip", "allow_moving_commits", "allow_unverified", "create_group")
        if getattr(options, name)
    )
