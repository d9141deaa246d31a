"""The alert rules, by Prometheus' own rule tests."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

PROMTOOL = shutil.which("promtool")


@pytest.mark.skipif(PROMTOOL is None, reason="promtool is not installed (Debian: prometheus)")
def test_alerts_fire_when_they_should_and_not_otherwise():
    done = subprocess.run(
        ["promtool", "test", "rules", str(Path(__file__).with_name("alerts_test.yml"))],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
