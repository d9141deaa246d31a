"""Arbitrary worlds, judged record by record."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.examples import EXAMPLES
from tests.unit.translate.driving import located
from tests.unit.translate.oracle import World, check
from tests.unit.translate.worlds import worlds

few_offsets = st.lists(st.floats(0, 1), min_size=1, max_size=6)


def committed(world: World, places: list[float]) -> list[int]:
    length = len(world.source) - world.source_start
    return [world.source_start + round(place * length) for place in places]


@settings(max_examples=EXAMPLES)
@given(worlds(), few_offsets)
def test_compared_records_never_pass_the_true_position(world: World, places: list[float]) -> None:
    for answer in located(world, committed(world, places)).values():
        check(world, answer, bound=not world.masked())


@settings(max_examples=EXAMPLES)
@given(worlds(), few_offsets)
def test_the_target_alone_never_passes_the_true_position(world: World, places: list[float]) -> None:
    assume(not world.masked())
    for answer in located(world, committed(world, places), source=False).values():
        check(world, answer)


@settings(max_examples=EXAMPLES)
@given(worlds(), few_offsets, st.integers(1, 60))
def test_a_small_budget_never_passes_the_true_position(world: World, places: list[float], budget: int) -> None:
    assume(not world.masked())
    for answer in located(world, committed(world, places), max_records=budget).values():
        check(world, answer)


@settings(max_examples=EXAMPLES)
@given(worlds(identical=True), few_offsets, st.sampled_from([1, 400]))
def test_identical_records_are_never_passed(world: World, places: list[float], asked: int) -> None:
    """``asked`` many times: so many questions narrow the windows to 16 records."""
    assume(not world.masked())
    for answer in located(world, committed(world, places) * asked).values():
        check(world, answer, alike=True)


@settings(max_examples=EXAMPLES)
@given(worlds(rare=False, compacted=False), few_offsets)
def test_with_unique_records_nothing_avoidable_is_read_again(world: World, places: list[float]) -> None:
    world.copy(10_000)
    world.flush()
    world.land()
    for upstream, answer in located(world, committed(world, places)).items():
        check(world, answer)
        if answer.offset is not None:
            assert world.reread(answer.offset, upstream) == 0, (repr(world), answer)


@pytest.mark.parametrize("cut", [1, 7])
def test_a_reader_that_gives_up_early_is_asked_again(cut: int) -> None:
    world = World(lag_max=100)
    world.produce(500)
    world.copy(500)
    whole = world.read

    def shortened(requests):
        return whole([request._replace(stop=min(request.stop, request.start + cut)) for request in requests])

    def read(requests):
        windows = shortened(requests)
        return dict(zip(requests, windows.values(), strict=True))

    world.read = read  # type: ignore[method-assign]
    answer = located(world, [250])[250]
    assert (answer.offset, answer.reread_max) == (250, 0)
