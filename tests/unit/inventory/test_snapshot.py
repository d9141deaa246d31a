from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import pytest

from failover.errors import ClusterUnreachable, CredentialsRefused, GroupNotFound, NotAuthorized
from failover.inventory.questions import Question
from failover.inventory.selection import Selection
from failover.inventory.snapshot import Earlier
from failover.mm2.connect_offsets import SourceOffsetKey, encode_offset
from failover.mm2.heartbeat import Heartbeat
from failover.model.cluster import Broker, ClusterState
from failover.model.groups import Commit, GroupType, Member
from failover.model.names import Fault, TopicPartition
from failover.model.snapshot import NotPlanned
from failover.model.translation import Precision, Proof, Translation
from tests.fake_cluster import TIMED_OUT
from tests.unit.inventory.scene import CHECKPOINTS, NOW, Scene, flow

ORDERS = TopicPartition("orders", 0)
REMOTE = TopicPartition("a.orders", 0)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    found = Scene(flow(tmp_path))
    found.mirror("orders", end=1000)
    return found


# -- what a look finds -----------------------------------------------------------------------------


def test_a_group_is_seen_on_both_sides_with_its_checkpoint(scene: Scene) -> None:
    scene.a.group("g", {ORDERS: Commit(500, b"\xff\x00 meta")}, state="Stable", members=(Member("c", "/h", "m"),))
    scene.b.group("g", {REMOTE: 100})
    scene.checkpoint("g", "a.orders", 480, 470, timestamp=7, metadata=b"\xfe")
    snapshot = scene.look()
    assert snapshot.taken == NOW
    assert snapshot.groups == ("g",)
    assert snapshot.mirrored == {"a.orders": "orders"}
    assert snapshot.source.commits["g"][ORDERS] == Commit(500, b"\xff\x00 meta")
    assert snapshot.source.groups["g"].members == (Member("c", "/h", "m"),)
    assert snapshot.target.commits["g"][REMOTE].offset == 100
    assert snapshot.target.logs[REMOTE] == (0, 1000)
    assert snapshot.source.logs[ORDERS] == (0, 1000)
    assert snapshot.target.topics["a.orders"].topic_id == "b/a.orders"
    assert snapshot.checkpoints["g"][REMOTE].metadata == b"\xfe"
    assert snapshot.mm2_answers["g"] == {REMOTE: 470}
    assert snapshot.target.settings["offsets.retention.minutes"] == "10080"
    assert (snapshot.source.status.state, snapshot.target.status.state) == (ClusterState.UP, ClusterState.UP)


def test_a_look_asks_each_cluster_once_and_writes_nothing(scene: Scene) -> None:
    for number in range(20):
        scene.a.group(f"g{number}", {ORDERS: number})
    before = (set(scene.a.infos), set(scene.b.infos), set(scene.a.groups), set(scene.b.groups))
    scene.look()
    assert (set(scene.a.infos), set(scene.b.infos), set(scene.a.groups), set(scene.b.groups)) == before
    assert sorted(scene.opened) == ["a", "b"]
    for cluster in (scene.a, scene.b):
        asked = [method for method, _ in cluster.calls]
        assert not {"commit", "delete_offsets", "delete_groups"} & set(asked)
        for method in ("facts", "topics", "list_groups", "describe_groups", "committed", "log_ranges"):
            assert asked.count(method) == 1, f"{method} of {cluster.alias}"


def test_checkpoints_are_read_in_one_pass_and_the_last_by_log_order_counts(scene: Scene) -> None:
    scene.checkpoint("g", "a.orders", 900, 900, timestamp=2)
    scene.checkpoint("g", "a.orders", 100, 100, timestamp=1)
    scene.checkpoint("h", "a.orders", 10, 10)
    snapshot = scene.look()
    seen = snapshot.checkpoints["g"][REMOTE]
    assert (seen.upstream, seen.downstream, seen.timestamp, seen.earlier_upstream) == (100, 100, 1, 900)
    assert snapshot.checkpoints["h"][REMOTE].earlier_upstream is None
    assert [method for method, _ in scene.b.calls].count("read") == 1


