"""Group-level refusals, verdicts and the sums on top of a plan."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from failover.model import Fault, TopicPartition
from failover.model.cluster import ClusterState, ClusterStatus, TopicInfo
from failover.model.groups import Commit, GroupInfo, GroupType
from failover.model.plan import PlanOptions
from failover.model.snapshot import ClusterView
from failover.planning.build import exit_code
from failover.planning.group_rules import GROUP_CODES
from tests.unit.planning.worlds import MEMBER, T0, TAKEN, checkpoint, empty, exact, only_group, plan, world

READY: dict[str, Any] = {"source_commits": {0: 500}, "translations": {0: exact(500, 490)}}


def group_info(state: str = "Empty", **more: Any) -> GroupInfo:
    fields: dict[str, Any] = {"exists": True, "type": GroupType.CLASSIC, "state": state}
    return GroupInfo("payments", **(fields | more))


@pytest.mark.parametrize(
    ("info", "code"),
    [
        (group_info("Stable", members=(MEMBER,)), "group-active"),
        (group_info("Empty", members=(MEMBER,)), "group-active"),
        (group_info("PreparingRebalance"), "group-active"),
        (group_info("CompletingRebalance"), "group-active"),
        (group_info("Assigning", type=GroupType.CONSUMER), "group-active"),
        (group_info("Reconciling", type=GroupType.CONSUMER), "group-active"),
        (group_info("Unknown"), "group-state-unknown"),
        (group_info("Unknown", fault=Fault(-1, "_TIMED_OUT")), "group-state-unknown"),
        (group_info("Empty", type=GroupType.SHARE), "group-type-unsupported"),
        (group_info("Empty", type=GroupType.STREAMS), "group-type-unsupported"),
        (group_info("Dead", type=GroupType.UNKNOWN), "group-type-unsupported"),
        (group_info(operations=frozenset({"DESCRIBE"})), "not-authorized"),
        (group_info("Unknown", fault=Fault(30, "GROUP_AUTHORIZATION_FAILED")), "not-authorized"),
        (group_info(operations=frozenset({"READ", "DESCRIBE"})), None),
        (group_info(operations=frozenset({"ALL"})), None),
        (group_info("Dead"), None),
        (group_info("Empty", type=GroupType.CONSUMER), None),
        (empty(exists=False), None),
    ],
)
def test_state_type_and_rights_on_the_target(info, code):
    group = only_group(world(info=info, **READY))
    if code is None:
        assert (group.verdict, group.reasons) == ("ready", ())
        return
    assert (group.verdict, group.reasons) == ("refused", (code,))
    assert {(p.action, p.reason, p.offset) for p in group.partitions} == {("refuse", code, None)}
    assert code in GROUP_CODES


def test_group_without_any_answer_is_not_taken_for_new():
    snapshot = world(**READY)
    snapshot.target.groups.clear()
    assert only_group(snapshot).reasons == ("group-state-unknown",)


def test_unreadable_commits_on_the_target():
    snapshot = world(**READY)
    snapshot.target.group_faults["payments"] = Fault(15, "COORDINATOR_NOT_AVAILABLE")
    assert only_group(snapshot).reasons == ("target-unavailable",)
    snapshot.target.group_faults["payments"] = Fault(30, "GROUP_AUTHORIZATION_FAILED")
    assert only_group(snapshot).reasons == ("not-authorized",)


def test_target_down_same_cluster_and_lock():
    snapshot = world(**READY)
    down = ClusterView(ClusterStatus("standby", None, ClusterState.DOWN))
    assert only_group(msgspec.structs.replace(snapshot, target=down)).reasons == ("target-unavailable",)
    same = msgspec.structs.replace(snapshot.target, status=ClusterStatus("standby", "SRC", ClusterState.UP))
    assert only_group(msgspec.structs.replace(snapshot, target=same)).reasons == ("same-cluster",)
    assert only_group(snapshot, locked_by="kim on host-2").reasons == ("locked",)


def test_required_inactive_source():
    snapshot = world(source_info=group_info("Stable", members=(MEMBER,)), **READY)
    group = only_group(snapshot)
    assert (group.verdict, group.source_state, group.source_members) == ("ready", "Stable", 1)
    assert only_group(snapshot, PlanOptions(require_source_inactive=True)).reasons == ("source-active",)


def test_group_found_nowhere_is_refused_and_named():
    made = plan(world(**READY), PlanOptions(groups=("payments-svr", "payments")))
    by_name = {group.group: group for group in made.groups}
    assert (by_name["payments-svr"].verdict, by_name["payments-svr"].reasons) == ("refused", ("group-unknown",))
    assert by_name["payments"].verdict == "ready"
    assert exit_code(made) == 4


def test_create_group_starts_a_new_group_by_policy():
    snapshot = world(**READY)
    snapshot.target.groups["new"] = empty("new", exists=False)
    options = PlanOptions(groups=("new",), topics=("orders",), missing="earliest", create_group=True)
    (group,) = plan(snapshot, options).groups
    assert (group.verdict, [p.offset for p in group.partitions]) == ("ready", [0])


@pytest.mark.parametrize(
    ("before", "now", "synced", "age", "refused"),
    [
        (100, 140, False, 30, True),
        (100, 140, False, 3600, False),  # too long ago to say that it moves now
        (140, 140, False, 30, False),
        (100, 480, False, 30, False),  # equals MM2's checkpoint
        (100, 300, True, 30, False),  # MM2's sync, one checkpoint behind
        (300, 100, True, 30, True),
        (100, 500, True, 30, True),  # beyond the checkpoint: not MM2
        (None, 140, False, 30, True),
    ],
)
def test_commits_that_move_without_members(before, now, synced, age, refused):
    snapshot = world(
        checkpoints={0: checkpoint(500, 480)},
        source=ClusterState.DOWN,
        target_commits={0: now},
        info=empty(),
        group_offsets_synced=synced,
        commit_samples={"payments": {} if before is None else {T0: before}},
        sampled=TAKEN - timedelta(seconds=age),
    )
    group = only_group(snapshot)
    assert (group.reasons == ("commits-moving",)) is refused
    assert only_group(snapshot, PlanOptions(allow_moving_commits=True)).reasons != ("commits-moving",)
    assert only_group(snapshot, written={"payments": {T0: now}}).reasons != ("commits-moving",)


def test_refused_by_state_keeps_its_decisions_for_later():
    group = only_group(world(info=group_info("Stable", members=(MEMBER,)), **READY))
    assert [(p.action, p.offset) for p in group.when_free] == [("commit", 490)]
    assert only_group(world(**READY)).when_free == ()
    assert only_group(world(info=group_info(type=GroupType.SHARE), **READY)).when_free == ()


def test_members_consuming_here_pass_over_nothing_by_this_plan():
    group = only_group(
        world(info=group_info("Stable", members=(MEMBER,)), target_commits={0: 900}, **READY),
    )
    assert [(p.position_after.offset, p.skipped) for p in group.partitions] == [(900, 0)]


def test_group_with_nothing_on_mirrored_topics():
    snapshot = world(source_commits={}, info=empty())
    snapshot.target.commits["payments"] = {TopicPartition("local", 0): Commit(5)}
    made = plan(snapshot)
    assert [(g.verdict, g.reasons, g.partitions) for g in made.groups] == [("nothing", (), ())]
    assert exit_code(made) == 0


def test_a_partition_ahead_does_not_block_the_others():
    snapshot = world(
        partitions=3,
        source=ClusterState.DOWN,
        checkpoints={n: checkpoint(500, 480) for n in range(3)},
        target_commits={1: 780},
    )
    group = only_group(snapshot)
    assert [p.action for p in group.partitions] == ["commit", "skip", "commit"]
    assert (group.verdict, group.reasons) == ("partial", ("would-rewind",))
    strict = only_group(snapshot, PlanOptions(all_or_nothing=True))
    assert [(p.action, p.reason) for p in strict.partitions] == [
        ("refuse", "all-or-nothing"),
        ("skip", "would-rewind"),
        ("refuse", "all-or-nothing"),
    ]
    assert strict.verdict == "refused"
    ready = world(partitions=2, source_commits={0: 500}, translations={0: exact(500, 490)})
    assert only_group(ready, PlanOptions(all_or_nothing=True)).verdict == "ready"


def test_nothing_to_commit_and_something_refused_is_refused():
    group = only_group(world(partitions=2, source=ClusterState.DOWN, checkpoints={0: checkpoint(9999, 9999)}))
    assert [p.reason for p in group.partitions] == ["beyond-log-end", "no-checkpoint"]
    assert (group.verdict, group.reasons) == ("refused", ("beyond-log-end", "no-checkpoint"))


def test_summary_and_exit_codes():
    ahead = world(checkpoints={0: checkpoint(500, 480)}, target_commits={0: 780}, source=ClusterState.DOWN)
    made = plan(ahead)
    assert exit_code(made) == 4
    assert (made.summary.skipped, made.summary.unknown, made.summary.partitions.skip) == (300, 0, 1)
    refused = plan(world(info=group_info("Stable", members=(MEMBER,)), **READY))
    assert (exit_code(refused), refused.summary.execute_seconds, refused.summary.unknown) == (3, 0.0, 0)
    ready = plan(world(**READY))
    assert (exit_code(ready), ready.summary.reread, ready.summary.reread_max) == (0, 0, 0)
    assert ready.summary.execute_seconds == 6.5
    assert plan(world(**READY), settle_seconds=0.0).summary.execute_seconds == 0.5


def test_selection_by_topic_and_exclusion():
    snapshot = world(checkpoints={0: checkpoint(5, 5)}, source=ClusterState.DOWN)
    more = msgspec.structs.replace(snapshot, mirrored={**snapshot.mirrored, "primary.fees": "fees"})
    more.checkpoints["payments"][TopicPartition("primary.fees", 0)] = checkpoint(9, 9)
    more.target.topics["primary.fees"] = TopicInfo("primary.fees", 1)
    assert {p.topic for p in only_group(more).partitions} == {"primary.orders", "primary.fees"}
    assert {p.topic for p in only_group(more, PlanOptions(topics=("orders",))).partitions} == {"primary.orders"}
    assert plan(more, PlanOptions(exclude_groups=("payments",))).groups == ()
    assert plan(more, PlanOptions(group_pattern="pay.*")).groups != ()
    assert plan(more, PlanOptions(group_pattern="pay")).groups == ()


def test_identity_naming_needs_no_other_subscription():
    snapshot = world(checkpoints={0: checkpoint(5, 5)}, source=ClusterState.DOWN)
    same = msgspec.structs.replace(snapshot, mirrored={"primary.orders": "primary.orders"})
    group = only_group(same)
    assert (group.subscribe, group.local_topics) == (("primary.orders",), ())
