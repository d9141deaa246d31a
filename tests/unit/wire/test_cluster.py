from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable, Mapping, Sequence

import pytest

from failover.config.clients import ClientSettings
from failover.errors import BrokerError, ClusterUnreachable, NotAuthorized
from failover.kafka.wire.cluster import WireCluster
from failover.kafka.wire.columns import read_columns
from failover.kafka.wire.groups import list_groups
from failover.kafka.wire.offsets import commit_offsets, committed_offsets
from failover.kafka.wire.primitives import Reader, Writer
from failover.kafka.wire.windows import read_windows
from failover.model.groups import Commit
from failover.model.names import Fault, TopicPartition
from failover.model.records import WindowRequest
from tests.unit.wire.batch_bytes import batch, value_of
from tests.unit.wire.fake_broker import SILENT, Answer, Asked, FakeBroker

FETCH, LIST_OFFSETS, METADATA, COMMIT, OFFSET_FETCH, FIND, LIST = 1, 2, 3, 8, 9, 10, 16
OFFERED = {
    FETCH: (4, 17),
    LIST_OFFSETS: (1, 9),
    METADATA: (0, 12),
    COMMIT: (2, 9),
    OFFSET_FETCH: (1, 9),
    FIND: (0, 6),
    LIST: (0, 5),
}
FLEXIBLE = {FETCH: 12, LIST_OFFSETS: 6, METADATA: 9, COMMIT: 8, OFFSET_FETCH: 6, FIND: 3, LIST: 3}
TOPIC, TOPIC_ID = "orders", bytes(range(16))
TP = TopicPartition(TOPIC, 0)


def body(*, throttle: int = 0) -> Writer:
    out = Writer(flexible=True)
    out.int32(throttle)
    return out


def metadata(ports: Mapping[int, int], *, leader: int = 1, epoch: int = 3, throttle: int = 0, error: int = 0) -> bytes:
    """Answers as version 12 does, with one topic of one partition."""
    out = body(throttle=throttle)
    out.array(len(ports))
    for node, port in ports.items():
        out.int32(node)
        out.string("127.0.0.1")
        out.int32(port)
        out.string(None)
        out.tags()
    out.string("cluster-id")
    out.int32(1)
    out.array(1)
    out.int16(error)
    out.string(TOPIC)
    out.raw(TOPIC_ID)
    out.int8(0)
    out.array(1)
    out.int16(0)
    out.int32(0)
    out.int32(leader)
    out.int32(epoch)
    out.int32s([1, 2])
    out.int32s([1])
    out.int32s([])
    out.tags()
    out.int32(-(1 << 31))
    out.tags()
    out.tags()
    return bytes(out.data)


def found(node: int) -> Callable[[Asked], Answer]:
    """Answers FindCoordinator as version 4 and later do: this node for every key."""

    def answer(asked: Asked) -> Answer:
        reader = Reader(asked.body, flexible=True)
        reader.int8()
        out = body()
        keys = reader.strings()
        out.array(len(keys))
        for key in keys:
            out.string(key)
            out.int32(node)
            out.string("127.0.0.1")
            out.int32(1)
            out.int16(0)
            out.string(None)
            out.tags()
        out.tags()
        return bytes(out.data)

    return answer


def fetched(records: bytes, *, error: int = 0, end: int = 100, start: int = 0) -> bytes:
    out = body()
    out.int16(0)
    out.int32(0)
    out.array(1)
    out.raw(TOPIC_ID)
    out.array(1)
    out.int32(0)
    out.int16(error)
    out.int64(end)
    out.int64(end)
    out.int64(start)
    out.array(None)
    out.int32(-1)
    out.sized(records)
    out.tags()
    out.tags()
    out.tags()
    return bytes(out.data)


def asked_offset(asked: Asked) -> int:
    """Takes the offset out of a fetch of one partition by topic id, version 15 and later."""
    reader = Reader(asked.body, flexible=True)
    reader.take(4 * 3 + 1 + 4 * 2)
    assert reader.array() == 1
    assert bytes(reader.take(16)) == TOPIC_ID
    assert reader.array() == 1
    partition, epoch, offset = struct.unpack(">iiq", reader.take(16))
    assert (partition, epoch) == (0, 3)
    return int(offset)