def test_unreadable_checkpoints_are_skipped_and_counted_and_the_older_one_stays(scene: Scene) -> None:
    scene.checkpoint("g", "a.orders", 10, 10)
    key, good = scene.b.log[TopicPartition(CHECKPOINTS, 0)][0][2:4]
    assert good is not None
    for bad in (b"\x00\x01" + good[2:], good[:5], good[:18] + b"\x7f\xff", b"\x00\x00" + b"\xff" * 8 + good[10:]):
        scene.b.append(CHECKPOINTS, key, bad)
    scene.b.append(CHECKPOINTS, None, good)
    scene.b.append(CHECKPOINTS, b"\xff\xff", good)
    snapshot = scene.look()
    [reading] = [each for each in snapshot.readings if each.topic == CHECKPOINTS]
    assert (reading.records, reading.unreadable, reading.fault) == (7, 6, None)
    assert reading.first_unreadable.startswith("offset 1: ")
    assert snapshot.checkpoints["g"][REMOTE].upstream == 10


def test_a_tombstone_takes_its_checkpoint_away(scene: Scene) -> None:
    scene.checkpoint("g", "a.orders", 10, 10)
    scene.b.append(CHECKPOINTS, scene.b.log[TopicPartition(CHECKPOINTS, 0)][0].key, None)
    assert scene.look().checkpoints == {}


def test_a_missing_checkpoints_topic_is_said_and_is_no_error(scene: Scene) -> None:
    del scene.b.infos[CHECKPOINTS]
    scene.a.group("g", {ORDERS: 5})
    snapshot = scene.look()
    [reading] = [each for each in snapshot.readings if each.topic == CHECKPOINTS]
    assert not reading.exists
    assert CHECKPOINTS not in scene.b.infos


def test_checkpoints_without_read_are_no_missing_checkpoints(scene: Scene) -> None:
    scene.a.group("g", {ORDERS: 500})
    scene.b.no_read.add(CHECKPOINTS)
    with pytest.raises(NotAuthorized, match=rf"no READ on topic {CHECKPOINTS} of b"):
        scene.look()
    scene.sync("orders", 500, 500)
    snapshot = scene.look()
    [reading] = [each for each in snapshot.readings if each.topic == CHECKPOINTS]
    assert reading.fault is not None
    assert reading.fault.number == 29
    assert snapshot.translations["g"][REMOTE].proof is Proof.SYNC_MATCH


def test_topics_that_may_not_be_seen_are_no_missing_ones(scene: Scene) -> None:
    """Without DESCRIBE a listing lacks a topic; asked for by name, the broker says why."""
    hidden = Fault(29, "TOPIC_AUTHORIZATION_FAILED")
    for topic in (CHECKPOINTS, REMOTE.topic):
        del scene.b.infos[topic]
        scene.b.faults["describe_topics", topic] = hidden
    scene.a.group("g", {ORDERS: 500})
    with pytest.raises(NotAuthorized, match=rf"no READ on topic {CHECKPOINTS} of b"):
        scene.look()
    scene.sync("orders", 500, 500)
    snapshot = scene.look()
    assert [each.fault for each in snapshot.readings if each.topic == CHECKPOINTS] == [hidden]
    assert snapshot.target.hidden == {REMOTE.topic}


def test_topics_missing_on_the_target_are_mirrored_ones_too(scene: Scene) -> None:
    scene.a.topic("new", end=5)
    scene.a.group("g", {TopicPartition("new", 0): 5})
    snapshot = scene.look()
    assert snapshot.mirrored["a.new"] == "new"
    assert "a.new" not in snapshot.target.topics
    assert snapshot.groups == ("g",)


def test_internal_and_heartbeat_topics_are_not_mirrored_ones(scene: Scene) -> None:
    for name in ("a.heartbeats", "a.__x", "mm2-offsets.a.internal", "other.orders", "plain"):
        scene.b.topic(name)
    scene.a.topic("heartbeats").topic("__consumer_offsets")
    assert set(scene.look().mirrored) == {"a.orders"}


def test_the_newest_mirrored_heartbeat_is_found(scene: Scene) -> None:
    for moment in (5_000, 9_000, 7_000):
        beat = Heartbeat("b", "a", moment)
        scene.b.append("a.heartbeats", beat.encode_key(), beat.encode_value())
    scene.b.append("a.heartbeats", b"junk", b"junk")
    assert scene.look().last_heartbeat == 9_000


def test_an_open_transaction_on_the_source_is_seen(scene: Scene) -> None:
    scene.a.group("g", {ORDERS: 5})
    scene.a.held_back["g"] = (ORDERS,)
    scene.b.held_back["g"] = (REMOTE,)
    snapshot = scene.look()
    assert snapshot.source.pending == {"g": (ORDERS,)}
    assert snapshot.target.pending == {}


def test_what_earlier_looks_found_is_handed_on(scene: Scene) -> None:
    earlier = Earlier({"g": {REMOTE: 3}}, NOW, {ORDERS: 9}, NOW)
    snapshot = scene.look(earlier=earlier)
    assert (snapshot.commit_samples, snapshot.sampled) == ({"g": {REMOTE: 3}}, NOW)
    assert (snapshot.last_source_ends, snapshot.last_source_seen) == ({ORDERS: 9}, NOW)


