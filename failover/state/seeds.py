"""What was seeded from this machine: one JSON object a line, the intent before anything is written."""

from __future__ import annotations

import os

import msgspec

from failover.errors import StateError
from failover.model.seed import Seed
from failover.state.folder import StateFolder, sync_folder

FILE = "seeds.ndjson"


def note_seed(state: StateFolder, seed: Seed, event: str) -> None:
    """Appends a seeding durably; ``event``: ``intent`` or ``done``. Raises ``StateError``."""
    folder = state.prepare(state.path)
    path = folder / FILE
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(descriptor, "ab") as file:
            file.write(msgspec.json.encode({"event": event, "seed": seed}) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        sync_folder(folder)
    except OSError as error:
        raise StateError(
            f"cannot write {path}: {error.strerror}", hint="free some space, or name another folder: --state-dir DIR"
        ) from error
