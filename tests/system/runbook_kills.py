"""A switchover under live transactional traffic whose process is killed with -9 again and again, and resumed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from tests.system.pair import Pair
from tests.system.switching import Applications

MOST = 200
"""More kills than a playbook has moments."""
ANSWERED = ("--yes", "--self-approve", "--format", "json")


class Place(NamedTuple):
    """Is where runs of one flow are: its clusters, configuration, state and ``--set``."""

    pair: Pair
    config: Path
    folder: Path
    set: tuple[str, ...] = ()

    @property
    def state(self) -> Path:
        return self.folder / "state"

    @property
    def met(self) -> list[str]:
        """Is at which moments a run was killed."""
        path = self.folder / "met"
        return path.read_text().splitlines() if path.exists() else []

    def run(self, *arguments: str, wanted: str, code: int = 0) -> dict[str, Any]:
        """Runs a playbook to its end, resumed each time it is killed at one of the moments; gives the record."""
        expected = code
        again = arguments
        for _ in range(MOST):
            before = len(self.met)
            code, out, err = self._process(*again, wanted=wanted)
            if code != -9:
                assert code == expected, err
                record: dict[str, Any] = json.loads(out)
                return record
            assert len(self.met) == before + 1, f"killed by somebody else: {err}"
            [run] = (self.state / "playbook-runs").iterdir()
            again = ("--resume", run.name)
        raise AssertionError(f"killed {MOST} times: {self.met}")

    def _process(self, *arguments: str, wanted: str) -> tuple[int, str, str]:
        driver = [sys.executable, str(Path(__file__).with_name("kill_driver.py")), str(self.folder / "met"), wanted]
        command = [*driver, "--state-dir", str(self.state), *self.set, "run", *arguments, *ANSWERED]
        environment = os.environ | {
            "FAILOVER_CONFIG": str(self.config),
            "NO_COLOR": "1",
            "PYTHONPATH": str(Path(__file__).parents[2]),
        }
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment, timeout=300, check=False
            )
            found = []
            for file in (out, err):
                file.seek(0)
                found.append(file.read())
        return done.returncode, found[0], found[1]


def switched(place: Place, applications: Applications, group: str, *more: str, wanted: str) -> dict[str, Any]:
    """Moves running applications by the shipped switchover, killed at each wanted moment; each record is read once."""
    record = place.run(
        "switchover",
        *("--var", f"groups={group}", "--var", "come_back=90s", *more),
        *("--var", f"hook={sys.executable},{applications.hook},{applications.folder}"),
        wanted=wanted,
    )
    moved = len(applications.written)
    applications.wait(lambda: len(applications.written) >= moved + 100, "traffic on the standby")
    applications.stop("producers", applications.aliases[1])
    applications.wait(lambda: applications.read.total() >= len(applications.written), "the group reads what there is")
    applications.stop("consumers", applications.aliases[1])
    assert applications.faults == []
    # as often as it was killed in between, but in this order
    assert list(dict.fromkeys(applications.called)) == [
        f"stop producers {applications.aliases[0]}",
        f"stop consumers {applications.aliases[0]}",
        f"start consumers {applications.aliases[1]}",
        f"start producers {applications.aliases[1]}",
    ]
    written = Counter(applications.written)
    assert applications.read == written, {
        "lost": sorted((written - applications.read).elements()),
        "twice, or never committed": sorted((applications.read - written).elements()),
    }
    assert record["outcome"] == "done"
    results = {step["id"]: step.get("result", {}) for step in record["steps"]}
    assert results["plan"]["reread"] == results["plan"]["skipped"] == 0
    assert results["mirror-finishes"]["records"] == 0
    assert results["consumers-back"]["back"] == 1
    assert results["fence"]["acls"] >= 1
    return record
