"""Reading and writing of positions over a log in memory."""

from __future__ import annotations

import asyncio
import logging

import msgspec
import pytest

from failover.config.settings import DEFAULT, Settings, make_setting
from failover.errors import BrokerError, ConfigError, NotAuthorized, Refused
from failover.kafka.faults import fault
from failover.kafka.wire.metadata import PartitionState, TopicState
from failover.kafka.wire.topics import ConfigEntry, NewTopic
from failover.mm2.connect_offsets import offset_partition
from failover.mm2.internal_topics import InternalTopics
from failover.mm2.replication_policy import policy_from
from failover.model.names import TopicPartition
from failover.model.records import Record
from failover.replication import positions as module
from failover.replication.anchor import Anchor, anchor_key, encode_anchor
from failover.replication.positions import Positions, positions_topic
from failover.replication.shards import shard_of

MM2, ALIAS = "MirrorSourceConnector", "us-10"
WANTED = NewTopic("mm2-offsets.us-10.internal", 25, 1, {"cleanup.policy": "compact"})
ORDERS = [TopicPartition("orders", number) for number in range(4)]


class Log:
    """Is a target that keeps records of one topic and answers what Positions asks of it."""

    alias = "B"
    silence = 1.0

    def __init__(self, count: int = 25) -> None:
        self.count = count
        self.partitions: dict[int, list[Record]] = {}
        self.refuse: dict[int, int] = {}
        self.error: int | None = None
        self.policy = "compact"
        self.segment = "4194304"
        self.ensured: list[NewTopic] = []
        self.clock = 1000
        self._state: TopicState | None = None

    def add(self, number, key, value, headers=(), at=None):
        records = self.partitions.setdefault(number, [])
        self.clock += 1
        records.append(Record(len(records), self.clock if at is None else at, key, value, tuple(headers)))

    def put(self, tp, anchor, *, number=None, at=None, alias=ALIAS, connector=MM2):
        key = anchor_key(connector, alias, tp)
        where = offset_partition(key, self.count) if number is None else number
        self.add(where, key, *encode_anchor(anchor), at=at)

    # -- what a WireCluster offers -----------------------------------------------------------------

    async def metadata(self, topics):
        [name] = topics
        reason = fault(3) if not self.count else fault(self.error) if self.error else None
        partitions = {number: PartitionState(1, 0, (1,), (1,)) for number in range(self.count)}
        self._state = TopicState(name, bytes(16), False, partitions, None, reason)
        return type("Answer", (), {"topics": {name: self._state}})

    def topic(self, name):
        return self._state


@pytest.fixture
def log(monkeypatch):
    kept = Log()

    async def read_records(cluster, tp):
        records = cluster.partitions.get(tp.partition, [])
        for at in range(0, len(records), 2):
            yield records[at : at + 2]

    async def append(cluster, records, *, purpose):
        refused = {tp: fault(cluster.refuse[tp.partition]) for tp in records if tp.partition in cluster.refuse}
        for tp, rows in records.items():
            for row in rows if tp not in refused else ():
                cluster.add(tp.partition, *row)
        return refused

    async def ensure_topic(cluster, topic):
        cluster.ensured.append(topic)
        existed = cluster.count > 0
        return (fault(cluster.error) if cluster.error else None), existed

    async def describe_topic_configs(cluster, topics, names):
        if not cluster.policy:
            return dict.fromkeys(topics, fault(29))
        entries = (ConfigEntry("cleanup.policy", cluster.policy), ConfigEntry("segment.bytes", cluster.segment))
        return dict.fromkeys(topics, entries)

    for name, fake in {
        "read_records": read_records,
        "append": append,
        "ensure_topic": ensure_topic,
        "describe_topic_configs": describe_topic_configs,
    }.items():
        monkeypatch.setattr(module, name, fake)
    return kept


def positions(log, **options):
    return Positions(log, WANTED, source=ALIAS, **options)


def read(log, **options):
    return asyncio.run(positions(log, **options).read())


def test_the_newest_record_of_each_key_counts(log):
    for upstream in (5, 9, 7):
        log.put(ORDERS[0], Anchor(upstream, upstream + 100))
    log.put(ORDERS[1], Anchor(3))
    assert read(log) == {ORDERS[0]: Anchor(7, 107), ORDERS[1]: Anchor(3)}


