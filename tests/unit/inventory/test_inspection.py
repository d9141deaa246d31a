"""What `inspect` finds in internal topics, on clusters in memory; and how it is shown."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from failover.errors import NotAuthorized, UsageError
from failover.inventory.inspection import Inspector, Wanted, meant_by
from failover.mm2.checkpoint import Checkpoint
from failover.mm2.connect_offsets import CheckpointOffsetKey, SourceOffsetKey, encode_offset
from failover.mm2.exact_checkpoint import Beat, Known, beat_record, encode_note
from failover.mm2.heartbeat import Heartbeat
from failover.model.inspection import CheckpointRow, HeartbeatRow, Inspection, OffsetSyncRow, PositionRow
from failover.report.encode import to_json
from failover.report.inspection_text import followed_line, followed_widths, inspection_markdown, inspection_text
from tests.unit.inventory.scene import NOW, Scene, flow

AT = int(NOW.timestamp() * 1000) - 5_000
EXACT = "mm2-exact-checkpoints.a.internal"


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(flow(tmp_path))


def inspector(scene: Scene, kind: str, *, groups: tuple[str, ...] = (), topics: tuple[str, ...] = ()) -> Inspector:
    return Inspector(scene.flow, kind, {"a": scene.a, "b": scene.b}, Wanted(frozenset(groups), frozenset(topics)))


def inspect(scene: Scene, kind: str, *, everything: bool = False, **wanted: tuple[str, ...]) -> Inspection:
    return inspector(scene, kind, **wanted).inspect(taken=NOW, everything=everything)


def rows(found: Inspection) -> list[Any]:
    """Any kind's own fields are there to be asked for."""
    return list(found.records)


def exact(scene: Scene, group: str, up: int, down: int) -> None:
    known = Known(proof="content", precision="exact", most=0, end=900, end_at=AT)
    record = Checkpoint(group, "a.orders", 0, up, down)
    scene.b.append(EXACT, record.encode_key(), record.encode_value(), timestamp=AT, headers=encode_note(known))


def test_of_each_checkpoint_the_newest_counts_and_carries_both_sets_of_names(scene):
    scene.checkpoint("g", "a.orders", 500, 1, timestamp=AT - 60_000, metadata=b"old")
    scene.checkpoint("g", "a.orders", 812, 400, timestamp=AT, metadata=b"m")
    found = inspect(scene, "checkpoints")
    (row,) = json.loads(to_json(found))["records"]
    assert row == {
        "type": "checkpoint",
        "groupId": "g",
        "topic": "a.orders",
        "partition": 0,
        "offset": 400,
        "metadata": "m",
        "commitTimestamp": AT,
        "consumerGroupId": "g",
        "topicPartition": "a.orders-0",
        "upstreamOffset": 812,
        "downstreamOffset": 400,
        "by": "mm2",
        "proof": None,
        "precision": None,
        "rereadMax": None,
        "record": {
            "cluster": "b",
            "topic": "a.checkpoints.internal",
            "partition": 0,
            "offset": 1,
            "timestamp": datetime.fromtimestamp(AT / 1000, UTC).isoformat().replace("+00:00", "Z"),
        },
    }
    assert [row.upstream_offset for row in rows(inspect(scene, "checkpoints", everything=True))] == [500, 812]


def test_exact_checkpoints_stand_beside_mm2s_with_their_proof(scene):
    scene.checkpoint("g", "a.orders", 812, 400, timestamp=AT)
    exact(scene, "g", 850, 850)
    beat = beat_record("failover.checkpoint.a-b", EXACT, 1, 1)
    scene.b.append(EXACT, beat.encode_key(), beat.encode_value(), timestamp=AT, headers=encode_note(Beat(at=AT)))
    found = inspect(scene, "checkpoints")
    assert [(row.by, row.downstream_offset, row.proof, row.reread_max) for row in rows(found)] == [
        ("exact", 850, "content", 0),
        ("mm2", 400, None, None),
    ]
    text = inspection_text(found)
    assert " content " in text
    assert "METADATA" not in text  # where there is none, names have the room


def test_names_of_usual_length_are_not_cut(scene):
    group, topic = "payments-service", "a.orders.2026"
    exact(scene, group, 850, 850)
    found = inspect(scene, "checkpoints")
    (row,) = found.records
    row = msgspec.structs.replace(row, topic=topic, upstream_offset=10**9, downstream_offset=10**9, reread_max=10**6)
    text = inspection_text(msgspec.structs.replace(found, records=(row,)))
    assert group in text
    assert topic in text
    assert all(len(line) <= 100 for line in text.splitlines())


def test_the_lines_of_exact_checkpoints_are_narrow(scene):
    exact(scene, "g", 850, 850)
    text = inspection_text(inspect(scene, "checkpoints"))
    assert all(len(line) <= 100 for line in text.splitlines())


def test_records_that_cannot_be_decoded_are_counted_and_named(scene):
    scene.checkpoint("g", "a.orders", 812, 400, timestamp=AT)
    scene.b.append("a.checkpoints.internal", b"\x00\x01", b"short", timestamp=AT)
    scene.b.append("a.checkpoints.internal", None, b"\x1b[31m", timestamp=AT)
    found = inspect(scene, "checkpoints")
    assert found.topics[0].unreadable == 2
    assert [bad.offset for bad in found.unreadable] == [1, 2]
    text = inspection_text(found)
    assert "2 of 3 records of a.checkpoints.internal on b could not be decoded" in text
    assert "unreadable: a.checkpoints.internal-0 offset 1:" in text
    assert "\x1b" not in text


