"""Ends a lab: exactly what ``up`` started, also when ``up`` itself died half way."""

from __future__ import annotations

import shutil
from pathlib import Path

from failover.lab import process as processes
from failover.lab.state import FILE, read_state

_LOGS = ("*.log", "brokers/*/broker.log")


def end_lab(folder: Path, *, keep_logs: bool = False) -> list[str]:
    """Kills the lab's processes, removes its data and returns the names of those that still ran.

    A process counts as the lab's when its pid and start time are recorded, or when its command
    line carries the lab's marker (started, but its starter died before recording it). Does
    nothing when the folder holds no lab. ``keep_logs`` leaves the log files.
    """
    state = read_state(folder)
    if state is None:
        return []
    ended = []
    known = {process.pid for process in state.processes}
    for process in (*state.processes, *(found for found in processes.marked(state.marker) if found.pid not in known)):
        if processes.alive(process):
            processes.end(process)
            ended.append(process.name)
    logs = {path for pattern in _LOGS for path in folder.glob(pattern)} if keep_logs else set()
    for path in (folder / "brokers").glob("*/*"):
        if path.is_dir():
            shutil.rmtree(path)
        elif path not in logs:
            path.unlink()
    for path in [
        *folder.glob("mm2*.properties"),
        *folder.glob("log4j*.properties"),
        *(set(folder.glob("*.log")) - logs),
    ]:
        path.unlink(missing_ok=True)
    for kept in ("certs", "connect"):
        shutil.rmtree(folder / kept, ignore_errors=True)
    if not logs:
        shutil.rmtree(folder / "brokers", ignore_errors=True)
    (folder / FILE).unlink()  # last: until here another attempt can finish the work
    return ended
