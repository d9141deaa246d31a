"""Verifying an execution on the fake cluster, at once and watching."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from failover.execution.verify import GroupSync, Verifier, judge
from failover.model.execution import ExecutedPartition, Execution, Now, Status
from failover.model.groups import Commit
from failover.model.names import Fault
from failover.model.snapshot import SeenCheckpoint
from failover.report.verify_text import verify_text
from tests.fake_cluster import FakeCluster
from tests.unit.execution.plans import group, plan
from tests.unit.execution.scene import APP, T0, T1, Clock, run, target


def verify(
    execution: Execution,
    cluster: FakeCluster,
    *,
    watch: float = 0,
    clock: Clock | None = None,
    seen: set[str] | None = None,
    noticed: list[str] | None = None,
    sync: Callable[[], GroupSync] | None = None,
) -> Execution:
    clock = clock or Clock()
    told = noticed if noticed is not None else []
    found = Verifier(
        execution,
        cluster,
        clock=clock,
        sleep=clock.sleep,
        progress=lambda _label, _done, _total: None,
        stop=lambda: "",
        seen=seen,
        noticed=lambda name, _members, _at: told.append(name),
        sync=sync,
    ).run(watch)
    assert found.verified is not None
    assert verify_text(found, found.verified)
    return found


def verdicts(execution: Execution) -> list[Now | None]:
    return [p.verdict for g in execution.groups for p in g.partitions]


def code(execution: Execution) -> int:
    assert execution.verified is not None
    return execution.verified.exit_code


def consume(cluster: FakeCluster, offset: int) -> None:
    cluster.groups["g"].commits[T0] = Commit(offset)
    cluster.groups["g"].state, cluster.groups["g"].members = "Stable", (APP,)


@pytest.fixture
def cluster() -> FakeCluster:
    return target().group("g", {T0: 3})


@pytest.fixture
def done(cluster: FakeCluster, tmp_path: Path) -> Execution:
    return run(plan(group("g", {T0: 50, T1: 60}, {T0: 3})), cluster, tmp_path)


def test_what_was_written_is_held(done: Execution, cluster: FakeCluster) -> None:
    found = verify(done, cluster)
    assert (verdicts(found), code(found)) == ([Now.HELD] * 2, 0)
    assert [p.now for p in found.groups[0].partitions] == [50, 60]
    assert [p.lag for p in found.groups[0].partitions] == [950, 940]


def test_consumers_that_went_on_are_success(done: Execution, cluster: FakeCluster) -> None:
    consume(cluster, 90)
    found = verify(done, cluster)
    assert (verdicts(found), code(found)) == ([Now.ADVANCED, Now.HELD], 0)
    assert found.verified is not None
    assert (found.verified.groups[0].moved, found.verified.groups[0].seen) == (40, True)


def test_commits_that_move_while_nobody_consumes_are_overwritten(done: Execution, cluster: FakeCluster) -> None:
    cluster.groups["g"].commits[T0] = Commit(90)
    found = verify(done, cluster)
    assert (verdicts(found), code(found)) == ([Now.OVERWRITTEN, Now.HELD], 6)


def test_members_seen_at_an_earlier_look_are_remembered(done: Execution, cluster: FakeCluster) -> None:
    noticed: list[str] = []
    consume(cluster, 90)
    verify(done, cluster, noticed=noticed)
    assert noticed == ["g"]
    cluster.groups["g"].state, cluster.groups["g"].members = "Empty", ()
    assert code(verify(done, cluster, seen={"g"})) == 0
    assert code(verify(done, cluster)) == 6


def test_a_new_group_that_has_a_protocol_type_had_members(tmp_path: Path) -> None:
    cluster = target()
    done = run(plan(group("g", {T0: 50})), cluster, tmp_path)
    assert cluster.groups["g"].protocol_type == ""
    cluster.groups["g"].commits[T0] = Commit(90)
    assert verdicts(verify(done, cluster)) == [Now.OVERWRITTEN]
    cluster.groups["g"].protocol_type = "consumer"
    assert verdicts(verify(done, cluster)) == [Now.ADVANCED]


@pytest.mark.parametrize(("hours", "verdict"), [(1, Now.MISSING), (24 * 8, Now.EXPIRED)])
def test_a_commit_that_is_gone(done: Execution, cluster: FakeCluster, hours: int, verdict: Now) -> None:
    cluster.groups["g"].commits = {T1: Commit(60)}
    clock = Clock()
    clock.now += timedelta(hours=hours)
    found = verify(done, cluster, clock=clock)
    assert (verdicts(found), code(found)) == ([verdict, Now.HELD], 6)


def test_a_commit_set_back_is_below(done: Execution, cluster: FakeCluster) -> None:
    consume(cluster, 49)
    found = verify(done, cluster)
    assert (verdicts(found), code(found)) == ([Now.BELOW, Now.HELD], 6)


def test_a_group_that_cannot_be_read_is_no_success(done: Execution, cluster: FakeCluster) -> None:
    cluster.faults["committed", "g"] = Fault(15, "COORDINATOR_NOT_AVAILABLE")
    assert code(verify(done, cluster)) == 7


@pytest.mark.parametrize(
    ("at", "offset", "expected", "ends_after"),
    [
        (6, 90, 0, 6),  # back and getting on: no need to watch longer
        (6, 50, 4, 30),  # has members, does not get on
        (999, 50, 4, 30),  # does not come
    ],
)
def test_watching_who_comes_back(  # noqa: PLR0917 - fixtures and a row of the table
    done: Execution, cluster: FakeCluster, at: int, offset: int, expected: int, ends_after: int
) -> None:
    clock = Clock()
    begun = clock.now

    def come() -> None:
        if clock.now >= begun + timedelta(seconds=at):
            consume(cluster, offset)

    clock.on_sleep = come
    found = verify(done, cluster, watch=30, clock=clock)
    assert code(found) == expected
    assert (clock.now - begun).total_seconds() == ends_after


def test_a_group_back_with_nothing_left_to_read_is_back(tmp_path: Path) -> None:
    cluster = target()
    done = run(plan(group("g", {T0: 1000})), cluster, tmp_path)
    consume(cluster, 1000)
    assert code(verify(done, cluster, watch=30)) == 0


def partition(written: int | None, *, removes: bool = False) -> ExecutedPartition:
    return ExecutedPartition("t", 0, None, written, written, written, Status.COMMITTED, removes=removes)


@pytest.mark.parametrize(
    ("now", "seen", "verdict"), [(None, False, Now.HELD), (7, True, Now.ADVANCED), (7, False, Now.OVERWRITTEN)]
)
def test_what_a_roll_back_deleted(now: int | None, seen: bool, verdict: Now) -> None:
    assert judge(partition(None, removes=True), now, seen=seen, age=timedelta(0), retention_minutes=60) is verdict


def test_the_screen_says_what_does_not_hold_and_what_that_means(done: Execution, cluster: FakeCluster) -> None:
    cluster.groups["g"].commits[T0] = Commit(90)
    found = verify(done, cluster)
    assert found.verified is not None
    text: Callable[[], str] = lambda: verify_text(found, found.verified)  # type: ignore[arg-type]  # noqa: E731
    assert "VERDICT   DOES NOT HOLD" in text()
    assert "a client with manual assignment" in text()
    assert max(len(line) for line in text().splitlines()) <= 100


def test_a_coordinator_that_has_just_taken_over_is_asked_again(done: Execution, cluster: FakeCluster) -> None:
    cluster.unaware["g"] = 4
    assert code(verify(done, cluster)) == 0
    cluster.unaware["g"] = 5  # as long as nobody waits
    assert verdicts(verify(done, cluster)) == [Now.MISSING] * 2


@pytest.mark.parametrize(
    ("checkpoint", "configured", "blamed"),
    [(90, False, True), (90, True, True), (95, True, True), (95, False, False), (80, True, False), (None, True, False)],
)
def test_mm2_is_named_where_it_overwrote(
    done: Execution, cluster: FakeCluster, checkpoint: int | None, configured: bool, blamed: bool
) -> None:
    """The newest checkpoint, or with its group sync configured one before it: any step up to the newest."""
    cluster.groups["g"].commits[T0] = Commit(90)
    seen = {} if checkpoint is None else {"g": {T0: SeenCheckpoint(500, checkpoint, 0)}}
    found = verify(done, cluster, sync=lambda: GroupSync(seen, configured))
    assert (verdicts(found), code(found)) == ([Now.OVERWRITTEN, Now.HELD], 6)
    assert [p.because for p in found.groups[0].partitions] == ["mm2-group-sync" if blamed else "", ""]
    assert found.verified is not None
    said = " ".join(verify_text(found, found.verified).split())
    assert ("set a->b.sync.group.offsets.enabled = false" in said) is blamed
    assert ("next: stop MirrorMaker 2's checkpoint connector" in said) is blamed
    assert ("a client with manual assignment seems live" in said) is not blamed
    again = verify(found, cluster, sync=lambda: GroupSync(seen, configured))
    assert again.groups == found.groups
    assert again.verified is not None
    assert again.verified.groups == found.verified.groups


def test_checkpoints_are_not_read_where_nothing_was_overwritten(done: Execution, cluster: FakeCluster) -> None:
    def never() -> GroupSync:
        raise AssertionError("asked")

    assert code(verify(done, cluster, sync=never)) == 0
