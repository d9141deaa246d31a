"""A lab for as long as a fixture lasts."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from failover.lab import LabOptions, end_lab, up
from tests.system.pair import Pair


@contextlib.contextmanager
def running(folder: Path, options: LabOptions) -> Iterator[Pair]:
    """Starts two clusters below ``folder`` and ends them, whatever becomes of this process."""
    lab_folder = folder / "lab"
    # ends the brokers even when this process is killed: it waits for the end of its standard input, in a session of
    # its own, since a time limit's signal (``timeout pytest``) goes to the whole process group
    command = [sys.executable, "-m", "failover.lab.reaper", str(lab_folder)]
    reaper = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    try:
        pair = Pair(up(lab_folder, options), folder)
        try:
            yield pair
        finally:
            pair.close()
            end_lab(lab_folder)
    finally:
        reaper.communicate(timeout=60)
