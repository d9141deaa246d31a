"""Where the copying of a partition goes on: one situation a test."""

from __future__ import annotations

import pytest

from failover.replication.anchor import Anchor
from failover.replication.locate_answer import Located, Unknown
from tests.unit.replication.log_pair import NO_TOPIC_ID, SOURCE_ID, TARGET_ID, Copying, Datum, MemoryLog, ask, ours


def filled(count: int, *, start: int = 0, prefix: str = "v") -> MemoryLog:
    log = MemoryLog(start=start)
    log.add(*(Datum(b"%s-%d" % (prefix.encode(), number), 1_000 + number) for number in range(count)))
    return log


def located(asked) -> Located:
    assert isinstance(asked.answer, Located), asked.answer
    return asked.answer


def test_nothing_was_copied_yet():
    source, target = filled(20, start=7), MemoryLog()
    target.add(None)
    found = located(ask(source, target, []))
    assert (found.upstream, found.downstream, found.how, found.lost) == (7, 1, "start", 0)
    assert located(ask(source, target, [], start="latest")).upstream == 27
    for asked, at in ((12, 12), (3, 7), (40, 27)):  # by time; retention or truncation came after the question
        assert located(ask(source, target, [], start=asked)).upstream == at


def test_an_anchor_at_the_target_s_end_takes_one_round():
    source, target = filled(300), MemoryLog()
    copying = Copying(source, target)
    copying.copy(200)
    anchor = copying.anchor()
    copying.fence()
    asked = ask(source, target, [anchor])
    found = located(asked)
    assert (found.upstream, found.downstream, found.how, found.leader_epoch) == (200, 201, "anchor", 3)
    assert asked.rounds == 1


def test_records_since_the_anchor_are_counted_over_markers_on_both_sides():
    source, target = MemoryLog(), MemoryLog()
    for number in range(120):
        source.add(Datum(b"v%d" % number, number), *([None] if number % 3 == 0 else []))
    copying = Copying(source, target)
    copying.copy(50)
    anchor = copying.anchor()
    for _ in range(7):
        copying.fence()
        copying.copy(5)
    copying.fence()
    asked = ask(source, target, [anchor])
    found = located(asked)
    assert found.how == "counted"
    assert copying.stands_at(found.upstream)
    assert asked.rounds == 1


def test_a_long_way_from_the_anchor_is_counted():
    source, target = filled(5_000), MemoryLog()
    copying = Copying(source, target)
    copying.copy(10)
    anchor = copying.anchor()
    copying.copy(3_000)
    copying.fence()
    found = located(ask(source, target, [anchor]))
    assert (found.upstream, found.how) == (3_010, "counted")


def test_identical_records_are_told_apart_by_the_count():
    source, target = MemoryLog(), MemoryLog()
    source.add(*[Datum(b"same")] * 500)
    copying = Copying(source, target)
    copying.copy(100)
    anchor = copying.anchor()
    copying.copy(77)
    copying.fence()
    assert located(ask(source, target, [anchor])).upstream == 177
    assert isinstance(ask(source, target, []).answer, Unknown)
    assert isinstance(ask(source, target, [Anchor(90)]).answer, Unknown)


def test_aborted_records_are_passed_over_where_they_are_not_copied():
    source, target = MemoryLog(), MemoryLog()
    for number in range(60):
        source.add(*[Datum(b"a%d" % number, number)] * 3, aborted=True)
        source.add(None, Datum(b"same"), None)
    copying = Copying(source, target, committed=True)
    copying.copy(10)
    anchor = copying.anchor()
    copying.copy(25)
    copying.fence()
    found = located(ask(source, target, [anchor], committed=True))
    assert copying.stands_at(found.upstream)


def test_a_target_that_lost_its_end_is_found_by_an_older_anchor():
    source, target = filled(400), MemoryLog()
    copying = Copying(source, target)
    copying.copy(100)
    older = copying.anchor()
    copying.copy(100)
    newer = copying.anchor()
    target.truncate(150)
    target.add(None)
    found = located(ask(source, target, [newer, older]))
    assert (found.upstream, found.downstream, found.how) == (150, 151, "counted")


def test_a_target_that_lost_one_record_behind_which_a_marker_hides_it():
    source, target = filled(400), MemoryLog()
    copying = Copying(source, target)
    copying.copy(200)
    anchor = copying.anchor()
    target.truncate(199)
    target.add(None)
    found = located(ask(source, target, [anchor]))
    assert (found.upstream, found.how) == (199, "content")


