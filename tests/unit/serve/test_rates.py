from __future__ import annotations

import pytest

from failover.serve.rates import Rates


def test_a_rate_is_that_of_the_last_minute():
    rates = Rates[str](began=0.0)
    # 10 a second for 100 s, then nothing
    for second in range(0, 101, 5):
        found = rates.take(float(second), {"a": (second * 10, second)})
    assert found["a"] == pytest.approx((10.0, 1.0))
    for second in range(105, 161, 5):
        found = rates.take(float(second), {"a": (1000, 100)})
    assert found["a"] == (0.0, 0.0)


def test_what_is_new_counts_from_nothing_and_a_counter_that_falls_is_no_rate():
    rates = Rates[str](began=0.0)
    assert rates.take(10.0, {"a": (50,)}) == {"a": (5.0,)}
    assert rates.take(80.0, {"a": (20,), "b": (70,)}) == {"a": (0.0,), "b": (1.0,)}
