"""Cycles of the exact checkpointer over 1,000 groups × 10 partitions that the real MirrorMaker 2 mirrors."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Mapping

import pytest

from failover.config.flow import SelectedFlow
from failover.config.load import load_config
from failover.inventory.flow import flow_of
from failover.kafka.wire.cluster import WireCluster
from failover.kafka.wire.thread import new_loop
from failover.replication.checkpointing import checkpoint_options, tracker_of
from failover.replication.tracker import Tracker
from tests.bench.figures import Figures
from tests.bench.fill import commit_groups, write_numbers
from tests.system.pair import Pair

pytestmark = pytest.mark.timeout(600)

GROUPS, PARTITIONS, RECORDS = 1000, 10, 5000
TOPIC = "orders"
QUIET, MOVES = 5, 3


class Measured:
    """Collects what cycles of one kind took."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.cpu: list[float] = []

    async def cycles(self, tracker: Tracker, *, until_settled: bool = False) -> None:
        """Runs one cycle, or as many as it takes until every position is on record exactly."""
        wall, cpu = time.perf_counter(), time.process_time()
        await tracker.cycle()
        while until_settled and tracker.open_positions:
            await tracker.cycle()
        self.seconds.append(time.perf_counter() - wall)
        self.cpu.append(time.process_time() - cpu)


def commits(pair: Pair, pick: random.Random) -> None:
    names = [f"app-{number:04}" for number in range(GROUPS)]
    places: Mapping[str, dict[tuple[str, int], int]] = {
        name: {(TOPIC, number): pick.randint(1, RECORDS) for number in range(PARTITIONS)} for name in names
    }
    commit_groups(pair.a, places)


def test_cycles_of_the_exact_checkpointer(pair: Pair) -> None:
    pair.create_topic(pair.source, TOPIC, PARTITIONS)
    write_numbers(pair.a, TOPIC, PARTITIONS, range(RECORDS))
    pick = random.Random(1)
    commits(pair, pick)
    pair.lab.start_mirror()
    pair.wait_mirrored(TOPIC, seconds=120)
    config = load_config([str(pair.lab.config)])
    [only] = config.enabled_flows
    flow = flow_of(config, SelectedFlow(only, pair.source, pair.target))
    options = checkpoint_options(config, only, flow)
    first, moved, quiet = Measured(), Measured(), Measured()

    async def measure() -> None:
        async with (
            WireCluster(only.client("source"), alias=pair.source) as source,
            WireCluster(only.client("target"), alias=pair.target) as target,
        ):
            tracker = tracker_of(flow, source, target, options)
            await tracker.open()
            await first.cycles(tracker, until_settled=True)
            for _ in range(MOVES):
                await asyncio.to_thread(commits, pair, pick)
                await moved.cycles(tracker, until_settled=True)
            for _ in range(QUIET):
                await quiet.cycles(tracker)
            await tracker.close()
            known = [place.known for places in tracker.positions.values() for place in places.values()]
            assert (len(known), {each.precision for each in known}) == (GROUPS * PARTITIONS, {"exact"})

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(measure())
    figures = Figures("exact-checkpoints", "Exact checkpoints of 1,000 groups with 10 partitions each")
    figures.add("a cycle in which nothing moved, s", quiet.seconds)
    figures.add("a cycle in which nothing moved, CPU s", quiet.cpu, goal="< 0.5")
    figures.add("all 10,000 positions moved, until all are on record, s", moved.seconds)
    figures.add("all 10,000 positions moved, until all are on record, CPU s", moved.cpu)
    figures.add("the first cycles of all, CPU s", first.cpu)
    figures.note("The process that tracks alone; every position ends exact, by comparing records.")
    figures.publish()
