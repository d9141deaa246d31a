"""The short way to an offset's neighbours, where both logs hold the same in step, leads where the long one does."""

from __future__ import annotations

import random

import pytest

from failover.model import Precision
from failover.translate import enclose
from tests.unit.translate.driving import located
from tests.unit.translate.oracle import World, check

GROUPS = 400
"""So many committed offsets narrow the windows to 16 records, far less than the logs hold."""


def mirrored(pick: random.Random, *, alike: bool) -> World:
    """Makes a world that is nearly calm: once in a while a transaction, a kill, a hole, or records that are alike."""
    world = World(lag_max=pick.choice([4, 30]), land_every=3, seed=pick.randrange(1000))
    while len(world.target) < 500:
        world.identical = pick.choice([0, 0, 0, 40]) if alike else 0
        world.produce(pick.randint(10, 60))
        world.copy(pick.randint(10, 60))
        world.land()
        if pick.random() < 0.1:
            world.transaction(3, abort=pick.random() < 0.5)
        if pick.random() < 0.5:
            world.flush()
        if pick.random() < 0.04:
            world.kill(pick.randint(0, 3))
        if pick.random() < 0.04:
            world.compact_source(15)
    return world


@pytest.mark.parametrize("seed", range(16))
@pytest.mark.parametrize("alike", [False, True])
def test_the_short_way_leads_where_the_long_way_does(seed: int, alike: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    world = mirrored(random.Random(seed), alike=alike)
    upstreams = random.Random(seed).choices(range(len(world.source) + 1), k=GROUPS)
    short = located(world, upstreams)
    monkeypatch.setattr(enclose, "_in_step", lambda *_: None)
    assert located(world, upstreams) == short
    for answer in () if alike else short.values():
        check(world, answer, bound=not world.masked())


def test_a_log_copied_one_to_one_takes_the_short_way(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(lag_max=30)
    for _ in range(20):
        world.produce(50)
        world.copy(50)
        world.land()
    monkeypatch.setattr(enclose, "matches", None)  # pairs all records of both windows: the long way
    upstreams = random.Random(1).sample(range(100, 900), GROUPS)
    found = located(world, upstreams)
    assert {at: (answer.offset, answer.precision) for at, answer in found.items()} == {
        at: (at, Precision.EXACT) for at in upstreams
    }
