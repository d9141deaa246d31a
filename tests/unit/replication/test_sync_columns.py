"""Offset syncs followed from where they were read last, in bounded memory."""

from __future__ import annotations

import asyncio
import random

import pytest

from failover.errors import BrokerError
from failover.kafka.faults import fault
from failover.kafka.wire.metadata import TopicState
from failover.mm2.offset_sync import OffsetSync
from failover.model.cluster import LogRange
from failover.model.names import TopicPartition
from failover.replication import sync_columns as module
from failover.replication.sync_columns import MOST, Columns, FollowedSyncs
from failover.translate.segments import Syncs
from failover.translate.sync_rule import LogBounds, translate

TOPIC = "mm2-offset-syncs.B.internal"
ORDERS, OTHER = TopicPartition("orders", 0), TopicPartition("orders", 1)


class Log:
    """The topic in memory; ``read``: from where each reading began."""

    alias = "A"

    def __init__(self) -> None:
        self.records: list[tuple[bytes | None, bytes | None]] = []
        self.start = 0
        self.error = 0
        self.topic_id = bytes(range(16))
        self.read: list[int | None] = []

    async def metadata(self, topics):
        reason = fault(self.error) if self.error else None
        state = TopicState(TOPIC, self.topic_id, False, {}, None, reason)
        return type("Answer", (), {"topics": {TOPIC: state}})

    def sync(self, tp: TopicPartition, upstream: int, downstream: int) -> None:
        sync = OffsetSync(*tp, upstream, downstream)
        self.records.append((sync.encode_key(), sync.encode_value()))


@pytest.fixture
def log(monkeypatch):
    kept = Log()

    async def ranges(cluster, places):
        return {place: LogRange(kept.start, kept.start + len(kept.records)) for place in places}

    async def columns(cluster, place, *, start):
        kept.read.append(start)
        first = max(start or 0, kept.start)
        yield [
            (kept.start + index, 0, *record) for index, record in enumerate(kept.records) if kept.start + index >= first
        ]

    monkeypatch.setattr(module, "log_ranges", ranges)
    monkeypatch.setattr(module, "read_columns", columns)
    return kept


def pairs(syncs: Syncs | None) -> list[tuple[int, int]]:
    return [] if syncs is None else list(zip(syncs.ups, syncs.downs, strict=True))


def test_only_what_came_since_is_read(log):
    followed = FollowedSyncs(log, TOPIC)
    log.sync(ORDERS, 0, 0)
    log.sync(OTHER, 5, 4)
    asyncio.run(followed.follow())
    assert (pairs(followed.of(ORDERS)), followed.newest(OTHER)) == ([(0, 0)], (5, 4))
    asyncio.run(followed.follow())
    log.sync(ORDERS, 9, 8)
    asyncio.run(followed.follow())
    assert pairs(followed.of(ORDERS)) == [(0, 0), (9, 8)]
    assert log.read == [None, 2]
    assert followed.arrived == 3
    assert followed.of(TopicPartition("absent", 0)) is None


@pytest.mark.parametrize("how", ["made anew", "cut"])
def test_a_topic_that_is_another_one_is_read_from_its_start(log, how):
    followed = FollowedSyncs(log, TOPIC)
    for offset in range(5):
        log.sync(ORDERS, offset, offset)
    asyncio.run(followed.follow())
    log.records.clear()
    if how == "made anew":
        log.topic_id = bytes(range(1, 17))
        for offset in range(9):
            log.sync(OTHER, offset, offset)
    else:
        log.sync(OTHER, 1, 1)
    asyncio.run(followed.follow())
    assert followed.of(ORDERS) is None
    assert followed.newest(OTHER) is not None


def test_without_a_topic_there_are_no_syncs_and_what_was_known_goes(log):
    followed = FollowedSyncs(log, TOPIC)
    log.sync(ORDERS, 1, 1)
    asyncio.run(followed.follow())
    log.error = 3
    asyncio.run(followed.follow())
    assert followed.of(ORDERS) is None
    log.error = 29
    with pytest.raises(BrokerError, match="TOPIC_AUTHORIZATION_FAILED"):
        asyncio.run(followed.follow())


def test_unreadable_records_and_tombstones_are_passed_over(log):
    followed = FollowedSyncs(log, TOPIC)
    log.records += [(b"\x00", b"\x00"), (None, b"x"), (OffsetSync(*ORDERS, 0, 0).encode_key(), None)]
    log.sync(ORDERS, -1, -1)
    log.sync(ORDERS, 3, 2)
    asyncio.run(followed.follow())
    assert pairs(followed.of(ORDERS)) == [(3, 2)]


def test_what_a_translation_got_is_not_changed_by_what_arrives_later():
    columns = Columns()
    columns.append(1, 1)
    before = columns.syncs()
    assert columns.syncs() is before
    columns.append(5, 5)
    assert (pairs(before), pairs(columns.syncs())) == ([(1, 1)], [(1, 1), (5, 5)])


def test_memory_is_bounded_and_answers_of_one_to_one_stretches_stay():
    columns, rest = Columns(), random.Random(1)
    down, everything = 0, []
    for up in range(0, 3 * MOST, 2):
        down += 2 + (rest.random() < 0.001)
        columns.append(up, down)
        everything.append((up, down))
        assert len(columns.ups) <= MOST
    whole = Columns()
    whole.ups.extend(up for up, _ in everything)
    whole.downs.extend(down for _, down in everything)
    bounds = LogBounds(target_start=0, target_end=down + 1)
    first = columns.ups[0]
    assert first == 0
    for upstream in rest.sample(range(first, everything[-1][0]), 300):
        kept = translate(upstream, columns.syncs(), bounds)
        best = translate(upstream, whole.syncs(), bounds)
        assert kept.offset is not None
        assert best.offset is not None
        assert kept.offset <= best.offset
        assert kept.offset + (kept.reread_max or 0) >= best.offset


def test_where_every_sync_tells_something_the_oldest_go():
    columns = Columns()
    for number in range(MOST + 1):
        columns.append(3 * number, 2 * number)
    assert len(columns.ups) <= MOST * 3 // 4
    assert columns.newest() == (3 * MOST, 2 * MOST)
