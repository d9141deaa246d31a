"""What a lane does, one behaviour each; that it holds together whatever happens: test_lane_model.py."""

from __future__ import annotations

import itertools
import struct

import pytest

from failover.kafka.wire.encode import builder
from failover.model.names import Fault, TopicPartition
from failover.replication.batches import Kind, Outgoing
from failover.replication.lane import Lane, State, Trouble

NOW = 1_800_000_000_000
FRESH = NOW - 12 * 3_600_000
OLD = FRESH - 1
LOST = Fault(-1, "NO_ANSWER")


def batch(first, last=None, *, records=None, following=None, timestamp=NOW):
    """Makes one of source offsets first to last; ``records``: fewer than that, where the source has holes."""
    last = first if last is None else last
    count = records or last - first + 1
    made = builder(0, 1 << 16)
    for at in range(count):
        made.append(at, timestamp, None, b"v", [])
    return Outgoing(first, last, following or last + 1, count, timestamp, made.build(), Kind.COALESCED)


def opened(*batches, upstream=10, downstream=4, following=None):
    lane = Lane(TopicPartition("orders", 0), TopicPartition("a.orders", 0))
    lane.start(upstream, downstream)
    if batches:
        lane.offer(batches, following or batches[-1].next_source_offset)
    return lane


def send(lane, fresh_from=FRESH):
    flights = []
    while (flight := lane.next(7, 3, fresh_from=fresh_from)) is not None:
        flights.append(flight)
    return flights


def fail(lane, flight, number=-1, fresh_from=FRESH):
    return lane.failed(flight, Fault(number, str(number)), fresh_from=fresh_from)


def flowing(count, *, timestamp=NOW):
    """A lane whose first batch is acknowledged, and the next ones on their way: offsets from 11 and from 5."""
    lane = opened(*[batch(at, timestamp=timestamp) for at in range(10, 11 + count)])
    [first] = send(lane)
    assert not lane.acknowledged(first, 4)
    return lane, send(lane)


def anchor(lane):
    return lane.upstream, lane.downstream


def test_a_new_lane_neither_reads_nor_sends():
    lane = Lane(TopicPartition("orders", 0), TopicPartition("a.orders", 0))
    lane.offer([batch(0)], 1)
    assert (lane.state, lane.pending, lane.buffered, send(lane)) == (State.CLOSED, 0, 0, [])


def test_the_anchor_moves_with_the_acknowledgement():
    lane = opened(batch(10, 12), batch(13))
    [flight] = send(lane)
    assert anchor(lane) == (10, 4)
    assert not lane.acknowledged(flight, 4)
    assert anchor(lane) == (13, 7)
    assert (lane.records, lane.pending, lane.fetch_offset) == (3, 1, 14)


def test_what_is_not_copied_moves_the_anchor_once_nothing_is_before_it():
    lane = opened(batch(10), batch(14, following=17), following=20)
    [first] = send(lane)
    lane.acknowledged(first, 4)
    assert anchor(lane) == (11, 5)
    [second] = send(lane)
    lane.acknowledged(second, 5)
    assert anchor(lane) == (20, 6)
    lane.offer([], 25)
    assert anchor(lane) == (25, 6)


def test_what_is_not_copied_waits_for_what_is_before_it():
    lane = opened(batch(10))
    lane.offer([], 15)
    assert (lane.upstream, lane.fetch_offset) == (10, 15)


def test_a_batch_is_stamped_as_its_producers_next():
    _, flights = flowing(2)
    assert [flight.sequence for flight in flights] == [1, 2]
    assert [flight.expected for flight in flights] == [5, 6]
    for flight in flights:
        assert struct.unpack_from(">qhi", flight.outgoing.data, 43) == (7, 3, flight.sequence)


def test_the_first_goes_alone_then_five_at_a_time():
    lane, flights = flowing(9)
    assert len(flights) == 5
    lane.acknowledged(flights[0], 5)
    assert len(send(lane)) == 1


def test_the_first_after_a_pause_goes_alone():
    lane, [second] = flowing(1)
    lane.acknowledged(second, 5)
    lane.offer([batch(12), batch(13)], 14)
    assert len(send(lane)) == 1


def test_old_records_go_one_batch_at_a_time():
    assert len(flowing(3, timestamp=OLD)[1]) == 1