def ends(start: int, end: int) -> Callable[[Asked], Answer]:
    """Answers ListOffsets of one partition, version 6 and later."""

    def answer(asked: Asked) -> Answer:
        reader = Reader(asked.body, flexible=True)
        reader.take(5)
        reader.array()
        reader.string()
        reader.array()
        reader.take(8)
        out = body()
        out.array(1)
        out.string(TOPIC)
        out.array(1)
        out.int32(0)
        out.int16(0)
        out.int64(-1)
        out.int64(start if reader.int64() == -2 else end)
        out.int32(3)
        out.tags()
        out.tags()
        out.tags()
        return bytes(out.data)

    return answer


def scene(
    work: Callable[[WireCluster, FakeBroker], Awaitable[None]],
    script: Mapping[int, Callable[[Asked], Answer]],
    *,
    silence: float = 5.0,
    offered: Mapping[int, tuple[int, int]] = OFFERED,
    before: Sequence[int] = (),
) -> None:
    """Runs ``work`` on a cluster of one scripted broker, number 1; ``before``: bootstrap ports in front of its own."""

    async def run() -> None:
        async with FakeBroker({}, offered, flexible=FLEXIBLE) as broker:
            broker.script[METADATA] = lambda _: metadata({1: broker.port})
            broker.script.update(script)
            bootstrap = tuple(("127.0.0.1", port) for port in (*before, broker.port))
            async with WireCluster(ClientSettings(bootstrap), alias="a", silence=silence) as cluster:
                await work(cluster, broker)

    asyncio.run(run())


def test_topic_creation_is_never_asked_for():
    async def work(cluster: WireCluster, broker: FakeBroker) -> None:
        await cluster.metadata([TOPIC])
        for asked in broker.asked:
            if asked.key == METADATA:
                assert asked.version == 12
                assert bytes(asked.body)[-3:] == b"\0\0\0"  # auto-creation, operations, tags
        state = cluster.topic(TOPIC)
        assert state is not None
        assert (state.topic_id, state.topic_id_text) == (TOPIC_ID, "AAECAwQFBgcICQoLDA0ODw")

    scene(work, {})


def test_a_topic_made_since_it_was_asked_for_is_found():
    async def run(cluster: WireCluster, broker: FakeBroker) -> None:
        broker.script[METADATA] = lambda _: metadata({1: broker.port}, error=3)
        absent = (await cluster.leaders([TP], refresh=True))[TP]
        assert isinstance(absent, Fault)
        assert absent.number == 3
        broker.script[METADATA] = lambda _: metadata({1: broker.port})
        assert (await cluster.leaders([TP]))[TP] == (1, 3, TOPIC_ID)

    scene(run, {})


def test_a_silent_bootstrap_address_delays_nobody():
    async def run() -> None:
        async with FakeBroker({18: lambda _: SILENT}, {}) as frozen:

            async def work(cluster: WireCluster, _: FakeBroker) -> None:
                assert cluster.brokers == (1,)

            with pytest.raises(TimeoutError):
                # the frozen one alone is waited for: that it is silent is not yet known
                await asyncio.wait_for(
                    WireCluster(ClientSettings((("127.0.0.1", frozen.port),)), alias="a", silence=60).open(), 0.05
                )
            async with FakeBroker({}, OFFERED, flexible=FLEXIBLE) as broker:
                broker.script[METADATA] = lambda _: metadata({1: broker.port})
                bootstrap = (("127.0.0.1", frozen.port), ("127.0.0.1", broker.port))
                async with WireCluster(ClientSettings(bootstrap), alias="a", silence=60) as cluster:
                    await work(cluster, broker)

    asyncio.run(run())


def test_nobody_there_is_an_unreachable_cluster():
    async def run() -> None:
        async with FakeBroker({}, {}) as broker:
            pass
        cluster = WireCluster(ClientSettings((("127.0.0.1", broker.port),)), alias="a", silence=1)
        with pytest.raises(ClusterUnreachable) as caught:
            await cluster.open()
        assert caught.value.alias == "a"
        await cluster.close()

    asyncio.run(run())


