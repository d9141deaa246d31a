from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable

import pytest

from failover.config.clients import ClientSettings
from failover.errors import BrokerError, ClusterUnreachable, NotAuthorized
from failover.kafka.wire.cluster import WireCluster
from failover.kafka.wire.primitives import Reader, Writer
from failover.kafka.wire.producer_ids import LAST_EPOCH, Fence, ProducerFenced, fence, fence_again, init_producer_id
from failover.model.names import TopicPartition
from tests.unit.wire.fake_broker import Answer, Asked, FakeBroker

LIST, METADATA, FIND, INIT, ADD, END, DESCRIBE = 2, 3, 10, 22, 24, 26, 65
OFFERED = {LIST: (0, 9), METADATA: (0, 12), FIND: (0, 6), INIT: (0, 6), ADD: (0, 5), END: (0, 5), DESCRIBE: (0, 0)}
FLEXIBLE = {LIST: 6, METADATA: 9, FIND: 3, INIT: 2, ADD: 3, END: 3, DESCRIBE: 0}
ID = "failover|A->B|7"
ONE, TWO = TopicPartition("orders", 0), TopicPartition("orders", 1)
PREPARE, COMPLETE = "PrepareAbort", "CompleteAbort"


class Coordinator:
    """One broker that coordinates one transactional id; ``errors``: what to answer first, for each API."""

    def __init__(self, *, epoch: int = 4, errors: dict[int, list[int]] | None = None) -> None:
        self.producer, self.epoch = 900, epoch
        self.errors = errors or {}
        self.refuse: dict[TopicPartition, int] = {}
        self.unready: dict[TopicPartition, list[int]] = {}
        self.states: list[str] = []
        self.lacking: list[list[int]] = []
        self.taken_over = False
        self.added: list[list[TopicPartition]] = []
        self.versions: dict[int, int] = {}
        self.broker: FakeBroker = FakeBroker(
            {METADATA: self._metadata, LIST: self._list, FIND: self._find, INIT: self._init}
            | {ADD: self._add, END: self._end, DESCRIBE: self._describe},
            OFFERED,
            flexible=FLEXIBLE,
        )

    def run(self, work: Callable[[WireCluster], object], *, silence: float = 5) -> object:
        async def inside() -> object:
            async with self.broker:
                settings = ClientSettings((("127.0.0.1", self.broker.port),))
                async with WireCluster(settings, alias="b", silence=silence) as cluster:
                    return await work(cluster)  # type: ignore[misc]

        return asyncio.run(inside())

    def asked(self, key: int) -> int:
        return self.broker.order().count(key)

    def _error(self, asked: Asked) -> int:
        self.versions[asked.key] = asked.version
        waiting = self.errors.get(asked.key)
        return waiting.pop(0) if waiting else 0

    def _metadata(self, _: Asked) -> Answer:
        out = Writer(flexible=True)
        out.int32(0)
        out.array(1)
        out.int32(1)
        out.string("127.0.0.1")
        out.int32(self.broker.port)
        out.string(None)
        out.tags()
        out.string("cluster-id")
        out.int32(1)
        out.array(1)
        out.int16(0)
        out.string("orders")
        out.raw(bytes(16))
        out.int8(0)
        out.array(2)
        for number in (0, 1):
            out.int16(0)
            out.int32(number)
            out.int32(1)
            out.int32(0)
            for _list in range(3):
                out.int32s([])
            out.tags()
        out.int32(-(1 << 31))
        out.tags()
        out.tags()
        return bytes(out.data)

    def _list(self, asked: Asked) -> Answer:
        reader = Reader(asked.body, flexible=True)
        assert (reader.int32(), reader.int8(), reader.array(), reader.string()) == (-1, 0, 1, "orders")
        out = Writer(flexible=True)
        out.int32(0)
        out.array(1)
        out.string("orders")
        count = reader.array()
        out.array(count)
        for _ in range(count):
            number, _epoch, latest = reader.int32(), reader.int32(), reader.int64()
            reader.tags()
            assert latest == -1
            errors = self.unready.get(TopicPartition("orders", number))
            out.int32(number)
            out.int16(errors.pop(0) if errors else 0)
            out.int64(-1)
            out.int64(7)
            out.int32(0)
            out.tags()
        out.tags()
        out.tags()
        return bytes(out.data)

    def _find(self, asked: Asked) -> Answer:
        reader = Reader(asked.body, flexible=True)
        assert reader.int8() == 1
        out = Writer(flexible=True)
        out.int32(0)
        out.array(1)
        out.string(reader.strings()[0])
        out.int32(1)
        out.string("127.0.0.1")
        out.int32(self.broker.port)
        out.int16(0)
        out.string(None)
        out.tags()
        out.tags()
        return bytes(out.data)

    def _init(self, asked: Asked) -> Answer:
        error = self._error(asked)
        reader = Reader(asked.body, flexible=True)
        assert (reader.string(), reader.int32()) == (ID, 60_000)
        assert (reader.int64(), reader.int16()) in ((-1, -1), (self.producer, self.epoch))
        if not error:
            if self.epoch >= LAST_EPOCH:
                self.producer, self.epoch = self.producer + 1, -1
            self.epoch += 1
        return struct.pack(">ihqhB", 0, error, self.producer, self.epoch, 0)

    def _add(self, asked: Asked) -> Answer:
        error = self._error(asked)
        reader = Reader(asked.body, flexible=True)
        assert (reader.string(), reader.int64(), reader.int16()) == (ID, self.producer, self.epoch)
        places = []
        for _ in range(reader.array()):
            topic = reader.string()
            places += [TopicPartition(topic, number) for number in reader.int32s()]
            reader.tags()
        bad = any(tp in self.refuse for tp in places)
        if not bad and not error:
            self.added.append(places)
        out = Writer(flexible=True)
        out.int32(0)
        out.array(len(places))
        for topic, partition in places:
            out.string(topic)
            out.array(1)
            out.int32(partition)
            out.int16(error or self.refuse.get(TopicPartition(topic, partition), 55 if bad else 0))
            out.tags()
            out.tags()
        out.tags()
        return bytes(out.data)

    def _end(self, asked: Asked) -> Answer:
        error = self._error(asked)
        reader = Reader(asked.body, flexible=True)
        assert (reader.string(), reader.int64(), reader.int16()) == (ID, self.producer, self.epoch)
        assert reader.int8() == 0, "it commits"
        return struct.pack(">ihB", 0, error, 0)

    def _describe(self, asked: Asked) -> Answer:
        error = self._error(asked)
        out = Writer(flexible=True)
        out.int32(0)
        out.array(1)
        out.int16(error)
        out.string(ID)
        out.string(self.states.pop(0) if self.states else COMPLETE)
        out.int32(60_000)
        out.int64(-1)
        out.int64(self.producer)
        out.int16(self.epoch + self.taken_over)
        out.array(1)
        out.string("orders")
        out.int32s(self.lacking.pop(0) if self.lacking else [0, 1])
        out.tags()
        out.tags()
        out.tags()
        return bytes(out.data)


