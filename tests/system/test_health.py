"""`health` beside the real MirrorMaker 2: a flow that is well, and what is found once it is not."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from failover.lab import MirrorOptions
from failover.model.names import TopicPartition
from tests.system.inventory_side import cluster
from tests.system.pair import Pair, Ran

KEPT_AS_IT_IS = {"he->b.sync.topic.configs.interval.seconds": "600"}
OWN = MirrorOptions(
    topics=r"health\..*",
    groups=r"health\..*",
    checkpoint_seconds=1,
    refresh_seconds=1,
    flush_seconds=1,
    settings=KEPT_AS_IT_IS,
)
POSITIONS = "mm2-offsets.he.internal"


class Scene:
    """Is a flow of its own with a topic of two partitions and a group that has read all of it."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self.topic = pair.create_topic("a", pair.name("health.t"), 2, config={"retention.ms": "7200000"})
        self.group = pair.name("health.g")
        pair.produce("a", self.topic, 200)
        ends = {(self.topic, partition): end for partition, (_, end) in pair.ends("a", self.topic).items()}
        pair.commit("a", self.group, ends)
        self.ends = ends

    def run(self, config: Path, *arguments: str) -> Ran:
        return self.pair.run_cli("health", "--source", "he", "--target", "b", *arguments, config=config)

    def asked(self, config: Path, period: str) -> Any:
        return self.run(config, period, "--format", "json").json()


@pytest.fixture(scope="module")
def scene(pair: Pair) -> Scene:
    return Scene(pair)


@pytest.fixture(scope="module")
def config(scene: Scene) -> Iterator[Path]:
    with scene.pair.mirror(OWN, aliases=("he", "b")) as path:
        scene.pair.wait_mirrored(scene.topic, flow="he")
        for (topic, partition), end in scene.ends.items():
            scene.pair.wait_checkpoint(scene.group, topic, partition, upstream=end, flow="he")
        yield path


@contextmanager
def changed(
    pair: Pair, alias: str, topic: str, settings: Mapping[str, str], *, back: Mapping[str, str]
) -> Iterator[None]:
    """Has a topic with other settings for as long as a test looks."""

    def alter(values: Mapping[str, str]) -> None:
        entries = [
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in values.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
        for future in pair.admin(alias).incremental_alter_configs([resource]).values():
            future.result(20)

    alter(settings)
    try:
        yield
    finally:
        alter(back)


def results(health: Any) -> dict[str, str]:
    return {point["name"]: point["result"] for point in health["points"]}


def found(health: Any, code: str) -> list[Any]:
    return [finding for finding in health["findings"] if finding["code"] == code]


def test_a_flow_that_is_well_is_so_at_every_point_and_by_each_way_of_measuring_lag(scene, config):
    health: Any = {}

    def well() -> bool:
        health.update(scene.asked(config, "weekly"))
        by = {lag["by"]: lag["records"] for lag in health["lags"]}
        return by["offsets"] == 0 and by["connect-offsets"] == 0 and bool(health["readiness"] == "ready")

    scene.pair.b.until(well, what="the flow is well", seconds=90)
    assert results(health) | {"heartbeat": "-", "offsets": "-", "unused": "-"} == {
        "connectors": "ok",
        "lag": "ok",
        "heartbeat": "-",
        "checkpoints": "ok",
        "groups": "ok",
        "new-topics": "ok",
        "stuck-groups": "ok",
        "acls": "ok",
        "configs": "ok",
        "partitions": "ok",
        "offsets": "-",
        "unused": "-",
        "disk": "ok",
        "versions": "ok",
    }
    versions = next(point for point in health["points"] if point["name"] == "versions")
    assert versions["detail"] == "he: Kafka 4.1 or newer, b: Kafka 4.1 or newer"
    ran = scene.run(config, "daily")
    assert (ran.code, ran.out.startswith("WELL")) == (0, True)
    assert all(len(line) <= 100 for line in ran.out.splitlines())
    assert "| connectors | ok |" in scene.run(config, "weekly", "--format", "markdown").out


def test_brokers_tell_disks_newest_timestamps_and_what_they_speak(scene, config):
    place, empty = TopicPartition(scene.topic, 0), scene.pair.create_topic("a", scene.pair.name("health.empty"))
    newest = max(record.timestamp for record in scene.pair.read("a", scene.topic)[0])
    with cluster(scene.pair, "a") as source:
        sizes = source.log_bytes([scene.topic, empty, "nowhere"])
        assert isinstance(sizes, dict)
        assert sizes[scene.topic] > 200
        assert (sizes[empty], sizes["nowhere"]) == (0, 0)
        assert source.last_times([place, TopicPartition(empty, 0)]) == {place: newest, TopicPartition(empty, 0): None}
        spoken = source.api_versions()
        assert isinstance(spoken, dict)
        assert {versions[1] for versions in spoken.values()} == {18}


def test_settings_that_take_something_away_are_found_on_copies_and_on_internal_topics(scene, config):
    copy = f"he.{scene.topic}"
    with (
        changed(scene.pair, "b", copy, {"retention.ms": "3600000"}, back={"retention.ms": "7200000"}),
        changed(scene.pair, "b", POSITIONS, {"cleanup.policy": "delete"}, back={"cleanup.policy": "compact"}),
    ):
        ran = scene.run(config, "weekly", "--format", "json")
    health = ran.json()
    assert ran.code == 3
    (drift,) = found(health, "config-drift")
    assert (drift["severity"], drift["subject"]) == ("warning", scene.topic)
    assert "retention.ms=7200000, its copy 3600000" in drift["message"]
    (policy,) = found(health, "internal-topic-policy")
    assert (policy["severity"], policy["subject"]) == ("error", POSITIONS)
    assert "--add-config cleanup.policy=compact" in policy["remedy"]
    assert found(scene.asked(config, "daily"), "config-drift") == []


def test_a_mirror_that_was_killed_is_found_by_what_waits_for_it(scene, config):
    pair = scene.pair
    pair.lab.kill("mm2-he-b")
    old = int(time.time() * 1000) - 900_000
    producer = pair.a.producer()
    for number in range(12_000):
        producer.produce(scene.topic, b"v", partition=0, timestamp=old + number)
    producer.flush(30)
    fresh = pair.create_topic("a", pair.name("health.fresh"))
    ran = scene.run(config, "weekly", "--format", "json")
    health = ran.json()
    assert ran.code == 3
    (lag,) = found(health, "replication-lag")
    assert (lag["severity"], lag["subject"]) == ("error", f"{scene.topic}-0")
    assert next(one["records"] for one in health["lags"] if one["by"] == "offsets") == 12_000
    assert next(one["records"] for one in health["lags"] if one["by"] == "connect-offsets") == 12_000
    (stalled,) = found(health, "mirror-stalled")
    assert scene.topic in stalled["subject"]
    (missing,) = found(health, "topic-not-mirrored")
    assert missing["subject"] == fresh
    assert results(health)["connectors"] != "ok"
    assert results(health)["lag"] == "error"
