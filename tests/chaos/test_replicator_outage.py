"""One of three source brokers is dead for a minute: all that it does not lead goes on, and the rest resumes."""

from __future__ import annotations

from pathlib import Path

import pytest

from failover.lab import LabOptions
from tests.system.outage import one_source_broker_down
from tests.system.running import running


@pytest.mark.timeout(600)
def test_a_minute_without_one_source_broker(tmp_path: Path) -> None:
    options = LabOptions(aliases=("a", "b"), brokers=(3, 1), quick=True, heap="384m")
    with running(tmp_path, options) as three:
        one_source_broker_down(three, seconds=60)