def test_a_tombstone_takes_a_position_away(log):
    log.put(ORDERS[0], Anchor(5))
    key = anchor_key(MM2, ALIAS, ORDERS[0])
    log.add(offset_partition(key), key, None)
    assert read(log) == {}
    log.put(ORDERS[0], Anchor(1))
    assert read(log) == {ORDERS[0]: Anchor(1)}


def test_other_connectors_sources_and_spellings_are_not_ours(log):
    log.put(ORDERS[0], Anchor(5), connector="other")
    log.put(ORDERS[1], Anchor(5), alias="us-1")
    log.put(ORDERS[1], Anchor(5), alias="us-100")
    log.add(0, b'["MirrorSourceConnector",{"topic":"orders","partition":3,"cluster":"us-10"}]', b'{"offset":1}')
    log.add(0, b'["MirrorSourceConnector",{"cluster":"us-10","partition":3,"topic":"orders","x":1}]', b'{"offset":1}')
    log.add(0, None, b'{"offset":1}')
    assert read(log) == {}
    assert read(log, connector="other") == {ORDERS[0]: Anchor(5)}


def test_a_record_without_a_readable_offset_is_counted_and_the_one_before_it_stands(log, caplog):
    key = anchor_key(MM2, ALIAS, ORDERS[0])
    log.put(ORDERS[0], Anchor(5, 50))
    log.add(offset_partition(key), key, b'{"offset":"6"}')
    log.add(offset_partition(key), key, b"\xff")
    log.add(offset_partition(key), key, b'{"offset":99999999999999999999}')
    store = positions(log)
    assert asyncio.run(store.read()) == {ORDERS[0]: Anchor(5, 50)}
    assert store.unreadable == 3
    assert len(caplog.records) == 1
    assert asyncio.run(store.read()) == {ORDERS[0]: Anchor(5, 50)}
    assert store.unreadable == 3


@pytest.mark.parametrize(("stale", "newer"), [(10, 20), (20, 20)])
def test_of_two_partitions_with_one_key_the_younger_record_counts_then_the_one_connect_writes_to(
    log, caplog, stale, newer
):
    key = anchor_key(MM2, ALIAS, ORDERS[0])
    right = offset_partition(key)
    for wrong in (right - 1, right + 1):
        log.partitions.clear()
        caplog.clear()
        log.put(ORDERS[0], Anchor(5), number=wrong, at=stale)
        log.put(ORDERS[0], Anchor(9), at=newer)
        assert read(log) == {ORDERS[0]: Anchor(9)}
        assert [record.levelno for record in caplog.records] == [logging.WARNING]
        log.partitions.clear()
        log.put(ORDERS[0], Anchor(5), at=1)
        log.put(ORDERS[0], Anchor(9), number=wrong, at=2)
        assert read(log) == {ORDERS[0]: Anchor(9)}


@pytest.mark.parametrize("count", [1, 7, 25])
def test_records_go_where_javas_partitioner_puts_them(log, count):
    log.count = count
    anchors = {tp: Anchor(tp.partition, 10 + tp.partition, bytes(15) + b"\1") for tp in ORDERS}
    store = positions(log)
    assert asyncio.run(store.write(anchors)) == {}
    for number, records in log.partitions.items():
        assert {offset_partition(record.key, count) for record in records} == {number}
    assert asyncio.run(store.read()) == anchors


def test_partitions_added_to_the_topic_are_minded(log):
    store = positions(log)
    log.count = 1
    asyncio.run(store.write({ORDERS[0]: Anchor(1, 1)}))
    log.count = 25
    asyncio.run(store.read())
    asyncio.run(store.write({ORDERS[0]: Anchor(2, 2)}))
    assert len(log.partitions[offset_partition(anchor_key(MM2, ALIAS, ORDERS[0]))]) == 1
    assert read(log) == {ORDERS[0]: Anchor(2, 2)}


def test_a_fault_concerns_the_positions_of_its_partition_alone(log):
    keys = {tp: offset_partition(anchor_key(MM2, ALIAS, tp)) for tp in ORDERS}
    assert len(set(keys.values())) > 1
    log.refuse = {keys[ORDERS[0]]: 19}
    anchors = {tp: Anchor(8, 8) for tp in ORDERS}
    refused = asyncio.run(positions(log).write(anchors))
    assert {tp: reason.name for tp, reason in refused.items()} == {
        tp: "NOT_ENOUGH_REPLICAS" for tp in ORDERS if keys[tp] == keys[ORDERS[0]]
    }
    assert read(log).keys() == anchors.keys() - refused.keys()


