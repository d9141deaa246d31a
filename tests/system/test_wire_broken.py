"""What the raw connections do when brokers freeze, die, move or answers are cut."""

from __future__ import annotations

import pytest

from failover.config.clients import ClientSettings
from failover.errors import ClusterUnreachable
from failover.kafka.wire.cluster import Leader
from failover.kafka.wire.groups import list_groups
from failover.kafka.wire.logs import log_ranges
from failover.kafka.wire.offsets import commit_offsets, committed_offsets
from failover.kafka.wire.windows import read_windows
from failover.model.cluster import LogRange
from failover.model.groups import Commit
from failover.model.names import Fault, TopicPartition
from failover.model.records import WindowRequest
from tests.system.wire_side import address, plain, wire

FIND_COORDINATOR, OFFSET_COMMIT = 10, 8


def leading(thread, cluster, partitions):
    leaders = thread.run(cluster.leaders(partitions))
    return {tp: leader.node for tp, leader in leaders.items() if isinstance(leader, Leader)}


def test_a_frozen_cluster_is_unreachable_within_the_accepted_silence(breakable):
    with plain(breakable, "a", silence=1) as (thread, cluster):
        assert thread.run(list_groups(cluster))[1] == ()
        breakable.lab.freeze("a")
        try:
            with pytest.raises(ClusterUnreachable, match="silent for 1 s") as caught:
                thread.run(list_groups(cluster), timeout=10)
            assert caught.value.alias == "a"
            with pytest.raises(ClusterUnreachable):
                thread.run(log_ranges(cluster, [TopicPartition("any", 0)]), timeout=10)
            with pytest.raises(ClusterUnreachable), plain(breakable, "a", silence=1):
                pass
        finally:
            breakable.lab.thaw("a")
        breakable.a.until(lambda: thread.run(list_groups(cluster))[1] == (), what="the thawed broker answers")


def test_a_commit_whose_answer_is_cut_has_an_unknown_outcome(breakable):
    topic = breakable.create_topic("b", breakable.name("wire.cut"))
    tp, group = TopicPartition(topic, 0), breakable.name("wire.group")
    breakable.commit("b", group, {tp: 0})
    settings = ClientSettings(address(breakable.bootstrap("b", "proxy")))
    with wire(settings, alias="b") as (thread, cluster):
        breakable.lab.proxy.cut("answer", api=OFFSET_COMMIT)
        answer = thread.run(commit_offsets(cluster, {group: {tp: Commit(5)}}))[group]
        assert isinstance(answer, Fault)
        assert answer.number < -1
        assert thread.run(committed_offsets(cluster, [group])) == {group: {tp: Commit(5)}}
        breakable.lab.proxy.cut("answer", api=FIND_COORDINATOR)
        assert thread.run(commit_offsets(cluster, {group: {tp: Commit(6)}})) == {group: {tp: None}}


def test_one_frozen_broker_of_three_keeps_nobody_else_waiting(three):
    topic = three.create_topic("a", three.name("wire.three"), 6)
    three.produce("a", topic, 60)
    partitions = [TopicPartition(topic, number) for number in range(6)]
    with plain(three, "a", silence=2) as (thread, cluster):
        leaders = leading(thread, cluster, partitions)
        frozen = leaders[partitions[0]]
        three.lab.freeze(f"a/{frozen}")
        try:
            with plain(three, "a", silence=2) as (other, opened):  # one of its three bootstrap addresses is frozen
                assert len(opened.brokers) == 3
                _, faults = other.run(list_groups(opened))
                assert [f"broker {frozen} " in fault.message for fault in faults] == [True]
            # The controller moves the frozen broker's partitions; its own keep their records.
            asks = [WindowRequest("source", tp, 0, 10) for tp in partitions]
            healthy = [ask for ask in asks if leaders[ask.tp] != frozen]
            windows = thread.run(read_windows(cluster, asks), timeout=30)
            assert all(len(windows[ask].records) == 10 for ask in healthy)
        finally:
            three.lab.thaw(f"a/{frozen}")


def test_leaders_and_coordinators_that_move_are_followed(three):
    topic = three.create_topic("a", three.name("wire.moving"), 6)
    three.produce("a", topic, 60)
    partitions = [TopicPartition(topic, number) for number in range(6)]
    groups = [three.name("wire.moving") for _ in range(12)]
    commits = {group: {tp: Commit(3) for tp in partitions} for group in groups}
    with plain(three, "a", silence=20) as (thread, cluster):
        thread.run(commit_offsets(cluster, commits))
        victim = leading(thread, cluster, partitions)[partitions[0]]
        broker = f"a/{victim}"
        three.lab.kill(broker)
        try:
            assert thread.run(log_ranges(cluster, partitions)) == dict.fromkeys(partitions, LogRange(0, 10))
            # Measured on Kafka 4.1.1: a coordinator just elected may not know the newest commits for a moment.
            three.a.until(
                lambda: thread.run(committed_offsets(cluster, groups)) == commits, what="the commits are told again"
            )
            again = {group: {tp: Commit(4) for tp in partitions} for group in groups}
            assert thread.run(commit_offsets(cluster, again)) == {group: dict.fromkeys(partitions) for group in groups}
        finally:
            three.lab.restart(broker)
