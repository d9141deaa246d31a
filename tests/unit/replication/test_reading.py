"""What a stretch of a log says, against the log it was read from."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from failover.kafka.wire.batches import check, split
from failover.kafka.wire.fetch import Fetched
from failover.model.names import TopicPartition
from failover.replication.reading import Stretch, StretchReading, Want
from tests.examples import EXAMPLES
from tests.unit.replication.source_log import Data, Datum, Marker, SourceLog, logs

TP = TopicPartition("orders", 0)


def read(log: SourceLog, want: Want, *, committed: bool, answers: list[int] | None = None) -> Stretch:
    """Reads as ``read_all`` does; ``answers``: how many batches each fetch answer brings, repeated."""
    reading = StretchReading(TP, want, committed=committed)
    sizes = answers or [1 << 30]
    turn = 0
    while reading.position < want.stop:
        rest = [data for _, data in log.batches if list(split(memoryview(data)))[-1].next_offset > reading.position]
        piece = memoryview(b"".join(rest[: sizes[turn % len(sizes)]]))
        turn += 1
        listed = tuple(log.aborted(reading.position))
        reading.begin(Fetched(*TP, 0, log.end, log.end, log.base, listed, None, piece))
        for batch in split(piece):
            if batch.magic >= 2 and batch.base_offset >= want.stop:
                reading.position = want.stop
                break
            check(batch)
            if batch.next_offset > reading.position:
                reading.take(batch)
                reading.position = batch.next_offset
    stretch = reading.stretch()
    assert isinstance(stretch, Stretch)
    return stretch


def offsets(places: list[tuple[int, int]]) -> list[int]:
    return [offset for first, count in places for offset in range(first, first + count)]


@settings(max_examples=EXAMPLES)
@given(logs, st.data(), st.booleans(), st.booleans())
def test_a_stretch_tells_records_holes_and_what_is_neither(log, data, committed, keep):
    start = data.draw(st.integers(log.base, log.end))
    stop = data.draw(st.integers(start, log.end))
    answers = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    stretch = read(log, Want("source", start, stop, keep), committed=committed, answers=answers)
    delivered = [
        (offset, datum)
        for offset, datum, aborted in log.placed
        if start <= offset < stop and not (committed and aborted)
    ]
    assert offsets(stretch.runs) == [offset for offset, _ in delivered]
    assert [(row.offset, row.timestamp) for row in stretch.rows] == [
        (offset, datum.timestamp) for offset, datum in delivered if keep
    ]
    # a hole is an offset at which there is nothing, nowhere else
    taken = {offset for offset, _, _ in log.placed}
    holes = offsets(stretch.holes)
    assert not taken.intersection(holes)
    assert not set(holes).intersection(offsets(stretch.runs))
    neither = set(range(start, stop)) - set(holes) - set(offsets(stretch.runs))
    kept_out = {offset for offset, _, aborted in log.placed if aborted} if committed else set()
    assert neither <= kept_out | {base for base, _ in log.batches} | aborted_gaps(log, committed)
    cut = data.draw(st.integers(start, stop))
    part = stretch.part(start, cut)
    assert offsets(part.runs) == [offset for offset, _ in delivered if offset < cut]
    assert offsets(part.holes) == [offset for offset in holes if offset < cut]


def aborted_gaps(log: SourceLog, committed: bool) -> set[int]:
    """Lists all offsets of batches with aborted records, and of transactional ones that compaction emptied."""
    found: set[int] = set()
    for base, data in log.batches if committed else ():
        for batch in split(memoryview(data)):
            if batch.magic >= 2 and batch.attributes & 0x10:
                found |= set(range(base, batch.next_offset))
    return found


def test_records_are_told_apart_by_key_value_and_headers():
    data = [
        Datum(1, b"k", b"v"),
        Datum(2, b"k", b"v"),
        Datum(3, b"k", b"w"),
        Datum(4, None, b"v"),
        Datum(5, b"k", b"v", (("h", b"1"),)),
    ]
    log = SourceLog([Data(tuple(data), (True,) * 5)])
    rows = read(log, Want("source", 0, 5), committed=False).rows
    assert rows[0].content == rows[1].content
    assert len({row.content for row in rows}) == 4
    assert rows[4].encoded != rows[4].content
    assert rows[0].encoded == rows[0].content


@pytest.mark.parametrize(("committed", "expected"), [(False, [(0, 2), (3, 2)]), (True, [(3, 2)])])
def test_aborted_transactions_are_no_holes(committed, expected):
    aborted = Data((Datum(1, None, b"a"),) * 2, (True, True), producer=10, transactional=True)
    plain = Data((Datum(2, None, b"b"),) * 2, (True, True))
    log = SourceLog([aborted, Marker(10, commit=False), plain])
    stretch = read(log, Want("source", 0, 5, records=False), committed=committed)
    assert stretch.runs == expected
    assert stretch.holes == []
    assert (stretch.records, stretch.missing) == (len(offsets(expected)), 0)


def test_the_leader_epoch_is_that_of_what_lies_before():
    log = SourceLog([Data((Datum(1, None, b"a"),) * 3, (True, True, True))])
    stretch = read(log, Want("source", 1, 3), committed=False)
    assert [stretch.epoch_before(offset) for offset in (1, 2, 3, 4)] == [-1, 5, 5, -1]


def test_whatever_the_log_has_up_to_the_end_of_a_stretch_is_a_hole_where_nothing_is_left():
    stretch = Stretch(0, 10)
    stretch.note_run(0, 4)
    stretch.note_hole(4, 10)
    more = Stretch(10, 12)
    more.note_run(10, 12)
    stretch.extend(more)
    assert (stretch.records, stretch.missing, stretch.stop) == (6, 6, 12)
