"""Failback: groups that consumed on the ex-target, looked at and planned back to the cluster the records came from."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from failover.inventory.comparing import record_comparison
from failover.mm2.checkpoint import Checkpoint
from failover.mm2.offset_sync import OffsetSync
from failover.model import Precision, Proof, TopicPartition
from failover.model.cluster import LogRange
from failover.model.plan import Plan, PlanOptions
from failover.model.snapshot import Snapshot, Unmirrored
from failover.planning.build import exit_code, make_plan
from failover.report.plan_text import plan_text
from tests.unit.inventory.scene import Scene, flow

ORDERS, COPY, BACK = TopicPartition("orders", 0), TopicPartition("a.orders", 0), TopicPartition("b.orders", 0)
IDENTITY = {"replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"}
BOTH = {"b->a.enabled": "true"}
SYNCS_ON_A, SYNCS_ON_B = "mm2-offset-syncs.b.internal", "mm2-offset-syncs.a.internal"


class Failed:
    """Is a pair after a failover: ``orders`` of A was mirrored up to 1000 of 1030; the topic ids are the fake's."""

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None, *, mirrored: int = 1000) -> None:
        self.flow = flow(folder, settings, reverse=True)
        self.scene = Scene(self.flow)
        self.a, self.b = self.scene.a, self.scene.b
        self.copy = "orders" if settings and settings.items() >= IDENTITY.items() else "a.orders"
        for number in range(1030):
            self.a.append("orders", b"k", b"%d" % number, timestamp=number)
        for number in range(mirrored):
            self.b.append(self.copy, b"k", b"%d" % number, timestamp=number)

    def sync(self, up: int, down: int, *, topic: str = "orders", on: str = "a") -> None:
        """Adds a sync of the flow whose topic lies on A or B."""
        record = OffsetSync(topic, 0, up, down)
        holder = self.a if on == "a" else self.b
        holder.append(SYNCS_ON_A if on == "a" else SYNCS_ON_B, record.encode_key(), record.encode_value())

    def syncs(self, *, every: int = 101, end: int = 1000) -> None:
        for at in range(0, end, every):
            self.sync(at, at)

    def look(self, *, content: bool = True, **options: Any) -> Snapshot:
        if content:
            options["comparison"] = partial(record_comparison, max_records=200_000)
        return self.scene.look(**options)


@pytest.fixture
def failed(tmp_path: Path) -> Failed:
    found = Failed(tmp_path)
    found.syncs()
    return found


def planned(snapshot: Snapshot, **options: Any) -> Plan:
    return make_plan(
        snapshot, PlanOptions(**options), plan_id="p", operator="o", reason="", ttl_seconds=60, tool_version="0"
    )


def rows(plan: Plan, group: str = "g") -> dict[str, tuple[Any, ...]]:
    [found] = [each for each in plan.groups if each.group == group]
    return {f"{p.topic}-{p.partition}": (str(p.action), p.reason, p.offset, p.reread_max) for p in found.partitions}


def test_a_group_half_way_and_one_at_the_end_of_the_copies(failed: Failed) -> None:
    failed.b.group("g", {COPY: 450})
    failed.b.group("done", {COPY: 1000})
    snapshot = failed.look()
    assert snapshot.mirrored == {"orders": "a.orders"}
    assert snapshot.originals == ("orders",)
    found = {group: places[ORDERS] for group, places in snapshot.translations.items()}
    assert {g: (t.offset, t.precision, t.proof) for g, t in found.items()} == {
        "g": (450, Precision.EXACT, Proof.CONTENT),
        "done": (1000, Precision.EXACT, Proof.CONTENT),
    }
    assert found["g"].evidence[0] == "came from a: by the inverse of a->b's offset syncs"
    assert snapshot.unmirrored == {ORDERS: Unmirrored(1000, 30, True)}
    plan = planned(snapshot)
    assert rows(plan) == {"orders-0": ("commit", "translated", 450, 0)}
    assert rows(plan, "done") == {"orders-0": ("commit", "translated", 1000, 0)}
    assert exit_code(plan) == 0
    assert [group.subscribe for group in plan.groups] == [("orders",), ("orders",)]
    assert [group.local_topics for group in plan.groups] == [(), ()]
    assert plan.unreplicated == ()
    [tail] = [finding for finding in plan.findings if finding.code == "unmirrored-tail"]
    assert tail.message == "30 records on a were never mirrored to b: orders-0 from offset 1000: 30"
    assert "internal-topic-missing" not in {finding.code for finding in plan.findings}


