from __future__ import annotations

import itertools
import random

import pytest

from failover.kafka.wire.batches import decode, split
from failover.kafka.wire.encode import builder
from failover.model.names import Fault, TopicPartition
from failover.replication.batches import Kind, Limits, Outgoing, cut
from failover.replication.lane import Lane, State

TOO_LARGE = Fault(10, "MESSAGE_TOO_LARGE")
LOST = Fault(-1, "NO_ANSWER")


def batch(first: int, records: int, *, codec: int = 0, size: int = 100, kind: Kind = Kind.PASSED) -> Outgoing:
    made, noise = builder(codec, 1 << 20), random.Random(first)
    for at in range(records):
        made.append(at, 1_000 + at, b"k%d" % at, noise.randbytes(size), [("h", None)])
    data = made.build()
    data[:8] = first.to_bytes(8, "big")  # as it lies in the source's log
    last = first + records - 1
    return Outgoing(first, last, last + 3, records, 1_000 + records - 1, data, kind)


@pytest.mark.parametrize("codec", range(5))
def test_the_records_come_in_pieces_that_follow_one_another(codec):
    whole = batch(50, 40, codec=codec)
    pieces = cut([whole], Limits(batch_bytes=1_000))
    assert len(pieces) >= 5
    assert (pieces[0].first_source_offset, pieces[-1].last_source_offset) == (50, 89)
    assert pieces[-1].next_source_offset == whole.next_source_offset
    for one, two in itertools.pairwise(pieces):
        assert one.last_source_offset + 1 == one.next_source_offset == two.first_source_offset
    assert all(len(piece.data) <= 1_100 and piece.kind is Kind.RECODED for piece in pieces)
    records = [record for piece in pieces for made in split(memoryview(piece.data)) for record in decode(made)]
    [source] = split(memoryview(whole.data))
    assert [record[1:] for record in records] == [record[1:] for record in decode(source)]
    assert max(piece.newest_timestamp for piece in pieces) == whole.newest_timestamp


def test_what_is_small_enough_or_one_record_or_made_here_stays_as_it_is():
    batches = (batch(0, 3), batch(10, 1, size=5_000), batch(20, 100, kind=Kind.COALESCED))
    assert cut(batches, Limits(batch_bytes=2_000)) == batches


def test_what_cannot_be_decoded_stays_whole():
    damaged = batch(0, 100, codec=1)
    damaged.data[70:90] = bytes(20)
    batches = (batch(200, 3), damaged)
    assert cut(batches, Limits(batch_bytes=500)) == batches


def test_a_lane_reads_what_was_refused_again_in_the_same_sequence():
    lane = Lane(TopicPartition("t", 0), TopicPartition("a.t", 0))
    lane.start(10, 100)
    lane.offer([batch(10, 5), batch(17, 40)], 59, 2)
    done = lane.next(1, 0, fresh_from=0)
    assert done is not None
    lane.acknowledged(done, 100)
    refused = lane.next(1, 0, fresh_from=0)
    assert refused is not None
    assert lane.on_the_way
    assert lane.failed(refused, TOO_LARGE, fresh_from=0)
    assert not lane.on_the_way
    assert lane.begin_again()
    assert (lane.state, lane.fetch_offset, lane.buffered, lane.pending) == (State.OPEN, 17, 0, 0)
    lane.offer(cut([batch(17, 40)], Limits(batch_bytes=1_000)), 59, 2)
    sequence, expected = refused.sequence, refused.expected
    while (piece := lane.next(1, 0, fresh_from=0)) is not None:
        assert (piece.sequence, piece.expected) == (sequence, expected)
        sequence, expected = sequence + piece.outgoing.records, expected + piece.outgoing.records
        lane.acknowledged(piece, piece.expected)
    assert (lane.upstream, lane.downstream, lane.sequence) == (59, 145, 45)


def test_a_lane_does_not_where_it_may_lie_in_the_log():
    lane = Lane(TopicPartition("t", 0), TopicPartition("a.t", 0))
    lane.start(10, 100)
    lane.offer([batch(10, 5)], 15, 2)
    flight = lane.next(1, 0, fresh_from=0)
    assert flight is not None
    lane.failed(flight, LOST, fresh_from=0)
    lane.retry(fresh_from=0)
    again = lane.next(1, 0, fresh_from=0)
    assert again is flight
    lane.failed(again, TOO_LARGE, fresh_from=0)
    assert not lane.begin_again()
    assert lane.state is State.DRAINED
