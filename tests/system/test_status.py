"""`status` on real brokers beside the real MirrorMaker 2: ready, behind, and with the source out of reach."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from failover.lab import MirrorOptions
from failover.model.names import TopicPartition
from tests.system.checkpointing import checkpointing, kept, wait_kept
from tests.system.pair import Pair, Ran

# what MirrorMaker 2 mirrors and is looked at here
OWN = MirrorOptions(topics=r"t\.status.*", groups=r"status\..*")
UNREACHABLE = ("--set", "a.bootstrap.servers=127.0.0.1:1", "--timeout", "2s")


class Scene:
    """Is a part of the flow with one topic of 300 records and a group at 120 of partition 0."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self.topic = pair.create_topic("a", pair.name("t.status"), 2)
        self.group = pair.name("status.g")
        pair.produce("a", self.topic, 300)
        pair.commit("a", self.group, {(self.topic, 0): 120, (self.topic, 1): 150})

    def run(self, config: Any, *arguments: str) -> Ran:
        return self.pair.run_cli("status", *arguments, config=config)


@pytest.fixture(scope="module")
def scene(mm2: Pair) -> Scene:
    return Scene(mm2)


@pytest.fixture(scope="module")
def config(scene: Scene) -> Path:
    scene.pair.wait_mirrored(scene.topic)
    for partition, upstream in ((0, 120), (1, 150)):
        scene.pair.wait_checkpoint(scene.group, scene.topic, partition, upstream=upstream)
    return scene.pair.config_path(options=OWN)


def test_a_mirror_at_work_is_ready_and_each_partition_and_group_is_shown(scene, config):
    found: Any = {}

    def settled() -> bool:
        found.update(scene.run(config, "--format", "json").json())
        return found["readiness"] != "not-ready" and found["cost"]["records"] == 0 and bool(found["replicators"])

    scene.pair.b.until(settled, what="the flow is ready", seconds=90)
    rows = {(row["source_topic"], row["partition"]): row for row in found["partitions"]}
    ends = scene.pair.ends("a", scene.topic)
    for partition in (0, 1):
        row = rows[scene.topic, partition]
        assert (row["source_end"], row["mirrored_to"], row["records"]) == (ends[partition][1], ends[partition][1], 0)
        assert row["known_by"] in ("sync", "position")
        assert row["last_record"] is not None
        assert row["last_mirrored"] == row["last_record"]
    (group,) = found["groups"]
    assert (group["group"], group["ready"], group["verdict"]) == (scene.group, True, "ready")
    assert group["reread_max"] is not None
    assert group["checkpoint_age"] < 600
    assert any(one["program"] == "MirrorMaker 2" and one["running"] for one in found["replicators"])
    assert found["heartbeat"]["state"] in ("on", "none")

    ran = scene.run(config)
    assert ran.code == 0
    assert ran.out.startswith("READY")
    assert "if a died this second: nothing lost" in ran.out
    assert all(len(line) <= 100 for line in ran.out.splitlines())
    assert "| " + scene.group in scene.run(config, "--format", "markdown").out


def test_check_ends_with_what_the_findings_weigh(scene, config):
    code = scene.run(config, "--check").code
    found = scene.run(config, "--format", "json").json()
    weights = {finding["severity"] for finding in found["findings"]}
    assert code == (3 if "error" in weights else 4 if "warning" in weights else 0)
    # a group that MirrorMaker 2 does not look at (its own groups.exclude) has nothing on the target to go by
    stranger = scene.pair.name("console-consumer")
    widened = ("--set", r"a->b.groups=status\..*,console-consumer.*", "--set", "a->b.groups.exclude=none")
    scene.pair.commit("a", stranger, {(scene.topic, 0): 10})
    ran = scene.run(config, "--check", *widened, "--format", "json")
    assert ran.code == 4
    rows = {row["group"]: row for row in ran.json()["groups"]}
    assert (rows[stranger]["ready"], rows[stranger]["reasons"]) == (False, ["newer-than-checkpoints"])
    assert any(finding["code"] == "groups-not-ready" for finding in ran.json()["findings"])


def test_with_the_source_out_of_reach_its_last_known_state_is_told_from_exact_checkpoints(scene, config):
    pair = scene.pair
    with checkpointing(pair, config=config):
        wait_kept(pair, scene.group, (f"a.{scene.topic}", 0), 120, seconds=90)
        place = TopicPartition(f"a.{scene.topic}", 1)
        pair.b.until(lambda: place in kept(pair).ends, what="the source's ends are kept", seconds=90)
    ran = scene.run(config, *UNREACHABLE, "--format", "json")
    assert ran.code == 0, ran.err
    found = ran.json()
    assert found["source"]["state"] == "down"
    assert found["as_of"] is not None
    rows = {(row["source_topic"], row["partition"]): row for row in found["partitions"]}
    assert rows[scene.topic, 1]["source_end"] == pair.ends("a", scene.topic)[1][1]
    assert rows[scene.topic, 1]["bound"] == "at-least"
    (group,) = [row for row in found["groups"] if row["group"] == scene.group]
    assert group["ready"]
    assert group["exact_age"] is not None
    text = scene.run(config, *UNREACHABLE).out
    assert "LAST KNOWN   as of" in text
    assert text.rstrip().endswith("next: failover plan")
    assert scene.run(config, *UNREACHABLE, "--check").code == 4


def test_watch_paints_again_until_it_is_stopped(scene, config):
    command = [sys.executable, "-X", f"lab={scene.pair.lab.state.marker}", "-m", "failover", "--config", str(config)]
    command += ["status", "--watch", "--every", "1s"]
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        command,
        stdout=follower,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        env=os.environ | {"TERM": "xterm"},
    )
    os.close(follower)
    try:
        painted = b""

        def paints() -> bool:
            nonlocal painted
            painted += os.read(leader, 65536)
            return painted.count(b"IF NOW") >= 2

        scene.pair.b.until(paints, what="the status is painted a second time", seconds=90, every=0.0)
        # not SIGINT, which whoever runs the tests in the background has had ignored
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 143
    finally:
        process.kill()
        process.wait()
        os.close(leader)


def test_what_execute_committed_is_no_commit_of_somebody_at_work_there(scene, config, tmp_path):
    pair = scene.pair
    planned = pair.run_cli("plan", "--group", scene.group, "--format", "json", config=config, state=tmp_path)
    executed = pair.run_cli("execute", planned.json()["id"], "--yes", "--settle", "0", config=config, state=tmp_path)
    assert executed.code == 0, executed.out + executed.err
    found = pair.run_cli("status", "--format", "json", config=config, state=tmp_path).json()
    (group,) = [row for row in found["groups"] if row["group"] == scene.group]
    assert (group["ready"], group["reasons"]) == (True, [])
