from __future__ import annotations

import random

import pytest
from crc32c import crc32c

from failover.replication.batches.crc import carried


@pytest.mark.parametrize("behind", [0, 1, 100, 65_535, 65_536, 65_537, 131_072, 262_143, 1_000_001])
def test_a_sum_carried_over_is_that_of_the_changed_bytes(behind):
    chance = random.Random(behind)
    old, new, rest = chance.randbytes(36), chance.randbytes(36), chance.randbytes(behind)
    assert carried(crc32c(old + rest), old, new, behind) == crc32c(new + rest)
