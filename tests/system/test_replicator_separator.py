"""A separator of one's own, syncs on the target, an exclusion: the same names as with the real MirrorMaker 2."""

from __future__ import annotations

import json
import re

import msgspec

from failover.config.load import load_config
from failover.lab.internal_records import checkpoint_of, heartbeat_of, sync_of
from failover.model import TopicPartition
from tests.system.conftest import MIRROR
from tests.system.handing_over import Flow
from tests.system.pair import Pair

# Under every prefix, and some that MM2 drops where they stand: what counts is what its connectors get.
PREFIXES = {
    "consumer.fetch.min.bytes": "2",
    "{source}.consumer.fetch.max.wait.ms": "90",
    "{source}->{target}.consumer.check.crcs": "true",
    "{source}->{target}.source.consumer.max.poll.records": "77",
    "{source}->{target}.consumer.override.fetch.max.bytes": "1000000",
    "{target}.producer.linger.ms": "1",
    "{target}.admin.retries": "9",
    "{source}->{target}.producer.override.linger.ms": "2",
    "use.defaults.from": "source",
    "{source}->{target}.use.defaults.from": "target",
    "{source}.tasks.max": "7",
    "{source}->{target}.tasks.max": "1",
    "replication.policy.of.somebody": "else",
    "security.protocol": "PLAINTEXT",
    "offset.flush.interval.ms": "5000",
    "topics.regex": "none.*",
    "groups.blacklist": "none.*",
    "errors.tolerance": "none",
    "client.id": "me",
    "nonsense": "x",
}


READ_HERE = ("topics.regex", "groups.blacklist")
"""Guides write them, MirrorMaker 2 4.x drops them, ``failover replicate`` reads them."""


def test_both_use_the_same_topics_one_after_the_other(pair: Pair) -> None:
    stem = pair.name("sep")
    taken, left = f"{stem}_orders", f"{stem}_orders_tmp"
    for topic in (taken, left):
        pair.create_topic("a", topic, 2)
        pair.produce("a", topic, 20)
    group = pair.name("sep-group")
    pair.commit("a", group, {(taken, 0): 7, (left, 0): 7})
    options = msgspec.structs.replace(MIRROR, topics=rf"{re.escape(stem)}_.*", groups=re.escape(group))
    flow = Flow(
        pair,
        options,
        {
            "replication.policy.separator": "_",
            "offset-syncs.topic.location": "target",
            "topics.exclude": r"mm2.*\.internal,.*_tmp",
            "heartbeats.replication.enabled": "true",
            **PREFIXES,
        },
    )
    source, target = flow.source, flow.target
    copy, beats = f"{source}_{taken}", f"{source}_heartbeats"
    syncs, checkpoints = f"mm2-offset-syncs_{source}_internal", f"{source}_checkpoints_internal"
    pair.expect_topic(rf"{re.escape(source)}_.*")
    pair.expect_topic(re.escape(syncs))

    def copied(count: int) -> bool:
        return copy in pair.b.topics() and sum(map(len, pair.b.read(copy).values())) >= count

    def checkpointed(upstream: int) -> bool:
        if checkpoints not in pair.b.topics():
            return False
        found = [checkpoint_of(record) for record in pair.b.read(checkpoints).get(0, ())]
        return (group, copy, 0, upstream) in [each[:4] for each in found]

    def ours() -> set[str]:
        names = {topic for topic in pair.b.topics() if source in topic and "_" in topic}
        return names | {topic for topic in pair.a.topics() if target in topic and topic.startswith("mm2-offset-syncs")}

    with flow.ours("stop"):
        pair.b.until(lambda: copied(20), what=f"{copy} holds all", seconds=90)
        pair.b.until(lambda: checkpointed(7), what="a checkpoint", seconds=90)
        pair.b.until(lambda: beats in pair.b.topics() and pair.b.read(beats).get(0), what="heartbeats", seconds=90)
    mine = ours()
    assert mine == {copy, beats, syncs, checkpoints}
    assert {heartbeat_of(record)[:2] for record in pair.b.read(beats)[0]} >= {(target, source)}
    count = len(pair.b.read(syncs)[0])

    pair.produce("a", taken, 20)
    pair.commit("a", group, {(taken, 0): 20})
    with flow.mirror_maker("stop"):
        pair.b.until(lambda: copied(40), what=f"{copy} holds what came since", seconds=120)
        pair.b.until(lambda: len(pair.b.read(syncs)[0]) > count, what="a sync of MirrorMaker 2", seconds=90)
        pair.b.until(lambda: checkpointed(20), what="its checkpoint", seconds=90)
    assert ours() == mine
    records, originals = pair.b.read(copy), pair.a.read(taken)
    for number in (0, 1):  # each once: it went on at our positions
        assert [record.value for record in records[number]] == [record.value for record in originals[number]]
    assert {sync_of(record).topic for record in pair.b.read(syncs)[0]} == {taken, "heartbeats"}
    assert TopicPartition(taken, 0) in flow.positions()
    given_to_connectors(pair, flow)


def given_to_connectors(pair: Pair, flow: Flow) -> None:
    """Compares what MirrorMaker 2 gave its connectors, as Connect keeps it, with what is read of the file here."""
    (here,) = load_config(str(flow.config)).enabled_flows
    stored = {
        (record.key or b"").decode(): json.loads(record.value or b"null")
        for record in pair.b.read(f"mm2-configs.{flow.source}.internal")[0]
    }
    for kind, settings in here.connectors.items():
        name = settings.text("name")
        theirs = stored[f"connector-{name}"]["properties"]
        ours = {key: settings[key].text for key in settings if settings.is_given(key) and key not in READ_HERE}
        assert ours == theirs, kind
