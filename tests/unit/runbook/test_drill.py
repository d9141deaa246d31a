"""The step that tries a plan out beside the live groups, on clusters in memory."""

from __future__ import annotations

import copy
import time
from datetime import UTC, datetime
from typing import Any

import pytest

from failover.model.groups import Commit
from failover.model.names import Fault, TopicPartition
from failover.runbook import events as e
from failover.runbook.engine import Status
from failover.runbook.record import RunLog
from failover.state.playbook_runs import new_playbook_run
from tests.unit.runbook.test_steps import APP, ORDERS, Scene, failure, result, scene, started

__all__ = ["scene"]
PLAN = "uses: plan"
SHADOW = "uses: group-shadow, with: {plan: '{{ steps.s0.plan_id }}', records: 20}"
COPY = TopicPartition("a.orders", 0)


@pytest.fixture(autouse=True)
def groups(scene: Scene) -> None:
    scene.a.group("g", {ORDERS: 60}, state="Stable", members=(APP,)).group("h", {ORDERS: 100})
    scene.b.group("h", {COPY: 90})


def standing(scene: Scene) -> Any:
    """Is all of both clusters that a drill must not change."""
    return copy.deepcopy([(side.groups, side.logs, side.infos, side.bindings) for side in (scene.a, scene.b)])


def test_every_group_is_tried_and_nothing_is_left(scene):
    before = standing(scene)
    found = dict(result(scene.run(PLAN, SHADOW), "s1"))
    assert found.pop("ready_seconds") >= 0
    assert found == {
        "groups": 2,
        "partitions": 2,
        "compared": 60,
        "reread": 0,
        "left_out": 0,
        "missing_records": 0,
        "missing_seconds": 0.0,
        "cleaned": 0,
    }
    assert standing(scene) == before


def test_groups_on_the_target_are_not_what_is_written(scene):
    written: list[str] = []
    scene.b.before["commit"] = lambda commits, *_: written.extend(commits)
    scene.run(PLAN, SHADOW)
    assert written == ["drill.g", "drill.h"]
    scene.run(PLAN, f"{SHADOW[:-1]}, groups: [h]}}")
    assert written[2:] == ["drill.h"]
    assert "has no group nobody" in failure(scene.run(PLAN, f"{SHADOW[:-1]}, groups: [nobody]}}"), "s1")


def test_a_group_that_is_live_on_the_target_is_tried_as_if_it_were_empty(scene):
    scene.b.group("g", {COPY: 5}, state="Stable", members=(APP,))
    before = standing(scene)
    assert result(scene.run(PLAN, SHADOW), "s1")["groups"] == 2
    assert standing(scene) == before


def test_what_the_plan_itself_starts_elsewhere_is_left_out(scene):
    scene.b.group("h", {COPY: 100})
    scene.a.group("h", {ORDERS: 80})  # it has moved on the target: the commit there stays
    found = result(scene.run(PLAN, SHADOW), "s1")
    assert (found["groups"], found["partitions"], found["left_out"]) == (1, 1, 1)
    assert "has no offset that could be tried" in failure(scene.run(PLAN, f"{SHADOW[:-1]}, groups: [h]}}"), "s1")


def test_without_the_source_there_is_nothing_to_compare_with(scene):
    moved = plan_moved(scene, 0)
    scene.reach.source_down = True
    assert "nothing to compare with" in failure(scene.run(f"uses: group-shadow, with: {{plan: {moved}}}"))


def test_what_the_target_does_not_have_is_told(scene):
    scene.a.append("orders", None, b"one more", timestamp=1000)
    found = result(scene.run(PLAN, SHADOW), "s1")
    assert (found["missing_records"], found["missing_seconds"]) == (1, None)  # no sync tells which record it is


@pytest.mark.parametrize(
    ("value", "limit", "said"),
    [
        ("1", "1", ""),
        ("1", "-1", ""),
        ("null", "-1", ""),
        ("2", "1", "lag: 2; at most 1 is allowed"),
        ("null", "1", "lag: unknown; at most 1 is allowed"),
        ("1.5", "1.2", "lag: 1.5; at most 1.2 is allowed"),
    ],
)
def test_a_bound_on_what_was_measured(scene, value, limit, said):
    step = f"uses: at-most, with: {{value: {value}, limit: {limit}, what: lag}}"
    runner = scene.run(step)
    if said:
        assert failure(runner) == said == scene.previewed(step)
    else:
        assert runner.state.steps["s0"].status is Status.DONE


