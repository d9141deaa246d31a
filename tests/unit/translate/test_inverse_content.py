"""Failback by comparing records: exact where the records tell, never past an unread original."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from failover.model import Precision, Proof
from tests.examples import EXAMPLES
from tests.unit.translate.backwards import all_true, check, highest_consumed, inverted
from tests.unit.translate.killed_worlds import killed
from tests.unit.translate.oracle import World
from tests.unit.translate.worlds import worlds


def exact(world: World, *copied: int, shared: bool = False) -> None:
    """Asserts that each offset is answered exactly: all that it has before it was consumed, nothing after it."""
    for each, answer in inverted(world, copied, shared=shared).items():
        check(world, answer)
        assert answer.offset is not None, (each, answer)
        assert answer.precision is Precision.EXACT, (each, answer)
        assert answer.upstream == each
        consumed = {i.offset for i in world.written[:each] if i is not None and i.life == world.life}
        again = [at for at in range(answer.offset, len(world.source)) if world.source[at] and at in consumed]
        assert not again


def test_between_syncs_and_at_the_end_of_the_copies() -> None:
    world = World(lag_max=50)
    world.produce(400)
    world.copy(330)
    exact(world, 1, 2, 51, 52, 53, 100, 177, 329, 330)
    [answer] = inverted(world, [330]).values()
    assert (answer.offset, answer.proof) == (330, Proof.CONTENT)


@pytest.mark.parametrize("abort", [False, True])
@pytest.mark.parametrize("read_committed", [False, True])
def test_markers_and_aborted_records(*, abort: bool, read_committed: bool) -> None:
    world = World(lag_max=20, in_flight=1, land_every=9, read_committed=read_committed)
    for turn in range(40):
        world.transaction(5, abort=abort and turn % 3 == 1)
    world.copy(170)
    exact(world, *range(1, len(world.target) + 1))


def test_a_compacted_topic_with_holes() -> None:
    world = World(lag_max=40, in_flight=1, land_every=20)
    world.produce(300)
    world.compact_source(60)
    world.copy(100)
    world.compact_source(50)
    exact(world, *range(1, len(world.target) + 1))


@pytest.mark.parametrize("landed", [0, 3])
def test_a_mirror_killed_while_copying(landed: int) -> None:
    world = World(lag_max=30, land_every=9)
    world.produce(300)
    world.copy(100)
    world.flush()
    world.copy(75)  # up to 175, the flushed position is 100
    world.kill(landed)
    world.copy(40)  # 100 to 139 again
    answers = inverted(world, range(1, len(world.target) + 1))
    for copied, answer in answers.items():
        check(world, answer)
        assert answer.offset == highest_consumed(world, copied) + 1
        assert answer.precision is Precision.EXACT
    assert answers[175].offset == answers[190].offset == answers[215].offset == 175


def test_originals_made_anew_are_told_from_a_restart() -> None:
    world = World(lag_max=20)
    world.produce(200)
    world.copy(200)
    world.recreate_source(150)
    world.position = 0
    world._new_run()
    world.copy(100)
    for copied, answer in inverted(world, [150, 200, 201, 250, 300]).items():
        check(world, answer)
        if copied > 200:
            assert (answer.offset, answer.precision) == (copied - 200, Precision.EXACT)
        else:
            assert answer.offset is None


def test_syncs_of_an_earlier_topic_of_the_same_length() -> None:
    world = World(lag_max=20)
    world.produce(200)
    world.copy(200)
    world.recreate_source(400)
    [answer] = inverted(world, [150]).values()
    assert (answer.offset, answer.failure) == (None, "no-checkpoint")
    assert any("no sync is used" in line for line in answer.evidence)


def test_without_any_sync_the_records_alone() -> None:
    world = World()
    world.produce(500)
    world.copy(450)
    world.syncs.clear()
    exact(world, 9, 100, 300, 450)
    world.retain_target(50)
    [answer] = inverted(world, [300]).values()
    check(world, answer)
    assert (answer.offset, answer.precision) == (300, Precision.BOUNDED)  # what retention took was perhaps copied again


def test_identical_records_between_two_syncs_are_counted_and_those_at_the_end_are_not() -> None:
    world = World(lag_max=50, identical=1)
    world.produce(300)
    world.copy(220)
    answers = inverted(world, range(1, 221))
    for answer in answers.values():
        check(world, answer)
    assert all(answers[copied].precision is Precision.EXACT for copied in range(1, 200))
    assert answers[220].precision is Precision.BOUNDED


@pytest.mark.parametrize(
    "world",
    [World(lag_max=60, log_append_time=True), World(lag_max=60, base64_headers=True)],
    ids=["log-append-time", "base64-headers"],
)
def test_other_timestamps_and_headers_on_the_copies(world: World) -> None:
    world.produce(300)
    world.copy(250)
    exact(world, 1, 30, 130, 250)


def test_records_the_copies_cluster_wrote_itself_have_no_original() -> None:
    world = World(lag_max=30)
    world.produce(130)
    world.copy(100)
    own = World(seed=7)
    own.produced = 1000
    own.produce(60)
    mine = [replace(item, life=99) for item in own.source if item is not None]
    for item in mine:
        world._write(item)
    answers = inverted(world, [50, 99, 100, 101, 140, 160], shared=True)
    assert {copied: answer.offset for copied, answer in answers.items()} == {
        50: 50,
        99: 99,
        100: 100,
        101: 100,
        140: 100,
        160: 100,
    }
    assert {answer.precision for answer in answers.values()} == {Precision.EXACT}
    # some of them came back: they are no originals, and 100 to 129 are unread all the same
    world.source.extend(replace(item, life=0, offset=130 + n) for n, item in enumerate(mine))
    for answer in inverted(world, [140, 160], shared=True).values():
        assert answer.offset == 100


def test_too_few_records_allowed_leaves_the_syncs_answer() -> None:
    world = World(lag_max=100)
    world.produce(300)
    world.copy(300)
    [answer] = inverted(world, [190], max_records=10).values()
    check(world, answer)
    assert (answer.proof, answer.precision) == (Proof.SYNC_BELOW, Precision.BOUNDED)


@settings(max_examples=EXAMPLES)
@given(world=worlds(), data=st.data())
def test_no_history_makes_records_pass_an_unread_original(world: World, data: st.DataObject) -> None:
    assume(all_true(world))
    budget = data.draw(st.sampled_from([200_000, 200_000, 60, 15]))
    for answer in inverted(world, range(len(world.target) + 1), max_records=budget).values():
        check(world, answer, bound=not world.masked())


@settings(max_examples=EXAMPLES)
@given(world=worlds(rare=False, identical=True))
def test_records_that_repeat_pass_nothing(world: World) -> None:
    for answer in inverted(world, range(len(world.target) + 1)).values():
        check(world, answer, bound=not world.masked())


@pytest.mark.parametrize("seed", range(40))
def test_restarts_and_transactions_alone_cost_no_exactness(seed: int) -> None:
    chance = random.Random(seed)
    world = World(
        lag_max=chance.choice([0, 4, 30]),
        in_flight=chance.choice([1, 10]),
        land_every=chance.choice([1, 5]),
        read_committed=chance.random() < 0.5,
        seed=seed,
    )
    for _ in range(chance.randrange(4, 14)):
        if chance.random() < 0.5:
            world.produce(chance.randrange(40))
        else:
            world.transaction(chance.randrange(1, 9), abort=chance.random() < 0.5)
        for _ in range(2):
            getattr(world, chance.choice(["flush", "land"]))()
            world.copy(chance.randrange(1, 40))
        if chance.random() < 0.3:
            world.kill(chance.randrange(4))
    if world.history() is None:
        world.land()
    exact(world, *range(1, len(world.target) + 1))


# 61 and later: before the first sync there are runs of which one went further than the next.
@pytest.mark.parametrize("seed", [*range(30), 61, 71, 89, 247, 287, 289])
def test_mirrors_killed_again_and_again(seed: int) -> None:
    world = killed(seed)
    assert all_true(world)
    copied = range(1, len(world.target), len(world.target) // 7)
    for answer in inverted(world, copied).values():
        check(world, answer)
