"""A few rounds of what ``tests/chaos/test_replicator_chaos.py`` does at length; always the same ones."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.system.replicator_chaos import (
    Chaos,
    cut_fetch,
    cut_produce,
    hold_produce,
    kill_worker,
    lab_options,
    replace_frozen_worker,
)
from tests.system.running import running

ROUNDS = (kill_worker, cut_produce, replace_frozen_worker, cut_fetch, hold_produce)


def test_a_few_rounds(tmp_path: Path) -> None:
    with running(tmp_path, lab_options()) as pair:
        chaos = Chaos(pair, tmp_path, 20261129, frozen=6, freeze=3, say=lambda text: sys.stdout.write(f"{text}\n"))
        try:
            chaos.run(ROUNDS, len(ROUNDS))
        finally:
            chaos.close()
