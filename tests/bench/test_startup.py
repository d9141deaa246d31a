"""How soon the command line is there."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from pathlib import Path

from tests.bench.figures import Figures
from tests.bench.measure import run

TIMES = 10


def first_byte(folder: Path) -> float:
    """Returns the seconds from the start of a plan until a cluster hears its first byte."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(20)
        port = listener.getsockname()[1]
        config = folder / "mm2.properties"
        config.write_text(
            f"clusters = a, b\na.bootstrap.servers = 127.0.0.1:{port}\nb.bootstrap.servers = 127.0.0.1:{port}\n"
            "a->b.enabled = true\n"
        )
        command = [sys.executable, "-m", "failover", "--config", str(config), "--state-dir", str(folder), "plan"]
        began = time.monotonic()
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            try:
                connection, _ = listener.accept()
                with connection:
                    connection.settimeout(20)
                    assert connection.recv(1)
                    return time.monotonic() - began
            finally:
                process.kill()


def test_startup(tmp_path: Path) -> None:
    bare = [sys.executable, "-c", "pass"]
    help_ = [sys.executable, "-m", "failover", "--help"]
    run(help_)  # the first run after an installation compiles the modules
    figures = Figures("start-up", "Start-up")
    figures.add("the interpreter alone, ms", [run(bare).seconds * 1000 for _ in range(TIMES)])
    helped = [run(help_) for _ in range(TIMES)]
    assert all(b"plan" in each.out for each in helped)
    figures.add("`failover --help`, ms", [each.seconds * 1000 for each in helped])
    spoken = [first_byte(tmp_path) * 1000 for _ in range(TIMES)]
    figures.add("`failover plan` until its first byte to a cluster, ms", spoken)
    figures.publish()
