"""How soon the command line is there."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from pathlib import Path

from tests.bench.figures import Figures
from tests.bench.measure import COMPILED, run

TIMES = 15
FAILOVER = str(Path(sys.executable).with_name("failover"))


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
        command = [FAILOVER, "--config", str(config), "--state-dir", str(folder), "plan"]
        began = time.monotonic()
        quiet = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
        process = os.posix_spawn(FAILOVER, command, os.environ | COMPILED, file_actions=quiet)
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
    commands = {
        "the interpreter alone": [sys.executable, "-c", "pass"],
        "the interpreter and `import click`": [sys.executable, "-c", "import click"],
        "`failover --help`": [FAILOVER, "--help"],
    }
    until = "`failover plan` until its first byte to a cluster"
    goals = {"`failover --help`": "< 50", until: "< 150"}
    seconds: dict[str, list[tuple[float, float]]] = {what: [] for what in (*commands, until)}
    for number in range(-1, TIMES):
        # in turn, so that the machine's load of the moment falls on all of them; the first round compiles the modules
        for what, command in commands.items():
            done = run(command)
            assert done.code == 0, done.err
            seconds[what] += [(done.seconds, done.cpu)] if number >= 0 else []
        spoken = first_byte(tmp_path)
        seconds[until] += [spoken] if number >= 0 else []
    figures = Figures("start-up", "Start-up")
    for what, found in seconds.items():
        figures.add(f"{what}, ms", [wall * 1000 for wall, _ in found], goal=goals.get(what, ""))
        figures.add(f"{what}, CPU ms", [cpu * 1000 for _, cpu in found])
    figures.note("Modules are compiled, as after an installation. What `import click` takes is no command's to save.")
    figures.publish()
