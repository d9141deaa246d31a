"""Executions on disk: a folder each, with the plan, the journal and the record made from both.

A roll back has a folder of its own, with the record of the execution it undoes in the plan's place.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from failover.errors import RunNotFound
from failover.state.folder import StateFolder, newest_first, valid_id
from failover.state.journal import Event, Finished, Started, decode_events

PLAN = "plan.json"
UNDONE = "undone.json"
JOURNAL = "journal.ndjson"
RECORD = "execution.json"

EXECUTION, ROLLBACK, EVICTION = "e-", "r-", "v-"
"""What the ids of executions, roll backs and evictions begin with."""


def new_run(state: StateFolder, prefix: str = EXECUTION) -> tuple[str, Path]:
    """Makes the folder of a new execution; gives its id and the folder."""
    run_id = state.new_id(prefix, state.prepare(state.executions))
    return run_id, state.prepare(state.executions / run_id)


def find_run(state: StateFolder, reference: str) -> Path:
    """Finds an execution's folder by id or an unambiguous beginning of it, or a record's file by path.

    Raises ``RunNotFound`` when nothing fits or several do.
    """
    if is_file(reference):
        path = Path(reference).expanduser()
        if path.is_file():
            return path
        raise RunNotFound(f"there is no file {reference}", hint="failover history lists what this machine knows")
    found = sorted(state.executions.glob(f"{reference}*")) if valid_id(reference) else []
    exact = [path for path in found if path.name == reference]
    if len(exact or found) == 1:
        return (exact or found)[0]
    if found:
        raise RunNotFound(
            f"several executions begin with {reference}: {', '.join(path.name for path in found[:5])}",
            hint="type more of the id",
        )
    raise RunNotFound(
        f"there is no execution {reference} in {state.executions}",
        hint="failover history lists what this machine knows",
    )


def is_file(reference: str) -> bool:
    """Says whether a reference is meant as a path."""
    return "/" in reference or reference.endswith(".json")


def all_runs(state: StateFolder) -> Iterator[Path]:
    """Yields the folders of executions, newest first."""
    yield from newest_first(path.parent for path in state.executions.glob(f"*/{JOURNAL}"))


def first_line(folder: Path) -> bytes:
    """Reads the first whole line of a folder's journal, empty when there is none yet."""
    with (folder / JOURNAL).open("rb") as file:
        line = file.readline()
    return line if line.endswith(b"\n") else b""


def last_line(folder: Path) -> bytes:
    """Reads the last line of a folder's journal, empty when it is cut or longer than a closing event can be."""
    with (folder / JOURNAL).open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - 4096))
        tail = file.read()
    if not tail.endswith(b"\n"):
        return b""
    start = tail.rfind(b"\n", 0, len(tail) - 1)
    return tail[start + 1 :] if start >= 0 or size <= 4096 else b""


def ends_of(folder: Path) -> tuple[Started | None, Finished | None]:
    """Reads the first and the last event of a folder's journal; None for what is not there or cannot be read."""
    try:
        ends: list[Event] = decode_events(first_line(folder) + last_line(folder))
    except (OSError, msgspec.DecodeError):
        return None, None
    started, closed = (ends[0], ends[-1]) if ends else (None, None)
    return started if isinstance(started, Started) else None, closed if isinstance(closed, Finished) else None
