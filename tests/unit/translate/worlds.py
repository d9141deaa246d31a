"""Arbitrary worlds for the property tests: what can happen to a mirrored partition, in any order."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.unit.translate.oracle import World

SOURCE = ("produce", "produce", "transaction", "compact_source")
MIRROR = ("copy", "copy", "copy", "flush", "land", "kill")
RARE = (
    "retain_source",
    "recreate_source",
    "retain_target",
    "compact_target",
    "truncate_target",
    "recreate_target",
    "retry",
)


def step(draw: st.DrawFn, world: World, names: tuple[str, ...]) -> None:
    """Does one thing to the world."""
    name = draw(st.sampled_from(names))
    if name == "transaction":
        world.transaction(draw(st.integers(1, 8)), abort=draw(st.booleans()))
    elif name in {"flush", "land", "recreate_target"}:
        getattr(world, name)()
    elif name == "kill":
        world.kill(draw(st.integers(0, 3)))
    elif name.startswith("compact"):
        getattr(world, name)(draw(st.integers(10, 70)))
    elif name.startswith("re") or name == "truncate_target":
        getattr(world, name)(draw(st.integers(1, 10)))
    else:
        getattr(world, name)(draw(st.integers(1, 15)))


@st.composite
def worlds(draw: st.DrawFn, *, rare: bool = True, identical: bool = False, compacted: bool = True) -> World:
    # a compacted topic has keys and keeps one record of each: none are identical
    source = SOURCE if compacted and not identical else tuple(name for name in SOURCE if name != "compact_source")
    seldom = tuple(name for name in RARE if not (identical and name == "compact_target"))
    world = World(
        lag_max=draw(st.sampled_from([0, 1, 4, 9])),
        in_flight=draw(st.sampled_from([1, 2, 10])),
        land_every=draw(st.sampled_from([1, 3, 9])),
        read_committed=draw(st.booleans()),
        target_markers=draw(st.sampled_from([False, False, False, True])),
        log_append_time=draw(st.booleans()),
        base64_headers=draw(st.booleans()),
        identical=draw(st.sampled_from([1, 2, 5])) if identical else 0,
        seed=draw(st.integers(0, 999)),
    )
    world.produce(draw(st.integers(0, 20)))
    for _ in range(draw(st.integers(3, 16))):
        step(draw, world, source)
        step(draw, world, MIRROR)
        step(draw, world, MIRROR)
        if rare and draw(st.integers(0, 9)) == 9:
            step(draw, world, seldom)
    return world
