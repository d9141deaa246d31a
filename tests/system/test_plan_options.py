"""What the options of plan and execute change, typed against real clusters."""

from __future__ import annotations

import contextlib
import json
import re
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.system.executing import running
from tests.system.pair import Pair
from tests.system.typed import (
    AT_ONCE,
    by_name,
    findings,
    kept,
    offsets,
    on_a_terminal,
    one_error,
    plan,
    world,
)


class Scene(NamedTuple):
    """Is a topic mirrored record for record, 100 in each of two partitions."""

    pair: Pair
    topic: str
    remote: str

    def group(self, stem: str, *places: int, ahead: int | None = None) -> str:
        """Makes a group that stands at these places on the source; ``ahead``: on the target's first partition too."""
        name = self.pair.name(f"opts.{stem}")
        self.pair.commit("a", name, {(self.topic, p): offset for p, offset in enumerate(places)})
        if ahead is not None:
            self.pair.commit("b", name, {(self.remote, 0): ahead})
        return name

    def standing(self, group: str) -> dict[int, int]:
        """Gives where a group stands on the target, by partition."""
        return {tp.partition: offset for tp, offset in self.pair.committed("b", group).items()}


@pytest.fixture(scope="module")
def scene(mm2: Pair) -> Scene:
    topic = mm2.create_topic("a", mm2.name("t.options"), 2)
    mm2.produce("a", topic, 200)
    return Scene(mm2, topic, mm2.wait_mirrored(topic))


def test_which_groups_are_planned(scene: Scene, tmp_path: Path) -> None:
    first, second, other = (scene.group(stem, 10) for stem in ("which", "which", "whose"))
    pattern = ["--group-pattern", r"opts\.which-.*"]
    made = plan(scene.pair, state=tmp_path, more=pattern)
    assert set(by_name(made)) == {first, second}
    assert made["options"]["group_pattern"] == r"opts\.which-.*"
    made = plan(scene.pair, state=tmp_path, more=[*pattern, "--exclude-group", first])
    assert set(by_name(made)) == {second}
    everything = by_name(plan(scene.pair, state=tmp_path, more=["--all"], code=None))
    assert {first, second, other} <= set(everything)
    made = plan(scene.pair, first, second, state=tmp_path)
    ran = scene.pair.run_cli("execute", made["id"], "--exclude-group", first, *AT_ONCE, state=tmp_path)
    assert ran.code == 0, ran.err
    assert (scene.standing(first), scene.standing(second)) == ({}, {0: 10})
    # what a plan contains is not changed any more
    ran = scene.pair.run_cli("execute", made["id"], "--group", other, "--yes", state=tmp_path)
    assert (ran.code, f"group {other} is not in plan" in ran.err) == (2, True)


def test_ttl_and_reason_are_kept_and_a_plan_that_waited_too_long_is_refused(scene: Scene, tmp_path: Path) -> None:
    group = scene.group("ttl", 10)
    made = plan(scene.pair, group, state=tmp_path, more=["--ttl", "2h", "--reason", "drill 7"])
    assert parsed(made["expires"]) - parsed(made["created"]) == timedelta(hours=2)
    assert (made["reason"], made["operator"] != "") == ("drill 7", True)
    run = scene.pair.run_cli("execute", made["id"], *AT_ONCE, state=tmp_path).json()
    assert run["reason"] == "drill 7"
    assert "drill 7" in scene.pair.run_cli("history", state=tmp_path).out

    late = scene.group("ttl", 10)
    made = plan(scene.pair, late, state=tmp_path, more=["--ttl", "0"])
    ran = scene.pair.run_cli("execute", made["id"], "--yes", "--settle", "0", state=tmp_path)
    assert (ran.code, ran.out) == (5, "")
    assert f"error: plan {made['id']} expired at" in ran.err
    assert "hint: failover plan makes a new one" in ran.err
    ran = scene.pair.run_cli("execute", "--yes", "--settle", "0", state=tmp_path)
    assert (ran.code, "there is no usable plan for a->b" in ran.err) == (2, True)
    assert late not in scene.pair.b.groups()


