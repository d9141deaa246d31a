"""Ready or not, and what a failover this second would cost: on clusters in memory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from failover.checks.status_checks import Limits
from failover.inventory.selection import Selection
from failover.inventory.status import read_beside
from failover.mm2.checkpoint import Checkpoint
from failover.mm2.connect_offsets import SourceOffsetKey, encode_offset
from failover.mm2.exact_checkpoint import Beat, Known, SourceEnd, beat_record, encode_note, end_record
from failover.mm2.heartbeat import Heartbeat
from failover.model.groups import GroupType, Member
from failover.model.names import TopicPartition
from failover.model.plan import Plan, PlanOptions
from failover.model.snapshot import Snapshot
from failover.model.status import ConnectorState, Readiness, Status
from failover.planning.build import make_plan
from failover.planning.status import Looks, make_status
from failover.report.encode import to_json
from failover.report.status_text import status_markdown, status_text
from tests.fake_cluster import FakeCluster
from tests.unit.inventory.scene import NOW, Scene, flow
from tests.unit.inventory.test_failback import Failed

AT = int(NOW.timestamp() * 1000)
ORDERS, COPY = TopicPartition("orders", 0), TopicPartition("a.orders", 0)
LIMITS = Limits()
EXACT = "mm2-exact-checkpoints.a.internal"


class Flow(Scene):
    """Is a flow at work: ``orders`` copied record for record, a heartbeat 2 s old."""

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        super().__init__(flow(folder, settings))
        self.beat(2)

    def beat(self, age: float) -> None:
        at = AT - int(age * 1000)
        record = Heartbeat("b", "a", at)
        self.b.append("a.heartbeats", record.encode_key(), record.encode_value(), timestamp=at)

    def records(self, cluster: FakeCluster, topic: str, count: int, *, age: float = 0.0) -> None:
        for number in range(count):
            cluster.append(topic, b"k", b"v", timestamp=AT - int(age * 1000) + number)

    def copied(self, topic: str = "orders", count: int = 100, *, missing: int = 0, age: float = 0.0) -> None:
        self.records(self.a, topic, count, age=age)
        self.records(self.b, f"a.{topic}", count - missing, age=age)
        self.sync(topic, 0, 0)
        self.sync(topic, count - missing - 1, count - missing - 1)

    def group(
        self, name: str, at: int, *, checkpoint: int | None = None, topic: str = "orders", **options: Any
    ) -> None:
        self.a.group(name, {TopicPartition(topic, 0): at}, **options)
        if checkpoint is not None:
            self.checkpoint(name, f"a.{topic}", at, checkpoint, timestamp=AT - 30_000)

    def position(self, following: int, *, topic: str = "orders", age: float = 1.0) -> None:
        key = SourceOffsetKey("MirrorSourceConnector", "a", topic, 0).encode()
        self.b.append("mm2-offsets.a.internal", key, encode_offset(following - 1), timestamp=AT - int(age * 1000))

    def status(
        self,
        limits: Limits = LIMITS,
        *,
        source_down: bool = False,
        connectors: tuple[ConnectorState, ...] = (),
    ) -> Status:
        both = self.look(source_down=source_down)
        alone = self.look(source_down=True) if both.source.status.answers else both
        clusters = {"a": self.a, "b": self.b}
        both, beside = read_beside(self.flow, both, clusters.__getitem__)
        return make_status(
            Looks(
                both=both,
                plan=planned(both),
                alone=alone,
                alone_plan=planned(alone),
                beside=beside,
                heartbeats=True,
                connectors=connectors,
            ),
            limits,
        )


def planned(snapshot: Snapshot) -> Plan:
    return make_plan(snapshot, PlanOptions(), plan_id="p", operator="", reason="", ttl_seconds=0, tool_version="0")


def codes(status: Status, *severities: str) -> set[str]:
    return {finding.code for finding in status.findings if not severities or finding.severity in severities}


@pytest.fixture
def at_work(tmp_path: Path) -> Flow:
    found = Flow(tmp_path)
    found.copied()
    found.a.users = found.b.users = []
    return found


def test_a_flow_that_is_well_is_ready_and_its_cost_is_stated(at_work):
    at_work.group("g", 99, checkpoint=99)
    status = at_work.status()
    assert codes(status, "error", "warning") == set()
    assert (status.readiness, status.exit_code) == (Readiness.READY, 0)
    cost = status.cost
    assert (cost.records, cost.bound, cost.seconds, cost.reread_max) == (0, "exact", 0.0, 0)
    assert (cost.groups_ready, cost.groups) == (1, 1)
    text = status_text(status)
    assert text.startswith("READY   a -> b")
    assert "if a died this second: nothing lost; nothing read again; 1 of 1 group ready" in text
    assert "2 s old" in text


def test_what_is_missing_and_what_would_be_read_again_is_counted_against_where_groups_stand(at_work):
    """The checkpoint says 40 where the group stands at 99: without the source 59 are read again."""
    at_work.records(at_work.a, "orders", 12, age=3)
    at_work.group("g", 99, checkpoint=40)
    status = at_work.status()
    assert (status.cost.records, status.cost.bound) == (12, "at-most")
    assert status.cost.seconds == pytest.approx(3, abs=0.1)
    assert status.cost.reread_max == 59
    assert "<= 12 records, 3 s lost; <= 59 read again; 1 of 1 group ready" in status_text(status).replace(
        "\n" + 13 * " ", " "
    )
    (row,) = status.partitions
    assert (row.source_end, row.mirrored_to, row.records, row.known_by) == (112, 100, 12, "sync")
    assert row.seconds == pytest.approx(3, abs=0.1)


def test_a_group_without_a_checkpoint_is_left_behind_and_makes_the_flow_not_ready(at_work):
    at_work.group("known", 99, checkpoint=99)
    at_work.group("new", 50)
    status = at_work.status()
    rows = {row.group: (row.ready, row.verdict, row.reasons) for row in status.groups}
    assert rows["new"] == (False, "unknown", ("newer-than-checkpoints",))
    assert rows["known"][0]
    assert status.groups[0].group == "new"
    assert (status.readiness, status.exit_code) == (Readiness.WARNINGS, 4)
    assert "groups-not-ready" in codes(status, "warning")


def test_no_group_ready_is_an_error(at_work):
    at_work.group("new", 50)
    status = at_work.status()
    assert (status.readiness, status.exit_code) == (Readiness.NOT_READY, 3)
    assert status_text(status).startswith("NOT READY: 1 error")
    assert "none of 1 group would be ready without a" in status_text(status)


def test_consumers_at_work_on_the_source_are_no_fault_and_are_shown(at_work):
    member = Member("app", "/10.0.0.1", "m-1")
    at_work.group("g", 99, checkpoint=99, state="Stable", members=(member, member))
    status = at_work.status()
    assert "source-active" not in codes(status)
    assert (status.groups[0].source_state, status.groups[0].source_members) == ("Stable", 2)
    assert "Stable (2)" in status_text(status)


def test_consumers_on_the_target_make_a_group_unready(at_work):
    at_work.group("g", 99, checkpoint=99)
    at_work.b.group("g", {COPY: 5}, state="Stable", members=(Member("app", "/10.0.0.1", "m-1"),))
    (row,) = at_work.status().groups
    assert (row.ready, row.verdict, row.reasons, row.target_members) == (False, "refused", ("group-active",), 1)


def test_a_position_says_more_than_syncs_where_it_does(at_work):
    """The target holds markers or doubled records: by syncs it would seem complete, or nothing is known at all."""
    at_work.a.topic("quiet", end=40)
    at_work.b.topic("a.quiet", end=70)
    before = {row.source_topic: row for row in at_work.status().partitions}["quiet"]
    assert (before.records, before.known_by) == (None, "nothing")
    at_work.position(40, topic="quiet", age=7)
    row = {row.source_topic: row for row in at_work.status().partitions}["quiet"]
    assert (row.records, row.bound, row.known_by, row.mirrored_to, row.position) == (0, "exact", "position", 40, 40)
    assert any(one.program == "connector MirrorSourceConnector" for one in at_work.status().replicators)


def test_a_position_beyond_the_sources_end_means_that_the_topic_was_made_anew(at_work):
    at_work.position(500)
    status = at_work.status()
    assert any("was copied up to 500 and ends at 100" in finding.message for finding in status.findings)
    assert "source-recreated" in codes(status)


def test_an_old_position_does_not_make_a_mirror_seem_behind(at_work):
    at_work.position(10, age=3600)
    (row,) = at_work.status().partitions
    assert (row.records, row.mirrored_to, row.position) == (0, 100, 10)


def test_a_position_says_nothing_of_a_copy_that_was_made_anew(at_work):
    at_work.a.topic("lost", end=40)
    at_work.b.topic("a.lost")
    at_work.position(40, topic="lost")
    row = {row.source_topic: row for row in at_work.status().partitions}["lost"]
    assert (row.records, row.mirrored_to) == (40, 0)


def test_who_copies_is_told(at_work):
    worker = Member("a->b", "/10.0.0.1", "m-1")
    at_work.b.group("a-mm2", state="Stable", members=(worker,), protocol_type="connect")
    at_work.b.group("failover.replicate.a-b", state="Stable", members=(worker,))
    status = at_work.status()
    assert {one.program for one in status.replicators if one.running} == {"MirrorMaker 2", "failover replicate"}
    assert "two-writers" in codes(status, "warning")


def test_a_worker_of_failover_replicate_signs_its_positions_and_is_named(at_work):
    at_work.position(40)
    key = SourceOffsetKey("MirrorSourceConnector", "a", "pay", 0).encode()
    for words in (b'{"v":1,"d":7,"w":"vm (process 4958)"}', b'{"v":1,"d":8,"w":"\x1b[31m"}', b"{"):
        headers = (("failover", words),)
        at_work.b.append("mm2-offsets.a.internal", key, encode_offset(6), timestamp=AT, headers=headers)
        named = {one.program for one in at_work.status().replicators}
        told = {"connector MirrorSourceConnector"}
        assert named == (told | {"failover replicate on vm (process 4958)"} if b"process" in words else told)


def test_lag_counts_only_where_it_is_both_large_and_old(at_work):
    at_work.records(at_work.a, "orders", 1500, age=30)
    assert "replication-lag" not in codes(at_work.status())
    late = Limits(lag_seconds=20)
    assert "replication-lag" in codes(at_work.status(late), "warning")
    assert "replication-lag" in codes(
        at_work.status(Limits(lag_seconds=20, high_lag_records=1500, high_lag_seconds=25)), "error"
    )


def test_heartbeats_off_missing_and_stale_are_three_things(tmp_path):
    scene = Flow(tmp_path)
    scene.copied()
    assert scene.status().heartbeat.age_seconds == 2
    scene.b.log[TopicPartition("a.heartbeats", 0)].clear()
    assert scene.status().heartbeat.state == "none"
    assert "heartbeat-missing" in codes(scene.status(), "info")
    scene.beat(300)
    assert "heartbeat-stale" in codes(scene.status(), "warning")


def test_topics_that_are_left_out_are_named_with_the_reason(tmp_path):
    scene = Flow(tmp_path, {"a->b.topics": "orders|b\\..*", "a->b.topics.exclude": "secret"})
    scene.copied()
    for name in ("secret", "other", "b.loop", "__consumer_offsets", "mm2-offset-syncs.b.internal"):
        scene.a.topic(name)
    skipped = {one.topic: one.reason for one in scene.status().skipped}
    assert set(skipped) == {"secret", "other", "b.loop"}
    assert "cycle" in skipped["b.loop"]
    text = status_text(scene.status())
    assert "NOT MIRRORED" in text
    assert "b.loop: cycle" in text


def test_with_the_source_dead_the_last_known_values_are_shown_with_their_time(at_work):
    known = Known(proof="sync-match", precision="exact", most=0, end=100, end_at=AT - 9_000)
    record = Checkpoint("g", "a.orders", 0, 90, 90)
    own = "failover.checkpoint.a-b"
    notes: list[tuple[Checkpoint, Known | SourceEnd | Beat]] = [
        (record, known),
        (
            end_record(own, COPY, SourceEnd(end=104, at=AT - 9_000, sync=(99, 99))),
            SourceEnd(end=104, at=AT - 9_000, sync=(99, 99)),
        ),
        (beat_record(own, EXACT, 1, 1), Beat(at=AT - 9_000)),
    ]
    for kept, note in notes:
        at_work.b.append(EXACT, kept.encode_key(), kept.encode_value(), timestamp=AT - 9_000, headers=encode_note(note))
    at_work.checkpoint("g", "a.orders", 40, 40, timestamp=AT - 60_000)
    at_work.a.down = "no answer for 10 s"
    status = at_work.status()
    assert status.as_of is not None
    assert (NOW - status.as_of).total_seconds() == pytest.approx(9)
    assert (status.cost.records, status.cost.bound) == (4, "at-least")
    assert (status.groups[0].exact_age, status.groups[0].checkpoint_age) == (pytest.approx(9), pytest.approx(60))
    assert "source-silent" in codes(status, "warning")
    text = status_text(status)
    assert "LAST KNOWN   as of 03:13:58 UTC (9 s ago): >= 4 records lost" in text
    assert text.rstrip().endswith("next: failover plan")
    assert not at_work.status(source_down=True).findings or "source-silent" not in codes(
        at_work.status(source_down=True)
    )


def test_nothing_known_to_be_lost_is_not_called_a_loss_of_zero_or_more(at_work):
    status = at_work.status()
    cost = msgspec.structs.replace(status.cost, records=0, bound="at-least")
    text = status_text(msgspec.structs.replace(status, cost=cost))
    assert "nothing known to be lost, what came later is unknown;" in " ".join(text.split())
    assert ">= 0" not in text


def test_states_of_connectors_become_findings(at_work):
    at_work.group("g", 99, checkpoint=99)
    well = ConnectorState("src", "source", "RUNNING", ("RUNNING", "RUNNING"))
    failed = ConnectorState("cp", "checkpoint", "RUNNING", ("FAILED",), "RecordTooLargeException")
    assert at_work.status(connectors=(well,)).readiness is Readiness.READY
    status = at_work.status(connectors=(well, failed))
    assert status.readiness is Readiness.NOT_READY
    assert "RecordTooLargeException" in status_text(status)


def test_connectors_that_were_stopped_are_one_finding_with_one_command(at_work):
    stopped = [ConnectorState(f"a->b.{kind}", kind, "STOPPED") for kind in ("source", "checkpoint")]
    paused = ConnectorState("beat", "heartbeat", "PAUSED", ("PAUSED",))
    found = [one for one in at_work.status(connectors=(*stopped, paused)).findings if one.code.startswith("connector")]
    assert [one.message for one in found] == [
        "2 connectors are STOPPED, with no tasks: a->b.checkpoint, a->b.source",
        "1 connector is PAUSED, with PAUSED tasks: beat",
    ]
    assert found[0].remedy == "failover connect resume 'a->b.source' 'a->b.checkpoint'"


def test_a_status_that_is_painted_again_says_how_it_ends(at_work):
    assert status_text(at_work.status(), every=5).endswith("\na look every 5 s; Ctrl-C ends it\n")


def test_a_record_too_large_for_the_target_is_named_with_both_sizes(at_work):
    at_work.a.append("orders", b"k", b"x" * 5_000_000, timestamp=AT - 900_000)
    at_work.records(at_work.a, "orders", 5, age=800)
    at_work.b.topic_configs["a.orders"] = {"max.message.bytes": "1048588"}
    status = at_work.status()
    said = next(finding.message for finding in status.findings if finding.code == "mirror-stalled")
    assert "replication of orders-0 stopped at 100" in said
    assert "5,000,001 bytes and a.orders takes 1,048,588" in said
    (row,) = status.partitions
    assert (row.mirrored_to, row.records, row.seconds) == (100, 6, pytest.approx(900))


def test_records_deleted_on_the_source_before_they_were_copied_are_counted(at_work):
    """Copied up to 100, and the source's log begins at 5,000 now."""
    at_work.a.logs[ORDERS] = at_work.a.logs[ORDERS]._replace(start=5_000, end=5_200)
    status = at_work.status()
    assert "source-truncated" in codes(status, "error")
    assert any("4,900 records were deleted on a" in finding.message for finding in status.findings)
    assert status.readiness is Readiness.NOT_READY