def fenced(producer: int, epoch: int, *partitions: TopicPartition) -> Fence:
    return Fence(producer, epoch, {}, dict.fromkeys(partitions, 7))


def test_a_fence_is_an_aborted_transaction_over_the_partitions():
    coordinator = Coordinator()
    owner = coordinator.run(lambda cluster: fence(cluster, ID, [ONE, TWO, ONE]))
    assert owner == fenced(900, 5, ONE, TWO)
    assert coordinator.added == [[ONE, TWO]]
    calls = [key for key in coordinator.broker.order() if key in (INIT, ADD, END, DESCRIBE)]
    assert calls == [INIT, ADD, END, DESCRIBE]
    # later versions of the last two would raise the epoch with each transaction
    assert coordinator.versions == {INIT: 4, ADD: 3, END: 4, DESCRIBE: 0}


def test_it_stands_only_when_the_markers_do():
    coordinator = Coordinator()
    coordinator.states = ["Ongoing", PREPARE, PREPARE, PREPARE]
    coordinator.run(lambda cluster: fence(cluster, ID, [ONE]))
    assert coordinator.asked(DESCRIBE) == 5


def test_markers_that_do_not_come_are_told():
    coordinator = Coordinator()
    coordinator.states = [PREPARE] * 10_000
    with pytest.raises(ClusterUnreachable, match=r"A->B\|7 still lacks orders-0, orders-1 after 0\.3 s"):
        coordinator.run(lambda cluster: fence(cluster, ID, [ONE]), silence=0.3)


def test_markers_that_come_slowly_are_waited_for():
    coordinator = Coordinator()
    # each comes in time after the one before, all of them together do not
    coordinator.lacking = [list(range(left)) for left in range(10, 0, -1)]
    coordinator.states = [PREPARE] * 10
    assert coordinator.run(lambda cluster: fence(cluster, ID, [ONE]), silence=0.6) == fenced(900, 5, ONE)


@pytest.mark.parametrize("key", [INIT, ADD, END])
@pytest.mark.parametrize("error", [14, 15, 16, 51])
def test_what_passes_by_itself_is_waited_for(key, error):
    coordinator = Coordinator(errors={key: [error, error]})
    assert coordinator.run(lambda cluster: fence(cluster, ID, [ONE])) == fenced(900, 5, ONE)
    assert coordinator.asked(key) == 3
    assert coordinator.asked(FIND) == 3  # it may have moved


