"""A source or a target that is dead, frozen, unknown by name or refuses: what plan and execute say, and for how long.

``pytest -s`` shows each case's seconds; they are in the test report too.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from failover.lab import ADMIN
from failover.lab.side import Side
from failover.mm2.checkpoint import Checkpoint
from failover.model.groups import Commit
from failover.model.names import TopicPartition
from tests.system.inventory_side import cluster
from tests.system.pair import Pair, Ran
from tests.system.typed import by_name, error_object, findings, kept, offsets, one_error

SILENCE = 3
"""Seconds given as --timeout."""

HOST = "no-such-host.invalid"
NOWHERE = f"{HOST}:9092"
CROWD = [f"crowd-{number}" for number in range(6)]
Property = Callable[[str, object], None]


class Scene(NamedTuple):
    """Is a group with checkpoints on the target and commits on the source; MirrorMaker 2 has ended."""

    pair: Pair
    group: str
    remote: str
    checkpoints: dict[tuple[str, int], int]
    plan: Path

    def typed(self, case: str, note: Property, *arguments: str, state: Path, config: Path | None = None) -> Ran:
        """Runs a command with --timeout and tells how long it took."""
        began = time.monotonic()
        ran = self.pair.run_cli(*arguments, "--timeout", f"{SILENCE}s", state=state, config=config)
        seconds = round(time.monotonic() - began, 1)
        note("seconds", seconds)
        note("exit_code", ran.code)
        sys.stdout.write(f"\n{case}: {arguments[0]} exits {ran.code} after {seconds} s")
        return ran


@pytest.fixture(scope="module")
def scene(breakable: Pair, tmp_path_factory: pytest.TempPathFactory) -> Scene:
    topic = breakable.create_topic("a", "t.pay", 2)
    breakable.produce("a", topic, 200)
    breakable.lab.start_mirror()
    remote = breakable.wait_mirrored(topic, seconds=90)
    breakable.a.place("pay", {(topic, 0): 40, (topic, 1): 100})
    found = {(remote, p): breakable.wait_checkpoint("pay", topic, p).downstream for p in (0, 1)}
    breakable.lab.kill("mm2")
    path = tmp_path_factory.mktemp("failing") / "plan.json"
    ran = breakable.run_cli("plan", "-o", str(path))
    assert ran.code == 0, ran.err
    return Scene(breakable, "pay", remote, found, path)


def wrong_password(pair: Pair, alias: str) -> Path:
    login = f'org.apache.kafka.common.security.scram.ScramLoginModule required username="{ADMIN}" password="wrong";'
    return pair.config_path(user=ADMIN, added={f"failover.cluster.{alias}.sasl.jaas.config": login})


def planned_without_the_source(scene: Scene, ran: Ran, state: str, detail: str) -> None:
    """Checks that the plan goes on from the checkpoints and says what it does not know."""
    assert ran.code == 0, ran.err
    made = ran.json()
    assert (made["source"]["state"], made["target"]["state"]) == (state, "up")
    assert detail in made["source"]["detail"]
    group = by_name(made)[scene.group]
    assert group["verdict"] == "ready"
    assert offsets(group) == scene.checkpoints
    assert {(p["proof"], p["reread"], p["source_end"]) for p in group["partitions"]} == {("checkpoint", None, None)}
    assert (group["source_state"], group["source_members"]) == (None, None)
    assert made["unreplicated"] is None or {row["bound"] for row in made["unreplicated"]} <= {"at-least", "at-most"}


# -- the source ------------------------------------------------------------------------------------------


def test_a_source_that_is_up(scene: Scene, record_property: Property, tmp_path: Path) -> None:
    ran = scene.typed("source up", record_property, "plan", "--format", "json", state=tmp_path)
    assert ran.code == 0
    assert ran.json()["source"]["state"] == "up"
    assert offsets(by_name(ran.json())[scene.group]) == {(scene.remote, 0): 40, (scene.remote, 1): 100}


def test_a_source_whose_name_does_not_resolve(scene: Scene, record_property: Property, tmp_path: Path) -> None:
    config = scene.pair.config_path(added={"a.bootstrap.servers": NOWHERE})
    ran = scene.typed(
        "source, name unknown", record_property, "plan", "--format", "json", state=tmp_path, config=config
    )
    planned_without_the_source(scene, ran, "down", HOST)


def test_a_source_that_refuses_the_password_is_never_taken_for_a_dead_one(
    scene: Scene, record_property: Property, tmp_path: Path
) -> None:
    config = wrong_password(scene.pair, "a")
    ran = scene.typed("source, wrong password", record_property, "plan", state=tmp_path, config=config)
    said = one_error(ran, 8, tmp_path)
    assert "error: cluster a refuses the credentials" in said
    assert "--source-down" in said.partition("hint: ")[2]
    assert "wrong" not in said
    ran = scene.typed(
        "the same with --source-down",
        record_property,
        "plan",
        "--source-down",
        "--format",
        "json",
        state=tmp_path,
        config=config,
    )
    planned_without_the_source(scene, ran, "not-asked", "--source-down")


def test_a_frozen_source(scene: Scene, record_property: Property, tmp_path: Path) -> None:
    scene.pair.lab.freeze("a")
    try:
        ran = scene.typed("source frozen", record_property, "plan", "--format", "json", state=tmp_path)
        planned_without_the_source(scene, ran, "down", f"gave no answer for {SILENCE} s")
        ran = scene.typed(
            "the same with --source-down", record_property, "plan", "--source-down", "--format", "json", state=tmp_path
        )
        planned_without_the_source(scene, ran, "not-asked", "--source-down")
        screen = scene.pair.run_cli("show", ran.json()["id"], state=tmp_path).out
        assert "NOT ASKED (--source-down)" in screen.splitlines()[1]
    finally:
        scene.pair.lab.thaw("a")


# -- the target, while the source is well ----------------------------------------------------------------


@pytest.fixture(params=["plan", "execute"])
def command(request: pytest.FixtureRequest, scene: Scene) -> tuple[str, ...]:
    """Is each command that cannot do without the target."""
    execute = ("execute", str(scene.plan), "--yes", "--settle", "0")
    return execute if request.param == "execute" else ("plan",)


def test_a_target_whose_name_does_not_resolve(
    scene: Scene, command: tuple[str, ...], record_property: Property, tmp_path: Path
) -> None:
    config = scene.pair.config_path(added={"b.bootstrap.servers": NOWHERE})
    ran = scene.typed("target, name unknown", record_property, *command, state=tmp_path, config=config)
    assert f"error: cluster b gave no answer for {SILENCE} s" in (said := one_error(ran, 8, tmp_path))
    assert HOST in said


def test_a_target_that_refuses_the_password(
    scene: Scene, command: tuple[str, ...], record_property: Property, tmp_path: Path
) -> None:
    config = wrong_password(scene.pair, "b")
    ran = scene.typed("target, wrong password", record_property, *command, state=tmp_path, config=config)
    said = one_error(ran, 8, tmp_path)
    assert "error: cluster b refuses the credentials" in said
    assert "--source-down" not in said


@pytest.fixture
def frozen_target(scene: Scene) -> Iterator[Scene]:
    scene.pair.lab.freeze("b")
    yield scene
    scene.pair.lab.thaw("b")
    recovered(scene.pair.b)


def recovered(side: Side) -> None:
    """Waits until a thawed cluster is itself again: its controller takes the broker's leaders away for a moment."""
    whole_since: list[float] = []

    def whole() -> bool:
        topics = side.admin.list_topics(timeout=5).topics.values()
        if any(partition.leader < 0 for topic in topics for partition in topic.partitions.values()):
            whole_since.clear()
        else:
            whole_since.append(time.monotonic())
        return bool(whole_since) and time.monotonic() - whole_since[0] > 1.5

    side.until(whole, what="every partition keeps its leader")


