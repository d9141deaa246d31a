"""The same plan executed again, or an interrupted execution resumed: done stays done, nothing is written twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from failover.execution.commit import Executor, Timing
from failover.execution.earlier import begun, complete, earlier_writes, rolled_back
from failover.execution.record import build, exit_code
from failover.model.execution import Outcome, Status
from failover.model.groups import Commit
from failover.model.plan import Action, Plan, Verdict
from failover.state.journal import Intent, Journal, read_journal
from tests.fake_cluster import FakeCluster
from tests.unit.execution.plans import group, partition, plan
from tests.unit.execution.scene import APP, AT_ONCE, T0, T1, Clock, run, started, statuses, target


class Killed(BaseException):
    """Stands for the end of the process."""


def kill_at(cluster: FakeCluster, moment: str) -> None:
    """Ends the process before the commits reach the target, or after."""

    def before(_: object) -> None:
        raise Killed

    if moment == "before the commit":
        cluster.before["commit"] = before
    else:
        cluster.before["committed"] = lambda _: before(_) if ("commit", 1) in cluster.calls else None


def killed(made: Plan, cluster: FakeCluster, path: Path, moment: str) -> None:
    """Executes and dies; the journal is left as the disk has it then."""
    journal = Journal(path / "e-1")
    kill_at(cluster, moment)
    executor = Executor(made, cluster, journal, clock=Clock(), sleep=lambda _: None)
    begin = started(made)
    executor._note(begin)
    journal.sync()
    with pytest.raises(Killed):
        executor._run(list(made.groups), AT_ONCE)
    journal._pending.clear()
    journal.close()
    cluster.before.clear()
    cluster.calls.clear()


MOMENTS = ["before the commit", "after the commit"]


@pytest.mark.parametrize("moment", MOMENTS)
def test_resumed_after_a_kill_all_is_as_planned_and_nothing_sent_twice(tmp_path: Path, moment: str) -> None:
    cluster, made = target().group("g", {T0: 3}), plan(group("g", {T0: 5, T1: 6}, {T0: 3}))
    killed(made, cluster, tmp_path, moment)
    assert build(made, read_journal(tmp_path / "e-1")).outcome is Outcome.UNKNOWN
    execution = run(made, cluster, tmp_path)
    assert {tp: c.offset for tp, c in cluster.groups["g"].commits.items()} == {T0: 5, T1: 6}
    assert (statuses(execution), exit_code(execution)) == ([Status.COMMITTED] * 2, 0)
    assert [p.before.offset if p.before else None for p in execution.groups[0].partitions] == [3, None]
    assert ("commit", 1) in cluster.calls if moment == MOMENTS[0] else ("commit", 1) not in cluster.calls


@pytest.mark.parametrize("again", ["resumed", "the same command again"])
def test_a_consumer_that_came_between_kill_and_resume_is_left_alone(tmp_path: Path, again: str) -> None:
    cluster, made = target().group("g", {T0: 3}), plan(group("g", {T0: 5}, {T0: 3}))
    killed(made, cluster, tmp_path, "after the commit")
    cluster.groups["g"].commits[T0] = Commit(9)
    if again == "resumed":
        execution = run(made, cluster, tmp_path)
        assert statuses(execution) == [Status.COMMITTED]
    else:
        first = build(made, read_journal(tmp_path / "e-1"))
        execution = run(made, cluster, tmp_path, run_id="e-2", before=[first])
        assert statuses(execution) == [Status.UNCHANGED]
    assert execution.groups[0].partitions[0].read_back == 9
    assert cluster.groups["g"].commits[T0].offset == 9
    assert exit_code(execution) == 0


def test_a_consumer_still_running_at_the_resume_does_not_undo_what_is_done(tmp_path: Path) -> None:
    cluster, made = target().group("g", {T0: 3}), plan(group("g", {T0: 5}, {T0: 3}))
    killed(made, cluster, tmp_path, "after the commit")
    cluster.groups["g"].commits[T0] = Commit(9)
    cluster.groups["g"].state, cluster.groups["g"].members = "Stable", (APP,)
    execution = run(made, cluster, tmp_path)
    assert (statuses(execution), exit_code(execution)) == ([Status.COMMITTED], 0)


def test_a_group_used_meanwhile_from_where_it_stood_is_not_moved(tmp_path: Path) -> None:
    cluster, made = target().group("g", {T0: 3}), plan(group("g", {T0: 50}, {T0: 3}))
    killed(made, cluster, tmp_path, "before the commit")
    cluster.groups["g"].commits[T0] = Commit(9)
    execution = run(made, cluster, tmp_path)
    assert statuses(execution) == [Status.REFUSED]
    assert "from 3 to 9 since an execution was interrupted" in (execution.groups[0].message)
    assert cluster.groups["g"].commits[T0].offset == 9
    assert exit_code(execution) == 5


@pytest.mark.parametrize(("now", "code"), [(4, "commits-moving"), (None, "expired")])
def test_what_was_done_and_undone_by_somebody_is_not_written_again(tmp_path: Path, now: int | None, code: str) -> None:
    cluster, made = target(), plan(group("g", {T0: 5}))
    first = run(made, cluster, tmp_path)
    cluster.groups["g"].commits = {} if now is None else {T0: Commit(now)}
    second = run(made, cluster, tmp_path, run_id="e-2", before=[first])
    assert second.groups[0].reasons == (code,)
    assert {tp: c.offset for tp, c in cluster.groups["g"].commits.items()} == ({} if now is None else {T0: now})


def test_the_same_command_again_does_what_was_left(tmp_path: Path) -> None:
    cluster = target().group("g", {T0: 3}, state="Stable", members=(APP,))
    made = plan(group("g", {T0: 5}, {T0: 3}), group("h", {T0: 6}))
    first = run(made, cluster, tmp_path)
    assert (first.outcome, complete(made, [first])) == (Outcome.PARTIAL, False)
    cluster.groups["g"].state, cluster.groups["g"].members = "Empty", ()
    cluster.groups["h"].commits[T0] = Commit(60)
    second = run(made, cluster, tmp_path, run_id="e-2", before=[first])
    assert (statuses(second), statuses(second, "h")) == ([Status.COMMITTED], [Status.UNCHANGED])
    assert cluster.groups["h"].commits[T0].offset == 60
    assert complete(made, [first, second])
    assert begun([first])


def test_a_plan_is_complete_once_every_commit_of_it_is_done_by_whichever_execution(tmp_path: Path) -> None:
    cluster, made = target(), plan(group("g", {T0: 5}), group("h", {T0: 6}))
    first = run(made, cluster, tmp_path, selected=["g"])
    assert (first.outcome, complete(made, [first])) == (Outcome.DONE, False)
    second = run(made, cluster, tmp_path, run_id="e-2", before=[first], selected=["h"])
    assert complete(made, [first, second])
    assert not complete(made, [])


def refused_until_free(name: str, offset: int) -> Plan:
    ready = group(name, {T0: offset}, {T0: 3})
    refused = msgspec.structs.replace(partition("a.orders", 0, None, 3, "group-active"), action=Action.REFUSE)
    held = msgspec.structs.replace(
        ready,
        state="Stable",
        members=(APP,),
        verdict=Verdict.REFUSED,
        reasons=("group-active",),
        partitions=(refused,),
        when_free=ready.partitions,
    )
    return plan(held)


def test_a_group_the_plan_refused_for_its_members_is_done_by_wait_alone(tmp_path: Path) -> None:
    cluster, made = target().group("g", {T0: 3}), refused_until_free("g", 5)
    assert statuses(run(made, cluster, tmp_path)) == [Status.REFUSED]
    assert cluster.groups["g"].commits[T0].offset == 3
    waited = run(made, cluster, tmp_path, run_id="e-2", timing=Timing(0, 60))
    assert (statuses(waited), waited.outcome) == ([Status.COMMITTED], Outcome.DONE)
    assert not complete(made, [waited])  # without --wait the plan has nothing to commit
    assert complete(made, [waited], when_free=True)


def test_a_signal_stops_between_batches_with_everything_sent_read_back(tmp_path: Path) -> None:
    cluster = target()
    made = plan(*(group(f"g{n:04}", {T0: 5}) for n in range(1201)))
    stop: Callable[[], str] = lambda: "Ctrl-C" if ("commit", 500) in cluster.calls else ""  # noqa: E731
    first = run(made, cluster, tmp_path, stop=stop)
    found = [p.status for g in first.groups for p in g.partitions]
    assert (found.count(Status.COMMITTED), found.count(Status.SKIPPED)) == (500, 701)
    assert (first.outcome, first.stopped) == (Outcome.PARTIAL, "Ctrl-C")
    cluster.calls.clear()
    second = run(made, cluster, tmp_path)
    assert (second.outcome, second.stopped) == (Outcome.DONE, "")
    assert [size for method, size in cluster.calls if method == "commit"] == [500, 201]


def test_a_signal_while_watching_writes_nothing(tmp_path: Path) -> None:
    cluster, clock = target(), Clock()
    stop: Callable[[], str] = lambda: "SIGTERM" if clock.now > started(made).at else ""  # noqa: E731
    made = plan(group("g", {T0: 5}))
    execution = run(made, cluster, tmp_path, clock=clock, stop=stop, timing=Timing(settle=6))
    assert (statuses(execution), execution.groups[0].partitions[0].reason) == ([Status.SKIPPED], "not-reached")
    assert cluster.groups == {}


def test_what_lies_open_after_several_executions_is_what_counts(tmp_path: Path) -> None:
    cluster, made = target().group("g", {T0: 3}), plan(group("g", {T0: 5}, {T0: 3}))
    killed(made, cluster, tmp_path, "after the commit")
    first = build(made, read_journal(tmp_path / "e-1"))
    assert not earlier_writes([first])["g"][T0].landed
    second = run(made, cluster, tmp_path, run_id="e-2", before=[first])
    write = earlier_writes([first, second])["g"][T0]
    assert (write.before, write.offset, write.landed) == (3, 5, True)


def test_a_rolled_back_execution_is_found(tmp_path: Path) -> None:
    first = run(plan(group("g", {T0: 5})), target(), tmp_path)
    undoing = msgspec.structs.replace(first, id="r-1", undoes="e-1")
    assert rolled_back([first], [undoing]) == "e-1"
    assert rolled_back([first], [msgspec.structs.replace(undoing, undoes="e-9")]) == ""
    assert rolled_back([first], [msgspec.structs.replace(undoing, groups=())]) == ""


def test_every_intent_of_a_partition_names_the_same_value(tmp_path: Path) -> None:
    cluster, made = target().group("g", {T0: 3}), plan(group("g", {T0: 5}, {T0: 3}))
    killed(made, cluster, tmp_path, "before the commit")
    run(made, cluster, tmp_path)
    values = {
        p.planned.offset
        for e in read_journal(tmp_path / "e-1")
        if isinstance(e, Intent)
        for p in e.partitions
        if p.planned
    }
    assert values == {5}
