"""Which kept positions a connector may go on from."""

from __future__ import annotations

import pytest

from failover.model.cluster import LogRange
from failover.model.names import Fault, TopicPartition
from failover.replication.anchor import Anchor
from failover.replication.seed_carry import carried
from failover.replication.seed_connect import kept

TP = TopicPartition("t", 0)
HERE, BEFORE = b"h" * 16, b"b" * 16


@pytest.mark.parametrize(
    ("anchor", "before", "action", "reason"),
    [
        (Anchor(40, 40, HERE), None, "write", "from-positions"),
        (Anchor(40), None, "write", "from-positions"),
        (Anchor(40), Anchor(10), "write", "from-positions"),
        (Anchor(40), Anchor(40), "none", "already-there"),
        (Anchor(0), None, "none", "already-there"),
        (Anchor(40), Anchor(41), "refuse", "position-ahead"),
        (Anchor(40, 40, BEFORE), None, "refuse", "recreated"),
        (Anchor(101), None, "refuse", "recreated"),
    ],
)
def test_each_position_is_judged_by_the_topic_that_is_there_now(anchor, before, action, reason):
    found = carried(TP, anchor, before, LogRange(5, 100), HERE)
    assert (found.action, found.reason) == (action, reason)
    assert (found.offset, found.end) == (anchor.upstream, 100)
    assert bool(found.detail) == (action == "refuse")
    assert found.status == ("unchanged" if action == "none" else "")


def test_a_log_that_cannot_be_read_refuses_nothing():
    found = carried(TP, Anchor(40), None, Fault(29, "TOPIC_AUTHORIZATION_FAILED", ""), HERE)
    assert (found.action, found.end) == ("write", None)


def test_connect_keeps_nothing_of_a_position_at_the_start():
    assert kept(Anchor(0, 0, HERE)) is None
    assert kept(Anchor(7, 9, HERE, HERE, 3)) == Anchor(7)