def test_what_a_group_had_read_before_the_failover_is_no_skip(failed: Failed) -> None:
    failed.b.group("g", {COPY: 1000})
    failed.a.group("g", {ORDERS: 1010})  # ten of them had not been mirrored
    plan = planned(failed.look())
    [row] = plan.groups[0].partitions
    assert (row.reason, row.ahead, row.ahead_because, row.skipped) == ("would-rewind", 10, "consumed-here", 0)
    assert plan.summary.skipped == 0
    screen = plan_text(plan)
    assert "orders-0 stands 10 AHEAD" in screen
    assert "a.orders-0" not in screen


def test_the_next_command_names_the_flow(failed: Failed) -> None:
    failed.b.group("g", {COPY: 450})
    assert "next: failover execute --source b --target a" in plan_text(planned(failed.look()))


def test_by_the_syncs_alone_nothing_is_passed(failed: Failed) -> None:
    failed.b.group("g", {COPY: 450})
    failed.b.group("at", {COPY: 405})
    snapshot = failed.look(content=False)
    found = {group: places[ORDERS] for group, places in snapshot.translations.items()}
    assert (found["g"].offset, found["g"].proof, found["g"].reread_max) == (405, Proof.SYNC_BELOW, 45)
    assert (found["at"].offset, found["at"].proof, found["at"].precision) == (405, Proof.SYNC_MATCH, Precision.EXACT)
    assert snapshot.unmirrored == {ORDERS: Unmirrored(910, 120, False)}
    [tail] = [finding for finding in planned(snapshot).findings if finding.code == "unmirrored-tail"]
    assert tail.message.startswith("at most 120 records on a ")


def test_what_was_written_after_the_failover_goes_by_the_other_flow(tmp_path: Path) -> None:
    failed = Failed(tmp_path, BOTH)
    failed.syncs()
    for number in range(60):
        failed.b.append("orders", b"k", b"new %d" % number, timestamp=5000 + number)
        failed.a.append("b.orders", b"k", b"new %d" % number, timestamp=5000 + number)
    failed.sync(0, 0, on="b")
    failed.b.group("g", {COPY: 1000, ORDERS: 50})
    snapshot = failed.look()
    assert snapshot.mirrored == {"b.orders": "orders", "orders": "a.orders"}
    assert {tp: t.offset for tp, t in snapshot.translations["g"].items()} == {BACK: 50, ORDERS: 1000}
    plan = planned(snapshot)
    assert exit_code(plan) == 0
    [group] = plan.groups
    assert group.subscribe == ("b.orders", "orders")
    assert [(p.topic, p.offset, p.source_topic) for p in group.partitions] == [
        ("b.orders", 50, "orders"),
        ("orders", 1000, "a.orders"),
    ]
    assert not any("came from a" in line for line in group.partitions[0].evidence)


def test_a_group_that_reads_only_the_copies_must_read_what_came_since_too(tmp_path: Path) -> None:
    failed = Failed(tmp_path, BOTH)
    failed.syncs()
    failed.b.topic("orders", end=5)
    failed.a.topic("b.orders", end=5)
    failed.b.group("g", {COPY: 10})
    [group] = planned(failed.look()).groups
    assert group.subscribe == ("orders", "b.orders")