def test_a_cluster_that_does_not_open_leaves_no_connection():
    async def run() -> None:
        async with FakeBroker({METADATA: lambda _: SILENT}, OFFERED, flexible=FLEXIBLE) as broker:
            cluster = WireCluster(ClientSettings((("127.0.0.1", broker.port),)), alias="a", silence=60)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(cluster.open(), 0.1)
            assert broker.connections == 1
            async with asyncio.timeout(5):
                await broker.left()
            # nor does a late caller open one
            with pytest.raises(ClusterUnreachable):
                await cluster.open()
            assert broker.connections == 1

    asyncio.run(run())


def test_metadata_of_commits_is_bytes_both_ways():
    raw = b"\xff\xfe\0raw"

    def offsets(asked: Asked) -> Answer:
        out = body()
        out.array(1)
        out.string("g")
        out.array(1)
        out.string(TOPIC)
        out.array(1)
        out.int32(0)
        out.int64(7)
        out.int32(-1)
        out.string(raw)
        out.int16(0)
        out.tags()
        out.tags()
        out.int16(0)
        out.tags()
        out.tags()
        return bytes(out.data)

    async def work(cluster: WireCluster, broker: FakeBroker) -> None:
        assert await committed_offsets(cluster, ["g"]) == {"g": {TP: Commit(7, raw)}}
        await commit_offsets(cluster, {"g": {TP: Commit(7, raw)}})
        [sent] = [asked for asked in broker.asked if asked.key == COMMIT]
        assert raw in bytes(sent.body)

    scene(work, {FIND: found(1), OFFSET_FETCH: offsets, COMMIT: accepted})


def accepted(asked: Asked) -> Answer:
    return committed(0)


def committed(error: int) -> bytes:
    out = body()
    out.array(1)
    out.string(TOPIC)
    out.array(1)
    out.int32(0)
    out.int16(error)
    out.tags()
    out.tags()
    out.tags()
    return bytes(out.data)


def test_a_lost_answer_to_a_commit_is_an_unknown_outcome_and_not_repeated():
    async def work(cluster: WireCluster, broker: FakeBroker) -> None:
        answer = (await commit_offsets(cluster, {"g": {TP: Commit(7)}}))["g"]
        assert isinstance(answer, Fault)
        assert answer.number < -1
        assert broker.order().count(COMMIT) == 1

    scene(work, {FIND: found(1), COMMIT: lambda _: None})


def test_a_commit_that_could_not_be_sent_is_no_unknown_outcome():
    async def work(cluster: WireCluster, broker: FakeBroker) -> None:
        await cluster.coordinators(["g"])
        broker.script[18] = lambda _: SILENT  # new connections get no further than this
        answer = (await commit_offsets(cluster, {"g": {TP: Commit(7)}}))["g"]
        assert isinstance(answer, dict)
        assert [fault.name for fault in answer.values() if fault] == ["COORDINATOR_NOT_AVAILABLE"]
        assert COMMIT not in broker.order()

    scene(work, {FIND: found(1)}, silence=0.2)


def test_a_coordinator_that_moved_is_looked_up_again():
    answers = iter([committed(16), committed(14), committed(0)])

    async def work(cluster: WireCluster, broker: FakeBroker) -> None:
        assert await commit_offsets(cluster, {"g": {TP: Commit(7)}}) == {"g": {TP: None}}
        assert [key for key in broker.order() if key in (FIND, COMMIT)] == [FIND, COMMIT, FIND, COMMIT, FIND, COMMIT]

    scene(work, {FIND: found(1), COMMIT: lambda _: next(answers)})


def test_coordinators_are_asked_for_one_by_one_where_lists_are_not_known():
    def single(asked: Asked) -> Answer:
        assert asked.version == 3
        out = body()
        out.int16(30 if Reader(asked.body, flexible=True).string() == "secret" else 0)
        out.string(None)
        out.int32(1)
        out.string("127.0.0.1")
        out.int32(1)
        out.tags()
        return bytes(out.data)

    async def work(cluster: WireCluster, broker: FakeBroker) -> None:
        answers = await cluster.coordinators(["one", "secret", "two"])
        assert (answers["one"], answers["two"]) == (1, 1)
        assert isinstance(answers["secret"], Fault)
        assert answers["secret"].name == "GROUP_AUTHORIZATION_FAILED"
        assert broker.order().count(FIND) == 3

    scene(work, {FIND: single}, offered={**OFFERED, FIND: (0, 3)})


