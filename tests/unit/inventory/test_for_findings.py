"""What is asked for findings alone: once, aside, and never in a plan's way."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from failover.errors import ClusterUnreachable
from failover.inventory import for_findings
from failover.inventory.comparing import record_comparison
from failover.kafka.faults import NO_ANSWER
from failover.model.cluster import LogRange
from failover.model.groups import GroupType
from failover.model.names import Fault, TopicPartition
from failover.model.rights import AclBinding, ScramUser
from failover.model.snapshot import Snapshot
from tests.unit.inventory.scene import NOW, Scene, flow
from tests.unit.planning.worlds import plan

ORDERS = TopicPartition("orders", 0)
REMOTE = TopicPartition("a.orders", 0)
ACL = AclBinding("topic", "literal", "orders", "User:app", "*", "ALLOW", "READ")


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    found = Scene(flow(tmp_path))
    found.mirror("orders", end=10)
    found.a.group("g", {ORDERS: 5})
    found.sync("orders", 5, 5)
    return found


def with_records(scene: Scene, **options: Any) -> Snapshot:
    return scene.look(comparison=record_comparison, **options)


def test_rights_users_and_settings_of_topics_are_asked_once_and_told(scene: Scene) -> None:
    for number in range(200):
        scene.mirror(f"t{number}")
        scene.a.group(f"g{number}", {TopicPartition(f"t{number}", 0): 0})
    scene.a.bindings, scene.b.bindings = [ACL], []
    scene.a.users = [ScramUser("app", (("SCRAM-SHA-512", 4096),))]
    scene.b.topic_configs["a.orders"] = {"max.message.bytes": "1000", "retention.ms": "1"}
    snapshot = with_records(scene)
    assert snapshot.source.acls == (ACL,)
    assert snapshot.target.acls == ()
    assert [user.name for user in snapshot.source.users or ()] == ["app"]
    assert snapshot.target.topic_settings["a.orders"] == {"max.message.bytes": "1000"}
    assert snapshot.target.bootstrap == ("127.0.0.1:9092",)
    assert (snapshot.source.untold, snapshot.target.untold) == ({}, {})
    for cluster in (scene.a, scene.b):
        asked = [method for method, _ in cluster.calls]
        assert [asked.count(method) for method in ("acls", "scram_users", "broker_settings")] == [1, 1, 1]
        assert asked.count("topic_settings") == (1 if cluster is scene.b else 0)


def test_what_may_not_be_asked_makes_one_finding_and_no_difference(scene: Scene) -> None:
    before = plan(scene.look())
    denied = Fault(31, "CLUSTER_AUTHORIZATION_FAILED")
    for cluster in (scene.a, scene.b):
        for method in ("acls", "scram_users", "topic_settings"):
            cluster.faults[method, None] = denied
        cluster.settings.clear()
    made = plan(scene.look())
    assert made.groups == before.groups
    [said] = [finding for finding in made.findings if finding.code == "not-checked"]
    assert said.severity == "info"
    assert "ACLs of a, SCRAM users of a" in said.message
    assert "topic settings of b (CLUSTER_AUTHORIZATION_FAILED)" in said.message
    assert "broker settings of a" in said.message


def test_silence_about_it_holds_nothing_up(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(for_findings, "PATIENCE", 0.05)
    for_ever = threading.Event()

    def silent(*_: object) -> None:
        for_ever.wait(10)

    def broken(*_: object) -> None:
        raise ClusterUnreachable("gone", alias="b")

    scene.a.before["acls"] = silent
    scene.b.before["scram_users"] = broken
    try:
        snapshot = scene.look()
    finally:
        for_ever.set()
    assert snapshot.source.acls is None
    assert snapshot.source.untold["ACLs"].number == NO_ANSWER
    assert snapshot.target.untold["SCRAM users"].message == "gone"
    assert plan(snapshot).groups[0].verdict == "ready"


def test_a_source_that_is_not_asked_is_not_asked_for_rights(scene: Scene) -> None:
    scene.checkpoint("g", "a.orders", 5, 5)
    snapshot = scene.look(source_down=True)
    assert scene.a.calls == []
    assert snapshot.source.acls is None
    assert snapshot.source.untold == {}


def test_the_first_missing_record_is_read_where_something_is_missing(scene: Scene) -> None:
    """One request for all partitions; none where the mirror is up to date, and none without reading records."""
    when = int(NOW.timestamp() * 1000) - 90_000
    for topic in ("late", "empty", "current"):
        scene.mirror(topic)
    for number in range(6):
        scene.a.append("late", b"key", b"v" * 10, timestamp=when + number)
    for _ in range(4):
        scene.b.append("a.late", b"key", b"v" * 10)
    scene.sync("late", 1, 1)
    scene.a.append("empty", None, b"first", timestamp=when)
    snapshot = with_records(scene)
    late, empty = TopicPartition("late", 0), TopicPartition("empty", 0)
    assert {tp: (w.offset, w.timestamp, w.size) for tp, w in snapshot.waiting.items()} == {
        late: (4, when + 4, 13),
        empty: (0, when, 5),
    }
    made = plan(snapshot)
    assert made.unreplicated is not None
    assert {row.source_topic: row.seconds for row in made.unreplicated} == {"late": 89.996, "empty": 90.0}
    asked = len([method for method, _ in scene.a.calls if method == "windows"])
    scene.a.calls.clear()
    assert scene.look().waiting == {}
    assert [method for method, _ in scene.a.calls if method == "windows"] == []
    assert asked <= 2  # one for this, one for the comparison of records


def test_what_a_transaction_leaves_behind_the_last_copied_record_is_not_missing(tmp_path: Path) -> None:
    """Markers fill offsets that are never copied; aborted records are where the mirror reads uncommitted ones."""
    for isolation, missing in (("read_uncommitted", {"aborted": 3}), ("read_committed", {})):
        scene = Scene(flow(tmp_path, {"a.consumer.isolation.level": isolation}))
        for topic, aborted in (("marked", 0), ("aborted", 2)):
            scene.mirror(topic)
            for _ in range(5):
                scene.a.append(topic, None, b"x")
                scene.b.append(f"a.{topic}", None, b"x")
            scene.sync(topic, 4, 4)
            tp = TopicPartition(topic, 0)
            for _ in range(aborted):
                scene.a.aborted.add((tp, scene.a.logs[tp].end))
                scene.a.append(topic, None, b"x")
            scene.a.logs[tp] = LogRange(0, scene.a.logs[tp].end + 1)
        scene.a.group("g", {TopicPartition("marked", 0): 5, TopicPartition("aborted", 0): 5})
        snapshot = with_records(scene)
        assert {tp.topic for tp in snapshot.caught_up} == {"marked", "aborted"} - missing.keys()
        made = plan(snapshot)
        assert {row.source_topic: row.records for row in made.unreplicated or ()} == missing


def test_records_that_may_not_be_read_are_no_hindrance(scene: Scene) -> None:
    scene.mirror("late")
    scene.a.append("late", None, b"x", timestamp=1)

    def broken(*_: object) -> None:
        raise ClusterUnreachable("gone", alias="a")

    scene.a.before["windows"] = broken
    assert with_records(scene).waiting == {}


def test_programs_that_write_are_told_by_their_groups_on_the_target(scene: Scene) -> None:
    scene.b.group("a-mm2", state="Stable", protocol_type="connect")
    scene.b.group("failover.replicate.a-b", state="Stable")
    scene.b.group("failover.checkpoint.a-b", state="Empty")
    snapshot = scene.look()
    assert snapshot.writers == {"a-mm2": "MirrorMaker 2", "failover.replicate.a-b": "failover replicate"}
    assert "two-writers" in {finding.code for finding in plan(snapshot).findings}
    scene.b.group("a-mm2", state="Empty", protocol_type="connect", type=GroupType.CLASSIC)
    assert "two-writers" not in {finding.code for finding in plan(scene.look()).findings}


def test_local_topics_are_looked_at_only_where_they_are_to_be_committed(scene: Scene) -> None:
    scene.b.topic("orders", 2, start=3, end=9)
    local = TopicPartition("orders", 1)
    assert local not in scene.look().target.logs
    snapshot = scene.look(plain=True)
    assert snapshot.target.logs[local] == (3, 9)
    assert snapshot.target.topics["orders"].topic_id == "b/orders"
    assert set(snapshot.mirrored) == {"a.orders"}
    for cluster in (scene.a, scene.b):
        assert [method for method, _ in cluster.calls].count("log_ranges") == 2  # one a look


def test_a_local_topic_that_may_not_be_seen_is_not_missing(scene: Scene) -> None:
    scene.b.faults["describe_topics", "orders"] = Fault(29, "TOPIC_AUTHORIZATION_FAILED")
    snapshot = scene.look()
    assert snapshot.target.hidden == {"orders"}
    assert "local-topic-missing" not in {finding.code for finding in plan(snapshot).findings}
