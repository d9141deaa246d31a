"""Two clusters for each file of benchmarks, with the JVM flags of a real broker."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from failover.lab import LabOptions, MirrorOptions, end_lab, up
from tests.system.pair import Pair

OPTIONS = LabOptions(
    aliases=("primary", "standby"),
    heap="1g",
    mirror=MirrorOptions(checkpoint_seconds=1, refresh_seconds=1, flush_seconds=1),
)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("bench")
    lab_folder = folder / "lab"
    # ends the brokers even when this process is killed: it waits for the end of its standard input, in a session of
    # its own, since a time limit's signal (``timeout pytest``) goes to the whole process group
    command = [sys.executable, "-m", "failover.lab.reaper", str(lab_folder)]
    reaper = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    try:
        running = Pair(up(lab_folder, OPTIONS), folder)
        try:
            yield running
        finally:
            running.close()
            end_lab(lab_folder)
    finally:
        reaper.communicate(timeout=60)
