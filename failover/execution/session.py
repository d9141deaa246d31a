"""Whole executions and roll backs: what came before, a folder with a journal, the work, the record.

The command line and runbooks work through these functions; nothing here prints or asks.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import msgspec

from failover._version import __version__
from failover.errors import UsageError
from failover.execution.commit import Executor, Timing
from failover.execution.earlier import begun, complete, earlier_writes, rolled_back
from failover.execution.record import build, build_bare
from failover.execution.rollback import Undoer, written_groups
from failover.execution.runlog import RunLog, Shared, SharedJournal
from failover.execution.runs import encode_execution, keep_look, load_run, runs_of_plan, undoings, with_last_look
from failover.kafka.port import Cluster
from failover.model.execution import Execution
from failover.model.names import TopicPartition
from failover.model.plan import Plan
from failover.planning.drift import EarlierWrite, check_usable
from failover.planning.plan_file import decode_plan, encode_plan
from failover.state.folder import StateFolder
from failover.state.journal import Event, Journal, Started, read_journal
from failover.state.runs import JOURNAL, PLAN, ROLLBACK, UNDONE, find_run, first_line, new_run


def utc_now() -> datetime:
    """Gives the time now."""
    return datetime.now(UTC)


def _silent(_label: str, _done: int, _total: int) -> None:
    """Is the progress nobody watches."""


def _never() -> str:
    return ""


def _ignored(_text: str) -> None:
    """Is the warning nobody hears: it is in the record all the same."""


class Ways(msgspec.Struct, frozen=True):
    """Is how an execution deals with its surroundings; the defaults suit a program without a terminal.

    ``log``: the topic executions share, None without it; ``warnings`` go into the record. ``warn`` is told
    when the topic fails under way, ``progress`` and ``stop`` are those of ``Executor``.
    """

    operator: str
    reason: str = ""
    log: RunLog | None = None
    warnings: tuple[str, ...] = ()
    warn: Callable[[str], None] = _ignored
    progress: Callable[[str, int, int], None] = _silent
    stop: Callable[[], str] = _never
    clock: Callable[[], datetime] = utc_now
    sleep: Callable[[float], None] = time.sleep


class Past(NamedTuple):
    """Is what came before: executions of the plan, oldest first, and the one among them that was rolled back."""

    runs: list[Execution]
    rolled_back: str = ""
    unreadable: tuple[str, ...] = ()

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


def past(state: StateFolder, plan: Plan, shared: Shared | None = None) -> Past:
    """Gathers earlier executions of a plan: this machine's, and other machines' from the shared topic."""
    runs, unreadable = runs_of_plan(state, plan.id)
    known = {run.id for run in runs}
    undone = undoings(state) if runs else []
    for name, run in (shared.runs if shared is not None else {}).items():
        if name in known or (run.started.plan_id, run.started.fingerprint) != (plan.id, plan.fingerprint):
            continue
        try:
            if run.started.undoes:
                undone.append(build_bare(run.events()))
            else:
                runs.append(build(plan, run.events()))
        except msgspec.DecodeError as error:
            unreadable.append(f"{name} on {run.started.host}: {error}")
    runs.sort(key=lambda run: run.started)
    return Past(runs, rolled_back(runs, undone), tuple(unreadable))


def check(plan: Plan, cluster: Cluster, before: Past, *, now: datetime, when_free: bool) -> None:
    """Raises ``StalePlan`` when nothing of the plan may be executed any more."""
    check_usable(
        plan,
        now=now,
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


class Session:
    """Is one execution or roll back about to run; ``run_id`` is known before anything is written.

    Made by ``Session.of_plan`` or ``Session.of_undo``. ``run`` raises what ``Executor`` and ``Undoer``
    raise; however it ends, the journal is closed and the record written.
    """

    def __init__(self, state: StateFolder, cluster: Cluster, ways: Ways, folder: Path, started: Started) -> None:
        self.run_id = started.execution_id
        self._state = state
        self._cluster = cluster
        self._ways = ways
        self._folder = folder
        self._started = started
        self._work: Callable[[SharedJournal], Execution]

    @classmethod
    def of_plan(
        cls,
        plan: Plan,
        state: StateFolder,
        cluster: Cluster,
        ways: Ways,
        *,
        wanted: Sequence[str] | None = None,
        timing: Timing | None = None,
        before: Past | None = None,
        resumed: Resumed | None = None,
    ) -> Session:
        """Prepares an execution of a plan, or of ``wanted`` groups of it, in a folder of its own or a resumed one."""
        timing, before = timing or Timing(), before or Past([])
        if resumed is None:
            run_id, folder = new_run(state)
            state.write(folder / PLAN, encode_plan(plan))
        else:
            run_id, folder = resumed.record.id, resumed.folder
        started = Started(
            at=ways.clock(),
            execution_id=run_id,
            plan_id=plan.id,
            fingerprint=plan.fingerprint,
            tool_version=__version__,
            operator=ways.operator,
            reason=ways.reason,
            source_alias=plan.source.alias,
            target_alias=plan.target.alias,
            target_cluster_id=plan.target.cluster_id,
            selected=tuple(group.group for group in plan.groups) if wanted is None else tuple(wanted),
            overrides=overrides(plan),
            continues=tuple(run.id for run in before.runs if run.id != run_id),
            when_free=timing.wait > 0,
            host=socket.gethostname(),
        )
        session = cls(state, cluster, ways, folder, started)

        def work(notebook: SharedJournal) -> Execution:
            executor = Executor(
                plan,
                cluster,
                notebook,
                clock=ways.clock,
                sleep=ways.sleep,
                progress=ways.progress,
                earlier=resumed.events if resumed else (),
                writes=before.writes(),
                stop=ways.stop,
            )
            return executor.run(started, timing, ways.warnings)

        session._work = work
        return session

    @classmethod
    def of_undo(cls, undone: Execution, state: StateFolder, cluster: Cluster, ways: Ways) -> Session:
        """Prepares rolling an execution back, in a folder of its own."""
        run_id, folder = new_run(state, ROLLBACK)
        state.write(folder / UNDONE, encode_execution(undone))
        started = Started(
            at=ways.clock(),
            execution_id=run_id,
            plan_id=undone.plan_id,
            fingerprint=undone.fingerprint,
            tool_version=__version__,
            operator=ways.operator,
            reason=ways.reason,
            source_alias=undone.source_alias,
            target_alias=undone.target_alias,
            target_cluster_id=undone.target_cluster_id,
            selected=tuple(group.group for group in written_groups(undone)),
            undoes=undone.id,
            host=socket.gethostname(),
        )
        session = cls(state, cluster, ways, folder, started)

        def work(notebook: SharedJournal) -> Execution:
            undoer = Undoer(undone, cluster, notebook, clock=ways.clock, progress=ways.progress, stop=ways.stop)
            return undoer.run(started, ways.warnings)

        session._work = work
        return session

    def run(self) -> Execution:
        """Does it and gives the record."""
        journal = Journal(self._folder / JOURNAL)
        try:
            execution = self._work(SharedJournal(journal, self._ways.log, self.run_id, self._ways.warn))
        except BaseException:
            journal.close()
            if first_line(self._folder):
                self._keep(load_run(self._folder))
            raise
        journal.close()
        self._keep(execution)
        return execution

    def _keep(self, execution: Execution) -> None:
        keep_look(self._state, self._folder, with_last_look(execution, self._folder))


def overrides(plan: Plan) -> tuple[str, ...]:
    """Names the hazards the operator allowed, for the journal."""
    options = plan.options
    return tuple(
        name
        for name in ("allow_rewind", "allow_skip", "allow_moving_commits", "allow_unverified", "create_group")
        if getattr(options, name)
    )