# -- which groups ------------------------------------------------------------------------------------


def test_groups_without_a_mirrored_topic_are_listed_with_their_topics(scene: Scene) -> None:
    scene.b.topic("local")
    scene.b.group("here", {TopicPartition("local", 0): 3})
    snapshot = scene.look()
    assert snapshot.not_planned == (NotPlanned("here", "no-mirrored-topic", ("local",)),)
    assert scene.look(Selection(groups=("here",))).groups == ("here",)


def test_offsets_are_asked_for_the_groups_the_filter_takes_only(scene: Scene) -> None:
    for number in range(50):
        scene.a.group(f"app-{number}", {ORDERS: number})
        scene.a.group(f"console-consumer-{number}", {ORDERS: number})
    scene.look()
    assert ("committed", 50) in scene.a.calls


def test_a_group_that_exists_nowhere_is_refused_with_near_names(scene: Scene) -> None:
    scene.b.group("payments-svc", {REMOTE: 1})
    with pytest.raises(GroupNotFound) as caught:
        scene.look(Selection(groups=("payments-svr",)))
    assert "payments-svc" in caught.value.hint
    assert scene.look(Selection(groups=("payments-svr",), create=True)).groups == ("payments-svr",)


def test_a_mistyped_name_is_found_where_a_broker_could_not_be_asked_for_its_groups(scene: Scene) -> None:
    scene.b.listing_faults = (TIMED_OUT,)
    with pytest.raises(GroupNotFound):
        scene.look(Selection(groups=("nobody",)))


def test_a_group_that_cannot_be_described_is_unknown_never_new(scene: Scene) -> None:
    scene.a.group("g", {ORDERS: 5})
    scene.a.group("h", {ORDERS: 5})
    scene.b.faults["describe_groups", "g"] = TIMED_OUT
    snapshot = scene.look()
    assert (snapshot.target.groups["g"].state, snapshot.target.groups["g"].fault) == ("Unknown", TIMED_OUT)
    assert not snapshot.target.groups["h"].exists


def test_a_group_whose_offsets_cannot_be_read_stays_in_the_plan(scene: Scene) -> None:
    fault = Fault(30, "GROUP_AUTHORIZATION_FAILED")
    scene.b.group("g", {})
    scene.b.faults["committed", "g"] = fault
    snapshot = scene.look()
    assert snapshot.groups == ("g",)
    assert snapshot.target.group_faults == {"g": fault}


def test_a_share_group_is_left_out_and_connects_workers_are_of_no_known_type(scene: Scene) -> None:
    scene.b.group("s", {}, type=GroupType.SHARE)
    scene.b.group("a-mm2", {}, protocol_type="connect", state="Stable", members=(Member("w", "/h", "m"),))
    assert scene.look().not_planned == (NotPlanned("s", "share"),)
    named = scene.look(Selection(groups=("a-mm2",)))
    assert named.target.groups["a-mm2"].type is GroupType.UNKNOWN


# -- a source or target that does not answer --------------------------------------------------------


def test_a_source_that_is_down_is_decided_once_and_checkpoints_answer(scene: Scene) -> None:
    scene.checkpoint("g", "a.orders", 480, 470)
    scene.a.down = "cluster a gave no answer for 10 s: connection refused at 127.0.0.1:9092"
    snapshot = scene.look()
    status = snapshot.source.status
    assert (status.state, status.silent_since) == (ClusterState.DOWN, NOW)
    assert "connection refused" in status.detail
    assert [method for method, _ in scene.a.calls] == ["facts"]
    found = snapshot.translations["g"][REMOTE]
    assert (found.offset, found.precision, found.proof) == (470, Precision.CONSERVATIVE, Proof.CHECKPOINT)
    assert snapshot.source.commits == {}


def test_source_down_by_hand_contacts_nobody(scene: Scene) -> None:
    scene.checkpoint("g", "a.orders", 480, 470)
    snapshot = scene.look(source_down=True)
    assert scene.opened == ["b"]
    assert snapshot.source.status.state is ClusterState.NOT_ASKED
    assert snapshot.groups == ("g",)


def test_refused_credentials_are_never_a_dead_source(scene: Scene) -> None:
    scene.a.denied = "cluster a refuses the credentials"
    with pytest.raises(CredentialsRefused) as caught:
        scene.look()
    assert "--source-down" in caught.value.hint


