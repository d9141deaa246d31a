"""Two clusters for each file of benchmarks, with the JVM flags of a real broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from failover.lab import LabOptions, MirrorOptions
from tests.system.pair import Pair
from tests.system.running import running

OPTIONS = LabOptions(
    aliases=("primary", "standby"),
    heap="1g",
    mirror=MirrorOptions(checkpoint_seconds=1, refresh_seconds=1, flush_seconds=1),
)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with running(tmp_path_factory.mktemp("bench"), OPTIONS) as started:
        yield started
