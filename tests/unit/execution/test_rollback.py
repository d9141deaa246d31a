"""Rolling an execution back on the fake cluster."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from failover.execution.record import build_undo, exit_code
from failover.execution.rollback import Undoer, rehearse_undo
from failover.execution.runs import encode_execution
from failover.model.execution import Execution, Outcome, Status
from failover.model.groups import Commit
from failover.model.names import Fault, TopicPartition
from failover.state.journal import Intent, Journal, read_journal
from tests.fake_cluster import ALL_OPERATIONS, FakeCluster
from tests.unit.execution.plans import CREATED, group, plan
from tests.unit.execution.scene import APP, T0, T1, Clock, run, started, statuses, target

ODD = Commit(3, b"\xff\x00odd", 7)


def undo(undone: Execution, cluster: FakeCluster, path: Path, run_id: str = "r-1") -> Execution:
    # as another machine has it: from the record's file
    undone = msgspec.json.decode(encode_execution(undone), type=Execution)
    journal = Journal(path / run_id)
    begin = started(
        plan(), run_id, plan_id=undone.plan_id, undoes=undone.id, selected=tuple(g.group for g in undone.groups)
    )
    undoer = Undoer(
        undone, cluster, journal, clock=Clock(), progress=lambda _label, _done, _total: None, stop=lambda: ""
    )
    try:
        execution = undoer.run(begin)
    finally:
        journal.close()
    assert build_undo(undone, read_journal(path / run_id)) == execution
    return execution


def executed(cluster: FakeCluster, path: Path, before: dict[TopicPartition, int] | None = None) -> Execution:
    done = run(plan(group("g", {T0: 50, T1: 60}, before)), cluster, path)
    assert done.outcome is Outcome.DONE
    cluster.calls.clear()
    return done


def test_offset_metadata_and_epoch_come_back_and_what_was_not_there_goes(tmp_path: Path) -> None:
    cluster = target().group("g", {T0: ODD})
    done = executed(cluster, tmp_path, {T0: 3})
    back = undo(done, cluster, tmp_path)
    assert cluster.groups["g"].commits == {T0: ODD}
    assert (back.outcome, exit_code(back), back.undoes) == (Outcome.DONE, 0, "e-1")
    first, second = back.groups[0].partitions
    assert (first.planned, first.written, first.read_back, first.status) == (3, 3, 3, Status.COMMITTED)
    assert (second.removes, second.planned, second.read_back, second.status) == (True, None, None, Status.COMMITTED)
    assert second.before is not None
    assert second.before.offset == 60


def test_a_group_that_did_not_exist_is_removed(tmp_path: Path) -> None:
    cluster = target()
    back = undo(executed(cluster, tmp_path), cluster, tmp_path)
    assert cluster.groups == {}
    assert exit_code(back) == 0
    assert statuses(back) == [Status.COMMITTED] * 2


def test_a_new_group_that_holds_more_by_now_loses_only_ours(tmp_path: Path) -> None:
    cluster = target().topic("other", end=9)
    done = executed(cluster, tmp_path)
    cluster.groups["g"].commits[TopicPartition("other", 0)] = Commit(4)
    assert exit_code(undo(done, cluster, tmp_path)) == 0
    assert cluster.groups["g"].commits == {TopicPartition("other", 0): Commit(4)}


def test_where_consumers_went_on_nothing_is_touched_and_the_count_is_said(tmp_path: Path) -> None:
    cluster = target().group("g", {T0: 3})
    done = executed(cluster, tmp_path, {T0: 3})
    cluster.groups["g"].commits[T0] = Commit(90)
    back = undo(done, cluster, tmp_path)
    assert cluster.groups["g"].commits == {T0: Commit(90)}
    assert statuses(back) == [Status.REFUSED, Status.COMMITTED]
    assert back.groups[0].partitions[0].reason == "progressed"
    assert back.groups[0].partitions[0].error == (
        "g went on from 50 to 90 on a.orders-0 since: going back would undo 40 records"
    )
    assert exit_code(back) == 4


def test_what_somebody_set_elsewhere_is_left_there(tmp_path: Path) -> None:
    cluster = target().group("g", {T0: 3})
    done = executed(cluster, tmp_path, {T0: 3})
    cluster.groups["g"].commits = {T0: Commit(20), T1: Commit(61)}
    back = undo(done, cluster, tmp_path)
    assert [p.reason for p in back.groups[0].partitions] == ["commits-moving", "progressed"]
    assert exit_code(back) == 3
    assert all(method not in ("commit", "delete_offsets", "delete_groups") for method, _ in cluster.calls)


def test_an_active_group_is_refused_with_its_members(tmp_path: Path) -> None:
    cluster = target()
    done = executed(cluster, tmp_path)
    cluster.groups["g"].state, cluster.groups["g"].members = "Stable", (APP,)
    back = undo(done, cluster, tmp_path)
    assert "app-1 /10.0.3.7" in back.groups[0].message
    assert (statuses(back), exit_code(back)) == ([Status.REFUSED] * 2, 3)


@pytest.mark.parametrize("method", ["commit", "delete_offsets"])
def test_members_that_join_right_before_the_write_are_found_by_the_broker(tmp_path: Path, method: str) -> None:
    cluster = target().group("g", {T0: 3})
    done = executed(cluster, tmp_path, {T0: 3})

    def join(_: object) -> None:
        cluster.groups["g"].state, cluster.groups["g"].members = "Stable", (APP,)

    cluster.before[method] = join
    back = undo(done, cluster, tmp_path)
    expected = [Status.REFUSED] * 2 if method == "commit" else [Status.COMMITTED, Status.REFUSED]
    assert statuses(back) == expected
    assert "app-1 /10.0.3.7" in back.groups[0].message


def test_without_the_right_to_delete_it_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    cluster = target().group("g", {T0: 3}, operations=ALL_OPERATIONS - {"DELETE"})
    done = executed(cluster, tmp_path, {T0: 3})
    back = undo(done, cluster, tmp_path)
    assert back.groups[0].reasons == ("not-authorized",)
    assert cluster.groups["g"].commits[T0].offset == 50


def test_rolling_back_twice_writes_once(tmp_path: Path) -> None:
    cluster = target().group("g", {T0: ODD})
    done = executed(cluster, tmp_path, {T0: 3})
    undo(done, cluster, tmp_path)
    cluster.calls.clear()
    again = undo(done, cluster, tmp_path, "r-2")
    assert (statuses(again), exit_code(again)) == ([Status.UNCHANGED] * 2, 0)
    assert all(method not in ("commit", "delete_offsets", "delete_groups") for method, _ in cluster.calls)


@pytest.mark.parametrize(("lost", "code"), [(True, 0), (False, 6)])
def test_a_lost_answer_is_settled_by_reading_back(tmp_path: Path, lost: bool, code: int) -> None:
    cluster = target().group("g", {T0: 3, T1: 4})
    done = executed(cluster, tmp_path, {T0: 3, T1: 4})
    if lost:
        cluster.lost_answers.add("g")
    else:
        cluster.faults["commit", "g"] = Fault(-195, "NO_CONNECTION", "reset")
    assert exit_code(undo(done, cluster, tmp_path)) == code
    assert cluster.groups["g"].commits[T0].offset == (3 if lost else 50)


def test_an_outcome_nobody_can_tell_is_unknown(tmp_path: Path) -> None:
    cluster = target().group("g", {T0: 3, T1: 4})
    done = executed(cluster, tmp_path, {T0: 3, T1: 4})

    def fall_silent(_: object) -> None:
        if ("commit", 1) in cluster.calls:
            cluster.down = "no answer from b for 30 s"

    cluster.before["committed"] = fall_silent
    back = undo(done, cluster, tmp_path)
    assert (back.outcome, exit_code(back)) == (Outcome.UNKNOWN, 7)
    assert back.warnings == ("no answer from b for 30 s",)


def test_the_intent_is_on_disk_before_the_write(tmp_path: Path) -> None:
    cluster = target().group("g", {T0: 3})
    done = executed(cluster, tmp_path, {T0: 3})
    seen: list[int] = []
    cluster.before["commit"] = lambda _: seen.append(
        sum(isinstance(event, Intent) for event in read_journal(tmp_path / "r-1"))
    )
    undo(done, cluster, tmp_path)
    assert seen == [1]


def test_a_dry_run_tells_the_same_and_writes_nothing(tmp_path: Path) -> None:
    cluster = target().group("g", {T0: 3})
    done = executed(cluster, tmp_path, {T0: 3})
    rehearsal = rehearse_undo(done, cluster, CREATED)
    assert rehearsal.groups[0].changes == (("a.orders", 0, 50, 3), ("a.orders", 1, 60, None))
    assert (rehearsal.exit_code, rehearsal.undoes) == (0, "e-1")
    assert cluster.groups["g"].commits[T0].offset == 50
    cluster.groups["g"].members = (APP,)
    assert rehearse_undo(done, cluster, CREATED).exit_code == 3