def test_more_tasks_than_partitions_are_remarked(at_work):
    at_work.group("g", 99, checkpoint=99)
    status = at_work.status(Limits(tasks_max=16))
    assert "tasks-idle" in codes(status, "info")
    assert status.readiness is Readiness.READY


def test_a_thousand_partitions_and_groups_cost_few_requests_and_fold(tmp_path):
    scene = Flow(tmp_path)
    for topic in (f"wide{number}" for number in range(100)):
        places = [TopicPartition(topic, partition) for partition in range(10)]
        scene.a.topic(topic, 10, end=10)
        scene.b.topic(f"a.{topic}", 10, end=10)
        for tp in places:
            scene.sync(topic, 9, 9, partition=tp.partition)
        for group in (f"{topic}.{number}" for number in range(10)):
            scene.a.group(group, dict.fromkeys(places, 10))
            for tp in places:
                scene.checkpoint(group, f"a.{topic}", 10, 10, partition=tp.partition, timestamp=AT)
    scene.a.calls.clear()
    scene.b.calls.clear()
    status = scene.status()
    assert len(status.partitions) == len(status.groups) == 1000
    # the same number as for one partition and one group: each call is about all of them at once
    assert len(scene.a.calls) <= 20
    assert len(scene.b.calls) <= 40
    text = status_text(status)
    assert len(text.splitlines()) < 90
    assert "and 970 more partitions, none behind by more than 0" in text
    assert "and 970 more groups, 970 of them ready" in text
    small = Flow(tmp_path)
    small.copied()
    small.group("g", 99, checkpoint=99)
    small.status()
    assert len(small.b.calls) >= len(scene.b.calls) - 4


