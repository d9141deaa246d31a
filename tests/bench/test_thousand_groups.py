"""1,000 groups × 12 partitions: a plan and its execution as whole processes, beside Kafka's own command."""

from __future__ import annotations

import random
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from failover.lab.broker import java_command
from failover.lab.jars import class_path
from failover.lab.java import jvm_flags
from failover.model import TopicPartition
from tests.bench.figures import Figures
from tests.bench.fill import commit_groups, committed_groups, delete_groups, write_numbers
from tests.bench.measure import Run, failover, run
from tests.bench.mirroring import wait_quiet
from tests.system.pair import Pair

pytestmark = pytest.mark.timeout(600)

GROUPS, PARTITIONS, RECORDS = 1000, 12, 2000
TOPIC = "orders"
PLANS, EXECUTIONS, RESETS = 5, 3, 2
Offsets = dict[str, dict[TopicPartition, int]]


def prepare(pair: Pair) -> list[str]:
    """Mirrors a topic with the real MirrorMaker 2 and lets it write a checkpoint for each group and partition.

    The groups and a first record are there before it starts: its checkpoint task keeps only the
    newest sync of those it finds, and translates nothing older (MM2: OffsetSyncStore).
    """
    names = [f"app-{number:04}" for number in range(GROUPS)]
    pair.create_topic(pair.source, TOPIC, PARTITIONS)
    write_numbers(pair.a, TOPIC, PARTITIONS, range(1))
    commit_groups(pair.a, {name: {(TOPIC, number): 1 for number in range(PARTITIONS)} for name in names})
    pair.lab.start_mirror()
    pair.b.until(
        lambda: len(pair.checkpoints()) == GROUPS * PARTITIONS, what="a first checkpoint each", seconds=120, every=0.5
    )
    write_numbers(pair.a, TOPIC, PARTITIONS, range(1, RECORDS))
    pair.wait_mirrored(TOPIC)
    pick = random.Random(1)
    commits = {name: {(TOPIC, number): pick.randint(2, RECORDS) for number in range(PARTITIONS)} for name in names}
    commit_groups(pair.a, commits)
    wait_quiet(pair)
    pair.lab.kill("mm2")
    return names


def planned(plan: Mapping[str, Any]) -> Offsets:
    return {
        group["group"]: {
            TopicPartition(row["topic"], row["partition"]): row["offset"]
            for row in group["partitions"]
            if row["action"] == "commit"
        }
        for group in plan["groups"]
    }


def reset_by_kafka(pair: Pair, offsets: Offsets, folder: Path) -> Run:
    """Commits the same offsets with one run of Kafka's command, its JVM included."""
    rows = [f"{group},{tp.topic},{tp.partition},{at}\n" for group, own in offsets.items() for tp, at in own.items()]
    (folder / "offsets.csv").write_text("".join(rows))
    arguments = ["org.apache.kafka.tools.consumer.group.ConsumerGroupCommand", "--bootstrap-server", pair.b.bootstrap]
    arguments += ["--reset-offsets", "--from-file", str(folder / "offsets.csv"), "--execute"]
    for group in offsets:
        arguments += ["--group", group]
    command = java_command(
        pair.lab.state.java,
        jvm_flags(heap="512m", quick=False),
        class_path(),
        marker=pair.lab.state.marker,
        logging=next(pair.lab.folder.glob("log4j*.properties")),
        arguments=arguments,
    )
    done = run(command)
    assert done.code == 0, done.err
    return done


def assert_committed(pair: Pair, offsets: Offsets) -> None:
    assert committed_groups(pair.b, list(offsets)) == offsets


def test_a_thousand_groups(pair: Pair, tmp_path: Path) -> None:
    names = prepare(pair)
    config, state = pair.lab.config, tmp_path / "state"
    figures = Figures("thousand-groups", f"{GROUPS:,} groups × {PARTITIONS} partitions")

    for arguments, goal in (((), "< 5"), (("--no-content",), "< 3")):
        command = " ".join(("failover plan", *arguments))
        failover("plan", *arguments, config=config, state=state)  # the brokers have heard these questions before
        plans = [failover("plan", *arguments, config=config, state=state) for _ in range(PLANS)]
        figures.process(f"`{command}`", plans, seconds=goal)

    executions = []
    for _ in range(EXECUTIONS):
        delete_groups(pair.b, names)
        offsets = planned(failover("plan", "--format", "json", config=config, state=state).json())
        assert sum(map(len, offsets.values())) == GROUPS * PARTITIONS
        executions.append(failover("execute", "--yes", "--settle", "0", config=config, state=state))
        assert_committed(pair, offsets)
    figures.process("`failover execute --yes --settle 0`, read back", executions, seconds="< 3")

    resets = []
    for _ in range(RESETS):
        delete_groups(pair.b, names)
        resets.append(reset_by_kafka(pair, offsets, tmp_path))
        assert_committed(pair, offsets)
    figures.process("`ConsumerGroupCommand --reset-offsets --from-file`", resets)
    ratio = statistics.median(each.seconds for each in resets) / statistics.median(each.seconds for each in executions)
    figures.add("the last takes so many times as long as `failover execute`", [ratio], goal=">= 8")
    figures.note(
        "`ConsumerGroupCommand` is Kafka's own, one JVM for all groups. The groups do not exist on the target before a "
        "commit; what each command left there is compared with the plan."
    )
    figures.publish()