def test_groups_and_topics_by_either_name_are_filters(scene):
    for group, topic in (("g", "a.orders"), ("g", "a.pay"), ("h", "a.orders")):
        scene.checkpoint(group, topic, 5, 5, timestamp=AT)
    assert [r.topic for r in rows(inspect(scene, "checkpoints", groups=("g",)))] == ["a.orders", "a.pay"]
    for name in ("orders", "a.orders"):
        assert [r.group_id for r in rows(inspect(scene, "checkpoints", topics=(name,)))] == ["g", "h"]
    scene.sync("orders", 1, 1)
    scene.sync("pay", 2, 2)
    assert [r.topic for r in rows(inspect(scene, "offset-syncs", topics=("a.pay",)))] == ["pay"]


def test_offset_syncs_are_read_where_they_are_kept_and_counted(scene):
    for at in (0, 101, 202):
        scene.sync("orders", at, at)
    found = inspect(scene, "offset-syncs")
    assert [(type(r), r.upstream_offset, r.syncs, r.record.cluster) for r in rows(found)] == [
        (OffsetSyncRow, 202, 3, "a")
    ]


def test_heartbeats_of_both_clusters_are_told_apart(scene):
    for cluster, topic, sides in ((scene.b, "a.heartbeats", ("b", "a")), (scene.b, "heartbeats", ("a", "b"))):
        for at in (AT - 1000, AT):
            beat = Heartbeat(*sides, at)
            cluster.append(topic, beat.encode_key(), beat.encode_value(), timestamp=at)
    found = inspect(scene, "heartbeats")
    assert [(type(r), r.record.topic, r.source_cluster_alias, r.heartbeat_timestamp) for r in rows(found)] == [
        (HeartbeatRow, "a.heartbeats", "b", AT),
        (HeartbeatRow, "heartbeats", "a", AT),
    ]
    assert [topic.topic for topic in found.topics] == ["a.heartbeats", "heartbeats"]


def test_positions_are_those_of_source_connectors_in_every_partition(scene):
    scene.b.topic("mm2-offsets.a.internal", 25)
    for partition, number in ((3, 41), (7, 99)):
        key = SourceOffsetKey("MirrorSourceConnector", "a", "orders", partition).encode()
        scene.b.append("mm2-offsets.a.internal", key, encode_offset(number), partition=partition, timestamp=AT)
    other = CheckpointOffsetKey("MirrorCheckpointConnector", "g", "a.orders", 0).encode()
    scene.b.append("mm2-offsets.a.internal", other, encode_offset(0), partition=1, timestamp=AT)
    gone = SourceOffsetKey("MirrorSourceConnector", "a", "old", 0).encode()
    scene.b.append("mm2-offsets.a.internal", gone, encode_offset(5), timestamp=AT)
    scene.b.append("mm2-offsets.a.internal", gone, None, timestamp=AT)
    found = inspect(scene, "positions")
    assert [(type(r), r.partition, r.offset, r.next_offset) for r in rows(found)] == [
        (PositionRow, 3, 41, 42),
        (PositionRow, 7, 99, 100),
    ]


def test_a_topic_that_is_not_there_is_said_and_no_right_is_not_taken_for_none(scene):
    found = inspect(scene, "positions")
    assert found.records == ()
    assert "mm2-offsets.a.internal on b does not exist" in inspection_text(found)
    scene.b.no_read.add("a.checkpoints.internal")
    with pytest.raises(NotAuthorized):
        inspect(scene, "checkpoints")


def test_following_gives_what_is_appended_once(scene):
    scene.checkpoint("g", "a.orders", 1, 1, timestamp=AT)
    reader = inspector(scene, "checkpoints", groups=("g",))
    found = reader.inspect(taken=NOW)
    assert reader.appended() == []
    scene.checkpoint("g", "a.orders", 2, 2, timestamp=AT)
    scene.checkpoint("h", "a.orders", 9, 9, timestamp=AT)
    scene.b.append("a.checkpoints.internal", b"?", b"?", timestamp=AT)
    (row,) = reader.appended()
    assert isinstance(row, CheckpointRow)
    assert row.upstream_offset == 2
    assert [bad.offset for bad in reader.unreadable] == [3]
    assert reader.appended() == []
    line = followed_line(row, NOW, followed_widths(found))
    header = next(line for line in inspection_text(found).splitlines() if line.startswith("GROUP"))
    assert line.index("a.orders") == header.index("TOPIC")


def test_names_from_outside_come_out_inert(scene):
    scene.checkpoint("<script>\x1b[2J|g", "a.orders", 1, 1, timestamp=AT, metadata=b"=cmd()\n")
    found = inspect(scene, "checkpoints")
    for text in (inspection_text(found), inspection_markdown(found), to_json(found)):
        assert "\x1b" not in text
    assert "<script>" not in inspection_markdown(found)


def test_a_word_that_names_nothing_is_refused_with_what_there_is(scene):
    with pytest.raises(UsageError) as refused:
        meant_by("orders", scene.flow)
    assert "checkpoints|offset-syncs|heartbeats|positions" in refused.value.hint
    assert meant_by("__mm2_heartbeats", scene.flow)[0] == "heartbeats"
