"""Plans beside the real MirrorMaker 2 in hard scenes, judged record by record: 0 skipped, 0 read again.

One MirrorMaker 2 mirrors all topics of the first scene at once and is killed twice while it copies.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from failover.lab import MirrorOptions, wait_until
from failover.lab.traffic import Load, write
from failover.model.names import TopicPartition
from tests.system.counting import count, partitions
from tests.system.pair import Pair

SHARES = [number / 20 for number in range(1, 21)]
TOPICS = {"k.lag": 1, "k.txn": 2, "k.compact": 1, "k.expired": 1, "k.small": 1}


class Hard:
    """Holds what the hard scene left: the configuration, both sides' records, and what groups committed."""

    def __init__(self, pair: Pair, config: Path, flow: str) -> None:
        self.pair = pair
        self.config = config
        self.source = {topic: pair.a.read(topic) for topic in TOPICS}
        self.target = {topic: pair.b.read(f"{flow}.{topic}") for topic in TOPICS}
        self.committed: dict[str, dict[TopicPartition, int]] = {}

    def plan(self, *options: str) -> Any:
        ran = self.pair.run_cli("plan", "--group-pattern", r"k-\d+", "--format", "json", *options, config=self.config)
        assert ran.code in (0, 4), ran.err
        return ran.json()


def held(pair: Pair, topic: str) -> int:
    """Gives the end of a topic's only partition on the target, 0 before it is there."""
    return pair.ends("b", topic)[0][1] if topic in pair.b.topics() else 0


def copied(pair: Pair, flow: str, topic: str) -> bool:
    """Says whether the target holds every value of the source."""
    if f"{flow}.{topic}" not in pair.b.topics():
        return False
    wanted = {record.value for records in pair.a.read(topic).values() for record in records}
    found = {record.value for records in pair.b.read(f"{flow}.{topic}").values() for record in records}
    return wanted <= found


@pytest.fixture(scope="module")
def hard(pair: Pair) -> Iterator[Hard]:
    options = MirrorOptions(topics=r"k\..*", groups=r"k-.*", checkpoint_seconds=1, refresh_seconds=1, flush_seconds=1)
    compact = {"cleanup.policy": "compact", "segment.ms": "200", "min.cleanable.dirty.ratio": "0.01"}
    for topic, number in TOPICS.items():
        pair.create_topic("a", topic, number, config=compact if topic == "k.compact" else None)
    write(pair.a, Load(topic="k.compact", rate=1_500, count=3_000, keys=1_000, size=0))
    pair.produce("a", "k.lag", 20_000)
    pair.produce("a", "k.txn", 2_000, transactions=[(10, True), (10, True), (7, False)])
    pair.produce("a", "k.expired", 10_000)
    pair.a.delete_records("k.expired", 0, 5_000)
    pair.produce("a", "k.small", 30)
    wait_until(lambda: len(pair.a.read("k.compact")[0]) < 1_700, seconds=90, what="compaction of k.compact", every=0.3)
    with pair.mirror(options, aliases=("ks", "kt")) as config:
        for at_least, more in ((8_000, 10_000), (30_000, 10_000)):
            wait_until(lambda wanted=at_least: held(pair, "ks.k.lag") >= wanted, seconds=90, what="k.lag is copied")
            pair.lab.kill("mm2-ks-kt")
            pair.produce("a", "k.lag", more)
            pair.produce("a", "k.txn", 500, transactions=[(10, True), (5, False)])
            pair.lab.start_mirror(config, name="mm2-ks-kt")
        for topic in TOPICS:
            wait_until(lambda topic=topic: copied(pair, "ks", topic), seconds=90, what=f"{topic} is copied", every=1.0)
        scene = Hard(pair, config, "ks")
        for number, share in enumerate(SHARES, 1):
            offsets = {}
            for topic in TOPICS:
                for partition, (start, end) in pair.ends("a", topic).items():
                    offsets[TopicPartition(topic, partition)] = max(start, start + int((end - start) * share) - 37)
            scene.committed[f"k-{number}"] = offsets
            pair.commit("a", f"k-{number}", offsets)
        for number in (10, 20):  # so that MM2's own answers can be held against the plan's
            pair.wait_checkpoint(f"k-{number}", "k.lag", flow="ks")
        yield scene
    for group in scene.committed:
        pair.a.delete_group(group)