def test_what_markers_hide_of_a_lost_end_is_known_by_where_it_ended_before_them():
    """All records are alike, so that only the count tells; several starts failed behind their fences."""
    source, target = MemoryLog(), MemoryLog()
    source.add(*[Datum(b"same")] * 400)
    copying = Copying(source, target)
    copying.copy(100)
    older = copying.anchor()
    copying.copy(100)
    newer = copying.anchor()
    target.truncate(195)
    for _ in range(7):
        target.add(None)
    found = located(ask(source, target, [newer, older], whole=195))
    assert (found.upstream, found.downstream, found.how) == (195, 202, "counted")
    assert "ended at 195, below the recorded offset 200" in found.detail


def test_records_of_the_source_that_are_gone_narrow_the_check():
    source, target = filled(400), MemoryLog()
    copying = Copying(source, target)
    copying.copy(100)
    anchor = copying.anchor()
    copying.copy(100)
    copying.fence()
    source.start = 190
    assert located(ask(source, target, [anchor])).upstream == 200
    source.start = 200
    found = located(ask(source, target, [anchor]))
    assert (found.upstream, found.lost) == (200, 0)
    source.start = 230
    found = located(ask(source, target, [anchor]))
    assert (found.upstream, found.lost) == (200, 30)


def test_identical_records_whose_first_are_gone_are_counted_as_if_they_were_there():
    source, target = MemoryLog(), MemoryLog()
    source.add(*[Datum(b"same")] * 400)
    copying = Copying(source, target)
    copying.copy(100)
    anchor = copying.anchor()
    copying.copy(100)
    copying.fence()
    source.start = 150
    assert located(ask(source, target, [anchor])).upstream == 200


def test_a_compacted_source_is_settled_by_the_content():
    source, target = MemoryLog(), MemoryLog()
    source.add(*(Datum(b"v%d" % number, number, b"k%d" % (number % 50)) for number in range(600)))
    source.gone = set(range(100, 250, 3))
    copying = Copying(source, target)
    copying.copy(100)
    anchor = copying.anchor()
    copying.copy(200)
    copying.fence()
    source.gone |= set(range(260, 330))
    found = located(ask(source, target, [anchor]))
    assert copying.stands_at(found.upstream)


def test_the_last_copied_records_may_be_compacted_away_on_the_source():
    source, target = MemoryLog(), MemoryLog()
    source.add(*(Datum(b"v%d" % number, number, b"k%d" % (number % 50)) for number in range(600)))
    copying = Copying(source, target)
    copying.copy(100)
    anchor = copying.anchor()
    copying.copy(200)
    copying.fence()
    source.gone |= set(range(290, 310))
    found = located(ask(source, target, [anchor]))
    assert copying.stands_at(found.upstream)


def test_a_target_whose_records_are_all_expired_is_counted_by_offsets():
    source, target = filled(400), MemoryLog()
    copying = Copying(source, target)
    copying.copy(100)
    anchor = copying.anchor()
    copying.copy(50)
    target.start = target.end
    copying.fence()
    found = located(ask(source, target, [anchor]))
    assert (found.upstream, found.how) == (150, "counted")


def test_a_quiet_partition_without_records_left_on_either_side():
    source, target = filled(400), MemoryLog()
    copying = Copying(source, target)
    copying.copy()
    source.start, target.start = source.end, target.end
    copying.fence()
    found = located(ask(source, target, [Anchor(400)]))
    assert (found.upstream, found.lost) == (400, 0)
    assert located(ask(source, target, [])).upstream == 400
    source.add(Datum(b"new"))
    assert isinstance(ask(source, target, []).answer, Unknown)
    assert isinstance(ask(source, target, [Anchor(400)]).answer, Unknown)


def test_a_source_without_records_has_nothing_to_copy_wherever_the_copying_stood():
    source, target = filled(400), MemoryLog()
    copying = Copying(source, target)
    copying.copy(300)
    copying.fence()
    source.start = source.end
    found = located(ask(source, target, [Anchor(250)]))
    assert (found.upstream, found.lost) == (250, 150), "at most so many"
    assert located(ask(source, target, [])).upstream == 400


def test_a_position_of_mirrormaker_is_a_lower_bound():
    source, target = filled(3_000), MemoryLog()
    copying = Copying(source, target)
    copying.copy(500)
    position = Anchor(copying.position)
    copying.copy(900)
    copying.fence()
    found = located(ask(source, target, [position]))
    assert (found.upstream, found.how) == (1_400, "content")
    assert located(ask(source, target, [position, *copying.syncs])).upstream == 1_400


