"""The tutorial's commands run as they stand, on clusters of their own: one of them is killed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TUTORIAL = Path(__file__).parents[2] / "docs/tutorial.md"
MARK = "exit code of:"


def commands() -> list[str]:
    fences = re.findall(r"^```console\n(.*?)^```$", TUTORIAL.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [line.removeprefix("$ ") for fence in fences for line in fence.splitlines() if line.startswith("$ ")]


@pytest.mark.timeout(300)
def test_every_command_of_the_tutorial_does_what_the_text_says(tmp_path: Path) -> None:
    script = "\n".join(f"{command}\necho '{MARK}' $?" for command in commands())
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("FAILOVER_")},
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "COLUMNS": "100",
    }
    try:
        ran = subprocess.run(
            ["bash", "-uo", "pipefail", "-c", script],
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
    finally:
        subprocess.run(["failover", "lab", "down"], env=environment, capture_output=True, check=False)
    outputs = re.split(rf"^{MARK} (\d+)\n", ran.stdout, flags=re.MULTILINE)
    told = dict(zip(commands(), zip(outputs[::2], map(int, outputs[1::2]), strict=False), strict=True))
    # Before the first checkpoints a plan is partial; the text says so.
    wrong = {
        command: code
        for command, (_, code) in told.items()
        if code not in ((0, 4) if command == "failover plan" else (0,))
    }
    assert wrong == {}, f"{ran.stdout}\n{ran.stderr}"
    assert "DOWN" in told['failover plan --timeout 5s --reason "the primary was killed"'][0]
    assert "content" in told["cat plan.txt"][0]
    assert "payments" in told["failover execute before.json --yes"][0]
    assert "HOLDS" in told["failover verify $RUN"][0]
    assert list(tmp_path.glob("state/failover/executions/*"))