def test_a_topic_that_is_not_there_has_no_positions_and_takes_none(log):
    log.count = 0
    assert read(log) == {}
    refused = asyncio.run(positions(log).write({ORDERS[0]: Anchor(1, 1)}))
    assert refused[ORDERS[0]].name == "UNKNOWN_TOPIC_OR_PARTITION"


def test_missing_rights_are_named(log):
    log.error = 29
    for work in (positions(log).open(), positions(log).read(), positions(log).write({ORDERS[0]: Anchor(1)})):
        with pytest.raises(NotAuthorized) as caught:
            asyncio.run(work)
        assert WANTED.name in caught.value.hint
    log.error = 38
    with pytest.raises(BrokerError) as refused:
        asyncio.run(positions(log).open())
    assert "offset.storage.replication.factor" in refused.value.hint


@pytest.mark.parametrize("policy", ["delete", "compact,delete"])
def test_a_topic_that_would_lose_positions_is_refused(log, policy):
    log.policy = policy
    with pytest.raises(Refused) as caught:
        asyncio.run(positions(log).open())
    assert caught.value.exit_code == 3
    assert policy in caught.value.message


@pytest.mark.parametrize("policy", ["compact", ""])
def test_a_compacted_topic_or_one_that_may_not_be_looked_at_is_taken(log, policy):
    log.policy = policy
    asyncio.run(positions(log).open())
    assert log.ensured == [WANTED]


def test_a_topic_whose_segments_are_compacted_late_is_taken_with_a_word(log, caplog):
    caplog.set_level(logging.INFO)
    asyncio.run(positions(log).open())
    assert caplog.messages == []
    log.segment = "1073741824"
    asyncio.run(positions(log).open())
    assert "segment.bytes=4194304" in caplog.text


def test_a_place_for_a_transaction_without_data_is_one_of_the_topics_partitions(log):
    store = positions(log)
    asyncio.run(store.read())
    assert {store.partition_of(number).partition for number in range(64)} == set(range(25))
    assert store.partition_of(3).topic == WANTED.name


def worker(**given):
    named = {key.replace("__", "."): value for key, value in given.items()}
    return Settings({key: make_setting(key, value, DEFAULT) for key, value in named.items()})


def internal():
    return InternalTopics.of_flow({}, "A", "B", policy_from({}, "A"))


def test_the_topic_is_made_as_connect_would():
    plain = positions_topic(internal(), worker())
    assert (plain.name, plain.partitions, plain.replication_factor) == ("mm2-offsets.A.internal", 25, 3)
    assert plain.configs["cleanup.policy"] == "compact"
    given = worker(
        offset__storage__partitions="5",
        offset__storage__replication__factor=" -1 ",
        offset__storage__topic="x",
        offset__storage__cleanup__policy="delete",
        offset__storage__segment__bytes="1048576",
        offset__storage__min__insync__replicas="2",
        config__storage__replication__factor="9",
    )
    made = positions_topic(internal(), given)
    assert msgspec.structs.astuple(made) == (
        "mm2-offsets.A.internal",
        5,
        -1,
        {"segment.bytes": "1048576", "cleanup.policy": "compact", "min.insync.replicas": "2"},
    )
    with pytest.raises(ConfigError):
        positions_topic(internal(), worker(offset__storage__partitions="five"))


def test_the_other_worker_that_wrote_last_is_named(log, caplog):
    def by(worker, tp, at, **where):
        key = anchor_key(MM2, where.pop("alias", ALIAS), tp)
        log.add(offset_partition(key, log.count), key, *encode_anchor(Anchor(1, 1), worker), at=at)

    ours = positions(log)

    def other(since=100, shard=None):
        return asyncio.run(ours.other_writer(since, shard=shard))

    assert other() == ""
    assert asyncio.run(ours.write({ORDERS[0]: Anchor(4, 5)})) == {}
    by("before (process 1)", ORDERS[1], 99)
    by("", ORDERS[1], 500)
    by("else (process 2)", ORDERS[1], 600, alias="eu")
    by("bad\x1b[2J (process 3)", ORDERS[2], 700)
    assert other() == ""
    by("dr-2.example (process 77)", ORDERS[2], 200)
    by("dr-1 (process 5)", ORDERS[3], 150)
    assert other() == "dr-2.example (process 77)"
    assert other(since=201) == ""
    by("dr-3 (process 9, shard 2/3)", ORDERS[3], 300)
    assert other() == "dr-3 (process 9, shard 2/3)"
    assert other(shard=shard_of(ORDERS[2])) == "dr-2.example (process 77)"
