"""One line of history for each execution."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

import msgspec

from failover.errors import FailoverError
from failover.execution.record import NOT_REACHED
from failover.execution.runs import load_run
from failover.execution.verify import BAD
from failover.model.execution import Execution, LastLook, Outcome, RunSummary, Status, Verified
from failover.state.journal import Finished, Started, read_journal
from failover.state.runs import EVICTION, JOURNAL, RECORD, ends_of, first_line


class _Kept(msgspec.Struct):
    """Is what the history wants of a record."""

    verified: Verified | None = None


_kept = msgspec.json.Decoder(_Kept)
_COMMITTED = (Status.COMMITTED, Status.UNCHANGED)


def finished(execution: Execution, at: datetime, stopped: str = "") -> Finished:
    """Makes the closing event of a journal."""
    groups, committed, still_open = _counts(execution)
    return Finished(at, execution.outcome, stopped, groups, committed, still_open)


def summarize(execution: Execution, *, elsewhere: str = "") -> RunSummary:
    """Sums an execution up."""
    groups, committed, still_open = _counts(execution)
    return RunSummary(
        id=execution.id,
        what="rollback" if execution.undoes else "execution",
        of=execution.undoes or execution.plan_id,
        started=execution.started,
        finished=execution.finished,
        outcome=execution.outcome,
        operator=execution.operator,
        reason=execution.reason,
        source_alias=execution.source_alias,
        target_alias=execution.target_alias,
        groups=groups,
        committed=committed,
        open=still_open,
        elsewhere=elsewhere,
    )


def summaries(folders: Iterable[Path]) -> tuple[list[RunSummary], list[str]]:
    """Sums up executions from their folders, newest first, and gives a line for each that is unreadable."""
    found: list[RunSummary] = []
    unreadable: list[str] = []
    for folder in folders:
        try:
            if first_line(folder):
                found.append(_of_ends(folder) or _whole(folder))
        except (FailoverError, OSError, ValueError) as error:
            unreadable.append(f"{folder.name}: {error}")
    return sorted(found, key=lambda run: run.started, reverse=True), unreadable


def last_look(folder: Path) -> LastLook | None:
    """Reads from an execution's folder when it was verified last; None when it never was."""
    try:
        kept = _kept.decode((folder / RECORD).read_bytes()).verified
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    if kept is None:
        return None
    return LastLook(kept.at, kept.exit_code, len(kept.groups), sum(group.verdict in BAD for group in kept.groups))


def _whole(folder: Path) -> RunSummary:
    """Sums up from every event, where the journal is not closed."""
    if folder.name.startswith(EVICTION):
        started = read_journal(folder / JOURNAL)[0]
        if isinstance(started, Started):
            return of_events(started, None)
    return summarize(load_run(folder))


def _of_ends(folder: Path) -> RunSummary | None:
    """Sums up from the first and the last event alone, where the journal is closed."""
    started, closed = ends_of(folder)
    return None if started is None or closed is None else of_events(started, closed)


def of_events(started: Started, closed: Finished | None, *, elsewhere: str = "") -> RunSummary:
    """Sums up from the opening and the closing event; without the latter the outcome is not known."""
    what = "rollback" if started.undoes else "eviction" if started.execution_id.startswith(EVICTION) else "execution"
    return RunSummary(
        id=started.execution_id,
        what=what,
        of=started.undoes or started.plan_id or ", ".join(started.selected),
        started=started.at,
        finished=closed.at if closed else None,
        outcome=Outcome(closed.outcome) if closed else Outcome.UNKNOWN,
        operator=started.operator,
        reason=started.reason,
        source_alias=started.source_alias,
        target_alias=started.target_alias,
        groups=closed.groups if closed else len(started.selected),
        committed=closed.committed if closed else 0,
        open=closed.open if closed else 0,
        elsewhere=elsewhere,
    )


def _counts(execution: Execution) -> tuple[int, int, int]:
    partitions = [p for group in execution.groups for p in group.partitions]
    committed = sum(p.status in _COMMITTED for p in partitions)
    still_open = sum(
        p.status in (Status.REFUSED, Status.FAILED, Status.UNKNOWN) or p.reason == NOT_REACHED for p in partitions
    )
    return len(execution.groups), committed, still_open