def test_a_source_that_falls_silent_after_its_offsets_were_read_counts_as_down(scene: Scene) -> None:
    scene.a.group("g", {ORDERS: 500})
    scene.checkpoint("g", "a.orders", 480, 470)
    scene.sync("orders", 480, 480)

    def dies(*_: object) -> None:
        scene.a.down = "cluster a gave no answer"

    scene.a.before["describe_groups"] = dies
    snapshot = scene.look()
    assert snapshot.source.status.state is ClusterState.DOWN
    assert snapshot.source.commits == {}
    found = snapshot.translations["g"][REMOTE]
    assert (found.upstream, found.offset, found.proof) == (480, 480, Proof.SYNC_MATCH), "the syncs were read whole"


def test_a_target_that_is_down_ends_the_look(scene: Scene) -> None:
    scene.b.down = "cluster b gave no answer"
    with pytest.raises(ClusterUnreachable, match="cluster b"):
        scene.look()


def test_a_broker_without_an_answer_and_partitions_without_a_leader_make_a_cluster_degraded(scene: Scene) -> None:
    scene.a.unreachable = (Broker(3, "10.0.0.3", 9092),)
    scene.b.infos["a.orders"] = msgspec.structs.replace(scene.b.infos["a.orders"], leaderless=(0,))
    snapshot = scene.look()
    assert snapshot.source.status.state is ClusterState.DEGRADED
    assert snapshot.source.status.detail == "broker 3 at 10.0.0.3:9092 gives no answer"
    assert snapshot.target.status.state is ClusterState.DEGRADED
    assert snapshot.target.status.detail == "1 partition has no leader (a.orders-0)"


def test_partitions_whose_ends_cannot_be_read_are_listed(scene: Scene) -> None:
    scene.b.faults["log_ranges", REMOTE] = TIMED_OUT
    snapshot = scene.look()
    assert snapshot.target.log_faults == {REMOTE: TIMED_OUT}
    assert REMOTE not in snapshot.target.logs


# -- offset syncs and policies ----------------------------------------------------------------------


def test_syncs_on_the_source_make_the_answer_exact(scene: Scene) -> None:
    scene.a.group("g", {ORDERS: 500})
    scene.checkpoint("g", "a.orders", 480, 301)
    for at in (0, 300, 500, 999):
        scene.sync("orders", at, at)
    snapshot = scene.look()
    assert snapshot.translations["g"][REMOTE].offset == 500
    assert snapshot.translations["g"][REMOTE].precision is Precision.EXACT
    assert snapshot.newest_syncs == {REMOTE: (999, 999)}


def test_a_checkpoint_nearer_than_the_nearest_sync_is_used(scene: Scene) -> None:
    scene.a.group("g", {ORDERS: 500})
    scene.checkpoint("g", "a.orders", 490, 481)
    for at in (0, 999):
        scene.sync("orders", at, at)
    found = scene.look().translations["g"][REMOTE]
    assert (found.offset, found.proof, found.precision) == (481, Proof.CHECKPOINT, Precision.BOUNDED)
    assert found.reread_max == 499 - 480


def test_a_checkpoint_beyond_the_commit_is_of_a_group_that_was_rewound(scene: Scene) -> None:
    scene.a.group("g", {ORDERS: 100})
    scene.checkpoint("g", "a.orders", 900, 900)
    scene.sync("orders", 0, 0)
    found = scene.look().translations["g"][REMOTE]
    assert (found.offset, found.proof) == (1, Proof.SYNC_BELOW)


def test_syncs_on_the_target_answer_with_the_source_down(tmp_path: Path) -> None:
    scene = Scene(flow(tmp_path, {"a->b.offset-syncs.topic.location": "target"}))
    scene.mirror("orders", end=1000)
    assert scene.flow.internal.offset_syncs == "mm2-offset-syncs.a.internal"
    scene.checkpoint("g", "a.orders", 480, 301)
    for at in (0, 300, 480, 999):
        scene.sync("orders", at, at)
    scene.a.down = "cluster a gave no answer"
    found = scene.look().translations["g"][REMOTE]
    assert (found.upstream, found.offset, found.precision) == (480, 480, Precision.EXACT)


def test_content_comparison_finds_its_place_between_the_stages(scene: Scene) -> None:
    scene.a.group("exact", {ORDERS: 999})
    scene.a.group("g", {ORDERS: 500})
    for at in (0, 999):
        scene.sync("orders", at, at)
    asked: list[list[str]] = []

    def refine(questions: Sequence[Question]) -> Mapping[Question, Translation]:
        asked.append([each.group for each in questions])
        return {each: Translation(each.upstream, 500, Precision.EXACT, Proof.CONTENT, 0, 0) for each in questions}

    snapshot = scene.look(comparison=lambda *_: refine)
    assert asked == [["g"]]
    assert snapshot.translations["g"][REMOTE].proof is Proof.CONTENT


