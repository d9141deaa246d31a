"""Offset syncs written to and read from a log in memory."""

from __future__ import annotations

import asyncio
from collections import deque

import pytest

from failover.config.settings import Settings
from failover.errors import ClusterUnreachable, NotAuthorized
from failover.kafka.faults import fault
from failover.kafka.wire.metadata import TopicState
from failover.kafka.wire.topics import NewTopic
from failover.mm2.internal_topics import InternalTopics
from failover.mm2.offset_sync import OffsetSync, offset_sync_value
from failover.mm2.replication_policy import policy_from
from failover.model.names import TopicPartition
from failover.replication import syncs as module
from failover.replication.anchor import Anchor
from failover.replication.syncs import KEPT, Syncs, syncs_topic

WANTED = NewTopic("mm2-offset-syncs.B.internal", 1, 3, {"cleanup.policy": "compact"})
ORDERS, OTHER = TopicPartition("orders", 0), TopicPartition("orders", 1)


class Log:
    alias = "A"

    def __init__(self) -> None:
        self.records: list[tuple[bytes | None, bytes | None]] = []
        self.answers: deque[int | Exception] = deque()
        self.error = 0
        self.denied = False
        self.made: list[NewTopic] = []
        self.asked = 0

    async def metadata(self, topics):
        [name] = topics
        reason = fault(self.error) if self.error else None
        return type("Answer", (), {"topics": {name: TopicState(name, bytes(16), False, {}, None, reason)}})

    def sync(self, tp: TopicPartition, upstream: int, downstream: int) -> None:
        sync = OffsetSync(tp.topic, tp.partition, upstream, downstream)
        self.records.append((sync.encode_key(), sync.encode_value()))

    @property
    def upstream(self) -> list[int]:
        return [offset_sync_value(value)[0] for _, value in self.records if value is not None]


@pytest.fixture
def log(monkeypatch):
    kept = Log()

    async def append(cluster, records, *, purpose):
        cluster.asked += 1
        answer = cluster.answers.popleft() if cluster.answers else 0
        if isinstance(answer, Exception):
            raise answer
        [(place, rows)] = records.items()
        assert place == TopicPartition(WANTED.name, 0)
        if answer:
            return {place: fault(answer)}
        cluster.records += [(row.key, row.value) for row in rows]
        return {}

    async def read_columns(cluster, tp):
        if cluster.denied:
            raise NotAuthorized("no READ", alias="A")
        for at in range(0, len(cluster.records), 3):
            yield [(at, 0, *row) for row in cluster.records[at : at + 3]]

    async def ensure_topic(cluster, topic):
        cluster.made.append(topic)
        return (fault(cluster.error) if cluster.error else None), False

    for name, fake in {"append": append, "read_columns": read_columns, "ensure_topic": ensure_topic}.items():
        monkeypatch.setattr(module, name, fake)
    return kept


def last(log, *partitions):
    return asyncio.run(Syncs(log, WANTED).read_last(partitions))


def test_rows_are_written_in_order_byte_for_byte(log):
    rows = [(ORDERS, 1000, 950), (OTHER, 3, 2), (ORDERS, 1001, 951)]
    assert asyncio.run(Syncs(log, WANTED).write(rows)) is None
    assert log.records[0] == (
        bytes.fromhex("00066f726465727300000000"),
        bytes.fromhex("00000000000003e800000000000003b6"),
    )
    assert [OffsetSync.decode(*record) for record in log.records] == [
        OffsetSync(*tp, up, down) for tp, up, down in rows
    ]


def test_rows_that_could_not_be_written_wait_and_go_first(log):
    syncs = Syncs(log, WANTED)
    log.answers.extend([29, ClusterUnreachable("gone", alias="A")])
    assert asyncio.run(syncs.write([(ORDERS, 1, 1)])) == fault(29)
    with pytest.raises(ClusterUnreachable):
        asyncio.run(syncs.write([(ORDERS, 2, 2)]))
    assert (syncs.waiting, log.records) == (2, [])
    assert asyncio.run(syncs.write([(ORDERS, 3, 3)])) is None
    assert syncs.waiting == 0
    assert log.upstream == [1, 2, 3]