@pytest.mark.parametrize("timestamps", [(OLD, NOW, NOW), (NOW, OLD, NOW), (NOW, NOW, OLD)])
def test_nothing_flies_beside_or_behind_old_records(timestamps):
    lane = opened(*[batch(10 + at, timestamp=each) for at, each in enumerate(timestamps)])
    [first] = send(lane)
    lane.acknowledged(first, 4)
    assert len(send(lane)) == 1


def test_an_offset_that_was_not_expected_is_doubt():
    lane, [second, third] = flowing(2)
    assert not lane.acknowledged(second, 6)
    assert lane.acknowledged(third, 7)
    assert (lane.state, lane.trouble) == (State.DRAINED, Trouble.DOUBT)
    assert str(lane.fault) == "UNEXPECTED_OFFSET: appended at 6 where 5 was due"
    assert anchor(lane) == (11, 5)
    assert not lane.retry(fresh_from=FRESH)


def test_trouble_with_one_batch_drains_at_once():
    lane, [second] = flowing(1)
    assert fail(lane, second)
    assert lane.state is State.DRAINED


def test_trouble_waits_for_what_else_is_on_its_way():
    lane, [second, third, fourth] = flowing(3)
    assert not fail(lane, third, 45)
    assert (lane.state, send(lane)) == (State.DRAINING, [])
    assert not lane.acknowledged(second, 5)
    assert fail(lane, fourth, 45)
    assert (lane.state, lane.trouble, lane.pending) == (State.DRAINED, Trouble.RETRY, 2)
    assert anchor(lane) == (12, 6)


def test_a_retry_sends_the_same_bytes_in_order_the_first_alone():
    lane, flights = flowing(3)
    sent = [bytes(flight.outgoing.data) for flight in flights]
    for flight in flights:
        fail(lane, flight)
    assert lane.retry(fresh_from=FRESH)
    [first] = send(lane)
    lane.acknowledged(first, 5)
    again = [first, *send(lane)]
    assert again == flights
    assert [bytes(flight.outgoing.data) for flight in again] == sent


def test_what_was_placed_behind_a_lost_answer_comes_again():
    lane, [second, third] = flowing(2)
    fail(lane, second)
    assert lane.acknowledged(third, 6)
    assert anchor(lane) == (11, 5)
    assert lane.retry(fresh_from=FRESH)
    for flight, offset in [(second, 5), (third, 6)]:
        assert send(lane) == [flight]
        lane.acknowledged(flight, offset)
    assert anchor(lane) == (13, 7)


def test_answers_over_two_connections_may_change_places():
    lane, [second, third] = flowing(2)
    assert not lane.acknowledged(third, 6)
    assert anchor(lane) == (11, 5)
    assert not lane.acknowledged(second, 5)
    assert (anchor(lane), lane.pending, lane.state) == ((13, 7), 0, State.OPEN)


def test_a_lane_in_trouble_reads_again_what_it_had_not_sent():
    lane = opened(batch(10), batch(13), batch(14), following=16)
    [first] = send(lane)
    fail(lane, first)
    assert (lane.fetch_offset, lane.pending, lane.leader_epoch) == (13, 1, -1)
    assert lane.buffered == len(first.outgoing.data)
    lane.offer([batch(13)], 14)  # read before, arrived now
    assert (lane.fetch_offset, lane.pending) == (13, 1)


@pytest.mark.parametrize(
    ("number", "trouble"),
    [
        (-1, Trouble.RETRY),  # its answer was lost
        (3, Trouble.RETRY),
        (6, Trouble.RETRY),
        (7, Trouble.RETRY),
        (19, Trouble.RETRY),
        (20, Trouble.RETRY),
        (56, Trouble.RETRY),
        (10, Trouble.REFUSED),
        (29, Trouble.REFUSED),
        (45, Trouble.DOUBT),
        (46, Trouble.DOUBT),
        (59, Trouble.DOUBT),
        (100, Trouble.DOUBT),
        (47, Trouble.FENCED),
        (90, Trouble.FENCED),
    ],
)
def test_what_an_error_means(number, trouble):
    lane, [second] = flowing(1)
    assert fail(lane, second, number)
    assert (lane.trouble, lane.fault) == (trouble, Fault(number, str(number)))


@pytest.mark.parametrize("number", [-1, 3, 6, 7, 20, 56])
def test_what_may_have_been_appended_is_doubt_if_it_is_old(number):
    lane, [second] = flowing(1, timestamp=OLD)
    fail(lane, second, number)
    assert lane.trouble is Trouble.DOUBT