def test_a_checkpoint_for_a_plain_topic_is_one_that_came_back(scene: Scene) -> None:
    scene.b.topic("sales", end=100)
    scene.a.topic("b.sales", end=100)
    scene.a.group("g", {TopicPartition("b.sales", 0): 70})
    scene.checkpoint("g", "sales", 70, 70)
    snapshot = scene.look()
    assert snapshot.mirrored["sales"] == "b.sales"
    assert snapshot.translations["g"][TopicPartition("sales", 0)].offset == 70


IDENTITY = {"replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"}


def test_where_names_stay_a_topic_of_the_target_alone_is_not_mirrored(tmp_path: Path) -> None:
    scene = Scene(flow(tmp_path, IDENTITY))
    scene.mirror("orders", end=10)
    scene.b.topic("local", end=10)
    scene.b.group("here", {TopicPartition("local", 0): 3})
    assert scene.look().mirrored == {"orders": "orders"}
    scene.checkpoint("g", "orders", 5, 5)
    snapshot = scene.look(source_down=True)
    assert snapshot.mirrored == {"orders": "orders"}
    assert [left.group for left in snapshot.not_planned] == ["here"]


def test_where_names_stay_connects_positions_tell_what_is_mirrored(tmp_path: Path) -> None:
    scene = Scene(flow(tmp_path, IDENTITY))
    scene.mirror("orders", end=10)
    scene.b.topic("mm2-offsets.a.internal", 25)
    key = SourceOffsetKey("MirrorSourceConnector", "a", "orders", 0).encode()
    scene.b.append("mm2-offsets.a.internal", key, encode_offset(9), partition=7)
    assert scene.look(source_down=True).mirrored == {"orders": "orders"}


def test_two_sources_that_write_one_topic_are_found_by_what_they_left(tmp_path: Path) -> None:
    scene = Scene(
        flow(tmp_path, IDENTITY | {"clusters": "a, b, eu", "eu->b.enabled": "true", "eu.bootstrap.servers": "h:1"})
    )
    scene.mirror("orders", end=10)
    scene.mirror("mine", end=10)
    scene.b.topic("mm2-offsets.eu.internal", 25)
    key = SourceOffsetKey("MirrorSourceConnector", "eu", "orders", 0).encode()
    scene.b.append("mm2-offsets.eu.internal", key, encode_offset(9))
    assert scene.look().foreign_owners == {"orders": ("eu",)}


def test_a_failback_looks_the_other_way_with_the_same_rules(tmp_path: Path) -> None:
    settings = {"a->b.sync.group.offsets.enabled": "true"}
    assert flow(tmp_path, settings).group_offsets_synced
    back = flow(tmp_path, settings, reverse=True)
    assert (back.source, back.target, back.info.reversed) == ("b", "a", True)
    assert back.internal.checkpoints == "b.checkpoints.internal"
    assert back.target_topic("sales") == "b.sales"
    assert not back.group_offsets_synced, "MM2 syncs groups from a to b, not back"


def test_five_thousand_groups_half_of_them_irrelevant(scene: Scene) -> None:
    for number in range(2500):
        scene.a.group(f"app-{number}", {ORDERS: number % 1000})
        scene.a.group(f"idle-{number}", {TopicPartition("elsewhere", 0): 1})
    snapshot = scene.look()
    assert (len(snapshot.groups), len(snapshot.not_planned)) == (2500, 2500)
    assert ("describe_groups", 2500) in scene.b.calls


def test_the_sources_ends_are_read_after_the_targets(scene: Scene) -> None:
    """A group at the source's end counts as drained only if the target holds nothing from beyond that end."""
    scene.a.group("g", {ORDERS: 1000})
    order: list[str] = []
    scene.a.before["log_ranges"] = lambda _: order.append("source")

    def slow(_: object) -> None:
        time.sleep(0.05)  # the source gets every chance to be first
        order.append("target")

    scene.b.before["log_ranges"] = slow
    scene.look()
    assert order == ["target", "source"]


def test_a_target_that_fails_before_its_ends_are_read_keeps_nobody_waiting(scene: Scene) -> None:
    scene.a.group("g", {ORDERS: 1000})

    def fall_silent(_: object) -> None:
        scene.b.down = "no answer"

    scene.b.before["describe_topics"] = fall_silent
    with pytest.raises(ClusterUnreachable):
        scene.look()