@pytest.mark.parametrize("key", [ADD, END])
@pytest.mark.parametrize("error", [47, 49, 90])
def test_a_newer_owner_is_told_and_not_pushed_out(key, error):
    coordinator = Coordinator(errors={key: [error]})
    with pytest.raises(ProducerFenced, match=r"A->B\|7 has a newer owner than producer 900 at epoch 5") as raised:
        coordinator.run(lambda cluster: fence(cluster, ID, [ONE]))
    assert raised.value.number == error
    assert coordinator.asked(INIT) == 1


def test_a_newer_owner_seen_while_waiting_is_told():
    coordinator = Coordinator()
    coordinator.taken_over = True
    with pytest.raises(ProducerFenced):
        coordinator.run(lambda cluster: fence(cluster, ID, [ONE]))


@pytest.mark.parametrize("error", [3, 17, 29])
def test_a_partition_that_cannot_be_added_is_left_out(error):
    coordinator = Coordinator()
    coordinator.refuse = {ONE: error}
    owner = coordinator.run(lambda cluster: fence(cluster, ID, [ONE, TWO]))
    assert isinstance(owner, Fence)
    assert {tp: reason.number for tp, reason in owner.left_out.items()} == {ONE: error}
    assert coordinator.added == [[TWO]]


def test_leaders_that_have_not_made_their_logs_yet_are_waited_for():
    """A marker would be, too, but with it all others to that broker."""
    coordinator = Coordinator()
    coordinator.unready = {TWO: [6, 3, 9]}
    assert coordinator.run(lambda cluster: fence(cluster, ID, [ONE, TWO])) == fenced(900, 5, ONE, TWO)
    assert coordinator.added == [[ONE, TWO]]
    calls = [key for key in coordinator.broker.order() if key in (LIST, ADD)]
    assert calls == [LIST] * 4 + [ADD]


def test_one_that_stays_without_a_log_holds_up_no_other():
    coordinator = Coordinator()
    coordinator.unready = {TWO: [6] * 1_000}
    owner = coordinator.run(lambda cluster: fence(cluster, ID, [ONE, TWO]), silence=0.3)
    assert isinstance(owner, Fence)
    assert {tp: reason.number for tp, reason in owner.left_out.items()} == {TWO: 6}
    assert coordinator.added == [[ONE]]


@pytest.mark.parametrize("partitions", [[], [ONE]])
def test_without_partitions_there_is_no_transaction(partitions):
    coordinator = Coordinator()
    coordinator.refuse = {ONE: 3}
    owner = coordinator.run(lambda cluster: fence(cluster, ID, partitions))
    assert isinstance(owner, Fence)
    assert list(owner.left_out) == partitions
    assert coordinator.asked(END) == coordinator.asked(DESCRIBE) == 0


def test_the_last_epoch_fences_and_is_given_to_nobody():
    """The next producer id's markers do not fence this one, so no data may ever bear its last epoch."""
    coordinator = Coordinator(epoch=LAST_EPOCH - 1)
    assert coordinator.run(lambda cluster: fence(cluster, ID, [ONE])) == fenced(901, 0, ONE)
    assert coordinator.added == [[ONE], [ONE]]


def test_what_may_be_open_of_an_own_fence_that_was_cut_short_is_ended_first():
    coordinator = Coordinator()
    begun: list[tuple[int, int]] = []
    owner = coordinator.run(lambda cluster: fence(cluster, ID, [ONE], owned=(900, 4), begun=begun.append))
    assert isinstance(owner, Fence)
    assert begun == [owner[:2]]
    assert [key for key in coordinator.broker.order() if key in (INIT, ADD, END)] == [END, INIT, ADD, END]


def test_fencing_again_keeps_the_epoch():
    coordinator = Coordinator()
    assert coordinator.run(lambda cluster: fence_again(cluster, ID, 900, 4, [TWO])) == fenced(900, 4, TWO)
    assert coordinator.asked(INIT) == 0
    assert coordinator.added == [[TWO]]


@pytest.mark.parametrize("key", [INIT, ADD, END, DESCRIBE])
def test_a_missing_right_is_named(key):
    coordinator = Coordinator(errors={key: [53]})
    with pytest.raises(NotAuthorized, match="TRANSACTIONAL_ID_AUTHORIZATION_FAILED") as raised:
        coordinator.run(lambda cluster: fence(cluster, ID, [ONE]))
    assert raised.value.hint == f"grant WRITE and DESCRIBE on transactional id {ID}"


def test_other_errors_keep_their_number():
    coordinator = Coordinator(errors={INIT: [50]})
    with pytest.raises(BrokerError, match="INVALID_TRANSACTION_TIMEOUT") as raised:
        coordinator.run(lambda cluster: init_producer_id(cluster, ID))
    assert raised.value.number == 50


def test_a_coordinator_that_never_loads_is_told():
    coordinator = Coordinator(errors={INIT: [14] * 100})
    with pytest.raises(BrokerError, match="COORDINATOR_LOAD_IN_PROGRESS"):
        coordinator.run(lambda cluster: init_producer_id(cluster, ID), silence=0.3)