def test_without_the_other_flow_its_records_are_not_on_the_target_and_that_is_said(failed: Failed) -> None:
    failed.b.topic("orders", end=60)
    failed.b.group("g", {COPY: 1000, ORDERS: 50})
    plan = planned(failed.look())
    assert rows(plan) == {
        "b.orders-0": ("skip", "topic-missing", None, None),
        "orders-0": ("commit", "translated", 1000, 0),
    }
    assert exit_code(plan) == 4
    assert plan.unreplicated is not None
    assert [(row.source_topic, row.records) for row in plan.unreplicated] == [("orders", 60)]


def test_syncs_that_lie_on_the_other_cluster_are_found_there(tmp_path: Path) -> None:
    failed = Failed(tmp_path, {"offset-syncs.topic.location": "target"})
    for at in range(0, 1000, 101):
        failed.sync(at, at, on="b")
    failed.b.group("g", {COPY: 405})
    assert failed.look(content=False).translations["g"][ORDERS].proof is Proof.SYNC_MATCH


def test_names_that_are_kept_go_by_the_inverse_and_own_records_are_said_to_have_no_original(tmp_path: Path) -> None:
    failed = Failed(tmp_path, IDENTITY)
    failed.syncs(every=37)
    for number in range(40):
        failed.b.append("orders", b"k", b"own %d" % number, timestamp=9000 + number)
    for group, at in {"g": 450, "end": 1000, "own": 1025}.items():
        failed.b.group(group, {ORDERS: at})
    snapshot = failed.look()
    assert snapshot.mirrored == {"orders": "orders"}
    found = {group: places[ORDERS] for group, places in snapshot.translations.items()}
    assert {g: (t.offset, t.precision) for g, t in found.items()} == {
        "g": (450, Precision.EXACT),
        "end": (1000, Precision.EXACT),
        "own": (1000, Precision.EXACT),
    }
    assert snapshot.unmirrored == {ORDERS: Unmirrored(1000, 30, True, 40, 1000)}
    plan = planned(snapshot)
    assert plan.unreplicated is not None
    assert [(row.records, row.bound) for row in plan.unreplicated] == [(40, "at-most")]
    said = {finding.code: finding.message for finding in plan.findings}
    assert said["no-original"] == (
        "at most 40 records were written on b itself and have no original on a: orders-0 from offset 1000: 40"
    )
    assert said["unmirrored-tail"].startswith("30 records on a were never mirrored to b")


def test_copies_behind_the_newest_sync_are_not_taken_for_own_records(tmp_path: Path) -> None:
    failed = Failed(tmp_path, IDENTITY)
    failed.syncs()
    failed.b.group("g", {ORDERS: 1000})
    assert failed.look().unmirrored == {ORDERS: Unmirrored(1000, 30, True)}


def test_where_records_went_both_ways_no_answer_passes_those_that_never_came(tmp_path: Path) -> None:
    failed = Failed(tmp_path, IDENTITY | BOTH)
    failed.syncs(every=37)
    for number in range(40):
        failed.b.append("orders", b"k", b"own %d" % number, timestamp=9000 + number)
        failed.a.append("orders", b"k", b"own %d" % number, timestamp=9000 + number)
    failed.sync(1000, 1030, on="b")  # the flow back began behind the copies
    for group, at in {"g": 450, "own": 1025}.items():
        failed.b.group(group, {ORDERS: at})
    found = {group: places[ORDERS] for group, places in failed.look().translations.items()}
    assert (found["own"].offset, found["own"].precision, found["own"].reread_max) == (1000, Precision.BOUNDED, 70)
    assert found["g"].offset == 450
    # what never came is kept elsewhere, as somebody says: it may be passed, and nothing else is placed otherwise
    found = {group: places[ORDERS] for group, places in failed.look(settled={ORDERS: 1030}).translations.items()}
    assert (found["own"].offset, found["own"].precision) == (1055, Precision.EXACT)
    assert any(line.startswith("passes records 1000 to 1029") for line in found["own"].evidence)
    assert found["g"].offset == 450
    found = {group: places[ORDERS] for group, places in failed.look(settled={ORDERS: 1000}).translations.items()}
    assert found["own"].offset == 1000


