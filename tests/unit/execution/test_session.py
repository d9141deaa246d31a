"""Whole executions and roll backs with their folders, as runbooks and the command line run them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from failover.errors import ClusterUnreachable, StateError, UsageError
from failover.execution.commit import Timing
from failover.execution.runlog import RunLog
from failover.execution.runs import history, load_run
from failover.execution.session import Past, Session, Ways, check, find_resumed, past
from failover.model.execution import Outcome, Status
from failover.model.groups import Commit
from failover.model.plan import PlanOptions
from failover.report.execution_text import execution_text
from failover.state.folder import StateFolder
from failover.state.journal import Journal
from failover.state.runs import JOURNAL, RECORD
from tests.fake_cluster import FakeCluster
from tests.unit.execution.plans import CREATED, group, plan
from tests.unit.execution.scene import AT_ONCE, T0, T1, Clock, target


def ways(**more: Any) -> Ways:
    clock = Clock()
    fields: dict[str, Any] = {"operator": "ann", "clock": clock, "sleep": clock.sleep}
    return Ways(**(fields | more))


@pytest.fixture
def state(tmp_path: Path) -> StateFolder:
    return StateFolder(tmp_path / "state")


def test_there_and_back_with_records_on_disk(state: StateFolder) -> None:
    cluster, made = target().group("g", {T0: 3}), plan(group("g", {T0: 5, T1: 6}, {T0: 3}))
    session = Session.of_plan(made, state, cluster, ways(reason="drill"), timing=AT_ONCE)
    done = session.run()
    folder = state.executions / session.run_id
    assert (done.outcome, done.reason, done.operator) == (Outcome.DONE, "drill", "ann")
    assert load_run(folder) == load_run(folder / RECORD) == done
    assert past(state, made).runs == [done]
    undo = Session.of_undo(done, state, cluster, ways())
    back = undo.run()
    assert load_run(state.executions / undo.run_id) == back
    assert cluster.groups["g"].commits == {T0: Commit(3)}
    assert past(state, made).rolled_back == session.run_id
    assert {run.id for run in history(state)[0]} == {session.run_id, undo.run_id}


def test_only_the_wanted_groups_and_the_overrides_on_record(state: StateFolder) -> None:
    made = plan(group("g", {T0: 5}), group("h", {T0: 6}), options=PlanOptions(allow_rewind=True))
    cluster = target()
    Session.of_plan(made, state, cluster, ways(), wanted=["h"], timing=AT_ONCE).run()
    assert list(cluster.groups) == ["h"]
    (journal,) = state.executions.glob(f"*/{JOURNAL}")
    assert b'"overrides":["allow_rewind"]' in journal.read_bytes()
    record = load_run(journal.parent)
    assert record.overrides == ("allow_rewind",)
    assert "ALLOWED    --allow-rewind" in execution_text(record, made)


def test_an_execution_is_resumed_in_its_own_folder_and_a_copy_or_roll_back_is_not(state: StateFolder) -> None:
    cluster, made = target(), plan(group("g", {T0: 5}))
    cluster.down = "no answer from b"
    first = Session.of_plan(made, state, cluster, ways(), timing=AT_ONCE)
    with pytest.raises(ClusterUnreachable):
        first.run()
    assert load_run(state.executions / first.run_id / RECORD).outcome is Outcome.REFUSED
    cluster.down = None
    resumed = find_resumed(state, first.run_id[:4])
    assert resumed.plan == made
    session = Session.of_plan(made, state, cluster, ways(), timing=AT_ONCE, before=past(state, made), resumed=resumed)
    done = session.run()
    assert (done.id, done.outcome, done.continues) == (first.run_id, Outcome.DONE, ())
    with pytest.raises(UsageError, match="is a copy"):
        find_resumed(state, str(state.executions / first.run_id / RECORD))
    undo = Session.of_undo(done, state, cluster, ways())
    undo.run()
    with pytest.raises(UsageError, match="is a roll back"):
        find_resumed(state, undo.run_id)


def test_two_processes_never_write_one_journal(state: StateFolder) -> None:
    cluster, made = target(), plan(group("g", {T0: 5}))
    session = Session.of_plan(made, state, cluster, ways(), timing=AT_ONCE)
    other = Journal(state.executions / session.run_id / JOURNAL)
    with pytest.raises(StateError, match="another process is writing"):
        session.run()
    assert cluster.groups == {}
    other.close()


def test_what_another_machine_shared_is_continued_here(state: StateFolder, tmp_path: Path) -> None:
    cluster, made = target(), plan(group("g", {T0: 5}), group("h", {T0: 6}))
    log = RunLog(cluster, "mm2-failover-runs.a.internal")
    log.prepare()
    there = StateFolder(tmp_path / "there")
    first = Session.of_plan(made, there, cluster, ways(log=log), wanted=["g"], timing=AT_ONCE).run()
    before = past(state, made, log.read())
    assert before.runs == [first]
    assert before.text(made) == f"continues {first.id}: 1 of 2 groups are done and are checked, not written again"
    second = Session.of_plan(made, state, cluster, ways(log=log), timing=AT_ONCE, before=before).run()
    assert [p.status for g in second.groups for p in g.partitions] == [Status.UNCHANGED, Status.COMMITTED]
    assert second.continues == (first.id,)
    Session.of_undo(second, state, cluster, ways(log=log)).run()
    assert past(there, made, log.read()).rolled_back == second.id


def test_a_damaged_journal_is_told_and_not_taken_for_nothing(state: StateFolder) -> None:
    cluster, made = target(), plan(group("g", {T0: 5}))
    session = Session.of_plan(made, state, cluster, ways(), timing=AT_ONCE)
    session.run()
    journal = state.executions / session.run_id / JOURNAL
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([lines[0], b"{broken\n", *lines[2:]]))
    found = past(state, made)
    assert found.runs == []
    assert "line 2 is damaged" in found.unreadable[0]


def test_the_usability_of_a_plan_is_checked_against_the_past() -> None:
    made, cluster = plan(group("g", {T0: 5})), FakeCluster("b", cluster_id="id-of-b")
    check(made, cluster, Past([]), now=CREATED, when_free=False)
    assert Timing().settle == 6
