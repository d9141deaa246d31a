"""`history`, `show`, `verify`, `rollback` and `execute` as typed, on executions that a cluster in memory made."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from failover.cli import main
from failover.execution.commit import Timing
from failover.execution.session import Session, Ways
from failover.model.execution import Execution
from failover.model.plan import Plan
from failover.planning.fingerprint import fingerprint
from failover.planning.plan_file import encode_plan
from failover.state.folder import StateFolder
from failover.state.plans import save_plan
from tests.fake_cluster import FakeCluster
from tests.unit.execution.plans import CREATED, group, plan
from tests.unit.execution.scene import APP, T0, Clock, target

# nobody listens on these ports
CONFIG = """\
clusters = a, b
a.bootstrap.servers = 127.0.0.1:1
b.bootstrap.servers = 127.0.0.1:1
a->b.enabled = true
"""


class Answer(NamedTuple):
    """Is what a command gave back."""

    code: int
    out: str
    err: str


class Scene(NamedTuple):
    """Is a state folder, and the command line on it."""

    state: StateFolder
    cluster: FakeCluster
    type: Callable[..., Answer]

    def execute(self, made: Plan) -> Execution:
        """Executes on the cluster in memory, five minutes after the plan."""
        save_plan(self.state, made.id, encode_plan(made))
        clock = Clock()
        ways = Ways("ann\x1b[2J", reason="=drill", clock=clock, sleep=clock.sleep)
        return Session.of_plan(made, self.state, self.cluster, ways, timing=Timing(settle=0)).run()


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Scene:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FAILOVER_CONFIG", raising=False)
    (tmp_path / "mm2.properties").write_text(CONFIG)
    state = StateFolder(tmp_path / "state")

    def type_in(*arguments: str) -> Answer:
        with pytest.raises(SystemExit) as ended:
            main(["--state-dir", str(state.path), "--timeout", "1", *arguments])
        out, err = capsys.readouterr()
        return Answer(int(ended.value.code or 0), out, err)

    return Scene(state, target(), type_in)


def test_history_lists_what_was_done_and_hostile_text_comes_out_inert(scene: Scene) -> None:
    done = scene.execute(plan(group("g", {T0: 5})))
    answer = scene.type("history", "--local")
    assert answer.code == 0
    assert done.id in answer.out
    assert "\x1b" not in answer.out
    (row,) = json.loads(scene.type("history", "--local", "--format", "json").out)["runs"]
    assert (row["id"], row["of"], row["outcome"], row["committed"]) == (done.id, done.plan_id, "done", 1)
    assert scene.type("history", "--local", "--plan", "nothing").out == "No execution is on record here.\n"


def test_a_silent_target_costs_history_one_line(scene: Scene) -> None:
    scene.execute(plan(group("g", {T0: 5})))
    answer = scene.type("history", "--format", "json")
    assert answer.code == 0
    found = json.loads(answer.out)
    assert len(found["runs"]) == 1
    assert "of a->b only what this machine did" in found["note"]


def test_show_by_id_by_its_beginning_by_file_and_plans_too(scene: Scene) -> None:
    made = plan(group("g", {T0: 5}))
    done = scene.execute(made)
    record = scene.state.executions / done.id / "execution.json"
    for reference in (done.id, done.id[:5], str(record)):
        answer = scene.type("show", reference, "--format", "json")
        assert (answer.code, json.loads(answer.out)["id"]) == (0, done.id), reference
    assert f"failover rollback {done.id}" in scene.type("show", done.id).out
    for reference in (made.id, str(scene.state.plans / f"{made.id}.json")):
        answer = scene.type("show", reference, "--format", "json")
        assert (answer.code, json.loads(answer.out)["kind"]) == (0, "failover.plan"), reference


@pytest.mark.parametrize("command", ["show", "verify", "rollback", "execute --resume"])
def test_what_is_not_on_record_is_exit_2(scene: Scene, command: str) -> None:
    arguments = ["--yes"] if command in ("rollback", "execute --resume") else []
    for reference in ("e-000000", "../../etc/passwd", "no/such.json"):
        answer = scene.type(*command.split(), reference, *arguments)
        assert answer.code == 2, answer
        assert answer.err.splitlines()[-2].startswith("error: ")
        assert answer.err.splitlines()[-1].startswith("hint: ")


def test_an_outcome_that_stays_unknown_is_exit_7_and_says_why(scene: Scene) -> None:
    scene.cluster.lost_answers.add("g")

    def fall_silent(_: object) -> None:
        if ("commit", 1) in scene.cluster.calls:
            scene.cluster.down = "no answer from b"

    scene.cluster.before["committed"] = fall_silent
    done = scene.execute(plan(group("g", {T0: 5})))
    answer = scene.type("show", done.id)
    assert answer.code == 7
    assert "the outcome of 1 group is still unknown" in answer.err


@pytest.mark.parametrize("command", [("verify",), ("rollback", "--yes")])
def test_a_silent_target_is_exit_8(scene: Scene, command: tuple[str, ...]) -> None:
    done = scene.execute(plan(group("g", {T0: 5})))
    answer = scene.type(command[0], done.id, *command[1:], "--format", "json")
    assert answer.code == 8
    assert json.loads(answer.out)["error"]["code"] == "cluster-unreachable"


@pytest.mark.parametrize(
    ("command", "kind", "undoes"),
    [
        (("verify",), "execution", False),
        (("rollback", "--yes"), "execution", True),
        (("rollback", "--dry-run"), "rehearsal", True),
    ],
)
def test_an_execution_that_wrote_nothing_leaves_nothing_to_do(
    scene: Scene, command: tuple[str, ...], kind: str, undoes: bool
) -> None:
    scene.cluster.group("g", {}, state="Stable", members=(APP,))
    done = scene.execute(plan(group("g", {T0: 5})))
    answer = scene.type(*command, done.id)
    assert (answer.code, answer.err) == (0, "")
    assert f"{done.id} wrote nothing: there is nothing to" in answer.out
    answer = scene.type(*command, done.id, "--format", "json")
    found = json.loads(answer.out)
    assert (answer.code, found["kind"], found["undoes"]) == (0, f"failover.{kind}", done.id if undoes else "")
    assert "outcome" not in found or found["outcome"] == ("done" if undoes else "refused")


def test_a_group_without_members_leaves_nobody_to_remove(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("failover.cli.evict.open_cluster", lambda *_: scene.cluster)
    name = "ev\x1b[31mil"
    scene.cluster.group(name, {T0: 5})
    answer = scene.type("evict", "--group", name, "--yes")
    assert (answer.code, answer.out) == (0, "ev\\x1b[31mil is Empty on b and has no member: nothing to remove\n")
    found = json.loads(scene.type("evict", "--group", name, "--yes", "--format", "json").out)
    assert (found["kind"], found["id"], found["group"]) == ("failover.eviction", "", name)
    assert (found["members"], found["left"], found["outcome"]) == ([], [], "done")
    assert not list(scene.state.executions.glob("*"))


def test_clusters_of_another_flow_are_refused_by_name(scene: Scene) -> None:
    done = scene.execute(plan(group("g", {T0: 5})))
    answer = scene.type("verify", done.id, "--target", "c")
    assert (answer.code, "not c" in answer.err) == (2, True)


@pytest.mark.parametrize("arguments", [("PLAN",), ("--group", "g"), ("--allow-rewind",)])
def test_resume_takes_neither_a_plan_nor_its_options(scene: Scene, arguments: tuple[str, ...]) -> None:
    done = scene.execute(plan(group("g", {T0: 5})))
    answer = scene.type("execute", *arguments, "--resume", done.id, "--yes")
    assert answer.code == 2
    assert "goes on with what an execution was asked to do" in answer.err


@pytest.mark.parametrize("command", [("execute",), ("rollback", "e-1"), ("evict", "--group", "g")])
def test_without_a_terminal_and_yes_nothing_is_even_looked_up(scene: Scene, command: tuple[str, ...]) -> None:
    answer = scene.type(*command, "--format", "json")
    assert (answer.code, json.loads(answer.out)["error"]["code"]) == (2, "no-terminal")


@pytest.mark.parametrize("command", [("verify",), ("rollback", "--yes"), ("execute", "--yes", "--resume")])
def test_an_eviction_or_a_playbooks_run_is_no_execution(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setattr("failover.cli.evict.open_cluster", lambda *_: scene.cluster)
    scene.cluster.group("g", {}, state="Stable", members=(APP,))
    done = json.loads(scene.type("evict", "--group", "g", "--yes", "--format", "json").out)["id"]
    answer = scene.type(*command, done)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.splitlines() == [
        f"error: {done} is an eviction: it wrote no offset",
        f"hint: failover show {done} tells whom it removed",
    ]
    if command[0] != "execute":
        answer = scene.type(*command, "p-123456")
        assert answer.code == 2
        assert answer.err.startswith("error: p-123456 is a run of a playbook, not an execution")


def test_an_older_plan_is_taken_only_with_a_warning_that_says_why(scene: Scene) -> None:
    older = msgspec.structs.replace(plan(group("h", {T0: 6})), id="abc123", expires=CREATED.replace(year=2999))
    older = msgspec.structs.replace(older, fingerprint=fingerprint(older))
    save_plan(scene.state, older.id, encode_plan(older))
    done = plan(group("g", {T0: 5}))
    scene.execute(done)
    answer = scene.type("execute", "--yes")
    assert answer.code == 8
    newest = f"the newest, {done.id} is executed completely"
    warning, named = answer.err.splitlines()[:2]
    assert warning == f"warning: this is NOT the newest plan of a->b: {newest}"
    assert named.startswith("OLDER plan abc123, made")

    (scene.state.plans / "abc123.json").unlink()
    answer = scene.type("execute", "--yes")
    assert (answer.code, answer.err.splitlines()[0]) == (2, f"error: there is no usable plan for a->b: {newest}")


def test_a_plan_with_nothing_to_commit_is_not_gone_back_to(scene: Scene) -> None:
    group_left = msgspec.structs.replace(group("h", {}), verdict="nothing")
    older = msgspec.structs.replace(plan(group_left), id="abc123", expires=CREATED.replace(year=2999))
    older = msgspec.structs.replace(older, fingerprint=fingerprint(older))
    save_plan(scene.state, older.id, encode_plan(older))
    assert scene.type("execute", "--yes").err.startswith("plan abc123, made")  # the newest: there is nothing to do
    done = plan(group("g", {T0: 5}))
    scene.execute(done)
    answer = scene.type("execute", "--yes")
    newest = f"the newest, {done.id} is executed completely"
    assert (answer.code, answer.err.splitlines()[0]) == (2, f"error: there is no usable plan for a->b: {newest}")


def test_with_wait_a_plan_is_not_complete_while_a_refused_group_is_left(scene: Scene) -> None:
    ready, busy = group("g", {T0: 5}), group("busy", {T0: 7})
    waits = tuple(msgspec.structs.replace(p, action="refuse", offset=None) for p in busy.partitions)
    busy = msgspec.structs.replace(busy, verdict="refused", partitions=waits, when_free=busy.partitions)
    made = msgspec.structs.replace(plan(ready, busy), expires=CREATED.replace(year=2999))
    scene.execute(msgspec.structs.replace(made, fingerprint=fingerprint(made)))
    assert "is executed completely" in scene.type("execute", "--yes").err
    answer = scene.type("execute", "--yes", "--wait", "1s")
    assert answer.err.startswith(f"plan {made.id}, made")
    assert answer.code == 8  # it went on to the target, which is silent here


def test_only_ready_with_no_group_ready_is_refused(scene: Scene) -> None:
    part = msgspec.structs.replace(group("g", {T0: 5}), verdict="partial")
    made = msgspec.structs.replace(plan(part), expires=CREATED.replace(year=2999))
    made = msgspec.structs.replace(made, fingerprint=fingerprint(made))
    save_plan(scene.state, made.id, encode_plan(made))
    for more in ([], ["--dry-run"]):
        answer = scene.type("execute", "--yes", made.id, "--only-ready", *more)
        assert (answer.code, answer.out) == (3, "")
        assert f"error: no group of plan {made.id} is ready (g): --only-ready writes nothing" in answer.err
    answer = scene.type("execute", "--yes", made.id, "--group", "g", "--exclude-group", "g")
    assert answer.code == 2
    assert f"error: --group and --exclude-group leave no group of plan {made.id}" in answer.err


def test_the_newest_usable_plan_is_named_before_anything_else(scene: Scene) -> None:
    scene.execute(plan(group("g", {T0: 5})))  # complete: not meant again
    later = msgspec.structs.replace(plan(group("h", {T0: 6})), id="abc123", expires=CREATED.replace(year=2999))
    later = msgspec.structs.replace(later, fingerprint=fingerprint(later))
    save_plan(scene.state, later.id, encode_plan(later))
    answer = scene.type("execute", "--yes")
    assert answer.code == 8
    assert answer.err.startswith("plan abc123, made")
    assert "by ann: 1 group, 1 offset to commit" in answer.err


def test_what_was_rolled_back_says_so_everywhere(scene: Scene) -> None:
    done = scene.execute(plan(group("g", {T0: 5})))
    clock = Clock()
    ways = Ways("ann", clock=clock, sleep=clock.sleep)
    undone = Session.of_undo(done, scene.state, scene.cluster, ways).run()
    assert undone.outcome == "done"
    shown = scene.type("show", done.id).out
    assert f"NOW        ROLLED BACK since, by {undone.id}" in shown
    assert "Start the consumers" not in shown
    row = next(line for line in scene.type("history", "--local").out.splitlines() if line.startswith(done.id))
    assert "rolled back" in row
    markdown = scene.type("report", done.id, "--format", "markdown").out
    assert f"ROLLED BACK since, by {undone.id}" in markdown
    assert "Start the consumers" not in markdown
    assert f"It was rolled back since, by {undone.id}" in scene.type("report", done.id, "--format", "html").out


def test_nothing_is_asked_where_nothing_would_be_committed() -> None:
    from failover.cli.execute import _commits

    made = plan(group("g", {T0: 5}))
    assert _commits(made, {"g"}, when_free=False)
    assert not _commits(made, {"another"}, when_free=False)
    left = msgspec.structs.replace(made.groups[0].partitions[0], action="skip", offset=None)
    still = msgspec.structs.replace(made, groups=(msgspec.structs.replace(made.groups[0], partitions=(left,)),))
    assert not _commits(still, {"g"}, when_free=True)