def test_a_window_ends_where_it_was_asked_to():
    log = (
        batch(0, range(10)) + batch(10, range(10), codec="zstd") + batch(20, [0], attributes=0x20) + batch(21, range(9))
    )

    async def work(cluster: WireCluster, broker: FakeBroker) -> None:
        asks = [WindowRequest("source", TP, 5, 12), WindowRequest("source", TP, 18, 23)]
        windows = await read_windows(cluster, asks)
        for ask, offsets in zip(asks, ([*range(5, 12)], [18, 19, 21, 22]), strict=True):
            window = windows[ask]
            assert [record.offset for record in window.records] == offsets
            assert [record.value for record in window.records] == [value_of(offset) for offset in offsets]
            assert (window.covered_to, window.log_start, window.log_end) == (ask.stop, 0, 30)
        assert broker.order().count(FETCH) == 2

    scene(work, {FETCH: lambda _: fetched(log, end=30)})


def test_a_leader_that_moved_is_followed():
    answers = iter([fetched(b"", error=6), fetched(b"", error=74), fetched(batch(0, range(10)), end=10)])

    async def work(cluster: WireCluster, broker: FakeBroker) -> None:
        ask = WindowRequest("source", TP, 0, 5)
        window = (await read_windows(cluster, [ask]))[ask]
        assert (window.fault, len(window.records)) == (None, 5)
        assert [key for key in broker.order() if key in (METADATA, FETCH)] == [METADATA, FETCH] * 3

    scene(work, {FETCH: lambda _: next(answers)})


@pytest.mark.parametrize(
    ("records", "error", "name"),
    [(b"", 29, "TOPIC_AUTHORIZATION_FAILED"), (bytes(batch(0, range(9))[:-1]) + b"?", 0, "CORRUPT_MESSAGE")],
)
def test_a_window_that_cannot_be_read_says_why(records, error, name):
    async def work(cluster: WireCluster, _: FakeBroker) -> None:
        ask = WindowRequest("source", TP, 0, 5)
        window = (await read_windows(cluster, [ask]))[ask]
        assert window.records == ()
        assert window.fault is not None
        assert window.fault.name == name

    scene(work, {FETCH: lambda _: fetched(records, error=error, end=9)})


def test_a_partition_is_read_by_position_over_gaps_and_up_to_the_end_known_at_the_start():
    log = [batch(0, [0, 2]), batch(7, [0, 1], last=5), batch(13, [0], attributes=0x20), batch(14, [0, 1, 2])]

    def answer(asked: Asked) -> Answer:
        position = asked_offset(asked)
        rest = [data for data, following in zip(log, (3, 13, 14, 17), strict=True) if following > position]
        return fetched(rest[0], end=17)

    async def work(cluster: WireCluster, _: FakeBroker) -> None:
        rows = [row async for rows in read_columns(cluster, TP) for row in rows]
        assert [row[0] for row in rows] == [0, 2, 7, 8, 14, 15]

    scene(work, {FETCH: answer, LIST_OFFSETS: ends(0, 16)})


def test_reading_goes_on_where_retention_overtook_it():
    def answer(asked: Asked) -> Answer:
        return fetched(b"", error=1) if asked_offset(asked) < 50 else fetched(batch(50, range(10)), start=50, end=60)

    starts = iter([0, 50])

    def offsets(asked: Asked) -> Answer:
        # the log start moves between the first look and the second
        earliest = struct.unpack(">q", bytes(asked.body)[-11:-3])[0] == -2
        return ends(next(starts) if earliest else 0, 60)(asked)

    async def work(cluster: WireCluster, _: FakeBroker) -> None:
        rows = [row async for rows in read_columns(cluster, TP) for row in rows]
        assert [row[0] for row in rows] == [*range(50, 60)]

    scene(work, {FETCH: answer, LIST_OFFSETS: offsets})


