"""How long applications are without service while the shipped switchover moves a hundred groups."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from failover.lab import ADMIN, APP
from failover.model.rights import AclBinding
from tests.bench.applications import Applications, middle_and_longest
from tests.bench.conftest import OPTIONS
from tests.bench.figures import Figures
from tests.bench.measure import failover
from tests.system.inventory_side import cluster
from tests.system.pair import Pair
from tests.system.running import running

pytestmark = pytest.mark.timeout(1500)

GROUPS, TOPICS, PARTITIONS = 100, 10, 2
TIMES = int(os.environ.get("FAILOVER_BENCH_TIMES", "5"))
STANDSTILL = ("fence", "move-producers")
"""The first and the last step while which producers are out."""


@pytest.fixture(scope="module")
def fenced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    options = msgspec.structs.replace(OPTIONS, sasl=True, authorizer=True)
    with running(tmp_path_factory.mktemp("rto"), options) as started:
        started.lab.start_mirror()
        yield started


def test_rto(fenced: Pair, tmp_path: Path) -> None:
    pair = fenced
    consumers: list[tuple[float, float]] = []
    producers: list[tuple[float, float]] = []
    steps: dict[str, list[float]] = {}
    whole: list[float] = []
    config = as_ordinary_user(pair)
    for number in range(TIMES):
        folder = tmp_path / str(number)
        folder.mkdir()
        record, applications = switch_over(pair, config, number, folder)
        consumers.append(middle_and_longest(applications.without(applications.read, pair.target)))
        producers.append(middle_and_longest(applications.without(applications.written, pair.target)))
        ids = [step["id"] for step in record["steps"]]
        for step in record["steps"][ids.index(STANDSTILL[0]) : ids.index(STANDSTILL[1]) + 1]:
            if "seconds" in step:
                steps.setdefault(step["id"], []).append(step["seconds"])
        whole.append(sum(step.get("seconds", 0.0) for step in record["steps"]))
    figures = Figures("rto", f"A switchover of {GROUPS} groups")
    figures.add("consumers: median of the groups without a record, s", [middle for middle, _ in consumers])
    figures.add("consumers: the longest, s", [longest for _, longest in consumers])
    figures.add("producers: median of the topics without an acknowledgement, s", [middle for middle, _ in producers])
    figures.add("producers: the longest, s", [longest for _, longest in producers])
    figures.add("all steps of the run, s", whole)
    for step, seconds in steps.items():
        figures.add(f"step `{step}`, s", seconds)
    figures.note(
        f"{GROUPS} groups of one consumer each on {TOPICS} topics of {PARTITIONS} partitions, one producer a topic with"
        " ten records a second, the real MirrorMaker 2. `failover run switchover --yes` with a hook that stops and"
        " starts all of them; consumers commit every second. Counted from the last record a group consumed on the"
        " primary to its first one on the standby, producers by acknowledgements. The broker lets a new group wait"
        " three seconds for more members (`group.initial.rebalance.delay.ms`). No plan had a record to read again or to"
        " skip."
    )
    figures.publish()


def switch_over(pair: Pair, config: Path, number: int, folder: Path) -> tuple[Any, Applications]:
    """Starts applications on topics and groups of their own, moves them, and waits until all are served."""
    topics = [pair.create_topic(pair.source, f"rto{number}-{each}", PARTITIONS) for each in range(TOPICS)]
    groups = {f"rto{number}-group-{each}": topics[each % TOPICS] for each in range(GROUPS)}
    allow(pair, topics)
    settings: dict[tuple[str, str], dict[str, Any]] = {}
    for alias in (pair.source, pair.target):
        settings["consumers", alias] = {
            **pair.lab.client_settings(alias),
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 1000,
            "topic.metadata.refresh.interval.ms": 5000,
        }
        user = pair.lab.client_settings(alias, user=APP, mechanism="SCRAM-SHA-512")
        settings["producers", alias] = {**user, "message.timeout.ms": 5000}
    with Applications(folder, settings, groups) as applications:
        applications.start("producers", pair.source)
        applications.start("consumers", pair.source)
        pair.a.until(
            lambda: applications.served(pair.source) == (GROUPS, TOPICS), what="every group consumes", seconds=120
        )
        for topic in topics:
            pair.wait_mirrored(topic, seconds=120)
        flow = f"{pair.source}->{pair.target}"
        record = failover(
            *("--set", f"{flow}.topics=rto{number}-.*", "--set", f"{flow}.groups=rto{number}-.*"),
            *("run", "switchover", "--yes", "--self-approve", "--format", "json"),
            *("--var", "replication=manual", "--var", "come_back=90s"),
            *("--var", f"hook={sys.executable},{applications.hook},{folder}"),
            config=config,
            state=folder / "state",
        ).json()
        pair.b.until(
            lambda: applications.served(pair.target) == (GROUPS, TOPICS) or applications.faults,
            what="every group consumes on the standby",
            seconds=120,
        )
        assert applications.faults == []
        results = {step["id"]: step.get("result", {}) for step in record["steps"]}
        assert results["fence"]["proved"] is True
        assert results["drain"]["groups"] == GROUPS
        assert results["plan"]["reread"] == results["plan"]["skipped"] == 0
        assert results["plan"]["ready"] == results["consumers-back"]["back"] == GROUPS
        return record, applications


def as_ordinary_user(pair: Pair) -> Path:
    """Writes a configuration by which the tool is no super user on the primary, so that the fence is proved."""
    login = (
        "org.apache.kafka.common.security.scram.ScramLoginModule required "
        f'username="{APP}" password="{pair.lab.state.passwords[APP]}";'
    )
    rights = [_right("cluster", "kafka-cluster", right) for right in ("ALTER", "DESCRIBE", "DESCRIBE_CONFIGS")]
    rights += [_right("topic", "*", right) for right in ("READ", "DESCRIBE", "DESCRIBE_CONFIGS")]
    create(pair, [*rights, _right("group", "*", "DESCRIBE")])
    return pair.config_path(user=ADMIN, added={f"failover.cluster.{pair.source}.sasl.jaas.config": login})


def allow(pair: Pair, topics: list[str]) -> None:
    """Gives the applications' user its rights on the primary; the playbook gives it the same on the standby."""
    create(pair, [_right("topic", topic, "WRITE") for topic in topics])


def create(pair: Pair, bindings: list[AclBinding]) -> None:
    """Creates ACLs on the primary."""
    with cluster(pair, pair.source) as source:
        assert set(source.create_acls(bindings).values()) == {None}


def _right(resource: str, name: str, operation: str) -> AclBinding:
    return AclBinding(resource, "literal", name, f"User:{APP}", "*", "ALLOW", operation)