def test_a_frozen_target(
    frozen_target: Scene, command: tuple[str, ...], record_property: Property, tmp_path: Path
) -> None:
    ran = frozen_target.typed("target frozen", record_property, *command, state=tmp_path)
    assert f"error: cluster b gave no answer for {SILENCE} s" in one_error(ran, 8, tmp_path)


# -- from here on the source stays dead --------------------------------------------------------------------


def test_a_killed_source_and_an_execution_without_it(scene: Scene, record_property: Property, tmp_path: Path) -> None:
    scene.pair.lab.kill("a")
    ran = scene.typed("source killed", record_property, "plan", "--format", "json", state=tmp_path)
    planned_without_the_source(scene, ran, "down", "connection refused")
    screen = " ".join(scene.pair.run_cli("show", ran.json()["id"], state=tmp_path).out.split())
    assert "SOURCE DOWN" in screen
    assert "Last known state" in screen
    # executing needs the target alone
    ran = scene.typed("source killed", record_property, "execute", "--yes", "--settle", "0", state=tmp_path)
    assert ran.code == 0, ran.err
    assert {(tp.topic, tp.partition): at for tp, at in scene.pair.committed("b", scene.group).items()} == dict(
        scene.checkpoints
    )


def test_a_killed_target(scene: Scene, record_property: Property, tmp_path: Path) -> None:
    if scene.pair.lab.running("b/1") is not None:
        scene.pair.lab.kill("b")
    ran = scene.typed("target killed", record_property, "plan", state=tmp_path)
    assert "connection refused" in one_error(ran, 8, tmp_path)
    arguments = ("execute", str(scene.plan), "--yes", "--format", "json")
    error = error_object(ran := scene.typed("target killed", record_property, *arguments, state=tmp_path))
    assert (ran.code, error["code"]) == (8, "cluster-unreachable")
    assert scene.pair.bootstrap("b") in error["hint"]
    assert kept(tmp_path) == []


