"""The short way to an offset's neighbours, where both logs hold the same in step, leads where the long one does."""

from __future__ import annotations

import random
from dataclasses import replace

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


@pytest.mark.parametrize("seed", [7, 45])
def test_records_alike_are_not_passed_when_many_offsets_are_asked(seed: int) -> None:
    world = mirrored(random.Random(seed), alike=True)
    answers = located(world, random.Random(seed).choices(range(len(world.source) + 1), k=GROUPS))
    for answer in answers.values():
        check(world, answer, bound=not world.masked(), alike=True)


def copied_again(*, twin: int, original: int) -> World:
    """Makes a world whose mirror went back to 170 and has just copied 175 again, a sync not yet seen; two are alike."""
    world = World(lag_max=1000, land_every=1000)
    world.produce(260)
    world.source[twin] = replace(world.source[original], offset=twin)  # type: ignore[type-var]
    world.copy(1)
    world.land()
    world.copy(169)
    world.flush()
    world.land()
    world.copy(60)
    world.kill()
    world.copy(6)
    return world


def test_a_copy_beyond_the_newest_sync_is_not_taken_for_a_record_of_the_narrow_window_that_it_is_like() -> None:
    world = copied_again(twin=175, original=56)  # 119 apart: their headers are the same, too
    answers = located(world, [*range(40, 70)] * 12)
    for answer in answers.values():
        check(world, answer, alike=True)
    assert answers[56].offset == 56


def test_the_first_record_copied_before_limits_an_answer_even_if_it_is_like_one_copied_rightly() -> None:
    world = copied_again(twin=176, original=50)
    answers = located(world, [*range(170, 181)])
    assert answers[176].offset is not None
    for answer in answers.values():
        check(world, answer, alike=True)


def test_a_sync_is_true_though_its_copy_is_like_a_record_of_the_window() -> None:
    world = copied_again(twin=175, original=56)
    world.syncs.append((175, len(world.target) - 1))
    world.produce(800)
    world.copy(800)
    world.syncs.append((975, len(world.target) - 1))
    answer = located(world, [56] * GROUPS)[56]
    assert not any("differ" in line for line in answer.evidence)
    check(world, answer, alike=True)


def test_a_copy_in_a_break_is_compared_with_all_that_it_may_be_a_copy_of() -> None:
    world = World(lag_max=1000, land_every=1000)
    world.produce(900)
    for twin, original in ((224, 238), (296, 226)):
        world.source[twin] = replace(world.source[original], offset=twin)  # type: ignore[type-var]
    world.copy(311)
    world.flushed = 249
    world.kill()
    world.copy(400)
    world.syncs = [(0, 0), (233, 233), (248, 248), (249, 311), (600, 662)]
    answer = located(world, [238] * GROUPS)[238]
    check(world, answer, alike=True)
    assert answer.offset == 238


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
