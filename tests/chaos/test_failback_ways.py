"""Failback with topics made anew: the tail is in the file alone, everything else is mirrored whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from failover.lab import LabOptions
from tests.system.pair import Pair
from tests.system.running import running
from tests.system.test_failback_playbook import one_name


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    options = LabOptions(aliases=("a", "b"), sasl=True, authorizer=True, quick=True)
    with running(tmp_path_factory.mktemp("ways"), options) as started:
        yield started


def test_with_one_name_the_old_primarys_topics_are_made_anew(pair: Pair, tmp_path: Path) -> None:
    one_name(pair, tmp_path, "recreate")
