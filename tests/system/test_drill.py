"""The shipped drill beside a live pair with the real MirrorMaker 2: it changes nothing, and removes what was left."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from failover.model.names import TopicPartition
from failover.runbook.steps.canary import TOPIC
from tests.system.checkpointing import Traffic
from tests.system.inventory_side import cluster
from tests.system.pair import Pair

KILLED_WHILE_IT_COMPARES = """
import os, signal, sys
import failover.inventory.following as following
from failover.cli import main
following.compare = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
main(sys.argv[1:])
"""


def standing(pair: Pair, *but: str) -> dict[str, Any]:
    """Is all there is on both clusters but the records of these topics, the commits of these groups, and the canary."""
    found: dict[str, Any] = {}
    for alias in ("a", "b"):
        with cluster(pair, alias) as side:
            topics = {name: info.partitions for name, info in side.topics().items() if name != TOPIC}
            # a Connect worker of other tests writes its own topics
            others = ("__", "mm2-", "connect-lab-")
            own = [name for name in topics if not name.startswith(others) and "heartbeats" not in name]
            groups = side.list_groups()[0]
            # groups without a member and a commit are removed by the brokers whenever they look
            commits = {name: kept for name, kept in side.committed([*groups]).items() if kept}
            found[alias] = {
                "topics": topics,
                "settings": side.topic_settings(own, ["retention.ms", "cleanup.policy"]),
                "ends": {
                    name: pair.ends(alias, name) for name in own if not name.endswith(but) and ".internal" not in name
                },
                "groups": set(commits),
                "commits": {name: kept for name, kept in commits.items() if name not in but},
                "acls": side.acls(),
            }
    return found


def drill_groups(pair: Pair) -> set[str]:
    with cluster(pair, "b") as side:
        return {name for name in side.list_groups()[0] if name.startswith("drill.")}


def test_a_drill_on_a_live_pair_changes_nothing_measures_and_cleans_up(mm2: Pair, tmp_path: Path) -> None:
    topic, live, still = mm2.create_topic("a", mm2.name("t.drill"), 2), mm2.name("live"), mm2.name("still")
    mm2.expect_topic(re.escape(TOPIC))
    mm2.produce("a", topic, 400)
    mm2.commit("a", still, {TopicPartition(topic, 0): 120, TopicPartition(topic, 1): 7})
    mm2.wait_mirrored(topic)
    drill = (
        *("--set", f"a->b.topics={re.escape(topic)}", "run", "drill", "--format", "json"),
        *("--var", f"groups={live},{still}", "--var", "acls=false"),
    )
    state = tmp_path / "state"
    with Traffic(mm2.a, topic, live):
        mm2.a.until(lambda: mm2.committed("a", live), what="the live group has committed", seconds=90)
        before = standing(mm2, topic, live)
        environment = os.environ | {"FAILOVER_CONFIG": str(mm2.lab.config)}
        killed = subprocess.run(
            [sys.executable, "-c", KILLED_WHILE_IT_COMPARES, "--state-dir", str(state), *drill],
            env=environment,
            capture_output=True,
            timeout=120,
            check=False,
        )
        assert killed.returncode == -9, killed.stderr
        assert drill_groups(mm2) == {f"drill.{live}", f"drill.{still}"}
        ran = mm2.run_cli(*drill, state=state)
        assert ran.code == 0, ran.err
        assert drill_groups(mm2) == set()
        assert standing(mm2, topic, live) == before
    steps = {step["id"]: step for step in ran.json()["steps"]}
    found = steps["shadow"]["result"]
    assert (found["groups"], found["partitions"], found["cleaned"]) == (2, 3, 2)
    assert found["compared"] >= 300
    assert found["missing_records"] is not None
    assert steps["canary"]["status"] == "done"
    shown = mm2.run_cli("playbook", "show", "drill", "--format", "json", state=state).json()
    assert [(run["outcome"], run["missing_records"]) for run in shown["history"]["drills"]] == [
        ("done", found["missing_records"]),
        ("running", None),  # the one that was killed
    ]
