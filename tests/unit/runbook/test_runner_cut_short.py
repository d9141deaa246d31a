"""A run that ends at every moment of its journal, goes on, and comes to the same; and turns back to what was before."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

import pytest

from failover.model.names import TopicPartition
from failover.runbook import events as e
from failover.runbook.engine import Status
from failover.runbook.runner import Runner
from tests.unit.runbook import test_steps
from tests.unit.runbook.test_steps import ORDERS, Scene, acl

scene = test_steps.scene
STEPS = (
    "uses: prepare-topics",
    "uses: plan, with: {groups: [g]}",
    "uses: acls, with: {plan: '{{ steps.s1.plan_id }}'}",
    "uses: fence",
    "uses: execute, with: {plan: '{{ steps.s1.plan_id }}', settle: 0s}",
    "uses: verify, with: {execution: '{{ steps.s4.execution_id }}'}",
)
FAIL = "uses: verify, with: {execution: no-such}"
COMMITTED = {TopicPartition("a.orders", 0): 60}


class Killed(BaseException):
    """Is the end of the process, in the middle of whatever it does."""


class Journal:
    """Notes events like the one on disk. Of each sort of event of each step the first ends the process twice: before it
    is durable, and right after.
    """

    def __init__(self, events: Iterable[e.Event]) -> None:
        self.events = list(events)
        self.met: set[tuple[str, str, bool]] = set()

    def note(self, event: e.Event) -> None:
        self._end_at(event, durable=False)
        self.events.append(event)
        self._end_at(event, durable=True)

    def _end_at(self, event: e.Event, *, durable: bool) -> None:
        moment = (type(event).__name__, getattr(event, "step", ""), durable)
        if moment not in self.met:
            self.met.add(moment)
            raise Killed


@pytest.fixture
def ready(scene: Scene) -> Scene:
    scene.a.group("g", {ORDERS: 60})
    scene.a.bindings = [acl("ALLOW", "READ", who="User:app")]
    scene.b.bindings = [acl("ALLOW", "READ", "a.paid", who="User:other")]
    return scene


def run(scene: Scene, *steps: str) -> tuple[Runner, Journal]:
    """Runs to the end in as many processes as that takes, each killed at the next moment."""
    fresh = scene.runner(*steps)
    journal = Journal(fresh.events)
    while True:
        runner = Runner(fresh.playbook, journal.events, journal, scene.around())
        try:
            runner.run()
        except Killed:
            journal.events.append(e.Resumed(datetime.now(UTC), "bob", "h"))
        else:
            return runner, journal


def test_killed_at_every_moment_it_comes_to_the_same(ready):
    runner, journal = run(ready, *STEPS)
    assert runner.state.finished is not None
    assert runner.state.finished.outcome == "done"
    assert len(journal.met) >= 2 * (2 * len(STEPS) + 3 + 1)  # begun and done, what three note, the end
    assert {tp: c.offset for tp, c in ready.b.groups["g"].commits.items()} == COMMITTED
    assert ready.b.calls.count(("commit", 1)) == 1
    results = runner.state.results
    assert results["s0"] == {"created": ["orders", "paid"], "there": []}
    assert (results["s2"]["created"], results["s3"]["acls"]) == (len(ready.b.bindings) - 1, len(ready.a.bindings) - 1)


def test_killed_at_every_moment_it_turns_back_to_what_was_before(ready):
    before = list(ready.a.bindings), list(ready.b.bindings)
    runner, journal = run(ready, *STEPS, FAIL)
    assert runner.state.finished is not None
    assert (runner.state.finished.outcome, runner.state.finished.exit_code) == ("undone", 4)
    assert {name for name, _, _ in journal.met} >= {"UndoBegun", "Undone", "Failed", "NotDone", "Noted"}
    assert (ready.a.bindings, ready.b.bindings) == before
    assert "g" not in ready.b.groups or not ready.b.groups["g"].commits


@pytest.mark.parametrize("place", range(1, len(STEPS) + 1))
def test_wherever_a_step_fails_what_was_done_before_is_put_back(ready, place):
    before = list(ready.a.bindings), list(ready.b.bindings)
    after = [step.replace("steps.s4", "steps.s5") if place <= 4 else step for step in STEPS[place:]]
    after = [step.replace("steps.s1", "steps.s2") if place <= 1 else step for step in after]
    runner = ready.run(*STEPS[:place], FAIL, *after)
    assert (ready.a.bindings, ready.b.bindings) == before
    assert "g" not in ready.b.groups or not ready.b.groups["g"].commits
    statuses = [each.status for each in runner.state.steps.values()]
    assert statuses[place] is Status.FAILED
    assert set(statuses[place + 1 :]) <= {Status.WAITING}
    assert Status.STUCK not in statuses
    undoes = {2, 3, 4}  # ACLs, the fence, the offsets
    assert {n for n, one in enumerate(statuses) if one is Status.UNDONE} == {n for n in undoes if n < place}


def test_what_the_mirror_copied_of_a_fence_goes_with_it(scene):
    before = [acl("ALLOW", "READ", "a.paid", who="User:other")]
    scene.a.bindings, scene.b.bindings = [], list(before)
    copies = [
        acl(permission, operation, "a.orders") for permission, operation in (("DENY", "WRITE"), ("ALLOW", "READ"))
    ]

    def mirrored() -> None:
        if scene.clock:  # once the fence stands and is watched
            scene.b.bindings = [*before, *copies]

    scene.on_sleep = mirrored
    runner = scene.run("uses: fence", "uses: verify-fence, with: {watch: 2s}", FAIL)
    assert runner.state.steps["s0"].undo_text == "deleted 8 ACLs, and 2 copies on the target"
    assert (scene.a.bindings, scene.b.bindings) == ([], before)


def test_a_fence_of_which_a_part_was_created_is_made_whole(scene):
    """A first ACL alone would shut out readers; those of the earlier try must not be taken for somebody's."""
    scene.a.bindings = scene.b.bindings = []
    scene.run("uses: fence, with: {topics: [orders]}")
    whole = list(scene.a.bindings)
    assert len(whole) == 4
    scene.a.bindings = []
    runner = scene.runner("uses: fence, with: {topics: [orders]}")
    journal = Journal(runner.events)
    journal.met = {("Begun", "s0", False), ("Begun", "s0", True), ("Noted", "s0", False), ("Noted", "s0", True)}
    with pytest.raises(Killed):  # at Succeeded: all was created, and here some of it got lost
        Runner(runner.playbook, runner.events, journal, scene.around()).run()
    scene.a.bindings = whole[:1]
    again = Runner(runner.playbook, [*journal.events, e.Resumed(datetime.now(UTC), "bob", "h")], scene, scene.around())
    again.run()
    assert set(scene.a.bindings) == set(whole)


def test_what_nobody_foresaw_is_a_failure_too_and_all_is_put_back(ready, monkeypatch):
    before = list(ready.a.bindings), list(ready.b.bindings)

    def broken(*_: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("failover.runbook.steps.verify.VerifyKind.run", broken)
    runner = ready.run(*STEPS)
    failure = runner.state.steps["s5"].failure
    assert failure is not None
    assert (failure.code, failure.exit_code) == ("unexpected", 1)
    assert failure.message == "unexpected: ZeroDivisionError: a bug"
    assert runner.state.finished is not None
    assert runner.state.finished.outcome == "undone"
    assert (ready.a.bindings, ready.b.bindings) == before


def test_what_breaks_on_the_way_back_does_not_keep_the_rest_from_it(ready, monkeypatch):
    before = list(ready.b.bindings)

    def broken(*_: object) -> str:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("failover.runbook.steps.fence.FenceKind.undo", broken)
    runner = ready.run(*STEPS, FAIL)
    assert runner.state.steps["s3"].status is Status.STUCK
    assert runner.state.finished is not None
    assert runner.state.finished.outcome == "stuck"
    assert ready.b.bindings == before
