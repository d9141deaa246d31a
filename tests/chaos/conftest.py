"""A pair of clusters for each file of random tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from failover.lab import LabOptions
from tests.system.pair import Pair
from tests.system.running import running


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with running(tmp_path_factory.mktemp("chaos"), LabOptions(aliases=("a", "b"), quick=True)) as started:
        yield started