def test_an_ordinary_flow_does_not_read_the_syncs_of_the_opposite_one(tmp_path: Path) -> None:
    scene = Scene(flow(tmp_path, BOTH))
    scene.mirror("orders", end=10)
    scene.a.topic("b.other", end=9)
    scene.b.topic("other", end=9)
    scene.a.group("g", {ORDERS: 5})
    scene.b.append(SYNCS_ON_B, b"", b"")
    snapshot = scene.look()
    assert snapshot.mirrored["a.orders"] == "orders"
    assert "other" not in snapshot.mirrored
    assert [reading.topic for reading in snapshot.readings if reading.topic == SYNCS_ON_B] == []


def test_a_topic_that_came_from_here_and_has_no_checkpoint_goes_by_the_inverse(tmp_path: Path) -> None:
    """The group consumes on A what B's flow brought there; planned from A to B."""
    scene = Scene(flow(tmp_path, BOTH))
    scene.b.topic("orders", end=800)
    scene.a.topic("b.orders", end=790)
    record = OffsetSync("orders", 0, 700, 690)
    scene.b.append(SYNCS_ON_B, record.encode_key(), record.encode_value())
    scene.a.group("g", {BACK: 691})
    snapshot = scene.look()
    found = snapshot.translations["g"][ORDERS]
    assert (found.offset, found.proof) == (701, Proof.SYNC_MATCH)
    assert found.evidence[0] == "came from b: by the inverse of b->a's offset syncs"


def test_an_old_checkpoint_under_the_bare_name_counts_only_without_syncs(failed: Failed) -> None:
    old = Checkpoint("g", "orders", 0, 450, 450)
    failed.a.append("b.checkpoints.internal", old.encode_key(), old.encode_value())
    failed.b.group("g", {COPY: 450})
    assert failed.look(content=False).translations["g"][ORDERS].offset == 405
    failed.a.log[TopicPartition(SYNCS_ON_A, 0)].clear()
    found = failed.look(content=False).translations["g"][ORDERS]
    assert (found.offset, found.proof) == (450, Proof.CHECKPOINT)


def test_originals_that_retention_removed_start_at_the_log_start(failed: Failed) -> None:
    failed.a.logs[ORDERS] = LogRange(600, 1030)
    failed.a.log[ORDERS] = failed.a.log[ORDERS][600:]
    failed.b.group("g", {COPY: 450})
    assert rows(planned(failed.look())) == {"orders-0": ("commit", "raised-to-log-start", 600, 0)}


def test_a_topic_made_anew_on_the_target_refuses(failed: Failed) -> None:
    failed.a.logs[ORDERS] = LogRange(0, 500)
    failed.a.log[ORDERS] = failed.a.log[ORDERS][:500]
    failed.b.group("g", {COPY: 450})
    snapshot = failed.look(content=False)
    assert snapshot.translations["g"][ORDERS].failure == "target-recreated"
    assert rows(planned(snapshot))["orders-0"][:2] == ("refuse", "target-recreated")


def test_without_any_sync_the_records_decide(failed: Failed) -> None:
    failed.a.log[TopicPartition(SYNCS_ON_A, 0)].clear()
    failed.b.group("g", {COPY: 450})
    found = failed.look().translations["g"][ORDERS]
    assert (found.offset, found.precision, found.proof) == (450, Precision.EXACT, Proof.CONTENT)
    assert failed.look(content=False).translations["g"][ORDERS].failure == "no-checkpoint"


def test_a_silent_ex_target_leaves_what_old_checkpoints_say(failed: Failed) -> None:
    old = Checkpoint("g", "orders", 0, 405, 1)
    failed.a.append("b.checkpoints.internal", old.encode_key(), old.encode_value())
    snapshot = failed.look(source_down=True)
    found = snapshot.translations["g"][ORDERS]
    assert (found.offset, found.proof) == (405, Proof.SYNC_MATCH)
