"""A pair of clusters for each file of random tests."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from failover.lab import LabOptions, end_lab, up
from tests.system.pair import Pair


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("chaos")
    lab_folder = folder / "lab"
    # ends the brokers even when this process is killed: it waits for the end of its standard input
    reaper = subprocess.Popen([sys.executable, "-m", "failover.lab.reaper", str(lab_folder)], stdin=subprocess.PIPE)
    try:
        running = Pair(up(lab_folder, LabOptions(aliases=("a", "b"), quick=True)), folder)
        try:
            yield running
        finally:
            running.close()
            end_lab(lab_folder)
    finally:
        reaper.communicate(timeout=60)