def plan_moved(scene: Scene, by: int) -> Any:
    """Runs a plan and gives the events of a run of which the plan says another offset for h."""
    import msgspec

    from failover.library.planning import saved_plan
    from failover.planning.fingerprint import fingerprint
    from failover.planning.plan_file import encode_plan
    from failover.state.plans import save_plan

    runner = scene.runner(PLAN)
    runner.run()
    plan = saved_plan(scene.reach.state, str(runner.state.steps["s0"].result["plan_id"]))
    groups = tuple(
        msgspec.structs.replace(
            group,
            partitions=tuple(
                msgspec.structs.replace(
                    each,
                    position_after=msgspec.structs.replace(
                        each.position_after, offset=(each.position_after.offset or 0) + by
                    ),
                )
                for each in group.partitions
            ),
        )
        for group in plan.groups
    )
    moved = msgspec.structs.replace(plan, id="abcdef", groups=groups)
    moved = msgspec.structs.replace(moved, fingerprint=fingerprint(moved))
    save_plan(scene.reach.state, moved.id, encode_plan(moved))
    return moved.id


def test_a_position_that_passes_over_a_record_fails_with_6_and_names_it(scene):
    moved = plan_moved(scene, 1)
    runner = scene.run(f"uses: group-shadow, with: {{plan: {moved}, groups: [g]}}")
    assert failure(runner) == (
        "1 of 1 positions do not go on where the source's consumers stand: "
        "g a.orders-0 at 60: an unread record lies before the position"
    )
    known = runner.state.steps["s0"].failure
    assert known is not None
    assert known.exit_code == 6
    assert "drill.g" not in scene.b.groups


def test_records_that_differ_fail_and_no_content_is_told(scene):
    scene.run(PLAN)
    moved = plan_moved(scene, 0)
    record = scene.b.log[COPY][65]
    scene.b.log[COPY][65] = record._replace(value=b"secret")
    said = failure(scene.run(f"uses: group-shadow, with: {{plan: {moved}, groups: [g]}}"))
    assert "g a.orders-0 at 65: the record there is none of the source's" in said
    assert "secret" not in said + "".join(scene.said)


def test_what_an_aborted_transaction_wrote_may_be_missing(scene):
    scene.a.append("paid", None, b"one", timestamp=1).append("paid", None, b"no", timestamp=2)
    scene.a.append("paid", None, b"two", timestamp=3)
    scene.b.append("a.paid", None, b"one", timestamp=1).append("a.paid", None, b"two", timestamp=3)
    paid = TopicPartition("paid", 0)
    scene.a.groups.clear()
    scene.a.group("g", {paid: 0})
    moved = plan_moved(scene, 0)
    shadow = f"uses: group-shadow, with: {{plan: {moved}}}"
    assert "1 records before it are missing" in failure(scene.run(shadow))
    scene.a.aborted.add((paid, 1))
    assert result(scene.run(shadow))["compared"] == 2


def test_offsets_that_are_refused_fail_and_leave_nothing(scene):
    scene.b.faults["commit", "drill.h"] = Fault(30, "GROUP_AUTHORIZATION_FAILED", "no")
    assert "takes no offsets for 1 groups: drill.h: GROUP_AUTHORIZATION_FAILED" in failure(
        scene.run(PLAN, SHADOW), "s1"
    )
    assert set(scene.b.groups) == {"h"}


def test_groups_that_stay_are_named_with_what_to_do(scene):
    scene.b.faults["delete_groups", "drill.h"] = Fault(29, "GROUP_AUTHORIZATION_FAILED", "no")
    assert "1 groups of the drill stay on b: drill.h: " in failure(scene.run(PLAN, SHADOW), "s1")


