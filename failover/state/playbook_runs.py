"""Runs of playbooks on disk: a folder each, with the playbook as it was and the journal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from failover.errors import RunNotFound
from failover.state.folder import StateFolder, newest_first, valid_id

PLAYBOOK_RUN = "p-"
"""What the id of a playbook's run begins with."""
PLAYBOOK = "playbook.yaml"
JOURNAL = "journal.ndjson"
RECORD = "run.json"


def runs_folder(state: StateFolder) -> Path:
    """Is where runs of playbooks are kept."""
    return state.path / "playbook-runs"


def new_playbook_run(state: StateFolder, text: str) -> tuple[str, Path]:
    """Makes the folder of a new run, the playbook's text in it; gives the run's id and the folder."""
    run_id = state.new_id(PLAYBOOK_RUN, state.prepare(runs_folder(state)))
    folder = state.prepare(runs_folder(state) / run_id)
    state.write(folder / PLAYBOOK, text.encode())
    return run_id, folder


def find_playbook_run(state: StateFolder, reference: str) -> Path:
    """Finds a run's folder by its id or an unambiguous beginning of it. Raises ``RunNotFound``."""
    found = sorted(runs_folder(state).glob(f"{reference}*")) if valid_id(reference) else []
    found = [path for path in found if path.name == reference] or found
    if len(found) == 1:
        return found[0]
    if found:
        raise RunNotFound(
            f"several runs begin with {reference}: {', '.join(path.name for path in found[:5])}",
            hint="type more of the id",
        )
    raise RunNotFound(
        f"there is no run {reference} in {runs_folder(state)}", hint="failover history lists what this machine knows"
    )


def all_playbook_runs(state: StateFolder) -> Iterator[Path]:
    """Yields the folders of runs, newest first."""
    yield from newest_first(path.parent for path in runs_folder(state).glob(f"*/{JOURNAL}"))
