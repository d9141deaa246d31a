"""How soon the command line is there."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from pathlib import Path

from tests.bench.figures import Figures
from tests.bench.measure import run

TIMES = 10


def first_byte(folder: Path) -> tuple[float, float]:
    """Returns the wall and CPU seconds from the start of a plan until a cluster hears its first byte."""
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
        quiet = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
        process = os.posix_spawn(command[0], command, dict(os.environ), file_actions=quiet)
        try:
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(20)
                assert connection.recv(1)
                seconds = time.monotonic() - began
        finally:
            os.kill(process, signal.SIGKILL)
            usage = os.wait4(process, 0)[2]
        return seconds, usage.ru_utime + usage.ru_stime


def test_startup(tmp_path: Path) -> None:
    bare = [sys.executable, "-c", "pass"]
    help_ = [sys.executable, "-m", "failover", "--help"]
    run(help_)  # the first run after an installation compiles the modules
    figures = Figures("start-up", "Start-up")
    figures.add("the interpreter alone, ms", [run(bare).seconds * 1000 for _ in range(TIMES)])
    helped = [run(help_) for _ in range(TIMES)]
    assert all(b"plan" in each.out for each in helped)
    figures.add("`failover --help`, ms", [each.seconds * 1000 for each in helped], goal="< 50")
    figures.add("`failover --help`, CPU ms", [each.cpu * 1000 for each in helped])
    spoken = [first_byte(tmp_path) for _ in range(TIMES)]
    until = "`failover plan` until its first byte to a cluster"
    figures.add(f"{until}, ms", [seconds * 1000 for seconds, _ in spoken], goal="< 150")
    figures.add(f"{until}, CPU ms", [cpu * 1000 for _, cpu in spoken])
    figures.publish()
