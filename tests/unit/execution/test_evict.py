"""Removing members on the fake cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from failover.errors import ClusterUnreachable, GroupNotFound, Refused
from failover.execution.evict import build_eviction, candidates, evict, exit_code
from failover.execution.summary import summaries
from failover.model.execution import Eviction, Outcome
from failover.model.groups import GroupType, Member
from failover.model.names import Fault
from failover.report.evict_text import evict_question, eviction_text
from failover.state.journal import Evicting, Journal, read_journal
from failover.state.runs import JOURNAL
from tests.fake_cluster import FakeCluster
from tests.unit.execution.plans import plan
from tests.unit.execution.scene import APP, Clock, started, target

STATIC = Member("batch", "/10.0.3.8", "batch-uuid", "batch-1")


@pytest.fixture
def cluster() -> FakeCluster:
    return target().group("g", {}, state="Stable", members=(APP, STATIC))


def run(cluster: FakeCluster, path: Path, *, static_only: bool = False) -> Eviction:
    info, members = candidates(cluster, "g", static_only=static_only)
    assert "still runs joins" in evict_question("g", "b", info.state, members)
    journal = Journal(path / "v-1" / JOURNAL)
    begin = started(plan(), "v-1", plan_id="", selected=("g",))
    try:
        done = evict(cluster, "g", members, journal, begin, clock=Clock())
    finally:
        journal.close()
    assert build_eviction(read_journal(path / "v-1" / JOURNAL)) == done
    assert eviction_text(done)
    return done


def test_every_member_goes(cluster: FakeCluster, tmp_path: Path) -> None:
    noted: list[int] = []
    cluster.before["evict"] = lambda *_: noted.append(
        sum(isinstance(event, Evicting) for event in read_journal(tmp_path / "v-1" / JOURNAL))
    )
    done = run(cluster, tmp_path)
    assert (done.members, done.left, done.state, exit_code(done)) == ((APP, STATIC), (), "Empty", 0)
    assert noted == [1]
    (row,), unreadable = summaries([tmp_path / "v-1"])
    assert (row.what, row.of, row.committed, unreadable) == ("eviction", "g", 2, [])


def test_only_static_ones(cluster: FakeCluster, tmp_path: Path) -> None:
    done = run(cluster, tmp_path, static_only=True)
    assert (done.members, done.left, exit_code(done)) == ((STATIC,), (APP,), 4)
    assert "app-1" in eviction_text(done)


def test_a_client_that_joins_again_is_named(cluster: FakeCluster, tmp_path: Path) -> None:
    again = Member("batch", "/10.0.3.8", "batch-uuid-2", "batch-1")
    looks = iter([None, lambda: setattr(cluster.groups["g"], "members", (again,))])

    def rejoin(_: object) -> None:
        act = next(looks)
        if act is not None:
            act()

    cluster.before["describe_groups"] = rejoin
    done = run(cluster, tmp_path)
    assert (done.left, done.outcome) == ((again,), Outcome.PARTIAL)


def test_silence_after_it_was_sent_is_unknown_and_on_record(cluster: FakeCluster, tmp_path: Path) -> None:
    def fall_silent(*_: object) -> None:
        cluster.down = "no answer from b"

    cluster.before["evict"] = fall_silent
    with pytest.raises(ClusterUnreachable):
        run(cluster, tmp_path)
    (row,), _ = summaries([tmp_path / "v-1"])
    assert row.outcome is Outcome.UNKNOWN
    record = build_eviction(read_journal(tmp_path / "v-1" / JOURNAL))
    assert (exit_code(record), record.left) == (7, None)
    assert "not known" in eviction_text(record)


@pytest.mark.parametrize("kind", [GroupType.SHARE, GroupType.STREAMS])
def test_groups_of_other_types_are_refused(cluster: FakeCluster, kind: GroupType) -> None:
    cluster.groups["g"].type = kind
    with pytest.raises(Refused, match=str(kind)):
        candidates(cluster, "g", static_only=False)


def test_what_cannot_be_found_read_or_done(cluster: FakeCluster) -> None:
    with pytest.raises(GroupNotFound, match="there is no group h on b"):
        candidates(cluster, "h", static_only=False)
    cluster.groups["g"].operations = frozenset({"DESCRIBE"})
    with pytest.raises(Refused, match="may not remove"):
        candidates(cluster, "g", static_only=False)
    cluster.faults["describe_groups", "g"] = Fault(-185, "NO_ANSWER")
    with pytest.raises(Refused, match="cannot be read"):
        candidates(cluster, "g", static_only=False)
