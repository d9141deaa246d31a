"""Mirrors that are killed again and again, whose syncs are lost, over logs that cleaners shorten and thin out.

Worlds are made at random and found again by their number. Among them are those in which an answer once passed an
unread record, or promised fewer records read again than there were; no bound is excused here.
"""

from __future__ import annotations

import random

import pytest

from tests.unit.translate.driving import located
from tests.unit.translate.killed_worlds import killed, lowest, rough
from tests.unit.translate.oracle import check

# An unread record that is like others lies before the first one that is not; or a consumed one is like unread ones.
FOUND = [(1173, 40), (1365, 40), (1872, 40), (3881, 40), (4330, 40), (4801, 40), (5424, 7)]


@pytest.mark.parametrize(("seed", "alike"), FOUND)
def test_worlds_that_once_were_answered_wrongly(seed: int, alike: int) -> None:
    world, upstreams = rough(seed, alike)
    for answer in located(world, upstreams).values():
        check(world, answer, alike=True)


@pytest.mark.parametrize("alike", [0, 7, 40])
def test_nothing_is_passed_and_no_bound_exceeded(alike: int) -> None:
    for seed in range(60):
        world, upstreams = rough(seed, alike)
        for answer in located(world, upstreams).values():
            check(world, answer, alike=bool(alike))


# 22: a break behind one that reached further. 43, 198: no sync below. 130: a break that no sync shows.
@pytest.mark.parametrize("seed", [*range(40), 43, 71, 130, 198])
def test_nothing_avoidable_is_read_again(seed: int) -> None:
    world = killed(seed)
    for upstream, answer in located(world, random.Random(seed).sample(range(1, len(world.source)), 8)).items():
        check(world, answer)
        assert answer.offset is not None
        assert world.reread(answer.offset, upstream) == world.reread(lowest(world, upstream), upstream), answer