@pytest.mark.parametrize("number", [10, 13, 19])
def test_what_was_not_appended_is_sent_again_however_old(number):
    lane, [second] = flowing(1, timestamp=OLD)
    fail(lane, second, number)
    assert lane.retry(fresh_from=FRESH)
    assert send(lane) == [second]


def test_what_became_old_comes_again_one_by_one():
    lane, flights = flowing(3)
    for flight in flights:
        fail(lane, flight, 19)
    assert lane.retry(fresh_from=NOW + 1)
    for offset, flight in enumerate(flights, start=5):
        assert send(lane, fresh_from=NOW + 1) == [flight]
        lane.acknowledged(flight, offset)


def test_what_became_too_old_before_the_retry_is_not_sent_again():
    lane, [second] = flowing(1)
    fail(lane, second)
    assert not lane.retry(fresh_from=NOW + 1)
    assert (lane.state, lane.pending) == (State.DRAINED, 1)


def test_what_became_too_old_after_the_retry_drains_in_doubt():
    lane, [second] = flowing(1)
    fail(lane, second)
    assert lane.retry(fresh_from=FRESH)
    assert send(lane, fresh_from=NOW + 1) == []
    assert (lane.state, lane.trouble, lane.fault.name) == (State.DRAINED, Trouble.DOUBT, "TOO_OLD")


def test_a_refusal_after_a_lost_answer_leaves_it_uncertain():
    lane, [second] = flowing(1)
    fail(lane, second)
    lane.retry(fresh_from=FRESH)
    send(lane)
    fail(lane, second, 19)
    assert lane.trouble is Trouble.RETRY
    assert not lane.retry(fresh_from=NOW + 1)


def test_a_gap_behind_a_failed_batch_is_no_doubt():
    lane, [second, third] = flowing(2)
    fail(lane, second, 19)
    assert fail(lane, third, 45)
    assert lane.trouble == Trouble.RETRY
    lane.retry(fresh_from=FRESH)
    fail(lane, send(lane)[0], 45)
    assert lane.trouble == Trouble.DOUBT


def test_the_gravest_trouble_stays():
    lane, [second, third, fourth] = flowing(3)
    fail(lane, second, 19)
    fail(lane, third, 47)
    fail(lane, fourth, 45)
    assert (lane.trouble, lane.fault.number, lane.failures) == (Trouble.FENCED, 47, 1)


def test_failures_count_until_something_is_acknowledged():
    lane, [second] = flowing(1)
    for count in (1, 2, 3):
        fail(lane, second)
        assert lane.failures == count
        lane.retry(fresh_from=FRESH)
        send(lane)
    lane.acknowledged(second, 5)
    assert lane.failures == 0


def test_a_held_lane_drains_and_goes_on_after_a_retry():
    lane, [second] = flowing(1)
    lane.offer([batch(12)], 13)
    lane.hold()
    assert (lane.state, lane.fetch_offset) == (State.DRAINING, 12)
    assert lane.acknowledged(second, 5)
    assert (lane.state, lane.trouble, anchor(lane)) == (State.DRAINED, Trouble.NONE, (12, 6))
    assert lane.retry(fresh_from=FRESH)
    lane.offer([batch(12)], 13)
    assert len(send(lane)) == 1


@pytest.mark.parametrize(("flying", "left"), [(True, 0), (False, 1)])
def test_what_was_never_sent_can_be_let_go_but_for_a_first_batch(flying, left):
    lane = opened(batch(10, following=12), batch(12, following=15), batch(15), following=20)
    flights = send(lane) if flying else []
    lane.shed()
    assert (lane.waiting, lane.pending, lane.fetch_offset) == (left, 1, 12)
    lane.offer([batch(12, following=15), batch(15)], 20)
    lane.acknowledged((flights or send(lane))[0], 4)
    assert anchor(lane) == (12, 5)
    for offset, flight in enumerate(send(lane), 5):
        lane.acknowledged(flight, offset)
    assert (anchor(lane), lane.buffered) == ((20, 7), 0)


def test_a_held_lane_with_nothing_on_its_way_has_drained():
    lane = opened()
    lane.hold()
    assert lane.state is State.DRAINED