def judge(scene: Hard, p: Mapping[str, Any]) -> tuple[int, int]:
    topic, partition = p["source_topic"], p["partition"]
    committed = scene.committed[p["group"]][TopicPartition(topic, partition)]
    assert p["source_committed"] == committed
    assert p["offset"] is not None, (p["group"], topic, p["reason"])
    return count(scene.source[topic][partition], scene.target[topic][partition], committed, p["offset"])


@pytest.mark.timeout(300)
def test_nothing_is_skipped_and_nothing_read_again_with_mirror_maker_killed_twice(hard: Hard) -> None:
    plan = hard.plan()
    found = partitions(plan)
    assert len(found) == len(SHARES) * sum(TOPICS.values())
    judged = {(p["group"], p["topic"], p["partition"]): judge(hard, p) for p in found}
    assert {place: got for place, got in judged.items() if got != (0, 0)} == {}
    assert {p["precision"] for p in found} == {"exact"}
    assert plan["summary"]["reread_max"] == 0
    assert sum(p["mm2"]["reread"] or 0 for p in found if p["mm2"]) > 1_000, "MM2's own checkpoints would re-read"


@pytest.mark.timeout(120)
def test_without_comparing_records_the_bound_holds(hard: Hard) -> None:
    for p in partitions(hard.plan("--no-content")):
        if p["offset"] is None:
            continue
        reread, skipped = judge(hard, p)
        assert skipped == 0, (p["group"], p["topic"], p["partition"])
        assert p["reread_max"] is None or reread <= p["reread_max"], (p["group"], p["topic"], p["proof"], reread)


@pytest.mark.timeout(120)
def test_with_the_source_gone_nothing_is_skipped(hard: Hard) -> None:
    for p in partitions(hard.plan("--source-down")):
        if p["offset"] is None:
            continue
        committed = hard.committed[p["group"]][TopicPartition(p["source_topic"], p["partition"])]
        records = hard.source[p["source_topic"]][p["partition"]], hard.target[p["source_topic"]][p["partition"]]
        reread, skipped = count(*records, committed, p["offset"])
        assert skipped == 0, (p["group"], p["topic"], p["partition"])
        assert reread <= p["reread_max"]


@pytest.mark.timeout(200)
def test_read_committed_mirrors_are_exact_too(pair: Pair) -> None:
    topic, groups = "rc.txn", {f"rc-{n}": n / 10 for n in range(1, 11)}
    pair.create_topic("a", topic, 2)
    pair.produce("a", topic, 2_000, transactions=[(10, True), (10, True), (7, False)])
    options = MirrorOptions(
        topics=r"rc\..*",
        groups=r"rc-.*",
        checkpoint_seconds=1,
        refresh_seconds=1,
        flush_seconds=1,
        settings={"rcs.consumer.isolation.level": "read_committed"},
    )
    committed_values = {r.value for rs in pair.a.read(topic, isolation="read_committed").values() for r in rs}
    with pair.mirror(options, aliases=("rcs", "rct")) as config:

        def there() -> bool:
            if f"rcs.{topic}" not in pair.b.topics():
                return False
            return committed_values <= {r.value for rs in pair.b.read(f"rcs.{topic}").values() for r in rs}

        wait_until(there, seconds=90, what=f"{topic} is copied", every=0.3)
        ends = pair.ends("a", topic)
        offsets = {
            group: {TopicPartition(topic, n): int(end * share) - 3 for n, (_, end) in ends.items()}
            for group, share in groups.items()
        }
        for group, places in offsets.items():
            pair.commit("a", group, places)
        ran = pair.run_cli("plan", "--group-pattern", r"rc-\d+", "--format", "json", config=config)
    source, target = pair.a.read(topic), pair.b.read(f"rcs.{topic}")
    for p in partitions(ran.json()):
        committed = offsets[p["group"]][TopicPartition(topic, p["partition"])]
        got = count(source[p["partition"]], target[p["partition"]], committed, p["offset"])
        assert got == (0, 0), (p["group"], p["partition"], p["proof"], got)
    for group in groups:
        pair.a.delete_group(group)