def test_what_waits_is_bounded_and_the_newest_stay(log):
    syncs = Syncs(log, WANTED)
    log.answers.append(29)
    asyncio.run(syncs.write((ORDERS, number, number) for number in range(20_000)))
    assert syncs.waiting == 5_000
    asyncio.run(syncs.write([(ORDERS, 20_000, 20_000)]))
    assert log.upstream == list(range(15_001, 20_001))


def test_syncs_switched_off_are_neither_made_nor_written_nor_kept(log):
    syncs = Syncs(log, WANTED, enabled=False)
    asyncio.run(syncs.open())
    assert asyncio.run(syncs.write([(ORDERS, 1, 1)])) is None
    assert (log.made, log.asked, log.records, syncs.waiting) == ([], 0, [], 0)


def test_a_topic_that_may_not_be_made_is_said_and_stops_nothing(log, caplog):
    log.error = 29
    asyncio.run(Syncs(log, WANTED).open())
    assert log.made == [WANTED]
    [said] = caplog.messages
    assert WANTED.name in said
    assert "TOPIC_AUTHORIZATION_FAILED" in said


def test_the_last_syncs_are_anchors_behind_their_records(log):
    for offset in range(100):
        log.sync(ORDERS, offset * 10, offset * 10 - offset)
        log.sync(TopicPartition("unasked", 0), offset, offset)
    log.sync(OTHER, 4, 3)
    log.records += [(None, b""), (OffsetSync(*OTHER, 0, 0).encode_key(), None), (b"?", b"?")]
    log.records.append((OffsetSync(*OTHER, 0, 0).encode_key(), b"short"))
    found = last(log, ORDERS, OTHER, TopicPartition("silent", 0))
    assert found.keys() == {ORDERS, OTHER}
    assert found[OTHER] == (Anchor(5, 4),)
    assert len(found[ORDERS]) == KEPT
    assert found[ORDERS][-1] == Anchor(991, 892)
    assert [anchor.upstream for anchor in found[ORDERS]] == [number * 10 + 1 for number in range(100 - KEPT, 100)]


@pytest.mark.parametrize("back", [(50, 1200), (1500, 50), (50, 50), (1000, 1300), (1500, 1100)])
def test_only_the_newest_history_is_given(log, back):
    for pair in ((100, 90), (1000, 900), (1000, 900), (1100, 1100), back, (2000, 2000)):
        log.sync(ORDERS, *pair)
    expected = [back, (2000, 2000)]
    if back[0] > 1100 and back[1] > 1100:
        expected = [(100, 90), (1000, 900), (1100, 1100), *expected]
    assert last(log, ORDERS)[ORDERS] == tuple(Anchor(up + 1, down + 1) for up, down in expected)


def test_a_sync_written_twice_in_a_row_begins_no_history(log):
    for pair in ((100, 90), (110, 100), (110, 100), (120, 110)):
        log.sync(ORDERS, *pair)
    assert [anchor.upstream for anchor in last(log, ORDERS)[ORDERS]] == [101, 111, 121]


def test_without_topic_or_right_there_are_no_further_anchors(log, caplog):
    log.sync(ORDERS, 1, 1)
    assert last(log) == {}
    log.error = 3
    assert last(log, ORDERS) == {}
    assert caplog.messages == []
    log.error = 29
    assert last(log, ORDERS) == {}
    log.error, log.denied = 0, True
    assert last(log, ORDERS) == {}
    assert len(caplog.messages) == 2


def test_the_topic_is_made_as_mirror_maker_would():
    given = Settings({}, {"offset-syncs.topic.replication.factor": "3"})
    assert syncs_topic(InternalTopics.of_flow({}, "A", "B", policy_from({}, "A")), given) == WANTED
