"""Executing a plan against the fake cluster: what is written, what is left, what is told."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from failover.errors import ClusterUnreachable
from failover.execution.commit import Timing
from failover.execution.record import exit_code
from failover.execution.rehearsal import rehearse
from failover.model.execution import Outcome, Status
from failover.model.groups import Commit, GroupType, Member
from failover.model.names import Fault
from failover.model.plan import PlanOptions
from failover.state.journal import Intent, read_journal
from tests.fake_cluster import UNKNOWN_MEMBER_ID, FakeCluster
from tests.unit.execution.plans import CREATED, group, partition, plan
from tests.unit.execution.scene import APP, T0, T1, Clock, run, statuses, target


def test_offsets_and_metadata_are_written_and_read_back(tmp_path: Path) -> None:
    cluster = target().group("g", {T0: Commit(3, b"old", 7)})
    execution = run(plan(group("g", {T0: 5, T1: 0}, {T0: 3})), cluster, tmp_path)
    assert cluster.groups["g"].commits == {T0: Commit(5, b"m"), T1: Commit(0, b"m")}
    assert execution.outcome is Outcome.DONE
    assert exit_code(execution) == 0
    first, second = execution.groups[0].partitions
    assert first.before is not None
    assert (first.before.offset, first.before.metadata, first.before.leader_epoch) == (3, "old", 7)
    assert (first.written, first.read_back, first.status) == (5, 5, Status.COMMITTED)
    assert (second.before, second.written, second.read_back) == (None, 0, 0)


def test_the_intent_is_on_disk_before_the_write(tmp_path: Path) -> None:
    cluster = target()
    seen: list[list[str]] = []
    cluster.before["commit"] = lambda commits: seen.append(
        [e.group for e in read_journal(tmp_path / "e-1") if isinstance(e, Intent)]
    )
    run(plan(group("g", {T0: 5}), group("h", {T0: 6})), cluster, tmp_path)
    assert seen == [["g", "h"]]


def test_an_active_group_is_left_and_named(tmp_path: Path) -> None:
    cluster = target().group("g", {T0: 3}, state="Stable", members=(APP,))
    execution = run(plan(group("g", {T0: 5}, {T0: 3}), group("h", {T0: 6})), cluster, tmp_path)
    assert cluster.groups["g"].commits == {T0: Commit(3)}
    assert statuses(execution) == [Status.REFUSED]
    assert statuses(execution, "h") == [Status.COMMITTED]
    assert execution.groups[0].message == "g is Stable on b with 1 member: app-1 /10.0.3.7"
    assert (execution.outcome, exit_code(execution)) == (Outcome.PARTIAL, 4)


def test_all_refused_is_exit_3_and_writes_nothing(tmp_path: Path) -> None:
    cluster = target().group("g", {}, state="Stable", members=(APP,))
    execution = run(plan(group("g", {T0: 5})), cluster, tmp_path)
    assert exit_code(execution) == 3
    assert ("commit", 1) not in cluster.calls


@pytest.mark.parametrize("kind", [GroupType.SHARE, GroupType.STREAMS])
def test_a_group_of_another_type_is_left(tmp_path: Path, kind: GroupType) -> None:
    execution = run(plan(group("g", {T0: 5})), target().group("g", {}, type=kind), tmp_path)
    assert execution.groups[0].reasons == ("group-type-unsupported",)


def test_a_state_that_cannot_be_read_is_never_taken_for_empty(tmp_path: Path) -> None:
    cluster = target().group("g", {})
    cluster.faults["describe_groups", "g"] = Fault(-185, "_TIMED_OUT", "no answer")
    execution = run(plan(group("g", {T0: 5})), cluster, tmp_path)
    assert execution.groups[0].reasons == ("group-state-unknown",)
    assert cluster.groups["g"].commits == {}


def test_members_that_join_between_recheck_and_commit_are_found_by_the_broker(tmp_path: Path) -> None:
    cluster = target().group("g", {T0: 3})

    def join(commits: object) -> None:
        cluster.groups["g"].state, cluster.groups["g"].members = "Stable", (APP,)

    cluster.before["commit"] = join
    execution = run(plan(group("g", {T0: 5}, {T0: 3})), cluster, tmp_path)
    assert statuses(execution) == [Status.REFUSED]
    assert "app-1 /10.0.3.7" in execution.groups[0].message
    assert exit_code(execution) == 3
    assert cluster.groups["g"].commits == {T0: Commit(3)}


def test_a_member_just_leaving_is_no_reason_to_give_up(tmp_path: Path) -> None:
    cluster, clock = target().group("g", {T0: 3}), Clock()
    cluster.faults["commit", ("g", T0)] = [UNKNOWN_MEMBER_ID]
    execution = run(plan(group("g", {T0: 5}, {T0: 3})), cluster, tmp_path, clock=clock)
    assert (statuses(execution), exit_code(execution)) == ([Status.COMMITTED], 0)
    assert [method for method, _ in cluster.calls].count("commit") == 2
    assert clock.now == CREATED + timedelta(seconds=1)


def test_a_broker_that_goes_on_refusing_is_believed(tmp_path: Path) -> None:
    cluster = target().group("g", {T0: 3})
    cluster.faults["commit", ("g", T0)] = UNKNOWN_MEMBER_ID
    execution = run(plan(group("g", {T0: 5}, {T0: 3})), cluster, tmp_path)
    assert (statuses(execution), exit_code(execution)) == ([Status.REFUSED], 3)
    assert [method for method, _ in cluster.calls].count("commit") == 3


def test_a_static_member_is_named_with_how_long_it_may_stay_and_what_to_do(tmp_path: Path) -> None:
    static = Member("batch", "/10.0.3.8", "m", "batch-1")
    cluster = target().group("g", {T0: 3}, state="Stable", members=(static,))
    cluster.settings["group.max.session.timeout.ms"] = "1800000"
    execution = run(plan(group("g", {T0: 5}, {T0: 3})), cluster, tmp_path)
    message = execution.groups[0].message
    assert "batch /10.0.3.8 (static member batch-1)" in message
    assert "at most 30 minutes here" in message
    assert "failover evict --group" in message


def test_wait_commits_a_group_once_it_is_free(tmp_path: Path) -> None:
    cluster, clock = target().group("g", {T0: 3}, state="Stable", members=(APP,)), Clock()

    def leave() -> None:
        if clock.now >= CREATED + timedelta(seconds=5):
            cluster.groups["g"].state, cluster.groups["g"].members = "Empty", ()

    clock.on_sleep = leave
    execution = run(plan(group("g", {T0: 5}, {T0: 3})), cluster, tmp_path, clock=clock, timing=Timing(0, 60))
    assert (execution.outcome, statuses(execution)) == (Outcome.DONE, [Status.COMMITTED])
    assert clock.now < CREATED + timedelta(seconds=10)


def test_wait_ends_at_its_deadline(tmp_path: Path) -> None:
    cluster, clock = target().group("g", {}, state="Stable", members=(APP,)), Clock()
    execution = run(plan(group("g", {T0: 5})), cluster, tmp_path, clock=clock, timing=Timing(0, 30))
    assert exit_code(execution) == 3
    assert clock.now == CREATED + timedelta(seconds=30)


def test_a_lost_answer_is_settled_by_reading_back(tmp_path: Path) -> None:
    cluster = target()
    cluster.lost_answers.add("g")
    execution = run(plan(group("g", {T0: 5})), cluster, tmp_path)
    assert (statuses(execution), exit_code(execution)) == ([Status.COMMITTED], 0)


def test_a_lost_write_is_found_by_reading_back(tmp_path: Path) -> None:
    cluster = target().group("g", {T0: 3})
    cluster.faults["commit", "g"] = Fault(-195, "_TRANSPORT", "connection reset")
    execution = run(plan(group("g", {T0: 5}, {T0: 3})), cluster, tmp_path)
    assert (statuses(execution), exit_code(execution)) == ([Status.FAILED], 6)


def test_an_outcome_nobody_can_tell_is_unknown_and_exit_7(tmp_path: Path) -> None:
    cluster = target()
    cluster.lost_answers.add("g")

    def fall_silent(groups: object) -> None:
        if ("commit", 1) in cluster.calls:
            cluster.down = "no answer from b for 30 s"

    cluster.before["committed"] = fall_silent
    execution = run(plan(group("g", {T0: 5})), cluster, tmp_path)
    assert (execution.outcome, statuses(execution), exit_code(execution)) == (Outcome.UNKNOWN, [Status.UNKNOWN], 7)
    assert "no answer from b for 30 s" in execution.warnings[0]


def test_a_target_that_falls_silent_before_any_write_is_raised(tmp_path: Path) -> None:
    cluster = target()
    cluster.down = "no answer from b for 30 s"
    with pytest.raises(ClusterUnreachable):
        run(plan(group("g", {T0: 5})), cluster, tmp_path)


def test_a_write_that_is_accepted_and_not_stored_is_no_success(tmp_path: Path) -> None:
    cluster = target().group("g", {T0: 3})
    cluster.forgetful.add("g")
    execution = run(plan(group("g", {T0: 5}, {T0: 3})), cluster, tmp_path)
    assert exit_code(execution) == 6
    assert execution.groups[0].partitions[0].error == "read back 3 instead of 5"


def test_a_fault_inside_an_accepted_answer_concerns_its_partition_alone(tmp_path: Path) -> None:
    cluster = target()
    cluster.faults["commit", ("g", T1)] = Fault(3, "UNKNOWN_TOPIC_OR_PARTITION", "gone")
    execution = run(plan(group("g", {T0: 5, T1: 6})), cluster, tmp_path)
    assert statuses(execution) == [Status.COMMITTED, Status.FAILED]
    assert exit_code(execution) == 6


def test_consumers_that_moved_on_right_after_the_commit_are_success(tmp_path: Path) -> None:
    cluster = target()

    def consume(groups: object) -> None:
        if ("commit", 1) in cluster.calls:
            cluster.groups["g"].commits[T0] = Commit(9)
            cluster.groups["g"].state, cluster.groups["g"].members = "Stable", (APP,)

    cluster.before["committed"] = consume
    execution = run(plan(group("g", {T0: 5})), cluster, tmp_path)
    assert statuses(execution) == [Status.COMMITTED]
    assert execution.groups[0].partitions[0].read_back == 9


def test_what_stands_already_is_not_written_again(tmp_path: Path) -> None:
    cluster = target().group("g", {T0: Commit(5, b"m")})
    execution = run(plan(group("g", {T0: 5}, {T0: 3})), cluster, tmp_path)
    assert (statuses(execution), exit_code(execution)) == ([Status.UNCHANGED], 0)
    assert ("commit", 1) not in cluster.calls


def test_a_group_that_went_on_since_the_plan_is_never_moved_back(tmp_path: Path) -> None:
    cluster = target().group("g", {T0: 40, T1: 3})
    execution = run(plan(group("g", {T0: 5, T1: 6}, {T0: 3, T1: 3})), cluster, tmp_path)
    assert statuses(execution) == [Status.REFUSED, Status.COMMITTED]
    assert execution.groups[0].partitions[0].error == (
        "the group moved on a.orders-0 from 3 to 40 since the plan: committing 5 would move it back by 35 records"
    )
    assert cluster.groups["g"].commits[T0].offset == 40
    assert exit_code(execution) == 4


def test_when_all_groups_changed_the_plan_is_stale(tmp_path: Path) -> None:
    cluster = target().group("g", {T0: 40})
    execution = run(plan(group("g", {T0: 5}, {T0: 3})), cluster, tmp_path)
    assert exit_code(execution) == 5


@pytest.mark.parametrize(
    ("now", "code"),
    [
        (FakeCluster("b").topic("a.orders", 3, end=1000, topic_id="another"), "target-recreated"),
        (FakeCluster("b").topic("a.orders", 3, end=4), "beyond-log-end"),
        (FakeCluster("b").topic("a.orders", 3, start=6, end=1000), "target-truncated"),
        (FakeCluster("b"), "topic-missing"),
        (FakeCluster("b").topic("a.orders", 0, topic_id="b/a.orders"), "partition-missing"),
    ],
)
def test_a_place_that_is_no_longer_there_is_refused(tmp_path: Path, now: FakeCluster, code: str) -> None:
    execution = run(plan(group("g", {T0: 5})), now, tmp_path)
    assert execution.groups[0].reasons == (code,)
    assert now.groups == {}
    assert exit_code(execution) == 5


@pytest.mark.parametrize(
    ("item", "fault", "code"),
    [
        ("g", Fault(30, "GROUP_AUTHORIZATION_FAILED", "Not authorized to access group."), "not-authorized"),
        (("g", T0), Fault(29, "TOPIC_AUTHORIZATION_FAILED", "Topic authorization failed."), "not-authorized"),
        (("g", T0), Fault(69, "GROUP_ID_NOT_FOUND"), "group-type-unsupported"),
    ],
)
def test_what_the_broker_forbids_is_a_refusal(tmp_path: Path, item: object, fault: Fault, code: str) -> None:
    cluster = target()
    cluster.faults["commit", item] = fault
    execution = run(plan(group("g", {T0: 5})), cluster, tmp_path)
    (only,) = execution.groups[0].partitions
    assert (only.status, only.reason, only.written, exit_code(execution)) == (Status.REFUSED, code, None, 3)


def test_a_right_that_is_missing_is_found_before_anything_is_sent(tmp_path: Path) -> None:
    cluster = FakeCluster("b").topic("a.orders", 3, end=1000, operations=frozenset({"DESCRIBE"}))
    execution = run(plan(group("g", {T0: 5})), cluster, tmp_path)
    assert (execution.groups[0].reasons, exit_code(execution)) == (("not-authorized",), 3)
    assert ("commit", 1) not in cluster.calls


def test_a_topic_made_anew_while_a_group_was_waited_for_is_seen(tmp_path: Path) -> None:
    cluster, clock = target().group("g", {}, state="Stable", members=(APP,)), Clock()

    def leave() -> None:
        cluster.topic("a.orders", 3, end=1000, topic_id="another").group("g", {})

    clock.on_sleep = leave
    execution = run(plan(group("g", {T0: 5})), cluster, tmp_path, clock=clock, timing=Timing(0, 30))
    assert execution.groups[0].reasons == ("target-recreated",)


def test_expired_commits_and_new_ones_below_the_plan_do_not_matter(tmp_path: Path) -> None:
    cluster = target().group("g", {T1: 2})
    execution = run(plan(group("g", {T0: 5, T1: 6}, {T0: 3})), cluster, tmp_path)
    assert exit_code(execution) == 0


def test_somebody_who_set_the_group_back_is_not_overridden(tmp_path: Path) -> None:
    execution = run(plan(group("g", {T0: 5}, {T0: 3})), target().group("g", {T0: 1}), tmp_path)
    assert execution.groups[0].reasons == ("commits-moving",)


@pytest.mark.parametrize("synced", [False, True])
def test_commits_that_move_without_members_are_watched_for(tmp_path: Path, synced: bool) -> None:
    cluster, clock = target().group("g", {T0: 1}), Clock()

    def commit() -> None:
        cluster.groups["g"].commits[T0] = Commit(4)

    clock.on_sleep = commit
    made = plan(group("g", {T0: 5}, {T0: 1}), mm2_syncs=synced)
    execution = run(made, cluster, tmp_path, clock=clock, timing=Timing(settle=6))
    if synced:
        assert statuses(execution) == [Status.COMMITTED]
    else:
        assert execution.groups[0].reasons == ("commits-moving",)
        assert "moved from 1 to 4 while the group has no members" in execution.groups[0].message
        assert exit_code(execution) == 3
    assert clock.now == CREATED + timedelta(seconds=6)


def test_all_or_nothing_writes_nothing_when_one_group_is_active(tmp_path: Path) -> None:
    cluster = target().group("g", {}, state="Stable", members=(APP,))
    made = plan(group("g", {T0: 5}), group("h", {T0: 6}), options=PlanOptions(all_or_nothing=True))
    execution = run(made, cluster, tmp_path)
    assert "h" not in cluster.groups
    assert exit_code(execution) == 3
    assert "g cannot be done whole" in execution.groups[1].message


def test_skips_of_the_plan_stay_in_the_record(tmp_path: Path) -> None:
    made = group("g", {T0: 5})
    skipped = partition("a.orders", 1, None, reason="no-checkpoint")
    made = type(made)(
        **{f: getattr(made, f) for f in made.__struct_fields__} | {"partitions": (*made.partitions, skipped)}
    )
    execution = run(plan(made), target(), tmp_path)
    assert [(p.status, p.reason) for p in execution.groups[0].partitions] == [
        (Status.COMMITTED, "translated"),
        (Status.SKIPPED, "no-checkpoint"),
    ]


def test_many_groups_go_in_batches_each_rechecked(tmp_path: Path) -> None:
    cluster = target()
    made = plan(*(group(f"g{n:04}", {T0: 5}) for n in range(1201)))
    execution = run(made, cluster, tmp_path)
    assert execution.outcome is Outcome.DONE
    assert [size for method, size in cluster.calls if method == "describe_groups"] == [500, 500, 201]
    assert [size for method, size in cluster.calls if method == "commit"] == [500, 500, 201]


def test_a_rehearsal_writes_nothing_and_tells_the_same(tmp_path: Path) -> None:
    cluster = target().group("g", {T0: 3}).group("h", {T0: 3}, state="Stable", members=(APP,))
    made = plan(group("g", {T0: 5}, {T0: 3}), group("h", {T0: 6}, {T0: 3}))
    rehearsal = rehearse(made, cluster, {"g", "h"}, CREATED)
    assert [(g.commits, g.reason) for g in rehearsal.groups] == [(1, ""), (0, "group-active")]
    assert rehearsal.exit_code == exit_code(run(made, cluster, tmp_path)) == 4
