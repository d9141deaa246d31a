"""Thousands of groups, half of which have nothing to do with the flow, and a broker that does not answer."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from failover.inventory.comparing import record_comparison
from failover.kafka.faults import NO_ANSWER
from failover.mm2.checkpoint import Checkpoint
from failover.model.cluster import Broker
from failover.model.names import Fault, TopicPartition
from failover.report.plan_text import plan_text
from tests.unit.inventory.scene import CHECKPOINTS, Scene, flow
from tests.unit.planning.worlds import plan

GROUPS = 5_000
TOPICS = 10
SILENT = Fault(NO_ANSWER, "NO_ANSWER", "the broker at 10.0.0.3:9092 was silent for 5 s")


def crowd(folder: Path) -> Scene:
    """Makes groups g0 … of which odd ones read a topic that is not mirrored; every tenth hangs on the slow broker."""
    scene = Scene(flow(folder, {"a->b.topics": "t.*", "offset-syncs.topic.location": "target"}))
    for number in range(TOPICS):
        scene.mirror(f"t{number}", end=100)
        scene.sync(f"t{number}", 50, 50)
    scene.a.topic("other", end=100)
    slow = Broker(3, "10.0.0.3", 9092)
    scene.a.brokers = (*scene.a.brokers, slow)
    scene.a.unreachable = (slow,)
    scene.a.listing_faults = (SILENT,)
    for number in range(GROUPS):
        topic = "other" if number % 2 else f"t{number % TOPICS}"
        name = f"g{number}"
        scene.a.group(name, {TopicPartition(topic, 0): 50})
        if number % 10 == 0:
            # its coordinator is the silent broker: neither listed nor told
            del scene.a.groups[name]
            for method in ("committed", "describe_groups"):
                scene.a.faults[method, name] = SILENT
            record = Checkpoint(name, f"a.{topic}", 0, 40, 40, b"")
            scene.b.append(CHECKPOINTS, record.encode_key(), record.encode_value())
    return scene


def test_a_plan_of_five_thousand_groups_and_one_silent_broker(tmp_path: Path) -> None:
    scene = crowd(tmp_path)
    snapshot = scene.look(comparison=record_comparison)
    made = plan(snapshot)
    assert made.source.state == "degraded"
    assert made.summary.groups.ready == GROUPS // 2
    assert Counter(left.why for left in made.not_planned) == {"no-mirrored-topic": GROUPS // 2}
    by_checkpoint = [group for group in made.groups if group.partitions[0].source_committed is None]
    assert len(by_checkpoint) == GROUPS // 10
    assert {group.partitions[0].offset for group in by_checkpoint} <= {40, 50}
    [told] = [finding for finding in made.findings if finding.code == "source-degraded"]
    assert "broker 3 at 10.0.0.3:9092 gives no answer" in told.message
    text = plan_text(made)
    assert "2,500 groups on no mirrored topic" in text
    assert len(text.splitlines()) < 60
    # however many groups: each question once, and offsets of groups that cannot matter are asked once, too
    for cluster in (scene.a, scene.b):
        asked = Counter(method for method, _ in cluster.calls)
        many = {method: times for method, times in asked.items() if times > 1 and method != "read"}
        assert set(many) <= {"describe_topics", "windows"}, many
        described = [size for method, size in cluster.calls if method == "describe_groups"]
        assert described == [GROUPS // 2]
