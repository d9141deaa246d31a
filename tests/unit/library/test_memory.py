"""What a plan is told of earlier executions of its flow."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from failover.config.flow import SelectedFlow
from failover.config.load import load_config, select_flow
from failover.execution.commit import Timing
from failover.execution.runs import load_run
from failover.execution.session import Session, Ways
from failover.library.memory import executed_groups, further_plan, last_written, recall, undecided
from failover.model import TopicPartition
from failover.model.cluster import ClusterState
from failover.model.execution import Execution
from failover.model.plan import Plan, PlannedCheckpoint, PlannedPartition, PlanOptions
from failover.planning.fingerprint import fingerprint
from failover.planning.plan_file import encode_plan
from failover.state.folder import StateFolder
from failover.state.plans import save_plan
from tests.fake_cluster import FakeCluster
from tests.unit.execution.plans import CREATED, group, plan
from tests.unit.execution.scene import T0, T1, T2, Clock, target
from tests.unit.planning.worlds import T0 as WT0
from tests.unit.planning.worlds import checkpoint, exact, only_group, world

CONFIG = """\
clusters = a, b, c
a.bootstrap.servers = 127.0.0.1:1
b.bootstrap.servers = 127.0.0.1:1
c.bootstrap.servers = 127.0.0.1:1
a->b.enabled = true
c->b.enabled = true
"""


@pytest.fixture
def state(tmp_path: Path) -> StateFolder:
    state, cluster, clock = StateFolder(tmp_path / "state"), target(), Clock()
    for made in (plan(group("g", {T0: 5, T1: 6}), group("h", {T0: 7})), plan(group("g", {T0: 8}, {T0: 5}))):
        ways = Ways("ann", reason="", clock=clock, sleep=clock.sleep)
        Session.of_plan(made, state, cluster, ways, timing=Timing(settle=0)).run()
        clock.sleep(60)
    return state


def flow(tmp_path: Path, source: str) -> SelectedFlow:
    path = tmp_path / "mm2.properties"
    path.write_text(CONFIG)
    return select_flow(load_config([str(path)], ()), source, "b")


def test_the_newest_execution_counts_partition_by_partition(state: StateFolder, tmp_path: Path) -> None:
    commits = {"g": [T0, T1, T2], "h": [T0], "stranger": [T0]}
    assert last_written(state, flow(tmp_path, "a"), commits) == {"g": {T0: 8, T1: 6}, "h": {T0: 7}}


def test_groups_that_were_executed_are_known_to_have_commits(state: StateFolder, tmp_path: Path) -> None:
    """That is asked about again when the target shows none: its broker may have just taken the groups over."""
    assert executed_groups(state, flow(tmp_path, "a")) == {"g", "h"}
    assert executed_groups(state, flow(tmp_path, "c")) == set()
    assert recall(state, flow(tmp_path, "a")).earlier.committed == {"g", "h"}
    cluster, clock = target(), Clock()
    ways = Ways("ann", reason="", clock=clock, sleep=clock.sleep)
    done = Session.of_plan(plan(group("undone", {T0: 5})), state, cluster, ways, timing=Timing(settle=0)).run()
    assert "undone" in executed_groups(state, flow(tmp_path, "a"))
    Session.of_undo(done, state, cluster, ways).run()
    assert "undone" not in executed_groups(state, flow(tmp_path, "a"))


def test_groups_that_a_later_plan_found_deleted_are_no_longer_asked_about(state: StateFolder, tmp_path: Path) -> None:
    """Asking again for two seconds is for brokers that just took groups over, not for what is known to be gone."""
    cluster, clock = target(), Clock()
    clock.sleep(3600)
    gone, kept = group("g", {T0: 5}), group("h", {T0: 7}, {T0: 7})
    gone = msgspec.structs.replace(gone, state="Dead", source_state="Dead", partitions=uncommitted(gone.partitions))
    later = msgspec.structs.replace(plan(gone, kept), id="later", created=clock())
    later = msgspec.structs.replace(later, fingerprint=fingerprint(later))
    save_plan(state, later.id, encode_plan(later))
    earlier = recall(state, flow(tmp_path, "a")).earlier
    assert earlier.committed == {"h"}
    assert earlier.deleted == {"g"}
    # executed after that, it is asked about again
    ways = Ways("ann", reason="", clock=clock, sleep=clock.sleep)
    clock.sleep(60)
    Session.of_plan(plan(group("g", {T0: 9})), state, cluster, ways, timing=Timing(settle=0)).run()
    assert recall(state, flow(tmp_path, "a")).earlier.committed == {"g", "h"}


def uncommitted(partitions: tuple[PlannedPartition, ...]) -> tuple[PlannedPartition, ...]:
    return tuple(msgspec.structs.replace(p, source_committed=None, target_committed=None) for p in partitions)


def test_evidence_outlives_the_commit_it_was_written_with(state: StateFolder, tmp_path: Path) -> None:
    """The source is gone, and so is the target's commit: what was proven then is above MM2's checkpoint."""
    places = {0: checkpoint(500, 480), 1: checkpoint(500, 480)}
    snapshot = world(source=ClusterState.DOWN, partitions=2, checkpoints=places, translations={1: exact(500, 490)})
    assert snapshot.target.commits == {"payments": {}}
    asked = undecided(snapshot)
    assert asked == {"payments": {WT0}}

    clock, cluster = Clock(), FakeCluster("b").topic("primary.orders", 1, end=1000)
    ways = Ways("ann", reason="", clock=clock, sleep=clock.sleep)
    done = Session.of_plan(plan(group("payments", {WT0: 487})), state, cluster, ways, timing=Timing(settle=0)).run()
    written = last_written(state, flow(tmp_path, "a"), asked)
    assert (done.outcome, written) == ("done", {"payments": {WT0: 487}})
    first, second = only_group(snapshot, written=written).partitions
    assert (first.action, first.offset, first.proof) == ("commit", 487, "tracked")
    assert second.offset == 490


def test_only_what_is_asked_about_is_looked_for(state: StateFolder, tmp_path: Path) -> None:
    assert last_written(state, flow(tmp_path, "a"), {"g": [T1], "h": []}) == {"g": {T1: 6}}


@pytest.mark.parametrize(("reason", "proven"), [("at-time", False), ("at-log-end", False), ("at-log-start", True)])
def test_what_may_pass_over_unread_records_proves_nothing_later(
    state: StateFolder, tmp_path: Path, reason: str, proven: bool
) -> None:
    cluster, clock = target(), Clock()
    clock.sleep(3600)
    placed = group("g", {T0: 900})
    parts = tuple(msgspec.structs.replace(p, reason=reason) for p in placed.partitions)
    made = plan(msgspec.structs.replace(placed, partitions=parts), options=PlanOptions(allow_skip=True))
    ways = Ways("ann", reason="", clock=clock, sleep=clock.sleep)
    Session.of_plan(made, state, cluster, ways, timing=Timing(settle=0)).run()
    assert last_written(state, flow(tmp_path, "a"), {"g": [T0]}) == {"g": {T0: 900 if proven else 8}}


def test_another_flow_into_the_same_target_has_written_nothing(state: StateFolder, tmp_path: Path) -> None:
    assert last_written(state, flow(tmp_path, "c"), {"g": [T0]}) == {}


@pytest.mark.parametrize(("commits", "count"), [({}, 0), ({"x": [T0]}, 0), ({"g": [T0]}, 1), ({"h": [T0]}, 1)])
def test_no_more_executions_are_read_than_needed(
    state: StateFolder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    commits: dict[str, list[TopicPartition]],
    count: int,
) -> None:
    read: list[Path] = []

    def load(path: Path) -> Execution:
        read.append(path)
        return load_run(path)

    selected = flow(tmp_path, "a")
    monkeypatch.setattr("failover.execution.runs.load_run", load)
    last_written(state, selected, commits)
    assert len(read) == count


def _saved(state: StateFolder, name: str, minute: int, source: str, offsets: dict[TopicPartition, int]) -> Plan:
    made = plan(group("z", offsets))
    created = CREATED + timedelta(minutes=minute)
    seen = msgspec.structs.replace(made.source, state=source)
    made = msgspec.structs.replace(
        made, id=name, created=created, expires=created + timedelta(hours=1), source=seen, fingerprint=""
    )
    made = msgspec.structs.replace(made, fingerprint=fingerprint(made))
    save_plan(state, name, encode_plan(made))
    return made


def test_a_plan_from_before_the_source_died_is_named_where_it_reads_less_again(tmp_path: Path) -> None:
    state, selected = StateFolder(tmp_path / "fresh"), flow(tmp_path, "a")
    before = _saved(state, "aaaaa1", 0, "up", {T0: 90, T1: 50})
    after = _saved(state, "aaaaa2", 10, "down", {T0: 40, T1: 50})
    found = further_plan(state, selected, after)
    assert found is not None
    assert (found.plan.id, found.records) == (before.id, 50)
    # not beside a plan that saw the source, not once expired, not where it lies further back or knows less
    assert further_plan(state, selected, before) is None
    assert further_plan(state, selected, _saved(state, "aaaaa3", 61, "down", {T0: 40})) is None
    assert further_plan(state, selected, _saved(state, "aaaaa4", 11, "down", {T0: 40, T1: 51})) is None
    assert further_plan(state, selected, _saved(state, "aaaaa5", 12, "not-asked", {T0: 40, T2: 1})) is None


def test_a_plan_that_was_executed_is_not_offered_again(tmp_path: Path) -> None:
    state, selected, clock = StateFolder(tmp_path / "fresh"), flow(tmp_path, "a"), Clock()
    before = _saved(state, "aaaaa1", 0, "up", {T0: 90})
    after = _saved(state, "aaaaa2", 10, "down", {T0: 40})
    assert further_plan(state, selected, after) is not None
    ways = Ways("ann", reason="", clock=clock, sleep=clock.sleep)
    Session.of_plan(before, state, target(), ways, timing=Timing(settle=0)).run()
    assert further_plan(state, selected, after) is None


def test_a_group_set_back_on_the_source_since_keeps_to_the_later_plan(tmp_path: Path) -> None:
    state, selected = StateFolder(tmp_path / "fresh"), flow(tmp_path, "a")
    _saved(state, "aaaaa1", 0, "up", {T0: 90})
    after = _saved(state, "aaaaa2", 10, "down", {T0: 40})
    (found,) = after.groups

    def seen(minute: int) -> Plan:
        checkpoint = PlannedCheckpoint(40, 40, CREATED + timedelta(minutes=minute), 1.0)
        places = (msgspec.structs.replace(found.partitions[0], checkpoint=checkpoint),)
        return msgspec.structs.replace(after, groups=(msgspec.structs.replace(found, partitions=places),))

    assert further_plan(state, selected, seen(-1)) is not None
    assert further_plan(state, selected, seen(5)) is None
