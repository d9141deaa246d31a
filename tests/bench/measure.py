"""Whole processes measured: wall time, CPU time and peak memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

LAUNCHER = Path(__file__).with_name("launch.py")
COMPILED = {
    "PYTHONDONTWRITEBYTECODE": "",
    "PYTHONPYCACHEPREFIX": str(Path(__file__).parents[2] / "build/pycache"),
}
"""Has modules compiled once, as an installation does, also where the environment forbids it to the working tree."""


class Run(NamedTuple):
    """Is one finished process; ``peak`` is its largest resident set in bytes, ``began`` a monotonic time."""

    code: int
    began: float
    seconds: float
    cpu: float
    peak: int
    out: bytes
    err: str

    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def megabytes(self) -> float:
        return self.peak / 1e6


def run(command: Sequence[str], *, timeout: float = 240, environ: Mapping[str, str] | None = None) -> Run:
    """Runs a command without a terminal and returns what it used and said."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
            # isolated and without site: the launcher must be small
            subprocess.run(
                [sys.executable, "-I", "-S", str(LAUNCHER), str(folder / "report"), *command],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=os.environ | COMPILED | dict(environ or {}),
                timeout=timeout,
                check=True,
            )
        found = json.loads((folder / "report").read_text())
        return Run(**found, out=(folder / "out").read_bytes(), err=(folder / "err").read_text(errors="replace"))


def failover(*arguments: str, config: Path, state: Path, codes: Sequence[int] = (0,)) -> Run:
    """Runs the command line; asserts that it ends with one of ``codes``."""
    command = [sys.executable, "-m", "failover", "--config", str(config), "--state-dir", str(state), *arguments]
    done = run(command, environ={"NO_COLOR": "1"})
    assert done.code in codes, f"{' '.join(arguments)}: exit code {done.code}\n{done.err}\n{done.out[-2000:]!r}"
    return done
