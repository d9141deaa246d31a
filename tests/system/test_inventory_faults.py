"""Clusters that die, freeze or lose one of three brokers, and what the look says of them."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from failover.errors import ClusterUnreachable
from failover.kafka.admin_commit import LANES
from failover.model.cluster import ClusterState
from failover.model.groups import Commit
from failover.model.names import Fault, TopicPartition
from tests.system.inventory_side import cluster, look

SILENCE = 4


@pytest.fixture(scope="module")
def hurt(breakable):
    """Is the pair with one group on each side; the source is killed or frozen by the tests and comes back."""
    for side in (breakable.a, breakable.b):
        topic = breakable.create_topic(side.alias, "t.hurt")
        side.place("hurt", {(topic, 0): 0})
    return breakable


@pytest.fixture
def timed(capsys, request):
    """Runs something and shows how long it took; nothing is asserted of it."""

    def run(work):
        began = time.monotonic()
        try:
            return work()
        finally:
            with capsys.disabled():
                print(f"\n{request.node.name}: {time.monotonic() - began:.1f} s")  # noqa: T201

    return run


def test_a_frozen_source_is_down_after_the_accepted_silence(hurt, timed):
    hurt.lab.freeze("a")
    try:
        snapshot = timed(lambda: look(hurt, "hurt", timeouts={"a": SILENCE}))
    finally:
        hurt.lab.thaw("a")
    status = snapshot.source.status
    assert status.state is ClusterState.DOWN
    assert status.detail == f"cluster a gave no answer for {SILENCE} s"
    assert snapshot.groups == ("hurt",)


def test_a_source_that_freezes_during_the_look_costs_the_accepted_silence_once(hurt, timed):
    with cluster(hurt, "a", timeout=SILENCE) as source:
        source.facts()
        source.committed(["hurt"])
        hurt.lab.freeze("a")
        try:
            with pytest.raises(ClusterUnreachable) as first:
                timed(lambda: source.describe_topics(["t.hurt"]))
            for ask in (source.list_groups, lambda: source.log_ranges([TopicPartition("t.hurt", 0)])):
                with pytest.raises(ClusterUnreachable) as again:
                    ask()
                assert again.value is first.value
        finally:
            hurt.lab.thaw("a")


def test_commits_to_a_cluster_that_freezes_are_unknown_and_the_rest_is_not_sent(hurt, timed):
    tp = TopicPartition("t.hurt", 0)
    groups = [f"hurt-{number}" for number in range(3000)]
    heard: dict[str, Any] = {}

    def done(group, answer):
        heard[group] = answer
        if len(heard) == 100:
            hurt.lab.freeze("b")

    with cluster(hurt, "b", timeout=SILENCE) as target:
        try:
            with pytest.raises(ClusterUnreachable, match="cluster b"):
                timed(lambda: target.commit({group: {tp: Commit(0)} for group in groups}, done))
        finally:
            hurt.lab.thaw("b")
    lost = [answer for answer in heard.values() if isinstance(answer, Fault)]
    assert 0 < len(lost) <= 2 * LANES
    assert {answer.number < 0 for answer in lost} == {True}
    hurt.b.until(hurt.b.groups, what="b answers again")
    assert hurt.b.groups() & set(groups) <= set(heard), "who was not told of was not sent"


def test_nothing_is_sent_to_a_cluster_that_is_frozen_already(hurt, timed):
    tp = TopicPartition("t.hurt", 0)
    heard: dict[str, Any] = {}
    with cluster(hurt, "b", timeout=SILENCE) as target:
        target.facts()
        hurt.lab.freeze("b")
        try:
            with pytest.raises(ClusterUnreachable, match="cluster b"):
                timed(lambda: target.commit({f"late-{n}": {tp: Commit(0)} for n in range(500)}, heard.__setitem__))
        finally:
            hurt.lab.thaw("b")
    assert heard == {}
    hurt.b.until(hurt.b.groups, what="b answers again")
    assert not [group for group in hurt.b.groups() if group.startswith("late-")]


def test_a_killed_source_is_down_and_says_what_was_seen(hurt, timed):
    hurt.lab.kill("a")
    snapshot = timed(lambda: look(hurt, "hurt", timeouts={"a": SILENCE}))
    assert snapshot.source.status.state is ClusterState.DOWN
    assert f"connection refused at {hurt.bootstrap('a')}" in snapshot.source.status.detail


@pytest.fixture(scope="module")
def crowd(three):
    topic = three.create_topic("a", "t.crowd", 6)
    three.create_topic("b", "a.t.crowd", 6)
    for number in range(12):
        three.a.place(f"crowd-{number}", {(topic, number % 6): 0})
    return three


def test_one_frozen_broker_of_three_makes_the_source_degraded_and_holds_up_nobody(crowd, timed):
    crowd.lab.freeze("a/3")
    try:
        snapshot = timed(lambda: look(crowd, timeouts={"a": SILENCE}))
    finally:
        crowd.lab.thaw("a/3")
    status = snapshot.source.status
    assert status.state is ClusterState.DEGRADED
    assert "broker 3 at" in status.detail
    known = {*snapshot.source.commits, *snapshot.source.group_faults}
    assert known
    # the frozen broker's groups are listed only once Kafka has moved them to another broker
    assert not snapshot.source.complete or known >= {f"crowd-{number}" for number in range(12)}
    assert set(snapshot.source.logs) | set(snapshot.source.log_faults) >= {
        TopicPartition("t.crowd", number) for number in range(6)
    }


def test_a_group_named_by_hand_is_asked_for_although_its_broker_is_frozen(crowd, timed):
    with cluster(crowd, "a", timeout=SILENCE) as source:
        source.facts()
        everything = {f"crowd-{number}" for number in range(12)}
        crowd.lab.freeze("a/2")
        try:
            described = timed(lambda: source.describe_groups(everything))
            offsets = timed(lambda: source.committed(everything))
        finally:
            crowd.lab.thaw("a/2")
    assert set(described) == set(offsets) == everything
    assert all(info.exists for info in described.values()), "unknown is never absent"


def test_one_dead_broker_of_three_makes_the_source_degraded_also_when_it_is_not_named_any_more(crowd, timed):
    crowd.lab.kill("a/3")
    try:
        snapshot = timed(lambda: look(crowd, timeouts={"a": SILENCE}))
        assert snapshot.source.status.state is ClusterState.DEGRADED
        with cluster(crowd, "a", timeout=SILENCE) as source:
            crowd.a.until(lambda: len(_fresh(crowd).brokers) == 2, what="broker 3 is fenced", every=0.5)
            assert 3 in [each.id for each in source.facts().unreachable]
        snapshot = timed(lambda: look(crowd, timeouts={"a": SILENCE}))
    finally:
        crowd.lab.restart("a/3")
    assert snapshot.source.status.state is ClusterState.DEGRADED
    # metadata names it or not, as it was last asked of one broker or the other: its address is told where it is known
    assert re.search(r"broker 3( at \S+)? gives no answer", snapshot.source.status.detail)


def _fresh(crowd):
    with cluster(crowd, "a", timeout=SILENCE) as source:
        return source.facts()
