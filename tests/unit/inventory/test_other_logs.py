"""A source topic that is not the log its mirror began with: made anew, or with holes that are no loss."""

from __future__ import annotations

from pathlib import Path

from failover.inventory.comparing import record_comparison
from failover.model.names import TopicPartition
from tests.unit.inventory.scene import Scene, flow
from tests.unit.planning.worlds import plan

ORDERS, REMOTE = TopicPartition("orders", 0), TopicPartition("a.orders", 0)


def value(number: int) -> bytes:
    return b"record %d" % number


def test_a_commit_of_a_source_topic_made_anew_is_placed_by_the_syncs_of_the_new_one(tmp_path: Path) -> None:
    """Mirrored to 1000, deleted and made again, 20 records since: 15 lies behind the old records, not among them."""
    scene = Scene(flow(tmp_path, {"offset-syncs.topic.location": "target"}))
    for offset in range(0, 1000, 100):
        scene.sync("orders", offset, offset)
    scene.sync("orders", 999, 999)
    for number in range(1000):
        scene.b.append("a.orders", None, value(number))
    for number in range(20):
        scene.a.append("orders", None, value(5000 + number))
        scene.b.append("a.orders", None, value(5000 + number))
    scene.sync("orders", 0, 1000)
    scene.a.group("g", {ORDERS: 15})
    for comparison, offsets in ((record_comparison, {1015}), (None, {1001})):
        made = plan(scene.look() if comparison is None else scene.look(comparison=comparison))
        (partition,) = made.groups[0].partitions
        assert (partition.action, partition.reason, partition.skipped) == ("commit", "translated", 0)
        assert partition.offset in offsets, comparison
        assert {finding.code for finding in made.findings}.isdisjoint({"source-truncated"})


def test_holes_of_a_compacted_source_are_no_loss(tmp_path: Path) -> None:
    """Offsets 0 to 999 of which a third is left, all mirrored: nothing is missing, and the commit's place is exact."""
    scene = Scene(flow(tmp_path, {"offset-syncs.topic.location": "target"}))
    scene.a.topic("orders", end=1000)
    scene.a.topic_configs["orders"] = {"cleanup.policy": "compact"}
    scene.b.topic("a.orders", end=334)
    scene.sync("orders", 0, 0)
    scene.sync("orders", 600, 200)
    scene.sync("orders", 999, 333)
    scene.a.group("g", {ORDERS: 600})
    made = plan(scene.look())
    assert made.unreplicated == ()
    (partition,) = made.groups[0].partitions
    assert (partition.offset, partition.precision, partition.skipped, partition.reread) == (200, "exact", 0, 0)
    codes = {finding.code for finding in made.findings}
    assert codes.isdisjoint({"source-truncated", "source-recreated", "mirror-stalled"})