@pytest.mark.parametrize("again", [1, 5, 60])
def test_a_stretch_that_mirrormaker_copied_twice_ends_with_the_last_copy(again):
    source, target = filled(3_000), MemoryLog()
    copying = Copying(source, target)
    copying.copy(500)
    copying.position = 400
    copying.copy(again)
    copying.fence()
    for anchors in ([Anchor(400)], [Anchor(400), *copying.syncs], [Anchor(400), *copying.syncs[1:]]):
        assert located(ask(source, target, anchors)).upstream == 400 + again


def test_identical_records_copied_twice_go_by_the_last_offset_sync():
    source, target = MemoryLog(), MemoryLog()
    source.add(*[Datum(b"same")] * 3_000)
    copying = Copying(source, target)
    copying.copy(500)
    copying.position = 400
    copying.copy(250)
    copying.fence()
    assert located(ask(source, target, [Anchor(400), *copying.syncs])).upstream == 650


def test_timestamps_do_not_count_where_the_target_s_broker_sets_them():
    source, target = filled(300), MemoryLog()
    copying = Copying(source, target)
    copying.copy(150)
    anchor = copying.anchor()
    copying.fence()
    target.places = [datum and datum._replace(timestamp=77) for datum in target.places]
    target.appended = True
    assert located(ask(source, target, [anchor])).how == "anchor"
    assert located(ask(source, target, [])).upstream == 150


def test_header_values_may_have_become_base64_text():
    source, target = MemoryLog(), MemoryLog()
    source.add(*(Datum(b"v%d" % number, number, None, (("h", b"\x01x"),)) for number in range(100)))
    copying = Copying(source, target)
    copying.copy(60)
    copying.fence()
    target.places = [datum and datum._replace(headers=(("h", b"AXg="),)) for datum in target.places]
    assert located(ask(source, target, copying.syncs)).upstream == 60


def test_records_of_somebody_else_at_the_target_s_end():
    source, target = filled(300), MemoryLog()
    copying = Copying(source, target)
    copying.copy(150)
    anchor = copying.anchor()
    copying.copy(40)
    target.add(*(Datum(b"foreign-%d" % number) for number in range(40)))
    copying.fence()
    found = located(ask(source, target, [anchor]))
    assert (found.upstream, found.how, found.diverged) == (190, "diverged", 40)
    assert "is 230, but target record 229 is not source record 229" in found.detail


def test_records_of_somebody_else_among_the_target_s_last():
    source, target = filled(300), MemoryLog()
    copying = Copying(source, target)
    copying.copy(150)
    anchor = copying.anchor()
    copying.copy(20)
    target.add(Datum(b"foreign"))
    copying.copy(5)
    copying.fence()
    assert isinstance(ask(source, target, [anchor]).answer, Unknown)


def test_unrelated_records_without_an_anchor_are_no_start():
    source, target = filled(300), filled(50, prefix="other")
    answer = ask(source, target, []).answer
    assert isinstance(answer, Unknown)
    assert "source 0 to 300" in answer.reason


def test_a_source_made_anew_is_copied_from_its_start():
    target = MemoryLog()
    old = Copying(filled(300, prefix="old"), target)
    old.copy(200)
    anchor = old.anchor()
    old.copy(30)
    target.add(None)
    source = filled(100, prefix="new")
    found = located(ask(source, target, [anchor], source_id=b"n" * 16))
    assert (found.upstream, found.how) == (0, "source-recreated")
    new = Copying(source, target)
    new.copy(12)
    target.add(None)
    assert located(ask(source, target, [anchor], source_id=b"n" * 16)).upstream == 12


def test_a_target_made_anew_is_filled_from_the_source_s_start():
    source, target = filled(300), MemoryLog()
    copying = Copying(source, target)
    target.add(None)
    stale = [ours(200, 210), Anchor(150, 160), Anchor(0, 0)]
    found = located(ask(source, target, stale, target_id=b"n" * 16))
    assert (found.upstream, found.downstream, found.how) == (0, 1, "start")
    copying.copy(20)
    assert located(ask(source, target, stale, target_id=b"n" * 16)).upstream == 20
    assert located(ask(source, target, [Anchor(200), Anchor(150, 160)])).upstream == 20


def test_the_first_start_from_the_end_is_kept():
    source, target = filled(300), MemoryLog()
    target.add(None)
    anchor = ours(300, 1)
    target.add(None)
    source.add(Datum(b"later"))
    assert located(ask(source, target, [anchor], start="latest")).upstream == 300
    assert located(ask(source, target, [anchor], start=100)).upstream == 300
    assert located(ask(source, target, [Anchor(300, 1, b"s" * 16, TARGET_ID)], start="latest")).upstream == 300


