"""The step that gates on the health lists and on readiness, on clusters in memory."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any, get_args

import pytest

from failover.errors import PlaybookInvalid
from failover.library.flows import MirrorFlow
from failover.model.health import PointName
from failover.model.names import TopicPartition
from failover.planning.health import point_names
from failover.runbook import events as e
from failover.runbook.engine import Finish, Status
from failover.runbook.kinds import kind
from failover.runbook.library import find_playbook
from failover.runbook.parse import parse
from failover.runbook.playbook import Playbook
from failover.runbook.reach import Reach
from failover.runbook.runner import Preview, Runner, Surroundings, preview
from failover.state.folder import StateFolder
from tests.unit.inventory.scene import NOW
from tests.unit.planning.test_health import Patient
from tests.unit.runbook.test_steps import started


class Clock(datetime):
    """Is the clock at the time of the clusters in memory."""

    @classmethod
    def now(cls, tz: Any = None) -> Any:
        return NOW


class Ward:
    """Is a flow that is well until a test makes it ill, and who runs steps about it."""

    def __init__(self, path: Path) -> None:
        self.flow = Patient(path)
        self.path = path
        self.reach = Reach(MirrorFlow(*self._configured(path)), StateFolder(path / "state"))
        self.said: list[str] = []

    @staticmethod
    def _configured(path: Path) -> tuple[Any, Any]:
        from failover.config.load import load_config, select_flow

        found = load_config([str(path / "mm2.properties")])
        return found, select_flow(found)

    def note(self, event: e.Event) -> None:
        """Is the journal: what it holds, the runner holds too."""

    def around(self) -> Surroundings:
        return Surroundings(
            now=lambda: NOW,
            clock=lambda: 0.0,
            sleep=lambda _: None,
            ask=lambda *_: True,
            say=self.said.append,
            stop=lambda: "",
            operator="ann",
            reach=self.reach,
        )

    def run(self, playbook: Playbook) -> tuple[Runner, Finish]:
        runner = Runner(playbook, [started(playbook)], self, self.around())
        return runner, runner.run()

    def gate(self, given: str) -> tuple[dict[str, Any], Finish]:
        runner, end = self.run(step(given))
        return dict(runner.state.steps["gate"].result), end

    def failure(self, given: str) -> e.Failed:
        runner, _ = self.run(step(given))
        known = runner.state.steps["gate"]
        assert known.status is Status.FAILED
        assert known.failure is not None
        return known.failure

    def previewed(self, given: str) -> Preview:
        [found] = preview(step(given), {}, self.around())
        return found


def step(given: str) -> Playbook:
    text = f"name: x\ndescription: x\nsteps:\n  - {{id: gate, title: T, uses: check, with: {given}}}\n"
    return parse(text, "x.yaml")


@pytest.fixture
def ward(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ward:
    made = Ward(tmp_path)
    clusters = {"a": made.flow.a, "b": made.flow.b}
    monkeypatch.setattr(MirrorFlow, "open_cluster", lambda _, alias, timeout=None: clusters[alias])
    monkeypatch.setattr("failover.library.open_flow.datetime", Clock)
    return made


def test_points_that_are_well_pass_and_their_answers_are_kept(ward):
    found, end = ward.gate("{checks: [lag, groups, disk], fail_on: unknown}")
    assert end.exit_code == 0
    assert found["answers"][:2] == ["lag: ok, 0 records, 0 s", "groups: ok, 2 of 2 groups"]
    assert found["answers"][2].startswith("disk: ok")
    assert (found["well"], found["errors"], found["warnings"], found["unknown"]) == (3, 0, 0, 0)


def test_a_finding_fails_the_step_where_it_weighs_enough_and_at_its_point_alone(ward):
    ward.flow.records(ward.flow.a, "orders", 1500, age=120)
    failed = ward.failure("{checks: [lag], fail_on: warning}")
    assert (failed.exit_code, failed.code) == (4, "step-failed")
    assert failed.message == "1 warning: 1,500 records of 1 partition wait for their copies, the oldest for 2 min"
    assert "tasks.max" in failed.hint
    found, end = ward.gate("{checks: [lag]}")
    assert (end.exit_code, found["warnings"], found["well"]) == (0, 1, 0)
    assert any(text.startswith("  to do: see whether the mirror runs") for text in ward.said)
    assert ward.gate("{checks: [heartbeat, disk], fail_on: warning}")[1].exit_code == 0
    # no lag where the threshold is higher
    assert ward.gate("{checks: [lag], fail_on: warning, lag_records: 2000}")[1].exit_code == 0
    assert ward.gate("{checks: [lag], fail_on: warning, lag: 5m}")[1].exit_code == 0


def test_an_error_is_3_and_every_remedy_is_told(ward):
    ward.flow.b.topic_configs["mm2-offsets.a.internal"]["cleanup.policy"] = "delete"
    ward.flow.b.topic_configs["a.orders"]["retention.ms"] = "86400000"
    failed = ward.failure("{checks: [weekly], fail_on: warning}")
    assert failed.exit_code == 3
    assert failed.message.startswith("1 error, 1 warning: (1) mm2-offsets.a.internal on b has cleanup.policy=delete")
    assert failed.hint.startswith("(1) ")
    assert "(2) MM2 copies what is set on the topic itself" in failed.hint
    # told by another step of the run, they are counted
    playbook = parse(
        "name: x\ndescription: x\nsteps:\n"
        "  - {id: first, title: T, uses: check, on_failure: continue,\n"
        "     with: {checks: [disk, configs], fail_on: warning}}\n"
        "  - {id: whole, title: T, uses: check, on_failure: stop, with: {checks: [weekly], fail_on: warning}}\n",
        "x.yaml",
    )
    ward.reach.kept.clear()
    runner, end = ward.run(playbook)
    first, whole = (runner.state.steps[name].failure for name in ("first", "whole"))
    assert first is not None
    assert first.message == failed.message
    assert whole is not None
    assert whole.message == "1 error, 1 warning, told by the steps before"
    assert end.exit_code == 3
    # a day's list does not hold these
    assert ward.gate("{checks: [daily], fail_on: warning}")[1].exit_code == 0


def test_readiness_is_what_status_says(ward):
    assert ward.gate("{checks: [readiness]}")[0]["well"] == 1
    ward.flow.b.log[TopicPartition("a.checkpoints.internal", 0)].clear()
    failed = ward.failure("{checks: [readiness]}")
    assert failed.exit_code == 3
    assert "none of 2 groups would be ready" in failed.message
    # a heartbeat of 30 s is old for the list, and not for readiness
    ward.flow.b.log[TopicPartition("a.heartbeats", 0)].clear()
    ward.flow.beat(30)
    assert "heartbeat" in ward.failure("{checks: [heartbeat], fail_on: warning}").message
    assert ward.gate("{checks: [heartbeat], fail_on: warning, heartbeat: 40s}")[1].exit_code == 0


def test_what_nobody_can_tell_fails_only_where_that_is_asked(ward):
    ward.flow.a.bindings = None
    assert ward.gate("{checks: [acls], fail_on: warning}")[0]["unknown"] == 1
    failed = ward.failure("{checks: [acls], fail_on: unknown}")
    assert (failed.exit_code, failed.message) == (4, "1 unknown: nobody can tell: acls")


def test_a_dry_run_looks_for_real(ward):
    assert ward.previewed("{checks: [lag]}").would == "looked: lag: ok, 0 records, 0 s"
    ward.flow.records(ward.flow.a, "orders", 1500, age=120)
    assert ward.previewed("{checks: [lag], fail_on: warning}").problem.startswith("1 warning: 1,500 records")


def test_a_name_that_is_none_is_found_before_anything_runs():
    with pytest.raises(PlaybookInvalid, match=r"x.yaml:4: checks: there is no 'lagg'; did you mean 'lag'\?"):
        step("{checks: [lagg]}")
    with pytest.raises(PlaybookInvalid, match="fail_on: there is no 'never'; known are: error, warning, unknown"):
        step("{checks: [lag], fail_on: never}")
    with pytest.raises(PlaybookInvalid, match="needs 'checks'"):
        step("{fail_on: error}")


@pytest.mark.parametrize("period", ["daily", "weekly"])
def test_the_shipped_lists_hold_every_point_once_and_look_once(ward, period):
    playbook = find_playbook(f"health-{period}")
    *single, whole = [one.action.parameters["checks"] for one in playbook.steps]
    assert sorted(name for names in single for name in names) == sorted(point_names(period))
    assert whole == [period]
    before = len(ward.flow.b.calls)
    runner, end = ward.run(playbook)
    assert end.outcome == "done", [(one.failure and one.failure.message) for one in runner.state.steps.values()]
    made = len(ward.flow.b.calls) - before
    ward.gate(f"{{checks: [{period}]}}")
    assert made == len(ward.flow.b.calls) - before - made


def test_the_shipped_list_ends_with_what_health_ends_with(ward):
    ward.flow.b.log[TopicPartition("a.heartbeats", 0)].clear()
    ward.flow.beat(30)
    runner, end = ward.run(find_playbook("health-daily"))
    assert (end.exit_code, end.step) == (4, "whole")
    assert {name: one.status for name, one in runner.state.steps.items()} == {
        "mirror": Status.DONE,
        "signs": Status.FAILED,
        "groups": Status.DONE,
        "whole": Status.FAILED,
    }


def test_the_names_of_points_are_those_of_the_lists():
    assert get_args(PointName) == point_names("weekly")
    assert point_names("daily") == point_names("weekly")[:5]


def test_the_command_to_do_it_by_hand():
    by_hand = kind("check").by_hand
    assert by_hand({"checks": ["lag"]}) == "failover health daily   # lag"
    assert by_hand({"checks": ["lag", "disk"]}) == "failover health weekly   # lag, disk"
    assert by_hand({"checks": ["readiness"]}) == "failover status --check"
    assert by_hand({"checks": ["weekly"]}) == "failover health weekly"