# -- one broker of three -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def crowd(three: Pair) -> Scene:
    """Is six groups on three brokers, their checkpoints written as MirrorMaker 2 writes them."""
    topic, remote = three.create_topic("a", "t.crowd", 3), three.create_topic("b", "a.t.crowd", 3)
    three.create_topic("b", "a.checkpoints.internal", config={"cleanup.policy": "compact"})
    for alias, name in (("a", topic), ("b", remote)):
        three.produce(alias, name, 60)
    producer = three.b.producer()
    for group in CROWD:
        three.commit("a", group, {(topic, p): 7 for p in range(3)})
        for p in range(3):
            checkpoint = Checkpoint(group, remote, p, 7, 7)
            producer.produce("a.checkpoints.internal", checkpoint.encode_value(), checkpoint.encode_key(), 0)
    assert producer.flush(30) == 0
    return Scene(three, CROWD[0], remote, {(remote, p): 7 for p in range(3)}, Path())


def given_up(three: Pair) -> bool:
    """Says whether the cluster has given broker 3 up and every group is whole again at its new coordinator.

    A coordinator that has just taken over reads up to its high watermark, which may not have followed the last commits
    before its predecessor died: for a moment it knows no such group, and gives no error (Kafka 4.1.1).
    """
    from confluent_kafka import KafkaException

    try:
        return 3 not in three.a.admin.list_topics(timeout=5).brokers and all(
            len(three.committed("a", group)) == 3 for group in CROWD
        )
    except KafkaException:
        return False


def test_one_dead_broker_of_three_holds_nothing_up(crowd: Scene, record_property: Property, tmp_path: Path) -> None:
    """Until the cluster gave the broker up, groups it coordinated are planned from their checkpoints."""

    def planned(case: str) -> dict[str, Any]:
        ran = crowd.typed(case, record_property, "plan", "--format", "json", state=tmp_path)
        made: dict[str, Any] = ran.json()
        sys.stdout.write(f", {made['source']['state']}: {made['source']['detail']}")
        assert (ran.code, ran.err) == (0, "")
        groups = by_name(made)
        assert sorted(groups) == CROWD
        assert {name: (group["verdict"], offsets(group)) for name, group in groups.items()} == dict.fromkeys(
            CROWD, ("ready", crowd.checkpoints)
        )
        return made

    crowd.pair.lab.kill("a/3")
    made = planned("source, 1 of 3 dead just now")
    assert made["source"]["state"] == "degraded"
    assert "broker 3 at" in made["source"]["detail"]
    assert "source-degraded" in findings(made)
    # these brokers have none, which is no fault
    assert findings(made)["authorizer-missing"]["severity"] == "info"
    crowd.pair.a.until(lambda: given_up(crowd.pair), what="the cluster gave broker 3 up", seconds=40)
    made = planned("source, 1 of 3 dead and given up")
    # its replicas are still missed
    assert made["source"]["state"] == "degraded"
    assert {p["source_committed"] for group in made["groups"] for p in group["partitions"]} == {7}


def test_five_thousand_groups_and_a_broker_that_does_not_answer(
    crowd: Scene, record_property: Property, tmp_path: Path
) -> None:
    """Half of the groups have nothing to do with the flow; what the silent broker knows is missing, and said to be."""
    pair, many = crowd.pair, 5_000
    pair.lab.restart("a/3")
    pair.a.until(lambda: 3 in pair.a.admin.list_topics(timeout=5).brokers, what="broker 3 is back", seconds=90)
    other = pair.create_topic("a", "other")
    topic = crowd.remote.removeprefix("a.")
    commits = {
        f"many-{number}": {TopicPartition(other if number % 2 else topic, 0): Commit(0)} for number in range(many)
    }
    done: list[object] = []
    with cluster(pair, "a") as source:
        source.commit(commits, lambda group, results: done.append(results))
    assert len(done) == many
    pair.lab.freeze("a/2")  # broker 3 coordinates no group again so soon
    try:
        ran = crowd.typed(
            "source, 5,000 groups, 1 broker of 3 frozen", record_property, "plan", "--format", "json", state=tmp_path
        )
    finally:
        pair.lab.thaw("a/2")
    made = ran.json()
    assert ran.code in (0, 4), ran.err
    assert "broker 2 at" in findings(made)["source-degraded"]["message"]
    seen = {group["group"] for group in made["groups"]}
    left = {each["group"] for each in made["not_planned"]}
    assert set(CROWD) <= seen
    # the groups of the brokers that answer, which may have taken over the silent one's: planned, or named
    assert many / 4 < len((seen | left) & commits.keys()) <= many
    assert {name for name in seen - set(CROWD) if int(name.removeprefix("many-")) % 2} == set()
    ready = {group["group"] for group in made["groups"] if group["verdict"] == "ready"}
    assert len(ready) > many / 10
