"""The folder where plans and executions are kept, and the one way files are written there."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from failover.errors import StateError, StateUnusable

_NUMBER = re.compile(r"[0-9]+(e[0-9]+)?")
_ID = re.compile(r"[a-z0-9][a-z0-9-]{2,63}")


def default_folder() -> Path:
    """Names the platform's folder for user state."""
    from platformdirs import user_state_path

    return user_state_path("failover", appauthor=False)


class StateFolder:
    """Is the state folder on disk; folders are 0700 and files 0600, whatever the umask.

    ``plans/ID.json`` holds saved plans, ``executions/ID/`` a journal and the execution's record.
    Raises ``StateError`` naming the path when the disk says no.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def plans(self) -> Path:
        """Is where plans are kept."""
        return self.path / "plans"

    @property
    def executions(self) -> Path:
        """Is where executions are kept, a folder each."""
        return self.path / "executions"

    def require_usable(self) -> None:
        """Raises ``StateUnusable`` when nothing could be written here; makes nothing itself."""
        standing = next(path for path in (self.path.absolute(), *self.path.absolute().parents) if path.exists())
        if not standing.is_dir():
            said = f"{standing} is no folder"
        elif not os.access(standing, os.W_OK | os.X_OK):
            said = f"no right to write in {standing}"
        else:
            return
        raise StateUnusable(
            f"nothing can be kept in the state folder {self.path}: {said}",
            hint="name a folder that can be written: --state-dir DIR",
        )

    def prepare(self, folder: Path) -> Path:
        """Makes a folder inside the state folder, for this user alone."""
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise StateError(
                f"cannot make the state folder {folder}: {error.strerror}",
                hint="name a folder that can be written: --state-dir DIR",
            ) from error
        return folder

    def write(self, path: Path, data: bytes) -> None:
        """Writes a whole file so that after a crash the old or the new one stands, never a part."""
        self.prepare(path.parent)
        temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}")
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
            sync_folder(path.parent)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise StateError(
                f"cannot write {path}: {error.strerror}",
                hint="free some space, or name another folder: --state-dir DIR",
            ) from error

    def new_id(self, prefix: str, folder: Path) -> str:
        """Picks an identifier that nothing in ``folder`` bears yet: a prefix and six hex digits.

        It is none that YAML reads as a number: somebody may write it into a playbook.
        """
        while True:
            candidate = prefix + os.urandom(3).hex()
            if _NUMBER.fullmatch(candidate) is None and not any(folder.glob(f"{candidate}*")):
                return candidate


def valid_id(text: str) -> bool:
    """Says whether a text can be an identifier (so that it never leads out of its folder)."""
    return _ID.fullmatch(text) is not None


def sync_folder(path: Path) -> None:
    """Makes the names in a folder durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def newest_first(paths: Iterator[Path]) -> list[Path]:
    """Orders paths by modification time, newest first; what vanished meanwhile is left out."""
    dated = []
    for path in paths:
        try:
            dated.append((path.stat().st_mtime_ns, path))
        except FileNotFoundError:
            continue
    return [path for _, path in sorted(dated, reverse=True)]
