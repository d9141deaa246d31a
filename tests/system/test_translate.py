"""`translate` beside Java's RemoteClusterUtils on the same topics, and the exact places beside both."""

from __future__ import annotations

from failover.mm2.checkpoint import Checkpoint
from failover.model.groups import Commit
from failover.model.names import TopicPartition
from tests.system.inventory_side import cluster
from tests.system.pair import Pair
from tests.system.remote_cluster_utils import Answer, java_translates

BY_HAND = "tr"
"""Is an alias under which no MirrorMaker 2 ever ran: its checkpoints are written here."""


def ours(pair: Pair, group: str, *arguments: str, **options) -> Answer:
    ran = pair.run_cli("translate", group, "--format", "json", *arguments, **options)
    assert ran.code == 0, ran.err
    rows = ran.json()["partitions"]
    return {(r["topic"], r["partition"]): (r["offset"], r["metadata"]) for r in rows if r["offset"] is not None}


def test_checkpoints_of_the_real_mirror_are_answered_as_java_does_with_the_exact_places_beside(mm2):
    topic = mm2.create_topic("a", mm2.name("t.translate"), 2)
    mm2.produce("a", topic, 600)
    remote = mm2.wait_mirrored(topic)
    group, nobody = mm2.name("translate"), mm2.name("translate.nobody")
    stands = {0: 137, 1: 299}
    commits = {TopicPartition(topic, p): Commit(offset, "größe".encode()) for p, offset in stands.items()}
    with cluster(mm2, "a") as source:
        source.commit({group: commits}, lambda *_: None)
    for partition, offset in stands.items():
        mm2.wait_checkpoint(group, topic, partition, upstream=offset)
    java = java_translates(mm2.bootstrap("b"), "a", [group, nobody])
    assert ours(mm2, group) == java[group]
    assert set(java[group]) == {(remote, 0), (remote, 1)}
    assert ours(mm2, nobody) == java[nobody] == {}
    rows = mm2.run_cli("translate", group, "--format", "json").json()["partitions"]
    assert {r["partition"]: (r["placed"], r["precision"], r["reread_max"]) for r in rows} == {
        p: (offset, "exact", 0) for p, offset in stands.items()
    }
    text = mm2.run_cli("translate", group).out
    assert all(len(line) <= 100 for line in text.splitlines())
    assert "RemoteClusterUtils" in text


def test_whatever_a_checkpoints_topic_holds_java_and_translate_read_the_same(pair):
    topic = f"{BY_HAND}.checkpoints.internal"
    pair.create_topic("b", topic, config={"cleanup.policy": "compact"})
    group, other, name = pair.name("translate.hand"), pair.name("translate.other"), pair.name("translate.gone")
    records = [
        Checkpoint(group, f"{BY_HAND}.{name}", 0, 500, 400, b"first"),
        Checkpoint(group, f"{BY_HAND}.{name}", 1, 48211, 48211),
        Checkpoint(group, f"{BY_HAND}.{name}", 0, 300, 250, "später".encode()),  # rewound: the last one counts
        Checkpoint(other, f"{BY_HAND}.{name}", 0, 7, 7),
        Checkpoint(group, "local", 2, 0, 0),
    ]
    producer = pair.b.producer()
    for record in records:
        producer.produce(topic, record.encode_value(), record.encode_key())
    producer.produce(topic, b"short", records[0].encode_key())  # Java skips what it cannot read
    producer.flush(20)
    config = pair.config_path(aliases=(BY_HAND, "b"))
    java = java_translates(pair.bootstrap("b"), BY_HAND, [group, other])
    flow = ("--source", BY_HAND, "--target", "b")
    assert ours(pair, group, *flow, config=config) == java[group]
    assert java[group] == {
        (f"{BY_HAND}.{name}", 0): (250, "später"),
        (f"{BY_HAND}.{name}", 1): (48211, ""),
        ("local", 2): (0, ""),
    }
    assert ours(pair, other, *flow, "--source-down", config=config) == java[other]
