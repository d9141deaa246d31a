"""plan reads and nothing else: topics, groups and commits of both clusters stay, though topics create themselves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from failover.lab import MirrorOptions
from tests.system.pair import Pair
from tests.system.typed import by_name, findings, kept, one_error, world


class Scene(NamedTuple):
    """Is a mirrored topic, and a group that stands on it."""

    pair: Pair
    topic: str
    group: str


@pytest.fixture(scope="module")
def scene(mm2: Pair) -> Scene:
    topic, group = mm2.create_topic("a", mm2.name("t.quiet"), 2), mm2.name("quiet")
    mm2.produce("a", topic, 40)
    mm2.a.place(group, {(topic, 0): 20, (topic, 1): 3})
    mm2.wait_mirrored(topic)
    mm2.wait_checkpoint(group, topic)
    # what MirrorMaker 2 itself is still to make for other tests' topics would look like our doing
    mm2.b.until(
        lambda: {f"a.{name}" for name in mm2.a.topics() if name.startswith("t.")} <= mm2.b.topics(),
        what="MirrorMaker 2 made its topics",
        seconds=90,
    )
    return Scene(mm2, topic, group)


def test_topics_would_create_themselves_on_both_sides(scene: Scene) -> None:
    from confluent_kafka.admin import ConfigResource, ResourceType

    for side in scene.pair.sides.values():
        asked = ConfigResource(ResourceType.BROKER, "1")
        found = side.admin.describe_configs([asked], request_timeout=10)[asked].result(timeout=15)
        assert found["auto.create.topics.enable"].value == "true"


def config_with(**options: str) -> Callable[[Pair], Path]:
    return lambda pair: pair.config_path(added={key.replace("__", "."): value for key, value in options.items()})


def other_aliases(*aliases: str) -> Callable[[Pair], Path]:
    source, target = aliases
    return lambda pair: pair.config_path(aliases=(source, target), options=MirrorOptions(topics=r"t\..*"))


CASES: dict[str, tuple[Callable[[Pair], Path | None], list[str]]] = {
    "everything": (lambda _: None, ["plan", "--evidence"]),
    "by hand": (lambda _: None, ["plan", "--group", "GROUP"]),
    "by pattern": (lambda _: None, ["plan", "--group-pattern", "quiet.*", "--exclude-group", "GROUP"]),
    "a group to create": (lambda _: None, ["plan", "--group", "nobody-ever", "--create-group"]),
    "without the source": (lambda _: None, ["plan", "--source-down"]),
    "no checkpoints topic, no mirrored topics": (other_aliases("x", "y"), ["plan"]),
    "the same without the source": (other_aliases("x", "y"), ["plan", "--source-down"]),
    "a mistyped source alias": (other_aliases("aa", "b"), ["plan", "--group", "GROUP"]),
    "other names": (
        config_with(replication__policy__class="org.apache.kafka.connect.mirror.IdentityReplicationPolicy"),
        ["plan", "--group", "GROUP"],
    ),
    "another separator": (config_with(replication__policy__separator="_"), ["plan", "--group", "GROUP"]),
    "offset syncs elsewhere": (
        config_with(**{"a->b.offset-syncs.topic.location": "target"}),
        ["plan", "--group", "GROUP"],
    ),
    "a rehearsal": (lambda _: None, ["execute", "--all", "--dry-run"]),
    "a rehearsal without the source": (lambda _: None, ["execute", "--all", "--dry-run", "--source-down"]),
}


@pytest.mark.parametrize("case", CASES)
def test_a_look_leaves_both_clusters_as_they_are(scene: Scene, case: str, tmp_path: Path) -> None:
    config, arguments = CASES[case]
    typed = [scene.group if word == "GROUP" else word for word in arguments]
    before = world(scene.pair)
    ran = scene.pair.run_cli(*typed, "--format", "json", state=tmp_path, config=config(scene.pair))
    assert ran.code in (0, 3, 4), ran.err
    assert ran.json()["groups"] is not None
    assert world(scene.pair) == before
    assert [name for name in kept(tmp_path) if name.startswith("plans/")]


def test_a_group_that_exists_nowhere_is_created_by_nothing(scene: Scene, tmp_path: Path) -> None:
    before = world(scene.pair)
    for command in (["plan"], ["execute", "--yes", "--settle", "0"]):
        ran = scene.pair.run_cli(*command, "--group", "nobody-ever", state=tmp_path)
        assert "group nobody-ever exists on neither cluster and in no checkpoint" in one_error(ran, 2, tmp_path)
    ran = scene.pair.run_cli("plan", "--group", "nobody-ever", "--create-group", "--format", "json", state=tmp_path)
    assert (ran.code, by_name(ran.json())["nobody-ever"]["verdict"]) == (0, "nothing")
    # nothing is known of it, so there is nothing to commit, and no commit no group
    ran = scene.pair.run_cli("execute", "--yes", "--settle", "0", "--group", "nobody-ever", "--create-group")
    assert ran.code == 0, ran.err
    after = world(scene.pair)
    assert after["a"] == before["a"]
    assert after["b"][1:] == before["b"][1:]


def test_what_is_missing_is_told(scene: Scene, tmp_path: Path) -> None:
    missing = other_aliases("x", "y")(scene.pair)
    ran = scene.pair.run_cli("plan", "--group", scene.group, "--format", "json", state=tmp_path, config=missing)
    assert "x.checkpoints.internal on y does not exist" in findings(ran.json())["internal-topic-missing"]["message"]
    mistyped = other_aliases("aa", "b")(scene.pair)
    ran = scene.pair.run_cli("plan", "--group", scene.group, "--format", "json", state=tmp_path, config=mistyped)
    assert ran.code == 4
    partitions = by_name(ran.json())[scene.group]["partitions"]
    assert {(p["topic"], p["reason"]) for p in partitions} == {(f"aa.{scene.topic}", "topic-missing")}