def test_aliases_that_lead_elsewhere(scene: Scene, tmp_path: Path) -> None:
    group = scene.group("astray", 10)
    made = plan(scene.pair, group, state=tmp_path)
    there, here = scene.pair.bootstrap("a"), scene.pair.bootstrap("b")
    swapped = scene.pair.config_path(added={"a.bootstrap.servers": here, "b.bootstrap.servers": there})
    ran = scene.pair.run_cli("execute", made["id"], "--yes", "--settle", "0", state=tmp_path, config=swapped)
    assert (ran.code, ran.out) == (5, "")
    wrong = scene.pair.lab.state.cluster("a").id
    assert f"error: plan {made['id']} was made for cluster {made['target']['cluster_id']}" in ran.err
    assert f"but b now leads to cluster {wrong}" in ran.err
    one = scene.pair.config_path(added={"a.bootstrap.servers": here})
    made = plan(scene.pair, group, state=tmp_path, config=one, more=["--create-group"], code=3)
    assert by_name(made)[group]["reasons"] == ["same-cluster"]
    assert scene.standing(group) == {}


def parsed(moment: str) -> datetime:
    return datetime.fromisoformat(moment)


def test_require_source_inactive(scene: Scene, tmp_path: Path) -> None:
    group = scene.group("live", 10)
    with scene.pair.a.member(group, [scene.topic], client_id="shop-3"):
        made = plan(scene.pair, group, state=tmp_path)
        assert by_name(made)[group]["verdict"] == "ready"
        assert group in findings(made)["source-active"]["subject"]
        assert by_name(made)[group]["source_members"] == 1
        made = plan(scene.pair, group, state=tmp_path, more=["--require-source-inactive"], code=3)
        assert by_name(made)[group]["reasons"] == ["source-active"]
        ran = scene.pair.run_cli("execute", *AT_ONCE, state=tmp_path)
        assert (ran.code, ran.json()["outcome"]) == (3, "refused")
        assert scene.standing(group) == {}
        screen = scene.pair.run_cli("plan", "--group", group, "--require-source-inactive", state=tmp_path).out
        assert "SOURCE   UP; 1 group still consumes there" in screen
    made = plan(scene.pair, group, state=tmp_path, more=["--require-source-inactive"])
    assert by_name(made)[group]["verdict"] == "ready"


def test_one_partition_ahead_blocks_no_other_unless_all_or_nothing(scene: Scene, tmp_path: Path) -> None:
    group = scene.group("ahead", 10, 20, ahead=70)
    made = plan(scene.pair, group, state=tmp_path, more=["--all-or-nothing"], code=3)
    assert {p["reason"] for p in by_name(made)[group]["partitions"]} == {"would-rewind", "all-or-nothing"}
    ran = scene.pair.run_cli("execute", made["id"], *AT_ONCE, state=tmp_path)
    assert ran.code == 3
    assert scene.standing(group) == {0: 70}

    made = plan(scene.pair, group, state=tmp_path, code=4)
    ahead, other = by_name(made)[group]["partitions"]
    assert (ahead["action"], ahead["reason"], ahead["ahead"], ahead["skipped"]) == ("skip", "would-rewind", 60, 60)
    assert (other["action"], other["offset"], other["skipped"]) == ("commit", 20, 0)
    ran = scene.pair.run_cli("plan", "--group", group, state=tmp_path)
    assert "SKIP     60 records in 1 group" in ran.out
    ready = scene.group("behind", 30, 40)
    made = plan(scene.pair, group, ready, state=tmp_path, code=4)
    ran = scene.pair.run_cli("execute", made["id"], "--only-ready", *AT_ONCE, state=tmp_path)
    assert ran.code == 0, ran.err
    assert (scene.standing(group), scene.standing(ready)) == ({0: 70}, {0: 30, 1: 40})
    ran = scene.pair.run_cli("execute", made["id"], *AT_ONCE, state=tmp_path)
    assert ran.code == 4
    assert scene.standing(group) == {0: 70, 1: 20}
    made = plan(scene.pair, group, state=tmp_path, more=["--allow-rewind"])
    assert scene.pair.run_cli("execute", made["id"], *AT_ONCE, state=tmp_path).code == 0
    assert scene.standing(group) == {0: 10, 1: 20}


