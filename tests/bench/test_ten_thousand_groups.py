"""10,000 groups × 4 partitions: an execution with its read-back, journal and all, as a whole process."""

from __future__ import annotations

from pathlib import Path

import pytest

from failover.model.names import TopicPartition
from tests.bench.figures import Figures
from tests.bench.measure import failover
from tests.system.executing import commits, write_plan
from tests.system.pair import Pair

GROUPS, PARTITIONS = 10_000, 4


@pytest.mark.timeout(900)
def test_ten_thousand_groups(pair: Pair, tmp_path: Path) -> None:
    topic = pair.create_topic(pair.target, "orders", PARTITIONS)
    pair.produce(pair.target, topic, 4000)
    places = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    wanted = {f"app-{number:05}": dict.fromkeys(places, number % 1000) for number in range(GROUPS)}
    plan = str(write_plan(pair, wanted))
    config, state = pair.lab.config, tmp_path / "state"
    figures = Figures("ten-thousand-groups", f"{GROUPS:,} groups × {PARTITIONS} partitions")
    first = failover("execute", plan, "--yes", "--settle", "0", "-q", config=config, state=state)
    assert first.code == 0, first.err
    for name in ("app-00000", "app-09999"):
        assert {tp: commit.offset for tp, commit in commits(pair, name).items()} == wanted[name]
    figures.add("`failover execute --yes --settle 0`, read back, s", [first.seconds], goal="< 30")
    figures.add("its CPU, s", [first.cpu])
    figures.add("its peak memory, MB", [first.megabytes], goal="< 400")
    (folder,) = state.glob("executions/*")
    back = failover("rollback", folder.name, "--yes", "-q", config=config, state=state)
    assert back.code == 0, back.err
    figures.add("`failover rollback --yes`, all groups removed again, s", [back.seconds])
    figures.publish()
