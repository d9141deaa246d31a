"""``failover checkpoint`` beside the real MirrorMaker 2, and what a plan makes of it once the source is dead.

The clusters are this module's own: the last test kills the source.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from failover.kafka.wire.offsets import commit_offsets
from failover.lab import MirrorOptions
from failover.lab.internal_records import checkpoint_of
from failover.model.groups import Commit
from failover.model.names import TopicPartition
from tests.system.checkpointing import Traffic, checkpointing, kept, wait_kept
from tests.system.pair import Pair
from tests.system.typed import AT_ONCE, by_name, findings, offsets, plan
from tests.system.wire_side import plain

CONSOLE = "org.apache.kafka.tools.consumer.ConsoleConsumer"
FORMATTER = "org.apache.kafka.connect.mirror.formatters.CheckpointFormatter"


@pytest.fixture(scope="module")
def mirrored(breakable: Pair) -> Pair:
    breakable.lab.start_mirror()
    breakable.b.until(lambda: "a.checkpoints.internal" in breakable.b.topics(), what="MirrorMaker 2 runs", seconds=90)
    return breakable


def filled(pair: Pair, records: int = 2000) -> tuple[str, str]:
    """Makes a topic of one partition and waits for its copy; gives both names."""
    topic = pair.create_topic("a", pair.name("t.kept"))
    pair.produce("a", topic, records)
    return topic, pair.wait_mirrored(topic)


def commit(pair: Pair, group: str, topic: str, upstream: int, metadata: bytes) -> None:
    place = TopicPartition(topic, 0)
    with plain(pair, "a") as (thread, cluster):
        answer = thread.run(commit_offsets(cluster, {group: {place: Commit(upstream, metadata)}}))
    assert answer == {group: {place: None}}


def test_commits_are_kept_exactly_where_mirror_maker_is_coarse(mirrored: Pair) -> None:
    topic, remote = filled(mirrored)
    lagging, moving, drained = (mirrored.name(stem) for stem in ("lagging", "moving", "drained"))
    commit(mirrored, lagging, topic, 777, "größe".encode())
    mirrored.commit("a", drained, {(topic, 0): 2000})
    with checkpointing(mirrored) as running:
        found = wait_kept(mirrored, lagging, (remote, 0), 777)
        assert (found.downstream, found.metadata.decode(), found.known.most) == (777, "größe", 0)
        assert wait_kept(mirrored, drained, (remote, 0), 2000).downstream == 2000
        # a group that appears meanwhile, goes on, and is set back
        for upstream in (100, 1500, 40):
            mirrored.commit("a", moving, {(topic, 0): upstream})
            assert wait_kept(mirrored, moving, (remote, 0), upstream, seconds=90).downstream == upstream
        before = len(mirrored.b.read("mm2-exact-checkpoints.a.internal")[0])
        first = kept(mirrored).beat
        mirrored.b.until(lambda: (kept(mirrored).beat or first) != first, what="the next look")
        written = mirrored.b.read("mm2-exact-checkpoints.a.internal")[0][before:]
        own = [record for record in written if checkpoint_of(record).group in (lagging, moving, drained)]
        assert own == [], "written though nothing changed"
        assert running.stop() == 143
        assert "stopped in good order" in running.log.read_text()
    checkpoint = mirrored.wait_checkpoint(lagging, topic, upstream=777)
    assert checkpoint.downstream < 777, "MirrorMaker 2 is exact as well, so this shows nothing"


def test_kafkas_formatter_prints_the_records(mirrored: Pair) -> None:
    topic = "mm2-exact-checkpoints.a.internal"
    records = mirrored.b.read(topic)[0]
    printed = mirrored.lab.run_tool(
        *(CONSOLE, "--bootstrap-server", mirrored.bootstrap("b"), "--topic", topic, "--from-beginning"),
        *("--formatter", FORMATTER, "--max-messages", str(len(records)), "--timeout-ms", "20000"),
    )
    assert printed.splitlines() == [
        f"Checkpoint{{consumerGroupId={seen.group}, topicPartition={seen.topic}-{seen.partition},"
        f" upstreamOffset={seen.upstream}, downstreamOffset={seen.downstream}, metadata={seen.metadata}}}"
        for seen in map(checkpoint_of, records)
    ]


def test_of_two_one_leads_and_the_other_takes_over(mirrored: Pair) -> None:
    topic, remote = filled(mirrored, 100)
    group = mirrored.name("passed-on")
    with checkpointing(mirrored) as first, checkpointing(mirrored) as second:
        both = (first, second)
        mirrored.b.until(lambda: sum(each.leads() for each in both) == 1, what="one of two leads")
        time.sleep(4)  # the second one joins, which may move the lead
        mirrored.b.until(lambda: sum(each.leads() for each in both) == 1, what="one of two leads")
        leader = first if first.leads() else second
        mirrored.commit("a", group, {(topic, 0): 10})
        wait_kept(mirrored, group, (remote, 0), 10)
        leader.kill()
        mirrored.commit("a", group, {(topic, 0): 60})
        assert wait_kept(mirrored, group, (remote, 0), 60, seconds=90).downstream == 60
        other = second if leader is first else first
        assert other.leads()
        assert other.stop() == 143


def test_mirror_makers_checkpoints_are_written_only_while_it_does_not(mirrored: Pair) -> None:
    topic, remote = filled(mirrored)
    group = mirrored.name("read-by-java")
    mirrored.commit("a", group, {(topic, 0): 777})
    theirs = mirrored.wait_checkpoint(group, topic, upstream=777)
    with checkpointing(mirrored, "--write-mm2-checkpoints") as running:
        running.says("somebody else writes a.checkpoints.internal")
        wait_kept(mirrored, group, (remote, 0), 777)
        assert mirrored.wait_checkpoint(group, topic) == theirs
    aliases = (mirrored.name("sa"), mirrored.name("sb"))
    options = MirrorOptions(
        topics=r"t\..*", refresh_seconds=1, flush_seconds=1, settings={"emit.checkpoints.enabled": "false"}
    )
    with mirrored.mirror(options, aliases=aliases) as config:
        remote = mirrored.wait_mirrored(topic, flow=aliases[0])
        with checkpointing(mirrored, "--write-mm2-checkpoints", config=config):
            wait_kept(mirrored, group, (remote, 0), 777, source=aliases[0])
            found = mirrored.wait_checkpoint(group, topic, upstream=777, flow=aliases[0])
            assert (found.downstream, found.metadata) == (777, "")


def test_the_source_dies_under_traffic(mirrored: Pair, tmp_path: Path) -> None:
    topic, remote = filled(mirrored)
    busy_topic = mirrored.create_topic("a", mirrored.name("t.busy"))
    idle, busy, young = (mirrored.name(stem) for stem in ("idle", "busy", "young"))
    commit(mirrored, idle, topic, 777, b"idle since")
    with checkpointing(mirrored) as running:
        wait_kept(mirrored, idle, (remote, 0), 777)
        with Traffic(mirrored.a, busy_topic, busy) as traffic:
            place = TopicPartition(f"a.{busy_topic}", 0)
            mirrored.b.until(
                lambda: place in kept(mirrored).positions.get(busy, {}) and traffic.committed > 1500,
                what="the busy group is on record and goes on",
                seconds=90,
                every=0.3,
            )
            # so young that MirrorMaker 2 may not have looked at it
            mirrored.commit("a", young, {(topic, 0): 1234})
            wait_kept(mirrored, young, (remote, 0), 1234, seconds=90)
            mirrored.lab.kill("a")
            died = time.time()
        running.says("tried again")
        assert running.stop() == 143
    mirrored.lab.kill("mm2")
    exact = kept(mirrored)
    copy = [record.value for record in mirrored.b.read(place.topic)[0]]
    last = exact.positions[busy][place]

    made = plan(mirrored, idle, busy, young, state=tmp_path, more=("--timeout", "3"))
    assert made["source"]["state"] == "down"
    groups = by_name(made)
    assert offsets(groups[idle]) == {(remote, 0): 777}
    assert offsets(groups[young]) == {(remote, 0): 1234}
    for group in (idle, young):
        [only] = groups[group]["partitions"]
        assert (only["precision"], only["proof"], only["skipped"]) == ("exact", "tracked", 0)
    assert groups[idle]["partitions"][0]["metadata"] == "idle since"

    [only] = groups[busy]["partitions"]
    offset = only["offset"]
    numbers = {value: number for number, value in traffic.written.items()}
    passed = [numbers[value] for value in copy[:offset] if value in numbers]
    again = [numbers[value] for value in copy[offset:] if value in numbers and numbers[value] < traffic.committed]
    assert [number for number in passed if number >= traffic.committed] == [], "unread records are passed over"
    assert len(again) <= traffic.committed - last.upstream, "more comes again than was committed since"
    assert len(again) <= only["reread_max"] == len(copy) - offset
    assert only["skipped"] == 0

    lost = {(row["topic"], row["partition"]): row for row in made["unreplicated"] or ()}
    ends = exact.ends[place]
    if ends.end > len(copy):
        assert (lost[place]["records"], lost[place]["bound"]) == (ends.end - len(copy), "at-least")
    assert exact.beat is not None
    assert -10 < exact.beat.at / 1000 - died < 2
    assert "internal-topic-unreadable" not in findings(made)

    ran = mirrored.run_cli("execute", *AT_ONCE, "--timeout", "3", state=tmp_path)
    assert ran.code == 0, ran.err
    assert mirrored.committed("b", idle) == {TopicPartition(remote, 0): 777}
    assert mirrored.committed("b", busy) == {place: offset}