def test_reading_without_the_right_to_is_said_plainly():
    async def work(cluster: WireCluster, _: FakeBroker) -> None:
        with pytest.raises(NotAuthorized, match="orders-0"):
            await anext(aiter(read_columns(cluster, TP)))

    scene(work, {FETCH: lambda _: fetched(b"", error=29), LIST_OFFSETS: ends(0, 5)})


def test_damaged_batches_stop_the_reading():
    async def work(cluster: WireCluster, _: FakeBroker) -> None:
        with pytest.raises(BrokerError, match="CRC"):
            await anext(aiter(read_columns(cluster, TP)))

    scene(work, {FETCH: lambda _: fetched(batch(0, range(5))[:-1] + b"?"), LIST_OFFSETS: ends(0, 5)})


def test_a_throttled_broker_is_left_alone_for_as_long_as_it_says():
    async def work(cluster: WireCluster, broker: FakeBroker) -> None:
        loop, asked_at = asyncio.get_running_loop(), []

        def answer(_: Asked) -> Answer:
            asked_at.append(loop.time())
            return metadata({1: broker.port}, throttle=150)

        broker.script[METADATA] = answer
        await cluster.metadata()
        quiet_until = (await cluster.connection(1)).pace.quiet_until
        await cluster.metadata()
        assert asked_at[0] < quiet_until <= asked_at[1]

    scene(work, {})


def test_an_answer_without_partitions_is_asked_for_again():
    # as brokers answer under a quota
    def bare(throttle: int) -> bytes:
        out = body(throttle=throttle)
        out.int16(0)
        out.int32(0)
        out.array(0)
        out.tags()
        return bytes(out.data)

    async def work(cluster: WireCluster, broker: FakeBroker) -> None:
        ask = WindowRequest("source", TP, 0, 5)
        broken = iter([bare(300), fetched(batch(0, range(5)), end=5)] * 2)
        broker.script[FETCH] = lambda _: next(broken)
        window = (await read_windows(cluster, [ask]))[ask]
        assert (window.fault, len(window.records)) == (None, 5)
        rows = [row async for rows in read_columns(cluster, TP) for row in rows]
        assert len(rows) == 5

    scene(work, {LIST_OFFSETS: ends(0, 5)}, silence=0.2)


def test_a_brokers_loss_leaves_the_listing_of_the_others():
    def groups(asked: Asked) -> Answer:
        out = body()
        out.int16(0)
        out.array(1)
        out.string("g")
        out.string("consumer")
        out.string("Reconciling")
        out.string("Consumer")
        out.tags()
        out.tags()
        return bytes(out.data)

    async def run() -> None:
        async with (
            FakeBroker({LIST: lambda _: SILENT}, OFFERED, flexible=FLEXIBLE) as frozen,
            FakeBroker({LIST: groups}, OFFERED, flexible=FLEXIBLE) as broker,
        ):
            broker.script[METADATA] = lambda _: metadata({1: broker.port, 2: frozen.port})
            async with WireCluster(ClientSettings((("127.0.0.1", broker.port),)), alias="a", silence=0.2) as cluster:
                listed, faults = await list_groups(cluster)
                assert (listed["g"].type.value, listed["g"].state) == ("consumer", "Reconciling")
                [fault] = faults
                assert "broker 2" in fault.message
                broker.script[LIST] = lambda _: None
                with pytest.raises(ClusterUnreachable):
                    await list_groups(cluster)

    asyncio.run(run())


def test_a_broken_answer_is_an_error_and_ends_the_connection():
    async def work(cluster: WireCluster, broker: FakeBroker) -> None:
        broker.script[METADATA] = lambda _: metadata({1: broker.port})[:40]
        with pytest.raises(ClusterUnreachable, match="ends too early"):
            await cluster.metadata([TOPIC])
        broker.script[METADATA] = lambda _: metadata({1: broker.port})
        assert TOPIC in (await cluster.metadata([TOPIC])).topics

    scene(work, {})
