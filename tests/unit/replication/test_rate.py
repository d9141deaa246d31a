from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from failover.replication.rate import Rate


class Time:
    """Is a clock that stands still but for who sleeps."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.slept.append(seconds)


def rate(bytes_per_second: int) -> tuple[Rate, Time]:
    time = Time()
    return Rate(bytes_per_second, clock=time.clock, sleep=time.sleep), time


def test_without_a_bound_nobody_waits():
    limit, time = rate(0)
    for _ in range(3):
        limit.took(1 << 30)
        asyncio.run(limit.ready())
    assert time.slept == []


def test_a_second_comes_at_once_and_what_was_too_much_is_waited_for():
    limit, time = rate(1_000)
    limit.took(1_000)
    asyncio.run(limit.ready())
    assert time.slept == []
    limit.took(2_500)
    asyncio.run(limit.ready())
    asyncio.run(limit.ready())
    assert time.slept == [2.5]


def test_a_pause_saves_up_no_more_than_a_second():
    limit, time = rate(1_000)
    time.now += 3_600
    asyncio.run(limit.ready())
    limit.took(3_000)
    asyncio.run(limit.ready())
    assert time.slept == [2.0]


@given(st.integers(1, 1_000), st.lists(st.tuples(st.integers(0, 3_000), st.floats(0, 5)), max_size=30))
def test_in_any_time_no_more_than_the_bound_a_burst_and_one_read(bound, reads):
    limit, time = rate(bound)
    taken: list[tuple[float, int]] = []
    for size, pause in reads:
        asyncio.run(limit.ready())
        limit.took(size)
        taken.append((time.now, size))
        time.now += pause
    for first in range(len(taken)):
        for last in range(first, len(taken)):
            elapsed = taken[last][0] - taken[first][0]
            # what began the read before last had credit left; the last one goes beyond it by itself alone
            read = sum(size for _, size in taken[first:last])
            assert read <= bound * (elapsed + 1) + max(size for _, size in taken[first : last + 1]) + 0.001
