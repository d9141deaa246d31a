"""The process ends at every moment it makes something durable; after a resume all is as planned, and only once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from failover.model.groups import Commit
from failover.model.names import TopicPartition
from failover.state.journal import Intent, read_journal
from tests.system.crash_driver import CRASHED
from tests.system.executing import target, write_plan
from tests.system.pair import Pair

GROUPS = 30
AT_ONCE = ("--yes", "--settle", "0", "--format", "json")
MOST = 40
"""More moments than an execution of these groups has."""


def crash(pair: Pair, at: int, *arguments: str, state: Path) -> subprocess.CompletedProcess[str]:
    driver = Path(__file__).with_name("crash_driver.py")
    return subprocess.run(
        [sys.executable, str(driver), str(at), "--state-dir", str(state), *arguments],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env=os.environ | {"FAILOVER_CONFIG": str(pair.lab.config), "PYTHONPATH": str(Path(__file__).parents[2])},
        timeout=90,
        check=False,
    )


@pytest.mark.timeout(600)
def test_at_every_fsync(pair: Pair, tmp_path: Path) -> None:
    topic = pair.create_topic("b", pair.name("crash"), 2)
    pair.produce("b", topic, 200)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    crashes = 0
    for moment in range(1, MOST):
        state = tmp_path / str(moment)
        at = moment if moment % 2 else -moment
        wanted = {pair.name("crash"): {first: 10 + n, second: 20 + n} for n in range(GROUPS)}
        plan = str(write_plan(pair, wanted))
        crashed = crash(pair, at, "execute", plan, *AT_ONCE, state=state)
        if crashed.returncode == 0:
            break
        assert crashed.returncode == CRASHED, crashed.stderr
        crashes += 1
        mid = standing(pair, wanted)
        for group, offsets in wanted.items():
            assert mid[group] in ({}, {tp: Commit(offset, b"m") for tp, offset in offsets.items()})
        moved = next((group for group in wanted if mid[group]), None)
        if moved is not None:  # its consumers started before anybody resumed
            pair.commit("b", moved, {first: 77, second: 78})
        runs = sorted(state.glob("executions/*"))
        began = [run for run in runs if (run / "journal.ndjson").exists() and read_journal(run / "journal.ndjson")]
        arguments = ("--resume", began[0].name) if began and moment % 3 else (plan,)
        again = pair.run_cli("execute", *arguments, *AT_ONCE, state=state)
        expected = {
            group: {first: 77, second: 78} if group == moved else dict(offsets) for group, offsets in wanted.items()
        }
        found = {group: {tp: c.offset for tp, c in held.items()} for group, held in standing(pair, wanted).items()}
        assert found == expected
        if again.code == 5:  # it had ended before the crash: all that was missing is what it says
            assert json.loads(again.out)["error"]["code"] == "plan-stale"
        else:
            assert again.code == 0, again.err
            assert {p["status"] for g in again.json()["groups"] for p in g["partitions"]} <= {"committed", "unchanged"}
        values: dict[tuple[str, str, int], set[int]] = {}
        for run in (run for run in state.glob("executions/*") if (run / "journal.ndjson").exists()):
            for event in read_journal(run / "journal.ndjson"):
                if not isinstance(event, Intent):
                    continue
                for p in event.partitions:
                    assert p.planned is not None
                    values.setdefault((event.group, p.topic, p.partition), set()).add(p.planned.offset)
        assert all(len(seen) == 1 for seen in values.values())
    else:
        pytest.fail(f"an execution has {MOST} moments or more")
    assert crashes >= 6


def standing(pair: Pair, wanted: dict[str, dict[TopicPartition, int]]) -> dict[str, dict[TopicPartition, Commit]]:
    with target(pair) as cluster:
        found = cluster.committed(list(wanted))
    return {group: dict(held) if isinstance(held, dict) else {} for group, held in found.items()}