@pytest.mark.timeout(200)
def test_identical_records_ahead_groups_and_partitions_without_a_checkpoint(mm2: Pair) -> None:
    pair = mm2
    same, plain = pair.create_topic("a", "t.same"), pair.create_topic("a", "t.plain", 2)
    producer, moment = pair.a.producer(), int(time.time() * 1000)
    for _ in range(4_000):
        producer.produce(same, b"same", timestamp=moment, partition=0)
    producer.flush(30)
    pair.produce("a", plain, 8_000, partition=0)
    pair.b.until(lambda: held(pair, f"a.{same}") == 4_000, what="the records that are all alike are copied")
    pair.wait_mirrored(plain)
    group = pair.name("same")
    pair.commit("a", group, {TopicPartition(same, 0): 1_234})
    [p] = partitions(pair.run_cli("plan", "--group", group, "--format", "json").json())
    # one to one, nothing restarted: the true position is the offset itself
    assert p["offset"] <= 1_234
    assert 1_234 - p["offset"] <= p["reread_max"]

    ahead = pair.name("ahead")
    pair.commit("a", ahead, {TopicPartition(plain, 0): 2_000})
    pair.commit("b", ahead, {TopicPartition(f"a.{plain}", 0): 7_000})
    ran = pair.run_cli("plan", "--group", ahead, "--format", "json")
    [p] = [p for p in partitions(ran.json()) if p["partition"] == 0]
    assert (ran.code, p["skipped"], p["reason"], p["ahead"]) == (4, 5_000, "would-rewind", 5_000)
    assert ran.json()["groups"][0]["verdict"] == "partial"
    ran = pair.run_cli("plan", "--group", ahead, "--allow-rewind", "--format", "json")
    [p] = [p for p in partitions(ran.json()) if p["partition"] == 0]
    assert (ran.code, p["skipped"], p["offset"]) == (0, 0, 2_000)

    bare = pair.name("bare")
    pair.commit("a", bare, {TopicPartition(plain, 0): 2_000, TopicPartition(plain, 1): 0})
    pair.wait_checkpoint(bare, plain, 0)
    ran = pair.run_cli("plan", "--group", bare, "--source-down", "--format", "json")
    [group_plan] = ran.json()["groups"]
    without = [p for p in group_plan["partitions"] if p["partition"] == 1]
    assert [p["skipped"] for p in without] == [None]
    assert (ran.code, group_plan["verdict"]) == (4, "partial")


@pytest.mark.timeout(200)
def test_a_target_topic_made_anew_never_skips(pair: Pair) -> None:
    topic, remote = "f.again", "fs.f.again"
    pair.create_topic("a", topic)
    pair.expect_topic(r"fs\..*")
    first = pair.produce("a", topic, 3_000)
    options = MirrorOptions(topics=r"f\..*", groups="f-.*", checkpoint_seconds=1, refresh_seconds=1, flush_seconds=1)
    with pair.mirror(options, aliases=("fs", "ft")) as config:
        wait_until(
            lambda: remote in pair.b.topics() and copied(pair, "fs", topic), seconds=90, what="copied", every=0.3
        )
        pair.lab.kill("mm2-fs-ft")
        pair.b.recreate_topic(remote)
        pair.lab.start_mirror(config, name="mm2-fs-ft")
        later = pair.produce("a", topic, 2_000)
        values = {record.value for record in later}
        wait_until(
            lambda: values <= {r.value for rs in pair.b.read(remote).values() for r in rs},
            seconds=90,
            what="the records since are copied",
            every=0.3,
        )
        offsets = {"f-1": 1_000, "f-2": 3_500, "f-3": len(first) + len(later)}
        for group, offset in offsets.items():
            pair.commit("a", group, {TopicPartition(topic, 0): offset})
        ran = pair.run_cli("plan", "--group-pattern", r"f-\d", "--format", "json", config=config)
    source, target = pair.a.read(topic)[0], pair.b.read(remote)[0]
    for p in partitions(ran.json()):
        if p["offset"] is not None:
            reread, skipped = count(source, target, offsets[p["group"]], p["offset"])
            assert skipped == 0, p
            assert reread <= p["reread_max"], p
    assert [p["offset"] is not None for p in partitions(ran.json()) if p["group"] == "f-3"] == [True]
    for group in offsets:
        pair.a.delete_group(group)


