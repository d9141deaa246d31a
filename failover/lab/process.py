"""Processes named by pid and start time, so that a reused pid is never signalled."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from failover.errors import LabError

_PROC = Path("/proc")
_POLL_SECONDS = 0.02


class Process(msgspec.Struct, frozen=True):
    """Is one process: a name within the lab, its pid and the system's word for when it started."""

    name: str
    pid: int
    started: str


def spawn(name: str, argv: Sequence[str], *, log: Path, environ: Mapping[str, str] | None = None) -> Process:
    """Starts a process in a session of its own, its output appended to ``log`` (mode 0600).

    Raises LabError when the program cannot be started.
    """
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        pid = os.posix_spawn(
            argv[0],
            list(argv),
            dict(os.environ if environ is None else environ),
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, out, 1),
                (os.POSIX_SPAWN_DUP2, out, 2),
            ],
            setsid=True,
        )
    except OSError as failure:
        raise LabError(
            f"{name} cannot be started: {failure}", hint=f"does {argv[0]} exist and may it be executed?"
        ) from failure
    finally:
        os.close(out)
    return Process(name, pid, start_time(pid) or "gone")


def start_time(pid: int) -> str | None:
    """Returns when a pid's process started in the system's own unit, or None when there is none or only its zombie."""
    return _look(pid)[1]


def alive(process: Process) -> bool:
    """Says whether exactly this process still runs; a frozen one does."""
    _reap(process.pid)
    return start_time(process.pid) == process.started


def condition(process: Process) -> Literal["running", "frozen", "stopped", "gone"]:
    """Says whether a process runs, is frozen by SIGSTOP, or is gone; never ``stopped``, which only the lab knows."""
    _reap(process.pid)
    status, started = _look(process.pid)
    if started != process.started:
        return "gone"
    return "frozen" if status == "T" else "running"


def send(process: Process, number: signal.Signals) -> bool:
    """Signals exactly this process; returns False when it is gone."""
    if not alive(process):
        return False
    try:
        os.kill(process.pid, number)
    except ProcessLookupError:
        return False
    return True


def wait_gone(process: Process, seconds: float) -> bool:
    """Waits until the process is gone; returns False when it is still there after ``seconds``."""
    deadline = time.monotonic() + seconds
    while alive(process):
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def end(process: Process, *, grace: float = 0.0) -> None:
    """Ends a process: asks it and waits ``grace`` seconds (0: does not ask), then kills it.

    Raises LabError when it survives SIGKILL for 30 s (a process stuck in the kernel).
    """
    if grace > 0 and send(process, signal.SIGTERM):
        send(process, signal.SIGCONT)  # a frozen process acts on SIGTERM only once it is thawed
        if wait_gone(process, grace):
            return
    send(process, signal.SIGKILL)
    if not wait_gone(process, 30):
        raise LabError(f"{process.name} (pid {process.pid}) does not end", hint="look at the process with ps")


def marked(marker: str) -> list[Process]:
    """Returns this user's processes whose command line holds ``marker``, other than the caller.

    A process is recorded right after its start; this finds one whose starter died in between.
    """
    found = []
    if (_PROC / "self" / "cmdline").exists():
        pids = [int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit()]
        lines = {}
        for pid in pids:
            with contextlib.suppress(OSError):
                lines[pid] = (_PROC / str(pid) / "cmdline").read_bytes().decode(errors="replace")
    else:
        shown = subprocess.run(
            ["ps", "-xww", "-o", "pid=,command="], capture_output=True, text=True, check=False
        ).stdout
        lines = {
            int(pid): command for pid, _, command in (line.strip().partition(" ") for line in shown.splitlines()) if pid
        }
    for pid, command in lines.items():
        if marker in command and pid != os.getpid() and (started := start_time(pid)) is not None:
            found.append(Process(f"pid {pid}", pid, started))
    return found


def tail(log: Path, lines: int = 5) -> str:
    """Returns the last lines of a log for an error message, or an empty text."""
    try:
        return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
    except OSError:
        return ""


def python() -> str:
    """Returns the interpreter that runs this program."""
    return sys.executable


def _reap(pid: int) -> None:
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def _look(pid: int) -> tuple[str, str | None]:
    """Returns a process's state letter and start time."""
    if (_PROC / "self" / "stat").exists():
        try:
            # the command's name may hold blanks and parentheses; the fields after it are fixed
            fields = (_PROC / str(pid) / "stat").read_bytes().rsplit(b")", 1)[1].split()
        except (OSError, IndexError):
            return "X", None
        status, started = fields[0].decode(), fields[19].decode()
    else:
        command = ["ps", "-o", "stat=,lstart=", "-p", str(pid)]
        shown = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
        status, _, started = shown.partition(" ")
        started = started.strip()
    status = status[:1]
    return status, None if status in ("Z", "X", "") else started
