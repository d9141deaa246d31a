"""A checkpoints topic that was never compacted: many records, few keys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from failover.mm2.checkpoint import Checkpoint
from tests.bench.figures import Figures
from tests.bench.fill import Message, commit_groups, write, write_numbers
from tests.bench.measure import failover
from tests.system.pair import Pair

pytestmark = pytest.mark.timeout(600)

GROUPS, PARTITIONS, RECORDS = 250, 12, 2_000_000
KEYS = GROUPS * PARTITIONS
TOPIC, REMOTE = "orders", "primary.orders"
LENGTH = 1000
PLANS = 3


def checkpoints(names: list[str]) -> Iterator[Message]:
    """Yields what MirrorMaker 2 writes for groups that go on by one record a round, the last round at the end."""
    keys = [Checkpoint(name, REMOTE, number, 0, 0).encode_key() for name in names for number in range(PARTITIONS)]
    rounds = -(-RECORDS // KEYS)
    for index in range(RECORDS):
        at = LENGTH - rounds + 1 + index // KEYS
        yield {"key": keys[index % KEYS], "value": Checkpoint("", "", 0, at, at).encode_value()}


def test_two_million_checkpoint_records(pair: Pair, tmp_path: Path) -> None:
    names = [f"app-{number:03}" for number in range(GROUPS)]
    for side, topic in ((pair.a, TOPIC), (pair.b, REMOTE)):
        side.create_topic(topic, PARTITIONS)
        write_numbers(side, topic, PARTITIONS, range(LENGTH))
    commit_groups(pair.a, {name: {(TOPIC, number): LENGTH for number in range(PARTITIONS)} for name in names})
    topic = pair.b.create_topic("primary.checkpoints.internal", config={"cleanup.policy": "compact"})
    write(pair.b, topic, checkpoints(names))
    assert pair.b.ends(topic) == {0: (0, RECORDS)}

    figures = Figures("checkpoint-records", f"{RECORDS:,} checkpoint records with {KEYS:,} keys")
    plans = [failover("plan", "--format", "json", config=pair.lab.config, state=tmp_path) for _ in range(PLANS)]
    for plan in plans:
        found = [row["checkpoint"] for group in plan.json()["groups"] for row in group["partitions"]]
        assert len(found) == KEYS
    figures.process("`failover plan`", plans, seconds="< 20", megabytes="< 300")
    figures.publish()
