"""A file of lines that only grows and is durable before anything relies on it: what every journal stands on."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from failover.errors import StateError
from failover.state.folder import sync_folder

E = TypeVar("E")

_CLOSED = -1


class LineFile:
    """Is such a file, open for writing. ``add`` buffers; ``sync`` makes everything added durable.

    One process at a time holds it: a second one gets ``StateError``, naming the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._pending: list[bytes] = []
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
        except OSError as error:
            raise _failed(path, error) from error
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # A cut last line is removed first, so that the next event never continues it.
            os.ftruncate(self._descriptor, len(_whole_lines(path.read_bytes())))
            os.lseek(self._descriptor, 0, os.SEEK_END)
            sync_folder(path.parent)
        except BlockingIOError as error:
            os.close(self._descriptor)
            raise StateError(
                f"another process is writing {path}", hint="wait until it ends; failover show RUN tells how far it is"
            ) from error
        except OSError as error:
            os.close(self._descriptor)
            raise _failed(path, error) from error

    def add(self, line: bytes) -> None:
        """Adds a line, its end included; it is not durable before ``sync``."""
        self._pending.append(line)

    def sync(self) -> None:
        """Writes and flushes everything added so far to the disk."""
        if not self._pending:
            return
        data = memoryview(b"".join(self._pending))
        self._pending.clear()
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
            os.fsync(self._descriptor)
        except OSError as error:
            raise _failed(self.path, error) from error

    def close(self) -> None:
        """Flushes what is left and closes the file; once: its descriptor's number may be another file's afterwards."""
        if self._descriptor == _CLOSED:
            return
        try:
            self.sync()
        finally:
            descriptor, self._descriptor = self._descriptor, _CLOSED
            os.close(descriptor)


def read_lines(path: Path, decode: Callable[[bytes], E]) -> list[E]:
    """Reads every whole line of such a file, in order; ``decode`` raises ``msgspec.DecodeError`` for a damaged one.

    Raises ``StateError`` when the file cannot be read or a line other than a cut last one is
    damaged (then nothing after it can be trusted).
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise _failed(path, error) from error
    events: list[E] = []
    for number, line in enumerate(_whole_lines(data).splitlines(), 1):
        try:
            events.append(decode(line))
        except msgspec.DecodeError as error:
            raise StateError(
                f"{path} line {number} is damaged: {error}", hint="restore the file from a copy; it is never rewritten"
            ) from error
    return events


def _whole_lines(data: bytes) -> bytes:
    return data[: data.rfind(b"\n") + 1]


def _failed(path: Path, error: OSError) -> StateError:
    return StateError(
        f"cannot use the journal {path}: {error.strerror}",
        hint="nothing is written without a journal: free some space, or name another folder: --state-dir DIR",
    )
