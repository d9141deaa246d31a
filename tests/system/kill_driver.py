"""Runs the command line, killed with -9 at a moment of a playbook's journal: ``kill_driver MET WANTED ARGUMENTS…``.

A moment is an event, its step, and ``before`` or ``after`` (it is durable): ``succeeded fence before`` is when all of
the step is done and nobody knows. ``begun STEP middle`` is a while after a step began, if it is under way then. Each
moment that WANTED, a regular expression, matches kills once: those met so far are kept in the file MET.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from failover.cli import main
from failover.runbook.events import Event
from failover.runbook.record import RunLog

MIDDLE = 0.4
"""Seconds after a step's beginning that are called its middle."""


class Killer:
    """Ends the process at the first wanted moment that was not met before."""

    def __init__(self, met: Path, wanted: str) -> None:
        self._met, self._wanted = met, re.compile(wanted)
        self._known = set(met.read_text().splitlines()) if met.exists() else set()
        self._timer: threading.Timer | None = None

    def noting(self, real: Callable[[Any, Event], None]) -> Callable[[Any, Event], None]:
        def note(log: Any, event: Event) -> None:
            if self._timer is not None:
                self._timer.cancel()
            name = f"{type(event).__name__.lower()} {getattr(event, 'step', '-')}"
            self._at(f"{name} before")
            real(log, event)
            self._at(f"{name} after")
            if name.startswith("begun "):
                self._timer = threading.Timer(MIDDLE, self._at, [f"{name} middle"])
                self._timer.daemon = True
                self._timer.start()

        return note

    def _at(self, moment: str) -> None:
        if moment in self._known or not self._wanted.fullmatch(moment):
            return
        with self._met.open("a") as file:
            file.write(f"{moment}\n")
            file.flush()
            os.fsync(file.fileno())
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    killer = Killer(Path(sys.argv[1]), sys.argv[2])
    RunLog.note = killer.noting(RunLog.note)  # type: ignore[method-assign,assignment]
    main(sys.argv[3:])
