"""Failback with topics made anew: the tail is in the file alone, everything else is mirrored whole."""

from __future__ import annotations

from pathlib import Path

from tests.system.pair import Pair
from tests.system.test_failback_playbook import one_name


def test_with_one_name_the_old_primarys_topics_are_made_anew(pair: Pair, tmp_path: Path) -> None:
    one_name(pair, tmp_path, "recreate")
