"""What MM2 itself would answer: its checkpoints, and its own rule for groups it has not looked at."""

from __future__ import annotations

from pathlib import Path

import pytest

from failover.inventory import mm2_answers
from failover.inventory.selection import Selection
from failover.mm2.topic_selection import TopicSelection
from failover.model.names import TopicPartition
from tests.unit.inventory.scene import Scene, flow

ORDERS, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
REMOTE, REMOTE_SECOND = TopicPartition("a.orders", 0), TopicPartition("a.orders", 1)


def made(folder: Path, settings: dict[str, str] | None = None) -> Scene:
    scene = Scene(flow(folder, settings))
    scene.mirror("orders", 2, end=1000)
    scene.a.topic(scene.flow.internal.offset_syncs)
    for offset in range(0, 1000, 100):
        scene.sync("orders", offset, offset)
        scene.sync("orders", offset, offset, partition=1)
    return scene


def test_a_group_that_mm2_has_not_looked_at_gets_what_its_rule_makes_of_the_syncs(tmp_path: Path) -> None:
    scene = made(tmp_path)
    scene.a.group("new", {ORDERS: 950, SECOND: 900})
    # one behind the copy of the nearest sync below, or the sync's own place
    assert scene.look().mm2_answers == {"new": {REMOTE: 901, REMOTE_SECOND: 900}}


def test_lagging_groups_get_the_slots_mm2_still_holds_not_the_whole_history(tmp_path: Path) -> None:
    scene = made(tmp_path)
    for offset in range(1000, 20_000, 100):
        scene.sync("orders", offset, offset)
    scene.a.topic("orders", 2, end=20_000)
    scene.b.topic("a.orders", 2, end=20_000)
    scene.a.group("far", {ORDERS: 9_950})
    answer = scene.look().mm2_answers["far"][REMOTE]
    assert answer < 9_900
    assert answer % 100 == 1


def test_a_checkpoint_is_the_answer_and_its_absence_beside_one_too(tmp_path: Path) -> None:
    scene = made(tmp_path)
    scene.a.group("g", {ORDERS: 950, SECOND: 900})
    scene.checkpoint("g", "a.orders", 450, 401)
    assert scene.look().mm2_answers == {"g": {REMOTE: 401}}


def test_filters_are_asked_once_a_name_however_many_partitions_and_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = made(tmp_path)
    for number in range(50):
        scene.a.group(f"g{number}", {ORDERS: 950, SECOND: 900})
    asked: list[str] = []
    decide = TopicSelection.should_replicate

    def counted(topics: TopicSelection, topic: str) -> bool:
        asked.append(topic)
        return decide(topics, topic)

    monkeypatch.setattr(TopicSelection, "should_replicate", counted)
    answers = scene.look().mm2_answers
    assert len(answers) == 50
    assert asked.count("orders") < 5


def test_with_the_source_down_only_checkpoints_answer(tmp_path: Path) -> None:
    scene = made(tmp_path)
    scene.a.group("new", {ORDERS: 950})
    scene.checkpoint("g", "a.orders", 450, 401)
    assert scene.look(source_down=True).mm2_answers == {"g": {REMOTE: 401}}


@pytest.mark.parametrize("settings", [{"groups.exclude": "n.*"}, {"topics.exclude": "orders"}])
def test_what_the_filters_do_not_take_mm2_never_answers(tmp_path: Path, settings: dict[str, str]) -> None:
    scene = made(tmp_path, {f"a->b.{key}": value for key, value in settings.items()})
    scene.a.group("new", {ORDERS: 950})
    assert scene.look(Selection(groups=("new",))).mm2_answers == {}


def test_older_releases_go_by_the_newest_sync_alone(tmp_path: Path) -> None:
    scene = made(tmp_path, {"failover.mm2.version": "3.3"})
    scene.a.group("new", {ORDERS: 950, SECOND: 899})
    # 3.3 adds the distance, and has nothing for what lies before its only sync
    assert scene.look().mm2_answers == {"new": {REMOTE: 950}}


def test_offsets_before_every_sync_have_no_answer(tmp_path: Path) -> None:
    scene = Scene(flow(tmp_path))
    scene.mirror("orders", end=1000)
    scene.a.topic(scene.flow.internal.offset_syncs)
    scene.sync("orders", 500, 500)
    scene.a.group("early", {ORDERS: 100})
    assert scene.look().mm2_answers == {}


def test_a_history_that_does_not_hold_is_left_open(tmp_path: Path) -> None:
    scene = made(tmp_path)
    scene.sync("orders", 1000, 10)  # the target was made anew
    scene.a.group("new", {ORDERS: 950, SECOND: 900})
    assert scene.look().mm2_answers == {"new": {REMOTE_SECOND: 900}}


def test_what_would_take_long_is_left_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = made(tmp_path)
    scene.a.group("new", {ORDERS: 950, SECOND: 900})
    monkeypatch.setattr(mm2_answers, "MAX_SYNCS", 15)
    assert scene.look().mm2_answers == {"new": {REMOTE: 901}}
