"""A coordinator that has just taken groups over shows none of their commits for a moment (measured on Kafka 4.1.1)."""

from __future__ import annotations

from pathlib import Path

from failover.execution.record import exit_code
from failover.execution.rehearsal import rehearse
from failover.model.execution import Status
from failover.model.groups import Commit
from tests.unit.execution.plans import CREATED, group, plan
from tests.unit.execution.scene import T0, run, statuses, target


def questions(calls: list[tuple[str, int]]) -> int:
    return sum(method == "committed" for method, _ in calls)


def test_a_commit_that_does_not_show_is_no_leave_to_go_back(tmp_path: Path) -> None:
    cluster = target().group("g", {T0: 40})
    cluster.unaware["g"] = 3
    made = plan(group("g", {T0: 5}, {T0: 3}))
    execution = run(made, cluster, tmp_path)
    assert (execution.groups[0].reasons, cluster.groups["g"].commits[T0]) == (("would-rewind",), Commit(40))
    cluster.unaware["g"] = 3
    assert rehearse(made, cluster, ["g"], CREATED).groups[0].reason == "would-rewind"


def test_what_was_written_and_does_not_show_yet_is_read_back_again(tmp_path: Path) -> None:
    cluster = target().group("g", {T0: 3})

    def takes_over(_: object) -> None:
        cluster.unaware["g"] = 4

    cluster.before["commit"] = takes_over
    execution = run(plan(group("g", {T0: 5}, {T0: 3})), cluster, tmp_path)
    assert (statuses(execution), exit_code(execution)) == ([Status.COMMITTED], 0)


def test_an_older_commit_that_shows_is_read_back_again(tmp_path: Path) -> None:
    """The new coordinator has not yet seen the end of its log."""
    cluster = target().group("g", {T0: 3})
    cluster.forgetful.add("g")

    def catches_up(_: object) -> None:
        if questions(cluster.calls) == 3:
            cluster.groups["g"].commits[T0] = Commit(5, b"m")

    cluster.before["committed"] = catches_up
    execution = run(plan(group("g", {T0: 5}, {T0: 3})), cluster, tmp_path)
    assert statuses(execution) == [Status.COMMITTED]


def test_a_lost_answer_is_not_taken_for_a_lost_write_at_once(tmp_path: Path) -> None:
    cluster = target()
    cluster.lost_answers.add("g")

    def takes_over(_: object) -> None:
        cluster.unaware["g"] = 2

    cluster.before["commit"] = takes_over
    execution = run(plan(group("g", {T0: 5})), cluster, tmp_path)
    assert statuses(execution) == [Status.COMMITTED]


def test_the_usual_case_asks_twice_and_no_more(tmp_path: Path) -> None:
    cluster = target().group("h", {T0: 3})
    execution = run(plan(group("g", {T0: 5}), group("h", {T0: 5}, {T0: 3})), cluster, tmp_path)
    assert exit_code(execution) == 0
    assert questions(cluster.calls) == 2


def test_a_refused_commit_is_not_waited_for(tmp_path: Path) -> None:
    cluster = target()
    from failover.model.names import Fault

    cluster.faults["commit", ("g", T0)] = Fault(29, "TOPIC_AUTHORIZATION_FAILED")
    assert statuses(run(plan(group("g", {T0: 5})), cluster, tmp_path)) == [Status.REFUSED]
    assert questions(cluster.calls) == 2
