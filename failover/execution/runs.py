"""Reads an execution back from its folder or its record's file."""

from __future__ import annotations

from pathlib import Path

import msgspec

from failover.errors import FailoverError, RunNotFound
from failover.execution.record import build
from failover.model.execution import Execution, Outcome
from failover.planning.plan_file import decode_plan
from failover.state.folder import StateFolder
from failover.state.journal import read_journal
from failover.state.runs import JOURNAL, PLAN, all_runs

_decoder = msgspec.json.Decoder(Execution)


def encode_execution(execution: Execution) -> bytes:
    """Writes a record as JSON, enough to show, verify and undo it on another machine."""
    return msgspec.json.format(msgspec.json.encode(execution), indent=1)


def load_run(path: Path) -> Execution:
    """Reads an execution: from its folder (derived from the journal anew) or from a record's file.

    Raises ``RunNotFound`` when the file is no record, ``StateError`` when the journal is damaged.
    """
    if path.is_dir():
        return build(decode_plan((path / PLAN).read_bytes()), read_journal(path / JOURNAL))
    try:
        return _decoder.decode(path.read_bytes())
    except (OSError, msgspec.DecodeError) as error:
        raise RunNotFound(
            f"{path} is no record of an execution: {error}", hint="give an id of failover history, or a run's JSON file"
        ) from error


def runs_of_plan(state: StateFolder, plan_id: str) -> list[Execution]:
    """Gives this machine's executions of one plan, newest first."""
    return [run for run in history(state)[0] if run.plan_id == plan_id]


def history(state: StateFolder) -> tuple[list[Execution], list[str]]:
    """Gives all executions this machine knows, newest first, and one line for each that is unreadable."""
    runs: list[Execution] = []
    unreadable: list[str] = []
    for folder in all_runs(state):
        try:
            runs.append(load_run(folder))
        except (FailoverError, OSError, ValueError) as error:
            unreadable.append(f"{folder.name}: {error}")
    return runs, unreadable


def used_up(runs: list[Execution]) -> bool:
    """Says whether a plan was executed completely."""
    return any(run.outcome is Outcome.DONE for run in runs)


def begun(runs: list[Execution]) -> bool:
    """Says whether an execution of a plan has written something."""
    return any(partition.written is not None for run in runs for group in run.groups for partition in group.partitions)
