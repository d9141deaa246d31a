"""A coordinator that has just taken groups over shows none of their commits for a moment."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from failover.inventory.snapshot import Earlier
from failover.model.groups import Commit
from failover.model.names import TopicPartition
from tests.fake_cluster import FakeCluster
from tests.unit.inventory.scene import NOW, Scene, flow

SOURCE, TARGET = TopicPartition("orders", 0), TopicPartition("a.orders", 0)
DAY = 86_400_000


def questions(cluster: FakeCluster) -> int:
    return sum(method == "committed" for method, _ in cluster.calls)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    scene = Scene(flow(tmp_path))
    scene.mirror("orders", end=1000)
    return scene


def checkpointed(scene: Scene, days_ago: float) -> None:
    scene.checkpoint("g", "a.orders", 500, 480, timestamp=int(NOW.timestamp() * 1000 - days_ago * DAY))


def test_what_a_checkpoint_says_was_committed_is_asked_about_again(scene: Scene) -> None:
    scene.a.group("g", {SOURCE: 500})
    checkpointed(scene, 1)
    scene.a.unaware["g"] = 3
    assert scene.look().source.commits == {"g": {SOURCE: Commit(500)}}
    assert questions(scene.a) == 4


@pytest.mark.parametrize(("days_ago", "asked"), [(1, 5), (8, 1)])
def test_a_group_that_is_gone_for_good_costs_nothing_once_its_commits_may_have_expired(
    scene: Scene, days_ago: float, asked: int
) -> None:
    checkpointed(scene, days_ago)
    assert scene.look().source.commits == {"g": {}}
    assert questions(scene.a) == asked


def test_what_is_remembered_of_the_target_is_asked_about_again(scene: Scene) -> None:
    scene.a.group("g", {SOURCE: 500})
    scene.b.group("g", {TARGET: 700})
    scene.b.unaware["g"] = 2
    assert scene.look(earlier=Earlier(committed=frozenset({"g"}))).target.commits == {"g": {TARGET: Commit(700)}}


def test_the_usual_look_asks_each_side_once(scene: Scene) -> None:
    scene.a.group("g", {SOURCE: 500}).group("new", {SOURCE: 5})
    checkpointed(scene, 1)
    scene.b.group("g", {TARGET: 480})
    scene.look(earlier=Earlier(committed=frozenset({"g"})))
    assert (questions(scene.a), questions(scene.b)) == (1, 1)


def test_a_group_an_earlier_look_found_deleted_is_asked_about_once(scene: Scene) -> None:
    checkpointed(scene, 1)
    looked = NOW - timedelta(hours=1)
    known = Earlier(deleted=frozenset({"g"}), last_source_seen=looked)
    scene.look(earlier=known)
    assert questions(scene.a) == 1
    # it is there again, or MM2 saw it since
    scene.a.calls.clear()
    scene.a.group("g", {SOURCE: 500}).unaware["g"] = 2
    assert scene.look(earlier=known).source.commits == {"g": {SOURCE: Commit(500)}}
    del scene.a.groups["g"]
    scene.a.calls.clear()
    checkpointed(scene, 0.01)
    scene.look(earlier=known)
    assert questions(scene.a) == 5
