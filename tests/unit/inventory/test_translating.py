"""A group's translated offsets: MM2's answer and the exact one side by side."""

from __future__ import annotations

from pathlib import Path

import pytest

from failover.inventory.selection import Selection
from failover.inventory.translating import group_translation
from failover.model.names import TopicPartition
from failover.report.translation_text import translation_markdown, translation_text
from tests.unit.inventory.scene import Scene, flow


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(flow(tmp_path))


def translated(scene: Scene, group: str):
    return group_translation(scene.look(Selection(groups=(group,), create=True)), group)


def test_mm2s_newest_checkpoint_stands_beside_the_exact_place(scene):
    scene.mirror("orders", end=1000)
    scene.a.group("g", {TopicPartition("orders", 0): 500})
    scene.checkpoint("g", "a.orders", 490, 300, metadata=b"m")
    scene.checkpoint("g", "a.orders", 480, 203)
    for at in (0, 500, 999):
        scene.sync("orders", at, at)
    (one,) = translated(scene, "g").partitions
    assert (one.topic, one.partition, one.offset, one.checkpoint_upstream) == ("a.orders", 0, 203, 480)
    assert (one.upstream, one.placed, one.precision, one.proof) == (500, 500, "exact", "sync-match")
    text = translation_text(translated(scene, "g"))
    assert "sync-match" in text
    assert all(len(line) <= 100 for line in text.splitlines())
    assert "| 203 |" in translation_markdown(translated(scene, "g"))


def test_a_checkpoint_of_a_topic_the_target_lacks_is_answered_as_java_does(scene):
    scene.checkpoint("g", "a.gone", 48211, 48211)
    (one,) = translated(scene, "g").partitions
    assert (one.topic, one.offset) == ("a.gone", 48211)


def test_a_group_that_mm2_has_not_looked_at_has_our_answer_alone(scene):
    scene.mirror("orders", end=10)
    scene.a.group("new", {TopicPartition("orders", 0): 10})
    scene.sync("orders", 9, 9)
    (one,) = translated(scene, "new").partitions
    assert (one.offset, one.placed, one.precision) == (None, 10, "exact")


def test_a_group_nobody_knows_has_no_offsets(scene):
    found = translated(scene, "nobody")
    assert found.partitions == ()
    assert "no checkpoint and no offset of group nobody is known" in translation_text(found)
