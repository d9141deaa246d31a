"""Rights that are missing: found while planning, told by name, and never taken for "nothing there"."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from failover.lab import ADMIN, APP
from tests.system.pair import Pair
from tests.system.typed import AT_ONCE, by_name, findings, offsets, one_error, plan


class Scene(NamedTuple):
    """Is a configuration that may do everything on the source and is user APP on the target."""

    pair: Pair
    config: Path
    topics: tuple[str, str]
    groups: tuple[str, str]

    @contextlib.contextmanager
    def allowed(self, *rights: tuple[str, str, str]) -> Iterator[None]:
        """Gives APP rights on the target, each as (kind of resource, its name, operation); they end with the block."""
        from confluent_kafka.admin import (
            AclBinding,
            AclBindingFilter,
            AclOperation,
            AclPermissionType,
            ResourcePatternType,
            ResourceType,
        )

        admin = self.pair.b.admin
        bindings = [
            AclBinding(
                ResourceType[kind],
                name,
                ResourcePatternType.LITERAL,
                f"User:{APP}",
                "*",
                AclOperation[operation],
                AclPermissionType.ALLOW,
            )
            for kind, name, operation in rights
        ]
        for made in admin.create_acls(bindings, request_timeout=10).values():
            made.result(timeout=15)
        try:
            yield
        finally:
            everything = AclBindingFilter(
                ResourceType.ANY,
                None,  # type: ignore[arg-type]
                ResourcePatternType.ANY,
                f"User:{APP}",
                None,  # type: ignore[arg-type]
                AclOperation.ANY,
                AclPermissionType.ANY,
            )
            for gone in admin.delete_acls([everything], request_timeout=10).values():
                assert len(gone.result(timeout=15)) == len(bindings)


@pytest.fixture(scope="module")
def scene(mm2: Pair) -> Scene:
    topics = (mm2.create_topic("a", mm2.name("t.rights")), mm2.create_topic("a", mm2.name("t.rights")))
    groups = (mm2.name("rights.mine"), mm2.name("rights.theirs"))
    for topic in topics:
        mm2.produce("a", topic, 50)
        mm2.wait_mirrored(topic)
    for group in groups:
        mm2.commit("a", group, {(topic, 0): 30 for topic in topics})
        for topic in topics:
            mm2.wait_checkpoint(group, topic, upstream=30)
    password = mm2.lab.state.passwords[APP]
    login = f'org.apache.kafka.common.security.scram.ScramLoginModule required username="{APP}" password="{password}";'
    config = mm2.config_path(user=ADMIN, added={"failover.cluster.b.sasl.jaas.config": login})
    return Scene(mm2, config, topics, groups)


SEE = [("BROKER", "kafka-cluster", "DESCRIBE"), ("TOPIC", "*", "DESCRIBE"), ("GROUP", "*", "DESCRIBE")]


def test_checkpoints_that_may_not_be_read_are_not_no_checkpoints(scene: Scene, tmp_path: Path) -> None:
    with scene.allowed(*SEE):
        ran = scene.pair.run_cli("plan", "--source-down", state=tmp_path, config=scene.config)
        said = one_error(ran, 8, tmp_path)
        assert "error: no READ on topic a.checkpoints.internal of b" in said
        assert "hint: grant READ on topic a.checkpoints.internal" in said
        # with the source's offset syncs there is something to go by
        made = plan(scene.pair, scene.groups[0], state=tmp_path, config=scene.config, code=3)
        assert findings(made)["internal-topic-unreadable"]["subject"] == "a.checkpoints.internal"


def test_what_execute_may_not_write_is_refused_while_planning(scene: Scene, tmp_path: Path) -> None:
    mine, theirs = scene.groups
    first, second = (f"a.{topic}" for topic in scene.topics)
    with scene.allowed(
        *SEE, ("TOPIC", "a.checkpoints.internal", "READ"), ("TOPIC", first, "READ"), ("GROUP", mine, "READ")
    ):
        made = plan(scene.pair, mine, theirs, state=tmp_path, config=scene.config, code=4)
        found = by_name(made)
        assert (found[theirs]["verdict"], found[theirs]["reasons"]) == ("refused", ["not-authorized"])
        assert found[mine]["verdict"] == "partial"
        assert {(p["topic"], p["action"], p["reason"]) for p in found[mine]["partitions"]} == {
            (first, "commit", "translated"),
            (second, "refuse", "not-authorized"),
        }
        # DELETE on the group, and settings, are rights that were not given
        assert findings(made)["rollback-limited"]["subject"] == mine
        assert "settings of b" in findings(made)["not-checked"]["message"]
        ran = scene.pair.run_cli("execute", *AT_ONCE, state=tmp_path, config=scene.config)
        assert ran.code == 4, ran.err
        assert offsets(by_name(ran.json())[mine], "read_back") == {(first, 0): 30}
        # nor may it make or read the topic of executions: it goes on without, and says so
        assert any(warning.startswith("lock-unavailable: ") for warning in ran.json()["warnings"])
    assert scene.pair.committed("b", mine) == {(first, 0): 30}
    assert theirs not in scene.pair.b.groups()


def test_what_may_not_be_seen_is_not_taken_for_missing(scene: Scene, tmp_path: Path) -> None:
    """Kafka lists no topic to a user without rights on it."""
    ran = scene.pair.run_cli("plan", "--source-down", state=tmp_path, config=scene.config)
    assert "error: no READ on topic a.checkpoints.internal of b" in one_error(ran, 8, tmp_path)
    made = plan(scene.pair, scene.groups[0], state=tmp_path, config=scene.config, code=3)
    assert by_name(made)[scene.groups[0]]["reasons"] == ["not-authorized"]
    assert {"internal-topic-missing", "position-unknown"} & set(findings(made)) == {"position-unknown"}
    # nobody can tell what the target lacks
    assert made["unreplicated"] is None
