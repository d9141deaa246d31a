"""Which groups and topics are planned, and where those start whose position is unknown or goes back by time."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.system.pair import Pair
from tests.system.typed import AT_ONCE, by_name, findings, plan

MINUTE = 60_000


class Scene(NamedTuple):
    """Is a topic of two partitions, each with a record a minute: record n is n minutes younger than ``start`` (ms)."""

    pair: Pair
    topic: str
    remote: str
    other: str
    start: int

    def at(self, minute: int) -> str:
        """Writes the time of a record for ``--missing``."""
        return "at=" + datetime.fromtimestamp((self.start + minute * MINUTE) / 1000, UTC).isoformat()

    def standing(self, group: str) -> dict[int, int]:
        return {tp.partition: offset for tp, offset in self.pair.committed("b", group).items()}


@pytest.fixture(scope="module")
def scene(mm2: Pair) -> Scene:
    topic, other = (mm2.create_topic("a", mm2.name(f"t.choices.{stem}"), 2) for stem in ("timed", "other"))
    start = int(time.time() * 1000) - 50 * MINUTE
    producer = mm2.a.producer()
    for minute in range(40):
        for partition in range(2):
            producer.produce(topic, b"%d" % minute, partition=partition, timestamp=start + minute * MINUTE)
    assert producer.flush(30) == 0
    mm2.produce("a", other, 20)
    mm2.wait_mirrored(other)
    return Scene(mm2, topic, mm2.wait_mirrored(topic), other, start)


def journalled(state: Path) -> list[str]:
    """Gives the overrides that the newest execution has on record."""
    journal = max(state.glob("executions/*/journal*"), key=lambda file: file.stat().st_mtime)
    return list(json.loads(journal.read_text().splitlines()[0])["overrides"])


def execute(scene: Scene, made: dict[str, Any], state: Path, *more: str, code: int = 0) -> dict[str, Any]:
    ran = scene.pair.run_cli("execute", made["id"], *AT_ONCE, *more, state=state)
    assert ran.code == code, f"{ran.code}\n{ran.out}\n{ran.err}"
    done: dict[str, Any] = ran.json()
    return done


def test_groups_by_file_and_partitions_of_one_topic(scene: Scene, tmp_path: Path) -> None:
    pair = scene.pair
    one, two = pair.name("choices.one"), pair.name("choices,two")
    excluded = pair.name("console-consumer-choices")
    for group in (one, two, excluded):
        pair.commit("a", group, {(scene.topic, 0): 10, (scene.other, 1): 3})
    file = tmp_path / "groups.txt"
    file.write_text(f"# the late ones\n{one}\n\n{two}\n{excluded}\n")
    ran = pair.run_cli("plan", "--groups-file", str(file), "--topic", scene.topic, "--format", "json", state=tmp_path)
    assert ran.code == 0, ran.err
    made = ran.json()
    assert set(by_name(made)) == {one, two, excluded}
    assert {p["topic"] for group in made["groups"] for p in group["partitions"]} == {scene.remote}
    found = findings(made)
    assert (found["group-excluded"]["subject"], found["group-excluded"]["severity"]) == (excluded, "info")
    assert scene.other in found["topics-left-out"]["message"]
    # the same names on stdin, planned and executed at once
    done = pair.run_cli(
        "execute", "--groups-file", "-", "--topic", scene.remote, *AT_ONCE, state=tmp_path, stdin=f"{one}\n{two}\n"
    )
    assert done.code == 0, done.err
    assert [scene.standing(group) for group in (one, two, excluded)] == [{0: 10}, {0: 10}, {}]
    for typed, said in (
        (("--topic", f"{scene.topic}s"), f"did you mean {scene.topic}"),
        (("--exclude-group", f"{one}x"), f"did you mean {one}"),
        (("--group-pattern", "choices-*"), "write choices-.*"),
    ):
        ran = pair.run_cli("plan", *typed, state=tmp_path)
        assert (ran.code, said in ran.err) == (2, True), ran.err
    # what a plan contains is decided when it is made
    for wrong in (("--topic", scene.topic), ("--missing", "earliest"), ("--groups-file", str(file))):
        ran = pair.run_cli("execute", made["id"], *wrong, "--yes", state=tmp_path)
        assert (ran.code, f"{wrong[0]} decides what a plan contains" in ran.err) == (2, True), ran.err


def test_a_partition_without_position_starts_by_time(scene: Scene, tmp_path: Path) -> None:
    pair = scene.pair
    group = pair.name("choices.missing")
    pair.commit("b", group, {(scene.remote, 0): 5})

    def planned(*more: str, code: int) -> tuple[dict[str, Any], dict[str, Any]]:
        made = plan(pair, group, state=tmp_path, more=["--source-down", *more], code=code)
        first, second = by_name(made)[group]["partitions"]
        # a commit that stands is a position
        assert (first["action"], first["position_after"]["offset"]) == ("skip", 5)
        return made, second

    made, left = planned("--missing", scene.at(30), code=4)
    assert (left["action"], left["reason"], left["position_after"]["by"]) == (
        "skip",
        "no-checkpoint",
        "auto.offset.reset",
    )
    assert "--allow-skip" in findings(made)["option-not-applied"]["remedy"]
    made, start = planned("--missing", scene.at(-5), code=4)
    assert (start["reason"], start["offset"], start["proof"], start["skipped"]) == ("at-log-start", 0, "log-start", 0)
    made, end = planned("--missing", scene.at(45), "--allow-skip", code=4)
    assert (end["reason"], end["offset"], end["proof"], end["skipped"]) == ("at-log-end", 40, "log-end", 40)
    made, timed = planned("--missing", scene.at(30), "--allow-skip", code=4)
    assert (timed["reason"], timed["offset"], timed["proof"]) == ("at-time", 30, "timestamp")
    assert (timed["skipped"], timed["reread_max"], made["summary"]["skipped"]) == (30, 10, 30)
    execute(scene, made, tmp_path, code=4)
    assert scene.standing(group) == {0: 5, 1: 30}
    assert journalled(tmp_path) == ["allow_skip"]
    ran = pair.run_cli("plan", "--group", group, "--missing", "at=2199-01-01T00:00Z", state=tmp_path)
    assert (ran.code, "yet to come" in ran.err) == (2, True)


def test_positions_go_back_by_time(scene: Scene, tmp_path: Path) -> None:
    pair = scene.pair
    group = pair.name("choices.back")
    pair.commit("a", group, {(scene.topic, 0): 30, (scene.topic, 1): 0})
    made = plan(pair, group, state=tmp_path, more=["--rewind-by", "5m"])
    first, second = by_name(made)[group]["partitions"]
    # record 29 was consumed last: 5 minutes before it is record 24
    assert (first["offset"], first["reason"], first["proof"], first["precision"]) == (
        24,
        "gone-back",
        "timestamp",
        "exact",
    )
    assert (first["reread"], first["reread_max"], second["offset"]) == (6, 6, 0)
    assert (made["summary"]["reread"], made["summary"]["skipped"]) == (6, 0)
    execute(scene, made, tmp_path)
    assert scene.standing(group) == {0: 24, 1: 0}
    # once at the position itself, going back takes moving a commit that stands
    execute(scene, plan(pair, group, state=tmp_path), tmp_path)
    assert scene.standing(group) == {0: 30, 1: 0}
    made = plan(pair, group, state=tmp_path, more=["--rewind-by", "5m"], code=4)
    assert by_name(made)[group]["reasons"] == ["would-rewind"]
    assert "--allow-rewind" in findings(made)["option-not-applied"]["remedy"]
    made = plan(pair, group, state=tmp_path, more=["--rewind-by", "5m", "--allow-rewind"])
    execute(scene, made, tmp_path)
    assert scene.standing(group) == {0: 24, 1: 0}
    assert journalled(tmp_path) == ["allow_rewind"]


def test_all_groups_or_none(scene: Scene, tmp_path: Path) -> None:
    pair = scene.pair
    good, ahead = pair.name("choices.good"), pair.name("choices.ahead")
    for group in (good, ahead):
        pair.commit("a", group, {(scene.topic, 0): 10})
    pair.commit("b", ahead, {(scene.remote, 0): 35})
    made = plan(pair, good, ahead, state=tmp_path, more=["--all-or-nothing"], code=4)
    assert by_name(made)[good]["reasons"] == ["all-or-nothing"]
    assert made["summary"]["partitions"]["commit"] == 0
    execute(scene, made, tmp_path, code=3)
    assert (scene.standing(good), scene.standing(ahead)) == ({}, {0: 35})
    made = plan(pair, good, ahead, state=tmp_path, more=["--all-or-nothing", "--exclude-group", ahead])
    execute(scene, made, tmp_path)
    assert scene.standing(good) == {0: 10}


def test_a_group_is_made_where_that_is_meant(scene: Scene, tmp_path: Path) -> None:
    group = scene.pair.name("choices.new")
    more = ["--create-group", "--topic", scene.topic, "--missing", "earliest"]
    made = plan(scene.pair, group, state=tmp_path, more=more)
    assert [p["offset"] for p in by_name(made)[group]["partitions"]] == [0, 0]
    execute(scene, made, tmp_path)
    assert scene.standing(group) == {0: 0, 1: 0}
    assert journalled(tmp_path) == ["create_group"]