@pytest.mark.parametrize("regrown", [0, 3, 200])
def test_a_truncated_source_goes_on_where_the_logs_part(regrown):
    source, target = filled(300), MemoryLog()
    copying = Copying(source, target)
    copying.copy(200)
    anchor = ours(200, target.end, epoch=3)
    copying.fence()
    source.truncate(191)
    source.epoch = 4
    source.add(*(Datum(b"after-%d" % number) for number in range(regrown)))
    found = located(ask(source, target, [anchor]))
    how = "source-truncated" if regrown < 9 else "diverged"
    assert (found.upstream, found.how, found.diverged) == (191, how, 9)
    # once this was noticed and the copying went on from there, it stays so
    copying.position = 191
    again = copying.anchor()
    copying.fence()
    assert located(ask(source, target, [again])).upstream == 191
    copying.copy(2)
    copying.anchor()
    copying.copy(1)
    copying.fence()
    found = located(ask(source, target, copying.anchors[:1]))
    assert copying.stands_at(found.upstream)
    assert found.diverged == 0 or not regrown


def test_a_source_that_ends_before_everything_on_record():
    source, target = filled(300), MemoryLog()
    copying = Copying(source, target)
    copying.copy(200)
    anchor = copying.anchor()
    copying.fence()
    source.truncate(0)
    found = located(ask(source, target, [anchor]))
    assert (found.upstream, found.how, found.diverged) == (0, "source-truncated", 200)
    source.add(*(Datum(b"after-%d" % number) for number in range(10)))
    answer = ask(source, target, [anchor]).answer
    assert isinstance(answer, Unknown)
    assert "190 records beyond the source's end" in answer.reason


def test_the_search_stops_at_its_bound():
    source, target = filled(40_000), MemoryLog()
    copying = Copying(source, target, position=30_000)
    copying.copy(50)
    answer = ask(source, target, [Anchor(100)], max_records=4_000).answer
    assert isinstance(answer, Unknown)
    assert source.asked < 20_000
    assert located(ask(source, target, [Anchor(100)])).upstream == 30_050


def test_counting_goes_further_than_comparing():
    source, target = MemoryLog(), MemoryLog()
    source.add(*[Datum(b"same")] * 9_000)
    copying = Copying(source, target)
    anchor = copying.anchor()
    copying.copy(5_000)
    copying.fence()
    assert located(ask(source, target, [anchor], max_records=1_000)).upstream == 5_000
    assert isinstance(ask(source, target, [anchor], max_records=400).answer, Unknown)


@pytest.mark.parametrize("appended", [True, False])
def test_what_was_produced_twice_is_at_no_place_for_sure(appended):
    source, target = MemoryLog(), MemoryLog()
    for _ in range(2):
        source.add(*(Datum(b"v%d" % number) for number in range(3_000)))
    target.appended = appended
    copying = Copying(source, target)
    copying.copy(2_500)
    target.start = 2_000  # nothing counts: the search begins at the source's end, where the second of the two lies
    asked = ask(source, target, [])
    assert isinstance(asked.answer, Unknown)
    assert "fit the source at 2500 and 5500" in asked.answer.reason


def test_a_few_records_that_agree_within_the_bound_prove_nothing_beyond_it():
    source, target = MemoryLog(), MemoryLog()
    source.add(*(Datum(b"v%d" % (number % 5_000)) for number in range(10_000)))
    Copying(source, target).copy(4_500)
    target.start = 4_497
    assert isinstance(ask(source, target, [], max_records=900).answer, Unknown)


@pytest.mark.parametrize("known", [True, False], ids=["ids known", "no ids"])
def test_an_equal_leader_epoch_is_no_witness_where_the_topic_may_be_another(known):
    """Brokers before Kafka 2.8 have no topic ids, and every topic begins with the same epochs."""
    source, target = filled(300, prefix="new"), filled(100, prefix="old")
    target.add(None)
    source_id, target_id = (SOURCE_ID, TARGET_ID) if known else (NO_TOPIC_ID, NO_TOPIC_ID)
    anchor = ours(100, 100, epoch=3) if known else Anchor(100, 100, leader_epoch=3)
    asked = ask(source, target, [anchor], source_id=source_id, target_id=target_id)
    if known:
        assert located(asked).upstream == 100
    else:
        assert isinstance(asked.answer, Unknown)
