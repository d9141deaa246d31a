"""`inspect` on the topics of the real MirrorMaker 2."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any

import pytest

from failover.model.groups import Commit
from failover.model.names import TopicPartition
from tests.system.inventory_side import cluster
from tests.system.pair import Pair


def shown(pair: Pair, *arguments: str) -> Any:
    ran = pair.run_cli("inspect", *arguments, "--format", "json")
    assert ran.code == 0, ran.err
    return ran.json()


@pytest.fixture(scope="module")
def topic(mm2: Pair) -> str:
    topic = mm2.create_topic("a", mm2.name("t.inspect"), 2)
    mm2.produce("a", topic, 300)
    mm2.wait_mirrored(topic)
    return topic


def test_checkpoints_syncs_heartbeats_and_positions_are_readable(mm2, topic):
    group = mm2.name("inspect")
    with cluster(mm2, "a") as source:
        source.commit({group: {TopicPartition(topic, 0): Commit(100, b"m")}}, lambda *_: None)
    seen = mm2.wait_checkpoint(group, topic, upstream=100)
    (row,) = shown(mm2, "checkpoints", "--group", group)["records"]
    assert (row["groupId"], row["topic"], row["partition"], row["metadata"]) == (group, f"a.{topic}", 0, "m")
    assert (row["upstreamOffset"], row["downstreamOffset"], row["offset"]) == (100, seen.downstream, seen.downstream)
    assert row["by"] == "mm2"
    assert row["commitTimestamp"] > 1_700_000_000_000

    syncs = shown(mm2, "offset-syncs", "--topic", f"a.{topic}")["records"]
    assert {(r["topic"], r["partition"], r["record"]["cluster"]) for r in syncs} == {(topic, 0, "a"), (topic, 1, "a")}
    assert len(shown(mm2, "offset-syncs", "--topic", topic, "--all")["records"]) > len(syncs)

    def positions() -> dict[int, int]:
        rows = shown(mm2, "positions", "--topic", topic)["records"]
        return {r["partition"]: r["nextOffset"] for r in rows}

    ends = {partition: end for partition, (_, end) in mm2.ends("a", topic).items()}
    mm2.b.until(lambda: positions() == ends, what="MirrorMaker 2 keeps its positions", seconds=90)

    (beat, *_) = shown(mm2, "heartbeats")["records"]
    assert {beat["sourceClusterAlias"], beat["targetClusterAlias"]} == {"a", "b"}
    table = mm2.run_cli("inspect", "positions", "--topic", topic).out
    assert "MirrorSourceConnector" in table
    assert all(len(line) <= 100 for line in table.splitlines())


def test_what_guides_call_the_topics_is_understood_and_set_right(mm2, topic):
    found = shown(mm2, "mm2-offsets.a.internal", "--topic", topic)
    assert found["what"] == "positions"
    assert any("never to be edited by hand" in note for note in found["notes"])
    ran = mm2.run_cli("inspect", "__mm2_offsets_sync", "--topic", topic)
    assert "mm2-offset-syncs.b.internal on a" in ran.out.replace("\n", " ").replace("      ", "")
    refused = mm2.run_cli("inspect", "orders")
    assert (refused.code, "checkpoints|offset-syncs|heartbeats|positions" in refused.err) == (2, True)


def test_following_prints_each_checkpoint_as_it_is_written(mm2, topic):
    group = mm2.name("inspect.follow")
    mm2.commit("a", group, {(topic, 1): 10})
    mm2.wait_checkpoint(group, topic, 1, upstream=10)
    log = mm2.folder / f"{group}.jsonl"
    command = [sys.executable, "-X", f"lab={mm2.lab.state.marker}", "-m", "failover", "--config", str(mm2.lab.config)]
    command += ["inspect", "checkpoints", "--follow", "--group", group, "--format", "json"]
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, stdout=out, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, env=os.environ
        )
    try:

        def upstreams() -> list[int]:
            return [json.loads(line)["upstreamOffset"] for line in log.read_text().splitlines()]

        mm2.b.until(lambda: upstreams() == [10], what="the checkpoint that was there is printed", seconds=90)
        mm2.commit("a", group, {(topic, 1): 150})
        mm2.b.until(lambda: upstreams() == [10, 150], what="the new checkpoint is printed", seconds=90)
        # not SIGINT, which whoever runs the tests in the background has had ignored
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 143
    finally:
        process.kill()
        process.wait()
