from __future__ import annotations

import pytest

from failover.model import Precision, Proof, TopicPartition
from failover.translate.history import SyncHistory
from failover.translate.segments import Syncs
from failover.translate.sync_rule import LogBounds, translate

Pair = tuple[int, int]


def history(*pairs: Pair) -> Syncs:
    syncs = SyncHistory()
    syncs.extend("t", 0, pairs)
    return syncs.freeze()[TopicPartition("t", 0)]


def bounds(target_end: int, source_end: int | None = None, *, target_start: int = 0) -> LogBounds:
    return LogBounds(target_start=target_start, target_end=target_end, source_start=0, source_end=source_end)


def test_a_sync_for_the_record_itself_is_exact() -> None:
    answer = translate(1000, history((0, 0), (1000, 400)), bounds(450, 1100))
    assert (answer.offset, answer.proof, answer.precision) == (400, Proof.SYNC_MATCH, Precision.EXACT)
    assert (answer.reread, answer.reread_max) == (0, 0)


@pytest.mark.parametrize(("upstream", "offset"), [(500, 1), (1001, 401), (7, 1)])
def test_nothing_is_extrapolated_over_compacted_stretches(upstream: int, offset: int) -> None:
    answer = translate(upstream, history((0, 0), (1000, 400)), bounds(450, 1100))
    assert answer.offset == offset
    assert answer.proof is Proof.SYNC_BELOW


def test_one_sync_at_zero_says_how_much_is_read_again() -> None:
    answer = translate(50, history((0, 0)), bounds(100, 100))
    assert (answer.offset, answer.reread, answer.reread_max) == (1, 49, 49)
    assert answer.precision is Precision.BOUNDED


def test_offset_zero_is_an_answer() -> None:
    answer = translate(0, history((0, 0)), bounds(5000, 5000))
    assert (answer.offset, answer.precision) == (0, Precision.EXACT)


def test_the_last_copy_of_a_record_counts() -> None:
    restarted = history((0, 0), (100, 100), (50, 101), (151, 202), (252, 303))
    assert translate(100, restarted, bounds(304, 253)).offset == 102
    assert translate(50, restarted, bounds(304, 253)).offset == 101
    assert translate(49, restarted, bounds(304, 253)).offset == 1


def test_a_restart_that_has_not_caught_up_does_not_hide_what_only_the_old_run_copied() -> None:
    copying_again = history((0, 0), (100, 100), (200, 200), (50, 230), (60, 240))
    answer = translate(150, copying_again, bounds(245, 1000))
    assert answer.offset == 101
    assert "has not passed yet" in " ".join(answer.evidence)


def test_a_hidden_restart_shows_as_growth() -> None:
    copying_again = history((0, 0), (1000, 1000), (1101, 1702))
    assert translate(1200, copying_again, bounds(1710, 5000)).offset == 1001
    passed = history((0, 0), (1000, 1000), (1101, 1702), (1702, 2303))
    assert translate(1200, passed, bounds(2304, 5000)).offset == 1703


def test_a_downstream_rewind_voids_what_was_known() -> None:
    syncs = history((100, 200), (150, 251), (200, 10))
    assert syncs.voided == 2
    assert translate(200, syncs, bounds(11, 201)).offset == 10
    assert translate(160, syncs, bounds(11, 201)).failure == "older-than-first-sync"


def test_syncs_delivered_twice_change_nothing() -> None:
    syncs = history((0, 0), (101, 101), (0, 0), (101, 101), (202, 202))
    assert (list(syncs.ups), syncs.replayed, syncs.voided) == ([0, 101, 202], 2, 0)


def test_a_recreated_source_answers_by_its_own_syncs() -> None:
    syncs = history((0, 0), (1000, 1000), (0, 1001))
    answer = translate(15, syncs, bounds(1021, 20))
    assert answer.offset == 1002


def test_a_sync_beyond_the_target_end_places_nothing() -> None:
    answer = translate(50, history((0, 0), (100, 100)), bounds(3, 101))
    assert (answer.offset, answer.failure) == (None, "target-recreated")


def test_without_syncs_and_before_the_first() -> None:
    assert translate(5, None, bounds(10, 10)).failure == "no-checkpoint"
    assert translate(5, history((10, 0)), bounds(10, 20)).failure == "older-than-first-sync"


def test_the_newest_record_with_nothing_behind_it_is_exact() -> None:
    answer = translate(101, history((0, 0), (100, 100)), bounds(101))
    assert (answer.offset, answer.precision, answer.proof) == (101, Precision.EXACT, Proof.SYNC_BELOW)


def test_a_drained_group_goes_to_the_target_end() -> None:
    answer = translate(11, history((0, 0), (10, 10)), bounds(11, 11))
    assert (answer.offset, answer.precision, answer.proof) == (11, Precision.EXACT, Proof.LOG_END)
    with_marker = translate(11, history((0, 0), (9, 9)), bounds(10, 11))
    assert (with_marker.offset, with_marker.precision, with_marker.reread_max) == (10, Precision.BOUNDED, 1)


def test_equal_deltas_count_only_when_the_writer_vouches_for_them() -> None:
    syncs = history((0, 0), (100, 100))
    assert translate(50, syncs, bounds(101, 101)).offset == 1
    vouched = translate(50, syncs, bounds(101, 101), one_to_one=True)
    assert (vouched.offset, vouched.proof, vouched.precision) == (50, Proof.EQUAL_DELTA, Precision.EXACT)


def test_target_retention_raises_the_answer() -> None:
    answer = translate(50, history((0, 0), (100, 100)), bounds(101, 200, target_start=30))
    assert answer.offset == 30
    assert answer.reread == 20
    assert answer.reread_max == 49
