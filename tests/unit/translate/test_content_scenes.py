"""The hard scenes at their real proportions: a sync per hundred records, runs killed while copying."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from failover.model import Precision, Proof
from failover.translate.sync_rule import translate
from tests.unit.translate.driving import located
from tests.unit.translate.oracle import Item, World, check


def groups(world: World, count: int = 20) -> list[int]:
    """Committed offsets at every twentieth part of the source, each 37 short of the mark; and both ends."""
    length = len(world.source) - world.source_start
    marks = [world.source_start + length * part // count - 37 for part in range(1, count + 1)]
    return [max(world.source_start, mark) for mark in marks] + [world.source_start, len(world.source)]


def nothing_is_read_again(world: World, upstreams: Iterable[int]) -> None:
    for upstream, answer in located(world, upstreams).items():
        check(world, answer)
        assert answer.offset is not None
        assert world.reread(answer.offset, upstream) == 0, answer
        assert (answer.precision, answer.reread_max) == (Precision.EXACT, 0), answer


def mirror_all(world: World, batch: int = 500) -> None:
    while world.position < len(world.source):
        world.copy(batch)
        world.land()
    world.flush()
    world.land()


def test_lagging_groups_on_a_dense_partition() -> None:
    world = World(lag_max=100)
    world.produce(10_000)
    mirror_all(world)
    nothing_is_read_again(world, groups(world))


@pytest.mark.parametrize("read_committed", [False, True])
@pytest.mark.parametrize("land_every", [1, 190])
def test_transactions_with_aborts(read_committed: bool, land_every: int) -> None:
    world = World(lag_max=100, read_committed=read_committed, land_every=land_every)
    for number in range(400):
        world.transaction(3 + number % 17, abort=number % 5 == 0)
    world.transaction(8, abort=False)
    mirror_all(world)
    nothing_is_read_again(world, groups(world))


def test_a_compacted_source() -> None:
    world = World(lag_max=100, seed=3)
    world.produce(8_000)
    world.compact_source(70)
    mirror_all(world)
    nothing_is_read_again(world, groups(world))


def test_a_compacted_source_with_the_mirror_far_behind() -> None:
    world = World(lag_max=100, seed=5, land_every=10_000)
    world.produce(8_000)
    world.compact_source(80)
    world.copy(400)
    world.land()
    # the newest sync is long past: the originals of what follows lie five times as many offsets beyond it
    world.copy(400)
    for upstream, answer in located(world, groups(world)).items():
        check(world, answer)
        assert answer.offset is not None
        assert world.reread(answer.offset, upstream) == 0, answer


def test_a_source_compacted_while_it_is_mirrored() -> None:
    world = World(lag_max=100, seed=4)
    for _ in range(6):
        world.produce(2_000)
        world.compact_source(30)
        world.copy(1_200)
    mirror_all(world)
    for upstream, answer in located(world, groups(world)).items():
        check(world, answer)
        assert answer.reread_max is not None
        assert answer.reread_max <= 100, (upstream, answer)


@pytest.mark.parametrize("lost", [False, True], ids=["all syncs", "first syncs lost"])
@pytest.mark.parametrize("transactions", [False, True])
def test_runs_killed_while_copying(lost: bool, transactions: bool) -> None:
    world = World(lag_max=100, land_every=400 if lost else 1)
    for _ in range(700):
        if transactions:
            world.transaction(9, abort=False)
        else:
            world.produce(10)
    for run in range(3):
        world.copy(900)
        world.flush()
        world.copy(1_700 + 311 * run)
        world.kill()
    mirror_all(world)
    nothing_is_read_again(world, groups(world, 30))


@pytest.mark.parametrize("tail", [10, 300], ids=["nothing unseen", "an unseen tail"])
def test_a_transactional_topic_whose_new_run_got_its_syncs_through_late(tail: int) -> None:
    """Syncs of other partitions had all ten places: the new run's first one is beyond what the old one had reached.

    What lies between is a break whose room, counted in offsets, is smaller by its transaction markers than it is.
    """
    world = World(lag_max=100)
    for number in range(90):
        world.transaction(5 if number % 3 == 0 else 10, abort=number % 3 == 0)
    world.copy(356)
    world.flush()
    world.land()
    world.copy(300)
    world.in_flight = 0
    world.copy(tail)
    world.kill()
    for number in range(60):
        world.transaction(10 if number % 2 else 5, abort=number % 2 == 0)
    world.copy(500)
    world.in_flight = 10
    mirror_all(world)
    marks = [mark for mark in range(5, len(world.source), 13) if world.source[mark] is not None]
    nothing_is_read_again(world, marks)


def test_a_killed_run_that_left_no_sync() -> None:
    world = World(lag_max=100, land_every=10_000, in_flight=10)
    world.produce(6_000)
    world.copy(2_000)
    world.land()
    world.kill()
    world.copy(2_500)
    world.kill()
    mirror_all(world)
    nothing_is_read_again(world, groups(world, 30))


def test_a_mirror_that_is_copying_again_when_the_source_dies() -> None:
    world = World(lag_max=100)
    world.produce(5_000)
    world.copy(2_000)
    world.flush()
    world.copy(2_000)
    world.kill()
    world.copy(700)
    for upstream, answer in located(world, [*groups(world), 2_500, 2_700, 3_999, 4_000]).items():
        check(world, answer)
        assert answer.offset is not None
        assert world.reread(answer.offset, upstream) <= world.reread(world.true_position(upstream), upstream)


def test_a_source_that_retention_has_shortened() -> None:
    world = World(lag_max=100)
    world.produce(20_000)
    world.retain_source(14_000)
    mirror_all(world)
    nothing_is_read_again(world, groups(world))


def test_a_source_shortened_after_it_was_mirrored() -> None:
    world = World(lag_max=100)
    world.produce(8_000)
    mirror_all(world)
    world.retain_source(3_333)
    nothing_is_read_again(world, [*groups(world), 3_000, 3_300])


def test_a_target_that_retention_has_shortened() -> None:
    world = World(lag_max=100)
    world.produce(8_000)
    mirror_all(world)
    world.retain_target(3_333)
    for upstream, answer in located(world, groups(world)).items():
        check(world, answer)
        assert answer.offset == max(3_333, upstream)
        assert answer.precision is Precision.EXACT


@pytest.mark.parametrize("again", [300, 700], ids=["much shorter", "shorter"])
def test_a_source_made_anew(again: int) -> None:
    """What the mirror brought of the log before lies on the target still, with its syncs: none of it is unread."""
    world = World(lag_max=100)
    world.produce(1_000)
    mirror_all(world)
    world.recreate_source(200)
    world.copy(100)  # out of range: the mirror begins at the new log's start
    mirror_all(world)
    world.produce(again - 200)
    mirror_all(world)
    nothing_is_read_again(world, groups(world))
    world.produce(40)  # the mirror is a little behind, as it always is
    for upstream, answer in located(world, groups(world)).items():
        check(world, answer)
        assert answer.offset is not None
        assert world.reread(answer.offset, upstream) == 0, answer


def test_a_recreated_target() -> None:
    world = World(lag_max=100)
    world.produce(8_000)
    world.copy(3_000)
    world.flush()
    world.recreate_target()
    mirror_all(world)
    answers = located(world, groups(world))
    for upstream, answer in answers.items():
        check(world, answer)
        if upstream > 3_000:
            assert answer.offset == upstream - 3_000
            assert answer.precision is Precision.EXACT


@pytest.mark.parametrize("kinds", [1, 3])
def test_thousands_of_identical_records(kinds: int) -> None:
    world = World(lag_max=100, identical=kinds)
    world.produce(3_000)
    mirror_all(world)
    for upstream, answer in located(world, groups(world)).items():
        assert (answer.offset, answer.precision) == (upstream, Precision.EXACT), answer


def test_identical_records_with_a_hole_among_them_stay_safe() -> None:
    world = World(lag_max=100, identical=1, read_committed=True)
    for number in range(300):
        world.transaction(5 + number % 7, abort=number % 4 == 0)
    mirror_all(world)
    for upstream, answer in located(world, groups(world)).items():
        assert answer.offset is not None
        assert world.skipped_alike(answer.offset, upstream) == 0
        assert answer.reread_max is not None
        assert answer.reread_max <= 110


@pytest.mark.parametrize(("append_time", "encoded"), [(True, False), (False, True), (True, True)])
def test_targets_that_change_timestamps_or_headers(append_time: bool, encoded: bool) -> None:
    world = World(lag_max=100, log_append_time=append_time, base64_headers=encoded)
    for number in range(300):
        world.transaction(5 + number % 7, abort=number % 4 == 0)
    mirror_all(world)
    nothing_is_read_again(world, groups(world))


def test_a_partition_without_syncs() -> None:
    world = World(lag_max=100)
    world.produce(5_000)
    mirror_all(world)
    world.syncs.clear()
    nothing_is_read_again(world, groups(world))


def test_offsets_beyond_the_newest_sync_and_at_a_marker() -> None:
    world = World(lag_max=100)
    world.produce(150)
    world.transaction(40, abort=False)
    world.copy(1_000)
    end = len(world.source)
    nothing_is_read_again(world, [149, 151, 170, end - 1, end])


def test_consumed_but_not_mirrored_yet() -> None:
    world = World(lag_max=100)
    world.produce(2_000)
    world.copy(1_500)
    answers = located(world, [1_400, 1_500, 1_700, 2_000])
    assert [(u, a.offset, a.reread_max) for u, a in answers.items()] == [
        (1_400, 1_400, 0),
        (1_500, 1_500, 0),
        (1_700, 1_500, 200),
        (2_000, 1_500, 500),
    ]


def test_the_target_alone_proves_equal_deltas_when_the_source_is_gone() -> None:
    world = World(lag_max=100)
    world.produce(5_000)
    mirror_all(world)
    answers = located(world, [1_234, 3_000], source=False)
    for upstream, answer in answers.items():
        assert (answer.offset, answer.precision, answer.proof) == (upstream, Precision.EXACT, Proof.EQUAL_DELTA)


def test_the_budget_ends_in_the_syncs_own_bound() -> None:
    world = World(lag_max=100, target_markers=True)
    world.produce(8_000)
    mirror_all(world)
    for upstream, answer in located(world, groups(world), max_records=50).items():
        check(world, answer)
        assert answer.proof in {Proof.SYNC_MATCH, Proof.SYNC_BELOW, Proof.LOG_END}, upstream


def test_what_others_wrote_behind_the_copies_is_unread() -> None:
    """A group that has read all of the source has not read what was written to the mirrored topic on the target."""
    world = World(lag_max=50)
    world.produce(400)
    mirror_all(world)
    by_syncs = translate(400, world.history(), world.bounds())
    assert (by_syncs.offset, by_syncs.precision, by_syncs.proof) == (400, Precision.EXACT, Proof.LOG_END)
    for number in range(7):
        world.target.append(Item(-1, 1_000 + number, b"theirs"))
    by_syncs = translate(400, world.history(), world.bounds())
    assert (by_syncs.offset, by_syncs.reread_max, by_syncs.proof) == (400, 7, Proof.SYNC_BELOW)
    answers = located(world, [390, 400])
    assert [answers[390].offset, answers[400].offset] == [390, 400]
    assert {answers[390].precision, answers[400].precision} == {Precision.BOUNDED}  # perhaps of what is gone
