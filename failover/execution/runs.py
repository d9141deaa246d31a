"""Reads executions back from their folders or their records' files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from failover.errors import FailoverError, RunNotFound
from failover.execution.record import build, build_undo
from failover.model.execution import ExecutedPartition, Execution
from failover.planning.plan_file import decode_plan
from failover.state.folder import StateFolder
from failover.state.journal import Started, read_journal
from failover.state.runs import EVICTION, JOURNAL, PLAN, RECORD, UNDONE, all_runs, first_line

_decoder = msgspec.json.Decoder(Execution)
_started = msgspec.json.Decoder(Started)


def encode_execution(execution: Execution) -> bytes:
    """Writes a record as JSON, enough to show, verify and undo it on another machine."""
    return msgspec.json.format(msgspec.json.encode(execution), indent=1) + b"\n"


def load_run(path: Path) -> Execution:
    """Reads an execution: from its folder (derived from the journal anew) or from a record's file.

    Raises ``RunNotFound`` when there is no record, ``StateError`` when the journal is damaged.
    """
    if not path.is_dir():
        return _load_file(path)
    if path.name.startswith(EVICTION):
        raise RunNotFound(
            f"{path.name} is an eviction: it wrote no offset", hint=f"failover show {path.name} tells whom it removed"
        )
    events = read_journal(path / JOURNAL)
    if not events:
        raise RunNotFound(
            f"{path.name} ended before it noted anything: it wrote nothing",
            hint="failover history lists what this machine knows",
        )
    if (path / UNDONE).exists():
        return build_undo(_load_file(path / UNDONE), events)
    return build(decode_plan((path / PLAN).read_bytes()), events)


def with_last_look(execution: Execution, folder: Path) -> Execution:
    """Lays what was verified last over a record derived from the journal; a verification is kept in the record's file.

    It counts for what was written when it looked: a partition written since has no verdict.
    """
    try:
        kept = _decoder.decode((folder / RECORD).read_bytes())
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return execution  # the journal is the truth, its copy may be missing or cut
    if kept.verified is None:
        return execution
    looked = {(group.group, p.topic, p.partition): p for group in kept.groups for p in group.partitions}
    groups = []
    for group in execution.groups:
        found = tuple(_looked_at(p, looked.get((group.group, p.topic, p.partition))) for p in group.partitions)
        groups.append(msgspec.structs.replace(group, partitions=found))
    return msgspec.structs.replace(execution, groups=tuple(groups), verified=kept.verified)


def _looked_at(p: ExecutedPartition, kept: ExecutedPartition | None) -> ExecutedPartition:
    if kept is None or kept.verdict is None or (kept.written, kept.planned) != (p.written, p.planned):
        return p
    return msgspec.structs.replace(p, now=kept.now, verdict=kept.verdict, lag=kept.lag, because=kept.because)


def keep_look(state: StateFolder, path: Path, execution: Execution) -> Path:
    """Keeps a verified execution in its record's file, by its folder or that file; gives the file.

    Raises ``StateError`` when it cannot be written.
    """
    record = path / RECORD if path.is_dir() else path.resolve()
    state.write(record, encode_execution(execution))
    return record


def _load_file(path: Path) -> Execution:
    try:
        return _decoder.decode(path.read_bytes())
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RunNotFound(
            f"{path} is no record of an execution: {error}", hint="give an id of failover history, or a run's JSON file"
        ) from error


def runs_of_plan(state: StateFolder, plan_id: str) -> tuple[list[Execution], list[str]]:
    """Gives this machine's executions of one plan, oldest first, and a line for each that is unreadable."""
    runs, unreadable = _load(path for path in all_runs(state) if _is_of(path, plan_id))
    return sorted((run for run in runs if not run.undoes), key=lambda run: run.started), unreadable


def undoings(state: StateFolder) -> list[Execution]:
    """Gives this machine's roll backs, newest first."""
    return _load(path for path in all_runs(state) if (path / UNDONE).exists())[0]


def history(state: StateFolder) -> tuple[list[Execution], list[str]]:
    """Gives all executions this machine knows, newest first, and one line for each that is unreadable."""
    return _load(all_runs(state))


def _load(folders: Iterable[Path]) -> tuple[list[Execution], list[str]]:
    runs: list[Execution] = []
    unreadable: list[str] = []
    for folder in folders:
        try:
            if first_line(folder):
                runs.append(load_run(folder))
        except (FailoverError, OSError, ValueError) as error:
            unreadable.append(f"{folder.name}: {error}")
    return runs, unreadable


def selected_of(folder: Path, source: str, target: str) -> tuple[str, ...]:
    """Gives the groups an execution was asked to do, by its first event alone; none when it is of another flow.

    A resumption does no others. Raises ``OSError`` and ``DecodeError`` for what is no journal.
    """
    started = _started.decode(first_line(folder))
    return started.selected if (started.source_alias, started.target_alias) == (source, target) else ()


def _is_of(folder: Path, plan_id: str) -> bool:
    """Looks at the first event alone, so that a long history costs little."""
    try:
        return _started.decode(first_line(folder)).plan_id == plan_id
    except (OSError, msgspec.DecodeError):
        return False
