"""Executions on disk: a folder each, with the plan, the journal and the record made from both."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from failover.errors import RunNotFound
from failover.state.folder import StateFolder, newest_first, valid_id

PLAN = "plan.json"
JOURNAL = "journal.ndjson"
RECORD = "execution.json"


def new_run(state: StateFolder) -> tuple[str, Path]:
    """Makes the folder of a new execution; gives its id and the folder."""
    run_id = state.new_id("e-", state.prepare(state.executions))
    return run_id, state.prepare(state.executions / run_id)


def find_run(state: StateFolder, reference: str) -> Path:
    """Finds an execution's folder by id or an unambiguous beginning of it, or a record's file by path.

    Raises ``RunNotFound`` when nothing fits or several do.
    """
    if "/" in reference or reference.endswith(".json"):
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


def all_runs(state: StateFolder) -> Iterator[Path]:
    """Yields the folders of executions, newest first."""
    yield from newest_first(path.parent for path in state.executions.glob(f"*/{JOURNAL}"))
