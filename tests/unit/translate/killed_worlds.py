"""Worlds made at random and found again by their number: mirrors killed again and again, syncs lost, logs cleaned."""

from __future__ import annotations

import random

from tests.unit.translate.oracle import World


def rough(seed: int, alike: int) -> tuple[World, list[int]]:
    """Makes a world and the committed offsets asked of it; ``alike``: so many different contents, 0: no two alike."""
    pick = random.Random(seed)
    world = World(
        lag_max=pick.choice([4, 20, 100]),
        land_every=pick.choice([1, 1, 5, 60]),
        read_committed=pick.random() < 0.3,
        target_markers=pick.random() < 0.1,
        seed=seed,
        identical=alike,
    )
    world.produce(pick.randint(1, 400))
    world.copy(pick.randint(0, 400))
    world.flush()
    world.land()
    count, cleaned = pick.randint(4, 20), pick.random() < 0.4
    for _ in range(count):
        _step(world, pick, cleaned=cleaned)
        if pick.random() < 0.5:
            world.land()
    if pick.random() < 0.7:
        world.in_flight = 10
        world.copy(10_000)
        world.flush()
        world.land()
    length = len(world.source) - world.source_start
    return world, sorted({world.source_start + round(pick.random() * length) for _ in range(6)})


def _step(world: World, pick: random.Random, *, cleaned: bool) -> None:
    kind = pick.randrange(13)
    if kind < 3:
        world.produce(pick.randint(1, 120))
    elif kind < 5:
        for _ in range(pick.randint(1, 12)):
            world.transaction(pick.randint(1, 8), abort=pick.random() < 0.4)
    elif kind < 9:
        world.copy(pick.randint(1, 200))
    elif kind == 9:
        world.flush()
    elif kind == 10:
        world.kill(pick.randint(0, 4))
        world.in_flight = pick.choice([0, 0, 1, 10])  # other partitions' syncs have the places
    elif kind == 11:
        world.in_flight = 10
    elif cleaned:
        change = pick.randrange(4)
        if change == 0:
            world.compact_source(pick.randint(5, 60))
        elif change == 1:
            world.retain_source(pick.randint(1, 60))
        elif change == 2:
            world.retain_target(pick.randint(1, 60))
        else:
            world.retry(pick.randint(1, 5))


def killed(seed: int) -> World:
    """Makes a world whose mirror is killed up to three times, syncs lost with it, and has then copied everything."""
    pick = random.Random(seed)
    world = World(lag_max=100, land_every=pick.choice([1, 1, 5, 60]), seed=seed)
    if pick.random() < 0.7:
        _transactions(world, 90)
    else:
        world.produce(1_000)
    for _ in range(pick.randint(1, 3)):
        world.in_flight = pick.choice([0, 0, 10])
        world.copy(pick.randint(1, 900))
        if pick.random() < 0.4:
            world.flush()
        world.in_flight = pick.choice([world.in_flight, 10])
        world.copy(pick.randint(1, 500))
        if pick.random() < 0.5:
            world.land()
        world.kill(pick.randint(0, 2))
        if pick.random() < 0.6:
            _transactions(world, 30)
    world.in_flight = pick.choice([0, 0, 10])
    world.copy(pick.randint(1, 1_500))
    world.in_flight = 10
    world.copy(10_000)
    world.land()
    world.flush()
    world.land()
    return world


def _transactions(world: World, count: int) -> None:
    for number in range(count):
        world.transaction(10 if number % 3 else 5, abort=number % 3 == 0)


def lowest(world: World, upstream: int) -> int:
    """Gives the last target offset with no unread record's last copy before it: from there the least is read again."""
    last = {item.offset: at for at, item in enumerate(world.target) if item is not None}
    return min((at for offset, at in last.items() if offset >= upstream), default=len(world.target))
