"""Failback by the syncs alone: the rules of ``Inverse`` one by one, and against arbitrary histories."""

from __future__ import annotations

from array import array
from typing import Any

import pytest
from hypothesis import assume, given, settings

from failover.model import Precision, Proof
from failover.translate.inverse import Inverse, beside
from failover.translate.segments import Syncs
from failover.translate.sync_rule import LogBounds
from tests.examples import EXAMPLES
from tests.unit.translate.backwards import all_true, check, inverse_bounds
from tests.unit.translate.oracle import World
from tests.unit.translate.worlds import worlds


def syncs(*pairs: tuple[int, int]) -> Syncs:
    return Syncs.of(array("q", [up for up, _ in pairs]), array("q", [down for _, down in pairs]))


def bounds(originals: tuple[int, int] = (0, 10_000), copies: tuple[int, int] | None = (0, 10_000)) -> LogBounds:
    return LogBounds(
        target_start=originals[0],
        target_end=originals[1],
        source_start=None if copies is None else copies[0],
        source_end=None if copies is None else copies[1],
    )


def placed(copied: int, found: Syncs | None, at: LogBounds | None = None, **options: Any) -> tuple[Any, ...]:
    answer = Inverse(found, at or bounds(), **options).place(copied)
    return answer.offset, str(answer.proof), str(answer.precision), answer.reread_max


EVEN = syncs((100, 0), (201, 101), (302, 202))


@pytest.mark.parametrize(
    ("copied", "expected"),
    [
        (1, (101, "sync-match", "exact", 0)),
        (102, (202, "sync-match", "exact", 0)),
        (150, (202, "sync-below", "bounded", 48)),
        (202, (202, "sync-below", "bounded", 100)),
        (203, (303, "sync-match", "exact", 0)),
        (250, (303, "sync-below", "bounded", 47)),
    ],
)
def test_a_sync_below_proves_what_was_read_and_no_more(copied: int, expected: tuple[Any, ...]) -> None:
    assert placed(copied, EVEN) == expected


def test_the_end_of_the_copies_is_no_end_of_the_originals() -> None:
    # 303 originals were mirrored, 30 more never: they are unread
    assert placed(203, EVEN, bounds((0, 333), (0, 203))) == (303, "sync-match", "exact", 0)
    assert placed(203, EVEN, bounds((0, 303), (0, 203))) == (303, "sync-match", "exact", 0)


def test_offsets_count_between_syncs_only_where_their_writer_vouches() -> None:
    assert placed(150, EVEN, one_to_one=True) == (250, "equal-delta", "exact", 0)
    uneven = syncs((100, 0), (210, 101))
    assert placed(50, uneven, one_to_one=True) == (101, "sync-below", "bounded", 49)
    assert placed(250, EVEN, one_to_one=True)[:2] == (303, "sync-below")


@pytest.mark.parametrize(
    ("found", "copied", "at", "failure"),
    [
        (None, 5, bounds(), "no-checkpoint"),
        (syncs(), 5, bounds(), "no-checkpoint"),
        (EVEN, 0, bounds(), "older-than-first-sync"),
        (syncs((100, 50)), 50, bounds(), "older-than-first-sync"),
        (EVEN, 150, bounds(copies=(0, 202)), "no-checkpoint"),
        (EVEN, 150, bounds((0, 302)), "target-recreated"),
        # the copies were cut: what was before is void, the group stands there
        (syncs((0, 0), (900, 900), (300, 300)), 200, bounds(), "no-checkpoint"),
    ],
)
def test_what_cannot_be_placed_says_why(found: Syncs | None, copied: int, at: LogBounds, failure: str) -> None:
    answer = Inverse(found, at).place(copied)
    assert (answer.offset, answer.failure, answer.precision) == (None, failure, Precision.NONE)
    assert answer.evidence


RESTARTED = syncs((0, 0), (101, 101), (202, 202), (150, 250), (251, 351))
"""A run copied 0 to 249 at least, was killed, and the next one began again at 150."""


@pytest.mark.parametrize(
    ("copied", "expected"),
    [
        # before the stretch copied twice
        (102, (102, "sync-match", "exact", 0)),
        # within it: a later run names 150 again; were it another topic by now, all from 150 on would be unread
        (203, (150, "sync-below", "bounded", 53)),
        # the new run has not passed 202 yet: 203 is proven if it is the same topic, and up to 47 more if the
        # first run went on without a sync
        (251, (151, "sync-match", "bounded", 99)),
        # it has passed all the first run can have copied
        (352, (252, "sync-match", "exact", 0)),
    ],
)
def test_after_a_restart_only_the_present_run_counts(copied: int, expected: tuple[Any, ...]) -> None:
    assert placed(copied, RESTARTED) == expected


def test_a_topic_made_anew_voids_the_runs_it_can_be_told_from() -> None:
    anew = syncs((0, 0), (5000, 5000), (0, 5100), (90, 5190))
    assert placed(5191, anew, bounds((0, 120)))[:3] == (91, "sync-match", "bounded")
    old = Inverse(anew, bounds((0, 120))).place(3000)
    assert (old.offset, old.failure) == (None, "no-checkpoint")
    assert placed(5191, anew)[0] == 91  # not told from a restart: the lower answer


def test_syncs_that_went_back_on_the_copies_are_void() -> None:
    cut = syncs((0, 0), (900, 900), (901, 500))
    assert placed(501, cut, bounds(copies=(0, 600))) == (902, "sync-match", "bounded", 9098)


def test_originals_that_retention_removed_are_no_reason_to_refuse() -> None:
    answer = Inverse(EVEN, bounds((500, 900))).place(150)
    assert (answer.offset, answer.reread_max) == (202, 48)


def test_where_names_are_kept_no_answer_passes_what_neither_flow_brought() -> None:
    ahead = Inverse(syncs((0, 0), (999, 999)), bounds((0, 2030), None)).place(1000)
    own = ahead.__class__(1500, 1530, Precision.EXACT, Proof.CONTENT, 0, 0)
    joined = beside(own, ahead, (1000, 1030), 2030)
    assert (joined.offset, joined.precision, joined.reread_max) == (1000, Precision.BOUNDED, 1030)
    assert beside(own, ahead, (1000, 1000), 2030) is own
    failed = ahead.__class__(700, None, Precision.NONE, Proof.NONE, failure="older-than-first-sync")
    assert beside(failed, ahead, (1000, 1030), 2030) is ahead


@settings(max_examples=EXAMPLES)
@given(world=worlds())
def test_no_history_makes_the_syncs_pass_an_unread_original(world: World) -> None:
    assume(all_true(world))
    inverse = Inverse(world.history(), inverse_bounds(world))
    for copied in range(len(world.target) + 1):
        check(world, inverse.place(copied), bound=not world.masked())
