"""What `verify` finds is kept with the run, and told by `show`, `report` and `history`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from failover.execution.session import Session, Ways
from failover.model.execution import Execution
from failover.model.groups import Commit
from tests.cli.test_runs import Scene, scene  # noqa: F401 - a fixture
from tests.unit.execution.plans import group, plan
from tests.unit.execution.scene import AT_ONCE, T0, T1, Clock


@pytest.fixture
def done(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> Execution:  # noqa: F811
    monkeypatch.setattr("failover.cli.past.open_cluster", lambda *_, **__: scene.cluster)
    return scene.execute(plan(group("g", {T0: 5, T1: 6}), group("h", {T0: 7})))


def record(scene: Scene, done: Execution) -> Path:  # noqa: F811
    return scene.state.executions / done.id / "execution.json"


def shown(scene: Scene, *arguments: str) -> Any:  # noqa: F811
    return json.loads(scene.type(*arguments, "--format", "json").out)


def test_the_last_verification_is_told_by_show_report_and_history(scene: Scene, done: Execution) -> None:  # noqa: F811
    assert shown(scene, "show", done.id)["verified"] is None
    assert scene.type("verify", done.id).code == 0
    assert "VERIFIED   HOLDS" in scene.type("show", done.id).out
    scene.cluster.groups["g"].commits[T0] = Commit(3)
    answer = scene.type("verify", done.id)
    assert (answer.code, answer.err) == (6, "")

    for form in ("show", "report"):
        told = shown(scene, form, done.id)
        assert told["verified"]["exit_code"] == 6
        verdicts = {looked["group"]: looked["verdict"] for looked in told["verified"]["groups"]}
        assert verdicts == {"g": "below", "h": "held"}
        assert [(p["now"], p["verdict"]) for p in told["groups"][0]["partitions"]] == [(3, "below"), (6, "held")]
    for told in (
        scene.type("show", done.id).out,
        scene.type("report", done.id, "--format", "markdown").out,
        scene.type("report", done.id).out,
    ):
        assert "DOES NOT HOLD" in told
        assert "exit 6" in told
        assert "below" in told
    (row,) = shown(scene, "history", "--local")["runs"]
    assert (row["verified"]["exit_code"], row["verified"]["groups"], row["verified"]["bad"]) == (6, 2, 1)
    assert "does not hold: 1 of 2 groups" in " ".join(scene.type("history", "--local").out.split())
    assert record(scene, done).stat().st_mode & 0o777 == 0o600


def test_without_a_verification_history_has_no_column_for_it(scene: Scene, done: Execution) -> None:  # noqa: F811
    assert done.id in scene.type("history", "--local").out
    assert "VERIFIED" not in scene.type("history", "--local").out


def test_a_run_by_file_keeps_it_in_the_file_and_says_so(scene: Scene, done: Execution, tmp_path: Path) -> None:  # noqa: F811
    copy = tmp_path / "copy.json"
    shutil.copy(record(scene, done), copy)
    answer = scene.type("verify", str(copy))
    assert (answer.code, answer.err) == (0, f"the result is kept in {copy}\n")
    assert copy.stat().st_mode & 0o777 == 0o600
    assert shown(scene, "show", str(copy))["verified"]["exit_code"] == 0
    assert shown(scene, "show", done.id)["verified"] is None


def test_what_cannot_be_kept_is_said(
    scene: Scene,  # noqa: F811
    done: Execution,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    copy = tmp_path / "copy.json"
    shutil.copy(record(scene, done), copy)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as now:
        now.setattr("os.fsync", full)
        answer = scene.type("verify", str(copy))
    assert answer.code == 0
    assert answer.err == f"the result is not kept: cannot write {copy}: No space left on device\n"
    assert shown(scene, "show", str(copy))["verified"] is None


def test_going_on_with_a_run_does_not_forget_it(scene: Scene, done: Execution) -> None:  # noqa: F811
    assert scene.type("verify", done.id).code == 0
    from failover.execution.session import find_resumed

    resumed, clock = find_resumed(scene.state, done.id), Clock()
    ways = Ways("ann", clock=clock, sleep=clock.sleep)
    Session.of_plan(resumed.plan, scene.state, scene.cluster, ways, timing=AT_ONCE, resumed=resumed).run()
    assert shown(scene, "show", done.id)["verified"]["exit_code"] == 0
