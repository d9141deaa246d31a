"""Offsets found by time, on clusters in memory."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from failover.errors import UsageError
from failover.inventory.by_time import Times
from failover.inventory.selection import Selection
from failover.model import Fault
from failover.model.names import TopicPartition
from failover.model.plan import Plan, PlanOptions
from failover.model.snapshot import ByTime, GoneBack
from failover.planning.build import make_plan
from tests.fake_cluster import FakeCluster
from tests.unit.inventory.scene import NOW, Scene, flow

SECOND = 1000
START = int(NOW.timestamp() * 1000) - 100 * SECOND
ORDERS, REMOTE = TopicPartition("orders", 0), TopicPartition("a.orders", 0)


def at(second: int) -> datetime:
    return datetime.fromtimestamp((START + second * SECOND) / 1000, UTC)


def fill(cluster: FakeCluster, topic: str, seconds: range, *, partition: int = 0) -> None:
    """Writes a record a second."""
    for second in seconds:
        cluster.append(topic, b"k", b"v", timestamp=START + second * SECOND, partition=partition)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """Is ``orders``: record n was written in second n, 20 on the source, 15 of these copied."""
    made = Scene(flow(tmp_path))
    fill(made.a, "orders", range(20))
    fill(made.b, "a.orders", range(15))
    return made


def planned(scene: Scene, options: PlanOptions, *, source_down: bool = False) -> Plan:
    selection = Selection(options.groups, topics=options.topics)
    snapshot = scene.look(selection, times=Times(options.missing, options.rewind_by), source_down=source_down)
    return make_plan(
        snapshot, options, plan_id="p", operator="kim", reason="", ttl_seconds=60.0, tool_version="0", settle_seconds=0
    )


def test_where_the_log_stood(scene: Scene) -> None:
    scene.a.group("g", {ORDERS: 3})
    found = scene.look(times=Times(f"at={at(5).isoformat()}")).by_time
    assert found == ByTime(at(5), {REMOTE: 5})
    assert scene.look(times=Times("ago=83s")).by_time == ByTime(at(17), {REMOTE: 15})
    assert scene.look(times=Times("leave")).by_time is None
    scene.b.faults["offsets_at", REMOTE] = Fault(6, "NOT_LEADER_OR_FOLLOWER")
    assert scene.look(times=Times("ago=83s")).by_time == ByTime(at(17), {})


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ("at=2027-01-01T00:00:00Z", "yet to come"),
        ("at=noon", "no time"),
        ("ago=soon", "no length of time"),
        ("ago=9999999999h", "no length of time"),
    ],
)
def test_times_that_are_none_are_told_before_anything_is_asked(scene: Scene, missing: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        scene.look(times=Times(missing))
    assert (scene.a.calls, scene.b.calls) == ([], [])


def test_time_counts_back_from_the_record_consumed_last(scene: Scene) -> None:
    scene.a.group("g", {ORDERS: 9}).group("h", {ORDERS: 12}).group("new", {ORDERS: 0})
    scene.sync("orders", 0, 0)
    for group, offset in (("g", 9), ("h", 12), ("new", 0)):
        scene.checkpoint(group, "a.orders", offset, offset)
    # record 8 is of second 8, so 3 seconds before it begin with record 5
    found = scene.look(times=Times("leave", 3.0)).gone_back
    assert found is not None
    assert {place: at for place, at in found.offsets[REMOTE].items() if place in (9, 12)} == {9: 5, 12: 8}
    assert 0 not in found.offsets[REMOTE]
    assert scene.look(times=Times("leave", 9e99)).gone_back == GoneBack(
        9e99, {REMOTE: dict.fromkeys(found.offsets[REMOTE], 0)}
    )


def test_markers_and_gaps_are_looked_over_and_a_record_without_time_tells_none(scene: Scene) -> None:
    scene.a.group("g", {ORDERS: 9})
    scene.checkpoint("g", "a.orders", 9, 9)
    del scene.b.log[REMOTE][7:9]  # two markers
    found = scene.look(times=Times("leave", 2.0)).gone_back
    assert found is not None
    assert found.offsets[REMOTE][9] == 4
    scene.b.log[REMOTE] = [record._replace(timestamp=-1) for record in scene.b.log[REMOTE]]
    assert scene.look(times=Times("leave", 2.0)).gone_back == GoneBack(2.0, {})


def test_each_moment_of_a_partition_has_its_own_round(scene: Scene) -> None:
    for number in range(1, 6):
        scene.a.group(f"g{number}", {ORDERS: number})
        scene.checkpoint(f"g{number}", "a.orders", number, number)
    scene.look(times=Times("leave", 1.0))
    assert [size for name, size in scene.b.calls if name == "offsets_at"] == [1] * 5


def test_the_plan_commits_what_was_found_by_time(scene: Scene) -> None:
    scene.a.group("g", {ORDERS: 18})
    options = PlanOptions(missing=f"at={at(4).isoformat()}")
    [group] = planned(scene, options).groups
    assert [(p.action, p.offset) for p in group.partitions] == [("skip", None)]
    [group] = planned(scene, msgspec.structs.replace(options, allow_skip=True)).groups
    [p] = group.partitions
    # of the four before it two may be unread: no more are unread on the source
    assert (p.action, p.reason, p.offset, p.proof, p.skipped) == ("commit", "at-time", 4, "timestamp", 2)
    assert (p.reread, p.reread_max, group.verdict) == (None, 11, "partial")
    [group] = planned(scene, PlanOptions(missing=f"at={at(0).isoformat()}")).groups
    assert [(p.reason, p.offset, p.skipped) for p in group.partitions] == [("at-log-start", 0, 0)]


def test_only_the_topic_asked_for_is_planned_and_the_rest_is_said(scene: Scene) -> None:
    fees = scene.mirror("fees", end=30)
    scene.a.group("both", {ORDERS: 0, TopicPartition("fees", 0): 0}).group("other", {TopicPartition("fees", 0): 0})
    for name in ("orders", "a.orders"):
        made = planned(scene, PlanOptions(topics=(name,)))
        assert [(group.group, [p.topic for p in group.partitions]) for group in made.groups] == [("both", ["a.orders"])]
        assert [(left.group, left.why, left.topics) for left in made.not_planned] == [("other", "excluded", ("fees",))]
        [finding] = [f for f in made.findings if f.code == "topics-left-out"]
        assert (finding.subject, "fees" in finding.message) == ("both", True)
    by_hand = planned(scene, PlanOptions(groups=("other",), topics=("orders",)))
    assert [(group.group, group.partitions) for group in by_hand.groups] == [("other", ())]
    assert planned(scene, PlanOptions()).summary.partitions.commit == 3
    assert fees in scene.b.logs


def test_a_mistyped_topic_is_an_error_with_near_names(scene: Scene) -> None:
    scene.a.group("g", {ORDERS: 3})
    with pytest.raises(UsageError, match="topic order is not mirrored by a->b") as caught:
        scene.look(Selection(topics=("order",)))
    assert caught.value.hint == "did you mean orders or a.orders?"
