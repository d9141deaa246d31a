from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from failover.model import Fault
from failover.model.cluster import ClusterState, LogRange, TopicInfo
from failover.model.groups import Commit, GroupInfo, GroupType
from failover.planning import FreshTarget, drift, expired, wrong_cluster
from tests.unit.planning.worlds import MEMBER, T0, TAKEN, checkpoint, empty, plan, world

PLANNED: dict[str, Any] = {"source": ClusterState.DOWN, "checkpoints": {0: checkpoint(500, 480)}}


def fresh(committed: int | None = None, **changes: Any) -> FreshTarget:
    fields: dict[str, Any] = {
        "cluster_id": "TGT",
        "groups": {"payments": empty()},
        "commits": {"payments": {} if committed is None else {T0: Commit(committed)}},
        "topics": {"primary.orders": TopicInfo("primary.orders", 1, "id-1")},
        "logs": {T0: LogRange(0, 1000)},
    }
    return FreshTarget(**(fields | changes))


def one(made: Any, look: FreshTarget) -> Any:
    return drift(made, look)["payments"]


@pytest.mark.parametrize(
    ("before", "now", "status"),
    [
        (100, 100, "ok"),
        (100, 480, "ok"),  # there already
        (100, 300, "ok"),  # MM2's sync moved it; the commit overtakes it
        (100, None, "ok"),
        (None, 300, "ok"),
        (None, 481, "changed"),  # writing would move it back
        (100, 700, "changed"),
    ],
)
def test_a_planned_commit(before, now, status):
    made = plan(world(**PLANNED, target_commits={} if before is None else {0: before}))
    found = one(made, fresh(now))
    assert found.status == status
    if status == "changed":
        assert "primary.orders-0: the committed offset is" in found.texts[0]
    assert found.unchanged == ((T0,) if now == 480 else ())


@pytest.mark.parametrize(
    ("now", "checkpoints", "status"),
    [(480, {}, "ok"), (479, {}, "changed"), (None, {}, "changed"), (600, {}, "changed"), (600, {T0: 600}, "ok")],
)
def test_a_partition_that_stood_there_already(now, checkpoints, status):
    made = plan(world(**PLANNED, target_commits={0: 480}))
    assert one(made, fresh(now, checkpoints={"payments": checkpoints})).status == status


def test_a_rewind_on_purpose_rewinds_only_what_the_plan_saw():
    from failover.model.plan import PlanOptions

    made = plan(world(**PLANNED, target_commits={0: 780}), PlanOptions(allow_rewind=True))
    assert one(made, fresh(780)).status == "ok"
    assert one(made, fresh(900)).status == "changed"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"topics": {"primary.orders": TopicInfo("primary.orders", 1, "id-2")}}, "recreated"),
        ({"topics": {"other": TopicInfo("other", 1)}}, "gone"),
        ({"logs": {T0: LogRange(481, 1000)}}, "starts at 481"),
        ({"logs": {T0: LogRange(0, 479)}}, "ends at 479"),
        ({"logs": {T0._replace(partition=1): LogRange(0, 479)}}, "could not be read"),
    ],
)
def test_the_partition_itself_changed(changes, said):
    found = one(plan(world(**PLANNED)), fresh(**changes))
    assert found.status == "changed"
    assert said in found.texts[0]


@pytest.mark.parametrize(
    ("info", "code"),
    [
        (GroupInfo("payments", True, GroupType.CLASSIC, "Stable", (MEMBER,)), "group-active"),
        (GroupInfo("payments", True, GroupType.SHARE, "Empty"), "group-type-unsupported"),
        (
            GroupInfo("payments", True, GroupType.CLASSIC, "Unknown", fault=Fault(-1, "GONE")),
            "group-state-unknown",
        ),
        (GroupInfo("payments", True, GroupType.CLASSIC, "Empty", operations=frozenset()), "not-authorized"),
        (None, "group-state-unknown"),
    ],
)
def test_refused_as_a_plan_made_now_would(info, code):
    found = one(plan(world(**PLANNED)), fresh(groups={} if info is None else {"payments": info}))
    assert (found.status, found.code) == ("refused", code)
    assert found.texts
    assert found.members == (() if info is None else info.members)


def test_unreadable_commits_are_refused():
    look = fresh(group_faults={"payments": Fault(15, "COORDINATOR_NOT_AVAILABLE")})
    assert one(plan(world(**PLANNED)), look).code == "target-unavailable"


def test_expiry_and_cluster():
    made = plan(world(**PLANNED), ttl_seconds=60.0)
    assert not expired(made, TAKEN + timedelta(seconds=59))
    assert expired(made, TAKEN + timedelta(seconds=60))
    assert wrong_cluster(made, "TGT") == wrong_cluster(made, None) == ""
    assert "standby is cluster X now" in wrong_cluster(made, "X")
