"""Plans made by hand for a pair's target, so that executing them is tested without a mirror."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from failover.config.clients import ClientSettings
from failover.kafka.admin import KafkaCluster
from failover.model.cluster import TopicInfo
from failover.model.groups import Commit
from failover.model.names import TopicPartition
from failover.model.plan import Plan, PlannedCluster, PlannedGroup
from failover.model.snapshot import FlowInfo
from failover.planning.fingerprint import fingerprint
from failover.planning.plan_file import encode_plan
from tests.system.pair import Pair
from tests.system.wire_side import address
from tests.unit.execution.plans import group, plan

Offsets = Mapping[TopicPartition, int]
_ids = itertools.count(1)


@contextmanager
def target(pair: Pair, *, alias: str | None = None, timeout: float = 10) -> Iterator[KafkaCluster]:
    """Is the target, or the cluster named, as this package sees it."""
    alias = alias or pair.target
    found = KafkaCluster(alias, ClientSettings(address(pair.bootstrap(alias))), timeout=timeout)
    try:
        yield found
    finally:
        found.close()


def commits(pair: Pair, name: str) -> dict[TopicPartition, Commit]:
    """Reads a group's commits on the target, metadata and leader epoch included."""
    with target(pair) as cluster:
        found = cluster.committed([name])[name]
    assert isinstance(found, dict)
    return found


def put(pair: Pair, name: str, offsets: Mapping[TopicPartition, Commit]) -> None:
    """Commits on the target, byte for byte."""
    answers: list[Any] = []
    with target(pair) as cluster:
        cluster.commit({name: offsets}, lambda _, answer: answers.append(answer))
    assert answers == [dict.fromkeys(offsets)]


def make_plan(pair: Pair, wanted: Mapping[str, Offsets], *, back: bool = False, **changes: Any) -> Plan:
    """Makes a plan that commits these offsets on the target, as it stands now; ``back``: on the source."""
    aliases = (pair.target, pair.source) if back else (pair.source, pair.target)
    topics = {tp.topic for offsets in wanted.values() for tp in offsets}
    with target(pair, alias=aliases[1]) as cluster:
        identity = cluster.facts().cluster_id
        infos = cluster.describe_topics(topics)
        standing = cluster.committed(list(wanted))
    groups: list[PlannedGroup] = []
    for name, offsets in wanted.items():
        held = standing[name]
        assert isinstance(held, dict)
        groups.append(group(name, offsets, {tp: commit.offset for tp, commit in held.items()}))
    now = datetime.now(UTC)
    made = msgspec.structs.replace(
        plan(*groups),
        id=f"{os.getpid():06x}{next(_ids):04x}",
        created=now,
        expires=now + timedelta(hours=1),
        topic_ids={name: info.topic_id for name, info in infos.items() if isinstance(info, TopicInfo)},
        source=PlannedCluster(aliases[0], None, "up"),
        target=PlannedCluster(aliases[1], identity, "up"),
        flow=FlowInfo(*aliases, "DefaultReplicationPolicy", "."),
        **changes,
    )
    return msgspec.structs.replace(made, fingerprint=fingerprint(made))


def write_plan(pair: Pair, wanted: Mapping[str, Offsets], **changes: Any) -> Path:
    """Makes a plan and writes its file."""
    made = make_plan(pair, wanted, **changes)
    path = pair.folder / f"plan-{made.id}.json"
    path.write_bytes(encode_plan(made))
    return path


@contextmanager
def running(pair: Pair, *arguments: str, state: Path, config: Path) -> Iterator[subprocess.Popen[str]]:
    """Runs a command beside the test; it is killed when it still runs at the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "failover", "--state-dir", str(state), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"FAILOVER_CONFIG": str(config), "NO_COLOR": "1"},
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()