def test_what_waits_for_a_second_try_is_looked_at_when_held():
    lane, [second] = flowing(1)
    fail(lane, second)
    lane.retry(fresh_from=FRESH)
    lane.hold()
    assert not lane.retry(fresh_from=NOW + 1)
    assert lane.retry(fresh_from=FRESH)
    assert send(lane) == [second]


def test_only_a_drained_lane_is_retried():
    with pytest.raises(ValueError, match="lane orders-0 is open, not drained"):
        opened().retry(fresh_from=FRESH)


def test_a_start_forgets_what_was_on_its_way():
    lane, [second] = flowing(1)
    lane.start(50, 40, leader_epoch=8)
    assert (anchor(lane), lane.fetch_offset, lane.leader_epoch) == ((50, 40), 50, 8)
    assert (lane.buffered, lane.pending) == (0, 0)
    assert not lane.acknowledged(second, 5)
    assert not fail(lane, second, 47)
    assert (anchor(lane), lane.state, lane.trouble) == ((50, 40), State.OPEN, Trouble.NONE)
    lane.offer([batch(50)], 51)
    [flight] = send(lane)
    assert (flight.sequence, flight.expected) == (0, 40)


def test_a_close_keeps_the_anchor():
    lane, [second] = flowing(1)
    lane.close()
    assert (lane.state, anchor(lane), lane.fetch_offset) == (State.CLOSED, (11, 5), 11)
    assert (lane.buffered, lane.pending, lane.leader_epoch) == (0, 0, -1)
    assert not lane.acknowledged(second, 5)
    assert anchor(lane) == (11, 5)
    lane.hold()
    assert lane.state is State.CLOSED


def test_a_second_answer_to_a_batch_changes_nothing():
    lane, [_, third] = flowing(2)
    lane.acknowledged(third, 6)
    assert not fail(lane, third)
    assert lane.state is State.OPEN


def test_a_move_goes_on_elsewhere_on_the_source():
    lane = opened(batch(10), following=12)
    lane.move(30)
    assert (anchor(lane), lane.fetch_offset, lane.pending, lane.buffered) == ((30, 4), 30, 0, 0)
    lane.offer([batch(30)], 31)
    [flight] = send(lane)
    assert (flight.sequence, flight.expected) == (0, 4)
    with pytest.raises(ValueError, match="lane orders-0 is moved with 1 batches"):
        lane.move(0)


def test_the_leader_epoch_is_that_of_the_last_read():
    lane = opened()
    lane.offer([batch(10)], 11, 6)
    lane.offer([], 12)
    assert lane.leader_epoch == 6


def test_offset_syncs_stand_where_the_difference_changes_and_at_the_end():
    lane = opened(batch(10, 12), batch(13, 14), batch(20, 25, records=3), batch(26))
    [first] = send(lane)
    lane.acknowledged(first, 4)
    second, third, fourth = send(lane)
    lane.acknowledged(second, 7)
    assert lane.syncs() == [(10, 4), (14, 8)]
    lane.acknowledged(third, 9)
    lane.acknowledged(fourth, 12)
    assert lane.syncs() == [(20, 9), (25, 11), (26, 12)]
    assert lane.syncs() == []


def test_offset_syncs_stand_about_as_far_apart_as_mirror_maker_2s():
    lane = opened(*[batch(at, at + 29) for at in range(10, 910, 30)])
    while flights := send(lane):
        for flight in flights:
            lane.acknowledged(flight, flight.expected)
    rows = lane.syncs()
    assert rows[0] == (10, 4)
    assert rows[-1] == (909, 903)
    assert {upstream - downstream for upstream, downstream in rows} == {6}
    gaps = [after[1] - before[1] for before, after in itertools.pairwise(rows[1:])]
    assert all(60 < gap <= 100 + 30 for gap in gaps[:-1])


def test_offset_syncs_of_a_lost_tail_are_taken_back():
    lane = opened(batch(10), batch(13))
    for expected in (4, 5):
        [flight] = send(lane)
        lane.acknowledged(flight, expected)
    lane.start(11, 5)
    assert lane.syncs() == [(10, 4)]


def test_offset_syncs_of_a_source_that_is_read_anew_are_taken_back():
    lane = opened(batch(10), batch(13))
    for expected in (4, 5):
        [flight] = send(lane)
        lane.acknowledged(flight, expected)
    lane.move(12)
    assert lane.syncs() == [(10, 4)]