def test_a_rehearsal_finds_what_execute_finds_and_writes_nothing(scene: Scene, tmp_path: Path) -> None:
    ready, partial, busy = scene.group("dry", 11), scene.group("dry", 12, 13, ahead=99), scene.group("dry", 14)
    groups = (ready, partial, busy)
    with scene.pair.b.member(busy, [scene.remote], client_id="early-bird"):
        made = plan(scene.pair, *groups, state=tmp_path, code=4)
        before, files = world(scene.pair), kept(tmp_path)
        # no terminal and no --yes are needed to look
        rehearsed = scene.pair.run_cli("execute", "--dry-run", "--format", "json", state=tmp_path)
        screen = scene.pair.run_cli("execute", made["id"], "--dry-run", state=tmp_path)
        assert (rehearsed.code, screen.code) == (4, 4)
        assert "nothing was written" in screen.out
        assert "early-bird" in screen.out
        assert (world(scene.pair), kept(tmp_path)) == (before, files)
        done = scene.pair.run_cli("execute", *AT_ONCE, state=tmp_path)
        assert done.code == 4
    would = {group["group"]: group["commits"] for group in rehearsed.json()["groups"]}
    did = {name: len(offsets(group, "written")) for name, group in by_name(done.json()).items()}
    assert would == did == {ready: 1, partial: 1, busy: 0}


def test_a_group_is_committed_once_its_last_member_leaves(scene: Scene, tmp_path: Path) -> None:
    group, free = scene.group("wait", 21, 22), scene.group("wait", 23)
    with contextlib.ExitStack() as started:
        with scene.pair.b.member(group, [scene.remote], client_id="app-9"):
            made = plan(scene.pair, group, free, state=tmp_path, code=4)
            assert by_name(made)[group]["reasons"] == ["group-active"]
            arguments = ("execute", made["id"], *AT_ONCE, "--wait", "60s")
            process = started.enter_context(
                running(scene.pair, *arguments, state=tmp_path, config=scene.pair.lab.config)
            )
            # the free one does not wait for the other
            scene.pair.b.until(lambda: scene.standing(free) == {0: 23}, what="the free group is committed")
            assert (process.poll(), scene.standing(group)) == (None, {})
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, out + err
    assert scene.standing(group) == {0: 21, 1: 22}
    assert json.loads(out)["outcome"] == "done"


@contextlib.contextmanager
def committing(scene: Scene, group: str) -> Iterator[None]:
    """Is a client that assigns partitions to itself and commits: its group has no members."""
    from confluent_kafka import TopicPartition as Place

    consumer = scene.pair.b.consumer(group)
    consumer.assign([Place(scene.remote, 0, 0)])
    ended = threading.Event()

    def go_on() -> None:
        at = 1
        while not ended.is_set():
            consumer.commit(offsets=[Place(scene.remote, 0, at)], asynchronous=False)
            at += 1
            ended.wait(0.1)

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        scene.pair.b.until(lambda: scene.standing(group), what=f"{group} commits")
        yield
    finally:
        ended.set()
        thread.join()
        consumer.close()


def test_a_client_with_manual_assignment_is_seen_by_watching(scene: Scene, tmp_path: Path) -> None:
    group = scene.group("manual", 95)
    with committing(scene, group):
        made = plan(scene.pair, group, state=tmp_path)
        assert by_name(made)[group]["state"] == "Empty"
        ran = scene.pair.run_cli("execute", "--yes", "--settle", "1s", "--format", "json", state=tmp_path)
        assert ran.code == 3, ran.out
        found = by_name(ran.json())[group]
        assert [p["reason"] for p in found["partitions"] if p["planned"] is not None] == ["commits-moving"]
        assert "a client with manual assignment seems live" in found["message"]
        # by now there is an earlier look to compare with, so planning again sees it too
        made = plan(scene.pair, group, state=tmp_path, code=3)
        assert by_name(made)[group]["reasons"] == ["commits-moving"]
    assert 0 < scene.standing(group)[0] < 95
    made = plan(scene.pair, group, state=tmp_path, more=["--allow-moving-commits"])
    assert scene.pair.run_cli("execute", "--yes", "--settle", "1s", state=tmp_path).code == 0
    assert scene.standing(group) == {0: 95}


# -- questions ---------------------------------------------------------------------------------------------


