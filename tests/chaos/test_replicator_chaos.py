"""The replicator under everything that can go wrong, in random order: source and target stay equal, record by record.

``FAILOVER_CHAOS_SEED`` repeats a run's choices, ``FAILOVER_CHAOS_ROUNDS`` says how many rounds.
"""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

import pytest

from tests.system.replicator_chaos import BROKERS, NETWORK, WORKER, Chaos, lab_options
from tests.system.running import running

ROUNDS = int(os.environ.get("FAILOVER_CHAOS_ROUNDS", "30"))


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("brokers", [(1, 1), (3, 3)], ids=["one broker a side", "three brokers a side"])
def test_chaos(brokers: tuple[int, int], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seed = int(os.environ.get("FAILOVER_CHAOS_SEED", "0")) or random.randrange(1, 1 << 30)

    def say(text: str) -> None:
        with capsys.disabled():
            sys.stdout.write(f"\n{text}")

    with running(tmp_path, lab_options(brokers=brokers)) as pair:
        chaos = Chaos(pair, tmp_path, seed, frozen=60, freeze=15, say=say)
        try:
            chaos.run((*WORKER, *NETWORK, *BROKERS), ROUNDS)
        finally:
            chaos.close()