class TestLeftovers:
    def left(self, scene: Scene, run_id: str, until: float = 0.0) -> None:
        scene.b.group("drill.g", {COPY: Commit(60, f"failover-drill {run_id} {until:.0f}".encode())})

    def test_those_of_a_run_here_that_nobody_is_at_are_deleted(self, scene):
        run_id, folder = new_playbook_run(scene.reach.state, "name: x\n")
        log = RunLog(folder)
        log.note(e.Stopped(datetime.now(UTC), "x"))
        self.left(scene, run_id, time.time() + 1000)
        assert "1 groups on b are not this drill's: drill.g" in failure(scene.run(PLAN, SHADOW), "s1")
        log.close()
        assert result(scene.run(PLAN, SHADOW), "s1")["cleaned"] == 1
        assert set(scene.b.groups) == {"h"}

    def test_those_of_another_machine_when_its_time_is_up(self, scene):
        self.left(scene, "p-aaaaaa", time.time() + 1000)
        assert "are not this drill's" in failure(scene.run(PLAN, SHADOW), "s1")
        self.left(scene, "p-aaaaaa", time.time() - 1000)
        assert result(scene.run(PLAN, SHADOW), "s1")["cleaned"] == 1

    @pytest.mark.parametrize(
        "commits",
        [
            {COPY: 7},
            {COPY: Commit(7, b"failover-drill p-1 0"), ORDERS: Commit(7)},
            {COPY: Commit(7, b"failover-drill")},
            {},
        ],
    )
    def test_what_is_not_marked_is_somebody_elses(self, scene, commits):
        scene.b.group("drill.g", commits)
        scene.b.group("drill.other", commits)
        before = standing(scene)
        assert "1 groups on b are not this drill's: drill.g" in failure(scene.run(PLAN, SHADOW), "s1")
        assert standing(scene) == before
        assert result(scene.run(PLAN, f"{SHADOW[:-1]}, groups: [h]}}"), "s1")["cleaned"] == 0
        assert standing(scene) == before

    def test_cut_short_the_run_itself_deletes_what_it_left_when_it_goes_on_or_turns_back(self, scene):
        def cut(*_: object) -> None:
            if "drill.g" in scene.b.groups:
                raise KeyboardInterrupt

        for end in (e.Resumed(datetime.now(UTC), "bob", "h"), e.TurnedBack(datetime.now(UTC), "ann")):
            scene.b.before["delete_groups"] = scene.b.before["windows"] = cut
            runner = scene.runner(PLAN, SHADOW)
            with pytest.raises(KeyboardInterrupt):
                runner.run()
            scene.b.before.clear()
            assert {"drill.g", "drill.h"} < set(scene.b.groups)
            again = scene.runner(PLAN, SHADOW, events=[*runner.events[1:], end])
            assert again.run().outcome == ("done" if isinstance(end, e.Resumed) else "undone")
            assert set(scene.b.groups) == {"h"}

    def test_a_preview_says_what_would_be_done_and_does_nothing(self, scene):
        moved = plan_moved(scene, 0)
        self.left(scene, "p-aaaaaa")
        before = standing(scene)
        step = f"uses: group-shadow, with: {{plan: {moved}}}"
        assert scene.previewed(step).startswith(
            "would delete 1 groups an earlier drill left, commit 2 offsets of 2 groups"
        )
        assert standing(scene) == before
        scene.b.group("drill.h", {COPY: 1})
        assert "1 groups on b are not this drill's: drill.h" in scene.previewed(step)


@pytest.mark.parametrize(("behind", "outcome", "failed"), [("-1", "done", "done"), ("0", "partly", "failed")])
def test_the_shipped_drill_comes_to_its_end(scene, behind, outcome, failed):
    from failover.runbook.library import find_playbook
    from failover.runbook.runner import Runner

    playbook = find_playbook("drill")
    scene.a.append("orders", None, b"one more", timestamp=1000)
    scene.a.bindings, scene.b.bindings = [], []
    before = standing(scene)
    runner = Runner(playbook, [started(playbook, behind=behind)], scene, scene.around())
    assert runner.run().outcome == outcome
    assert {name: step.status.value for name, step in runner.state.steps.items()} == {
        "plan": "done",
        "shadow": "done",
        "missing": failed,
        "oldest": "skipped",
        "longest": "skipped",
        "canary": "done",
        "acls": "done",
        "tell": "skipped",
    }
    for side in (scene.a, scene.b):
        side.infos.pop("failover-canary", None)
        side.logs.pop(TopicPartition("failover-canary", 0), None)
    assert standing(scene) == before