def test_the_question_shows_what_will_be_and_only_the_alias_says_yes(scene: Scene, tmp_path: Path) -> None:
    group = scene.group("asked", 31, ahead=5)
    made = plan(scene.pair, group, state=tmp_path)
    for answer in ("yes", "", "B"):
        code, screen = on_a_terminal(scene.pair, "execute", "--settle", "0", answer=answer, state=tmp_path)
        assert code == 3
        error, hint = screen.rstrip().splitlines()[-2:]
        assert error == "error: declined: nothing was written"
        assert hint.startswith(f"hint: plan {made['id']} stays valid until ")
        assert made["expires"][11:19] in hint
        assert scene.standing(group) == {0: 5}
        assert kept(tmp_path) == [f"plans/{made['id']}.json"]
    code, screen = on_a_terminal(scene.pair, "execute", "--settle", "0", answer="b", state=tmp_path)
    assert code == 0
    assert f"plan {made['id']}, made" in screen
    assert "This commits 1 offset of 1 group on b" in screen
    assert "Type b to go ahead" in screen
    assert scene.standing(group) == {0: 31}


# -- what goes to stderr -----------------------------------------------------------------------------------


def test_the_clients_own_lines_are_shown_at_vv_alone(scene: Scene, tmp_path: Path) -> None:
    gone = scene.pair.config_path(added={"a.bootstrap.servers": "127.0.0.1:1"})
    group = scene.group("said", 10)
    scene.pair.commit("b", group, {(scene.remote, 0): 3})
    seen = {}
    for level in ("-q", "", "-v", "-vv"):
        typed = ["plan", "--group", group, "--timeout", "1s", "--format", "json", *filter(None, [level])]
        ran = scene.pair.run_cli(*typed, state=tmp_path, config=gone)
        assert ran.code in (0, 3, 4), ran.err
        assert ran.json()["source"]["state"] == "down"
        seen[level] = ran.err
    assert (seen["-q"], seen[""]) == ("", "")
    assert "rdkafka" not in seen["-v"]
    assert "Connection refused" not in seen["-v"]
    assert "Connection refused" in seen["-vv"] or "refused" in seen["-vv"]
    ran = scene.pair.run_cli(
        "plan", "--group", group, "--timeout", "1s", "-vv", "--log-format", "json", state=tmp_path, config=gone
    )
    lines = [json.loads(line) for line in ran.err.splitlines()]
    assert lines
    assert all(set(line) >= {"time", "level", "logger", "message"} for line in lines)
    assert any("refused" in line["message"] for line in lines)
    assert "Traceback" not in seen["-vv"]


def test_less_is_said_with_q_and_a_traceback_only_with_vv(scene: Scene, tmp_path: Path) -> None:
    group = scene.group("quiet", 10)
    made = plan(scene.pair, group, state=tmp_path)
    assert f"plan {made['id']}, made" in scene.pair.run_cli("execute", "--dry-run", state=tmp_path).err
    assert scene.pair.run_cli("execute", "--dry-run", "-q", state=tmp_path).err == ""
    wrong = ["plan", "--group", "opts.nobody"]
    assert "Traceback" not in one_error(scene.pair.run_cli(*wrong, "-v", state=tmp_path / "v"), 2, tmp_path / "v")
    ran = scene.pair.run_cli(*wrong, "-vv", state=tmp_path / "vv")
    assert ran.err.count("Traceback") == 1
    assert [line.partition(":")[0] for line in ran.err.splitlines()[-2:]] == ["error", "hint"]


def test_a_terminal_gets_a_bar_without_colours_when_asked(scene: Scene, tmp_path: Path) -> None:
    gone = scene.pair.config_path(added={"a.bootstrap.servers": "127.0.0.1:1"})
    typed = ["plan", "--timeout", "2s"]
    colored = re.compile("\x1b\\[[0-9;]*(3[0-8]|9[0-7])[;m]")
    code, screen = on_a_terminal(scene.pair, *typed, answer="", state=tmp_path, config=gone, color=True)
    assert code in (0, 3, 4), screen
    assert colored.search(screen)
    code, screen = on_a_terminal(scene.pair, *typed, "--no-color", answer="", state=tmp_path, config=gone, color=True)
    assert "\x1b[" in screen
    assert not colored.search(screen)
    code, screen = on_a_terminal(scene.pair, *typed, "-q", answer="", state=tmp_path, config=gone, color=True)
    assert "\x1b" not in screen
