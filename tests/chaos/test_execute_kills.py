"""kill -9 at random moments of an execution; after resuming, every offset is as planned and none was written twice."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from failover.execution.runs import load_run
from failover.model.groups import Commit
from failover.model.names import TopicPartition
from failover.state.journal import Intent, read_journal
from tests.system.executing import put, running, target, write_plan
from tests.system.pair import Pair

GROUPS, ROUNDS = 300, 50
AT_ONCE = ("--yes", "--settle", "0", "--format", "json")


@pytest.mark.timeout(1800)
def test_random_kills(pair: Pair, tmp_path: Path) -> None:
    topic = pair.create_topic("b", pair.name("kills"), 2)
    pair.produce("b", topic, 2000)
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    seed = random.randrange(1 << 30)
    pick = random.Random(seed)
    killed = 0
    for number in range(ROUNDS):
        state = tmp_path / str(number)
        wanted = {pair.name("kills"): {first: pick.randrange(900), second: pick.randrange(900)} for _ in range(GROUPS)}
        plan = str(write_plan(pair, wanted))
        seconds = pick.uniform(0.2, 1.5)
        with running(pair, "execute", plan, *AT_ONCE, state=state, config=pair.lab.config) as process:
            time.sleep(seconds)
            killed += process.poll() is None
            process.kill()
            process.wait()
        done = [group for group, held in standing(pair, wanted).items() if held]
        moved = pick.sample(done, min(len(done), 3))  # their consumers started before anybody resumed
        for group in moved:
            put(pair, group, {first: Commit(950), second: Commit(951)})
        again = pair.run_cli("execute", plan, *AT_ONCE, state=state)
        expected = {
            group: {first: 950, second: 951} if group in moved else dict(offsets) for group, offsets in wanted.items()
        }
        assert standing(pair, wanted) == expected, f"seed {seed}, round {number}: {again.err}"
        assert again.code in (0, 5), f"seed {seed}, round {number}: {again.err}"
        values: dict[tuple[str, str, int], set[int]] = {}
        for run in state.glob("executions/*"):
            events = read_journal(run / "journal.ndjson") if (run / "journal.ndjson").exists() else []
            if events:
                assert load_run(run).groups
            for event in events:
                if not isinstance(event, Intent):
                    continue
                for p in event.partitions:
                    if p.planned is not None:
                        values.setdefault((event.group, p.topic, p.partition), set()).add(p.planned.offset)
        assert all(len(seen) == 1 for seen in values.values()), f"seed {seed}, round {number}"
    assert killed >= ROUNDS // 2, "most executions ended before they were killed: shorten the waits"


def standing(pair: Pair, wanted: dict[str, dict[TopicPartition, int]]) -> dict[str, dict[TopicPartition, int]]:
    with target(pair) as cluster:
        found = cluster.committed(list(wanted))
    offsets = {}
    for group, held in found.items():
        assert isinstance(held, dict)
        offsets[group] = {tp: commit.offset for tp, commit in held.items()}
    return offsets
