"""How often a worker looks at the topics."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from failover.replication.discovery import FOLLOW_SECONDS, until_next_look

SECONDS = st.one_of(st.floats(1, 1e6), st.just(math.inf))


@given(SECONDS, st.integers(0, 100))
def test_who_leads_looks_by_the_setting(seconds: float, in_vain: int) -> None:
    assert until_next_look(seconds, leads=True, in_vain=in_vain) == seconds


@given(SECONDS, st.integers(0, 10_000))
def test_who_follows_finds_soon_what_the_leader_has_made(seconds: float, in_vain: int) -> None:
    wait = until_next_look(seconds, leads=False, in_vain=in_vain)
    if math.isinf(seconds) and not in_vain:
        assert math.isinf(wait)  # looks are switched off, and nothing is waited for
    else:
        assert 0 < wait <= min(seconds, FOLLOW_SECONDS)
    assert until_next_look(seconds, leads=False, in_vain=in_vain + 1) <= max(
        2 * wait if in_vain else seconds, FOLLOW_SECONDS
    )


def test_what_is_waited_for_is_looked_for_less_and_less_eagerly() -> None:
    waits = [until_next_look(600, leads=False, in_vain=times) for times in range(1, 9)]
    assert waits == [1, 2, 4, 8, 16, 30, 30, 30]
