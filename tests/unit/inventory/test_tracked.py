"""With the source silent, what was kept on the target while it was up decides."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from failover.inventory.snapshot import Earlier
from failover.mm2.exact_checkpoint import (
    Beat,
    Known,
    Note,
    Position,
    SourceEnd,
    beat_record,
    encode_note,
    end_record,
)
from failover.model.cluster import Broker
from failover.model.names import Fault, TopicPartition
from failover.model.plan import Plan, PlannedPartition, PlanOptions
from failover.planning.build import make_plan
from tests.unit.inventory.scene import NOW, Scene, flow

PLACE, SOURCE = TopicPartition("a.orders", 0), TopicPartition("orders", 0)
EXACT = "mm2-exact-checkpoints.a.internal"
OWN = "failover.checkpoint.a-b"
NOW_MS = int(NOW.timestamp() * 1000)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    found = Scene(flow(tmp_path))
    found.mirror("orders", end=1000)
    found.b.topic(EXACT)
    return found


def write(scene: Scene, checkpoint: Any, note: Note) -> None:
    scene.b.append(EXACT, checkpoint.encode_key(), checkpoint.encode_value(), headers=encode_note(note))


def keep(
    scene: Scene,
    upstream: int,
    downstream: int,
    *,
    group: str = "g",
    precision: str = "exact",
    most: int = 0,
    ago: float = 60,
    topic_id: str = "b/a.orders",
    metadata: bytes = b"",
) -> None:
    known = Known(proof="content", precision=precision, most=most, end_at=int(NOW_MS - ago * 1000), target_id=topic_id)
    write(scene, Position(upstream, downstream, metadata, known).checkpoint(group, PLACE), known)


def beat(scene: Scene, *, ago: float = 5, **more: Any) -> None:
    write(scene, beat_record(OWN, EXACT, 1, 1), Beat(at=int(NOW_MS - ago * 1000), **more))


def ended(scene: Scene, end: int, sync: tuple[int, int] | None) -> None:
    note = SourceEnd(end=end, at=NOW_MS - 5000, sync=sync)
    write(scene, end_record(OWN, PLACE, note), note)


def plan(scene: Scene, **options: Any) -> Plan:
    return make_plan(
        scene.look(**({"source_down": True} | options)),
        PlanOptions(),
        plan_id="p",
        operator="me",
        reason="",
        ttl_seconds=60,
        tool_version="1",
    )


def only(scene: Scene, **options: Any) -> PlannedPartition:
    [group] = plan(scene, **options).groups
    [partition] = group.partitions
    return partition


def test_a_kept_position_is_committed_as_exact_as_it_was(scene: Scene) -> None:
    scene.checkpoint("g", "a.orders", 700, 5, timestamp=NOW_MS - 30_000, metadata=b"coarse")
    keep(scene, 700, 650, metadata=b"kept")
    beat(scene)
    found = only(scene)
    assert (found.action, found.offset, found.precision, found.proof) == ("commit", 650, "exact", "tracked")
    assert (found.reread, found.reread_max, found.skipped, found.metadata) == (None, 350, 0, "kept")
    assert found.mm2 is not None
    assert found.mm2.offset == 5
    assert found.evidence == ("source 700 kept as target 650 (content), as of 5 s ago",)


def test_a_group_that_only_the_tracker_knew_is_planned(scene: Scene) -> None:
    keep(scene, 700, 650, group="young")
    beat(scene)
    made = plan(scene)
    assert [(group.group, str(group.verdict)) for group in made.groups] == [("young", "ready")]
    assert "checkpoint-stale" not in {finding.code for finding in made.findings}


@pytest.mark.parametrize(
    ("checkpoint", "ago", "offset", "proof"),
    [
        ((700, 5), 30, 650, "tracked"),
        # the group went on after the last look: the kept position is below, and raises MM2's coarse answer
        ((800, 5), 2, 650, "tracked"),
        ((800, 720), 2, 720, "checkpoint"),
        # it was set back after the last look
        ((300, 250), 2, 250, "checkpoint"),
        # MM2 saw it set back before, and the last look saw it go on again
        ((300, 250), 30, 650, "tracked"),
    ],
)
def test_of_a_kept_position_and_a_checkpoint_the_later_counts(
    scene: Scene, checkpoint: tuple[int, int], ago: float, offset: int, proof: str
) -> None:
    scene.checkpoint("g", "a.orders", *checkpoint, timestamp=int(NOW_MS - ago * 1000))
    keep(scene, 700, 650)
    beat(scene, ago=5)
    found = only(scene)
    assert (found.offset, found.proof, found.skipped) == (offset, proof, 0)


def test_a_group_that_was_behind_at_the_last_look_is_as_old_as_its_own_record(scene: Scene) -> None:
    scene.checkpoint("g", "a.orders", 300, 250, timestamp=NOW_MS - 30_000)
    keep(scene, 700, 650, ago=60)
    beat(scene, ago=5, older=("g",))
    assert only(scene).offset == 250


def test_a_bounded_position_gives_way_to_what_is_found_now(scene: Scene, tmp_path: Path) -> None:
    target = Scene(flow(tmp_path, {"a->b.offset-syncs.topic.location": "target"}))
    target.mirror("orders", end=1000)
    target.sync("orders", 700, 690)
    for each, offset, proof in ((scene, 650, "tracked"), (target, 690, "sync-match")):
        each.b.topic(EXACT)
        keep(each, 700, 650, precision="bounded", most=50)
        beat(each)
        found = only(each)
        assert (found.offset, found.proof) == (offset, proof)


def test_a_topic_made_anew_is_refused(scene: Scene) -> None:
    scene.checkpoint("g", "a.orders", 700, 5, timestamp=NOW_MS - 30_000)
    keep(scene, 700, 650, topic_id="another")
    beat(scene)
    found = only(scene)
    assert (found.action, found.reason, found.offset) == ("refuse", "target-recreated", None)


def test_loss_is_counted_from_the_last_known_ends(scene: Scene) -> None:
    keep(scene, 700, 650)
    ended(scene, 1200, (990, 940))
    beat(scene, ago=5)
    [lost] = plan(scene).unreplicated or ()
    # the mirror stands at 990 + (1000 - 940)
    assert (lost.source_topic, lost.records, str(lost.bound)) == ("orders", 150, "at-least")
    assert lost.as_of == datetime.fromtimestamp(NOW_MS / 1000 - 5, UTC)


@pytest.mark.parametrize(("seen", "end"), [(NOW_MS - 1_000, 2000), (NOW_MS - 60_000, 1200)])
def test_the_later_of_what_is_kept_and_what_is_remembered_tells_the_ends(scene: Scene, seen: int, end: int) -> None:
    keep(scene, 700, 650)
    ended(scene, 1200, (990, 940))
    beat(scene, ago=5)
    earlier = Earlier(last_source_ends={SOURCE: 2000}, last_source_seen=datetime.fromtimestamp(seen / 1000, UTC))
    [lost] = plan(scene, earlier=earlier).unreplicated or ()
    assert lost.records == end - 1050


def test_with_the_source_up_the_topic_is_not_read(scene: Scene) -> None:
    scene.a.group("g", {SOURCE: 500})
    keep(scene, 700, 650)
    scene.b.no_read.add(EXACT)
    snapshot = scene.look()
    assert (snapshot.tracked, [each.topic for each in snapshot.readings if each.topic == EXACT]) == ({}, [])


def test_groups_of_a_broker_that_is_silent_are_planned_from_it(scene: Scene) -> None:
    scene.a.group("g", {SOURCE: 500}).group("well", {SOURCE: 400})
    scene.sync("orders", 399, 380)
    scene.a.unreachable = (Broker(1, "h", 1),)
    scene.a.listing_faults = (Fault(-2, "NO_ANSWER", "silent"),)
    scene.a.faults["committed", "g"] = Fault(-2, "NO_ANSWER", "silent")
    keep(scene, 500, 480)
    keep(scene, 100, 90, group="well")
    beat(scene)
    made = {group.group: group.partitions[0] for group in plan(scene, source_down=False).groups}
    assert (made["g"].offset, made["g"].proof) == (480, "tracked")
    assert made["well"].proof != "tracked"


def test_without_the_right_to_read_it_says_so(scene: Scene) -> None:
    scene.checkpoint("g", "a.orders", 700, 5, timestamp=NOW_MS - 30_000)
    keep(scene, 700, 650)
    scene.b.no_read.add(EXACT)
    made = plan(scene)
    assert made.groups[0].partitions[0].offset == 5
    assert [finding.subject for finding in made.findings if finding.code == "internal-topic-unreadable"] == [EXACT]
