"""Counters of one partition, windows of a minute, and how far behind it is."""

from __future__ import annotations

import math

import pytest

from failover.replication.batches import Kind, Outgoing
from failover.replication.tally import Spread, Tally, Window


def batch(records: int, newest: int, size: int = 100) -> Outgoing:
    return Outgoing(0, records - 1, records, records, newest, bytearray(size), Kind.PASSED)


def test_a_window_holds_the_last_half_minute_to_minute():
    window = Window()
    assert all(map(math.isnan, window.read(0.0)))
    window.add(10, 1000.0, times=3)
    window.add(50, 1010.0)
    assert window.read(1010.0) == Spread(50, 10, 50, 20)
    assert window.read(1029.0) == Spread(50, 10, 50, 20)
    window.add(2, 1031.0)
    assert window.read(1031.0) == Spread(2, 2, 50, (80 + 2) / 5)  # two samples
    window.add(4, 1062.0)
    assert window.read(1062.0) == Spread(4, 2, 4, 3)  # the oldest is gone
    last, *rest = window.read(2000.0)
    assert last == 4
    assert all(map(math.isnan, rest))


def test_what_is_read_sent_and_left_out_is_counted():
    tally = Tally()
    tally.took([batch(3, 900_000), batch(4, 950_000)], offsets=9, now=1000.0)
    tally.sent(batch(3, 900_000), now=1001.0)
    assert (tally.polled, tally.polled_bytes, tally.left_out) == (7, 200, 2)
    assert (tally.copied, tally.copied_bytes, tally.newest) == (3, 100, 900_000)
    assert tally.age.read(1001.0) == Spread(50_000, 50_000, 100_000, (3 * 100_000 + 4 * 50_000) / 7)
    assert tally.latency.read(1001.0).last == 101_000


@pytest.mark.parametrize(
    ("seen", "newest", "seconds"),
    [
        # nothing is known yet of what lies there
        ([(0, 100, 1000.0)], -1, math.nan),
        # behind since the start, so its age is that of what was copied last, at most
        ([(50, 100, 1000.0)], 990_000, 20.0),
        # it was up to date once: what came since is no older than that, however old the last record before it is
        ([(100, 100, 1000.0), (100, 101, 1007.0)], 3_000, 3.0),
        # later answers do not make it younger
        ([(100, 100, 1000.0), (100, 101, 1002.0), (101, 105, 1009.0)], 3_000, 8.0),
        # a record's own timestamp says less where its producer's clock is ahead
        ([(100, 100, 1000.0), (100, 101, 1002.0)], 1_020_000, 0.0),
    ],
)
def test_how_old_the_oldest_record_may_be_that_is_not_copied(seen, newest, seconds):
    tally = Tally()
    tally.newest = newest
    for upstream, end, now in seen:
        tally.seen(upstream, end, now)
    found = tally.seconds_behind(1010.0)
    assert math.isnan(found) if math.isnan(seconds) else found == pytest.approx(seconds)