@pytest.mark.timeout(200)
def test_a_group_newer_than_the_checkpoints_is_planned_where_anything_places_it(pair: Pair) -> None:
    topic, old, new = pair.create_topic("a", "nw.topic"), "nw-old", "nw-new"
    pair.produce("a", topic, 3_000)
    pair.commit("a", old, {TopicPartition(topic, 0): 2_900})
    options = MirrorOptions(
        topics=r"nw\..*",
        groups=r"nw-.*",
        checkpoint_seconds=1,
        flush_seconds=1,
        settings={"ns->nt.refresh.groups.interval.seconds": "600"},
    )
    with pair.mirror(options, aliases=("ns", "nt")) as config:
        wait_until(lambda: held(pair, f"ns.{topic}") == 3_000, seconds=90, what="copied", every=0.3)
        # one for a further commit is made only once a later sync is there: by all of them
        pair.produce("a", topic, 500)
        pair.commit("a", old, {TopicPartition(topic, 0): 3_500})
        pair.wait_checkpoint(old, topic, upstream=3_500, flow="ns")
        pair.commit("a", new, {TopicPartition(topic, 0): 1_234})

        def plan(*arguments: str, config: Path = config) -> Any:
            return pair.run_cli("plan", "--group-pattern", "nw-.*", "--format", "json", *arguments, config=config)

        ran = plan()
        [p] = [p for p in partitions(ran.json()) if p["group"] == new]
        assert (ran.code, ran.json()["not_planned"]) == (0, [])
        assert (p["offset"], p["precision"], p["checkpoint"]) == (1_234, "exact", None)
        [bounded] = [p for p in partitions(plan("--no-content").json()) if p["group"] == new]
        assert bounded["offset"] <= 1_234 <= bounded["offset"] + bounded["reread_max"]

        # with no offset syncs to read (they are looked for where none are) nothing places the new group
        elsewhere = pair.config_path(
            aliases=("ns", "nt"), options=options, added={"ns->nt.offset-syncs.topic.location": "target"}
        )
        ran = plan("--no-content", config=elsewhere)
        assert ran.json()["not_planned"] == [{"group": new, "why": "newer-than-checkpoints", "topics": [topic]}]
        assert [(g["group"], g["verdict"]) for g in ran.json()["groups"]] == [(old, "ready")]
        assert ran.code == 4
        screen = pair.run_cli("plan", "--group-pattern", new, "--no-content", config=elsewhere)
        assert (screen.code, "1 group newer than the checkpoints" in screen.out) == (3, True), screen.out
        named = pair.run_cli("plan", "--group", new, "--no-content", "--format", "json", config=elsewhere)
        assert [g["verdict"] for g in named.json()["groups"]] == ["partial"]
        # with the source down nobody can know of it
        assert plan("--source-down").json()["not_planned"] == []

        # what MM2 was expected to answer is what it answers once it has looked
        pair.lab.kill("mm2-ns-nt")
        pair.lab.start_mirror(config, name="mm2-ns-nt")
        seen = pair.wait_checkpoint(new, topic, flow="ns", seconds=90)
        assert (seen.upstream, seen.downstream) == (1_234, p["mm2"]["offset"])
    for group in (old, new):
        pair.a.delete_group(group)
