"""Both directions of a pair for minutes, under traffic, the worker killed now and then."""

from __future__ import annotations

import pytest

from tests.system.pair import Pair
from tests.system.several import active_active


@pytest.mark.timeout(600)
def test_active_active_for_minutes(pair: Pair) -> None:
    active_active(pair, seconds=150, kills=5)