def test_the_way_back_is_ready_by_what_both_clusters_tell(tmp_path):
    """Nothing is copied on it: what counts is whether groups find their places among the originals."""
    failed = Failed(tmp_path)
    failed.syncs()
    failed.b.group("g", {COPY: 900})
    both = failed.look(content=False)
    both, beside = read_beside(failed.flow, both, {"a": failed.a, "b": failed.b}.__getitem__)
    plan = planned(both)
    status = make_status(Looks(both, plan, both, plan, beside, heartbeats=True), LIMITS)
    assert status.back
    assert status.partitions == ()
    assert [(row.group, row.ready) for row in status.groups] == [("g", True)]
    text = status_text(status)
    assert "GOING BACK   from b to a now:" in text
    assert "HEARTBEAT" not in text


def test_every_form_of_it_is_narrow_and_inert(at_work):
    name = "<script>\x1b[31m|x"
    at_work.group(name, 50)
    at_work.a.group("streams", {ORDERS: 1}, type=GroupType.STREAMS)
    status = at_work.status()
    for text in (status_text(status), status_text(status, verbosity=1), status_markdown(status), to_json(status)):
        assert "\x1b" not in text
    assert "<script>" not in status_markdown(status)
    assert all(len(line) <= 100 for line in status_text(status, verbosity=1).splitlines())
    document = json.loads(to_json(status))
    assert document["kind"] == "failover.status"
    assert document["cost"]["groups"] == 1


def test_a_chosen_group_is_no_part_of_a_status(at_work):
    """A status is of the whole flow; groups that the filters leave out are not in it."""
    at_work.group("console-consumer-1", 5)
    assert [row.group for row in at_work.status().groups] == []
    assert at_work.look(Selection(groups=("console-consumer-1",))).groups == ("console-consumer-1",)
