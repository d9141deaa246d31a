from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from failover.errors import StalePlan
from failover.model import Fault
from failover.model.cluster import ClusterState, LogRange, TopicInfo
from failover.model.groups import Commit, GroupInfo, GroupType
from failover.model.plan import PlanOptions
from failover.planning.drift import EarlierWrite, TargetNow, check_usable, differences, refusal
from tests.unit.planning.worlds import MEMBER, T0, TAKEN, checkpoint, empty, plan, world

PLANNED: dict[str, Any] = {"source": ClusterState.DOWN, "checkpoints": {0: checkpoint(500, 480)}}
HERE = TopicInfo("primary.orders", 1, "id-1")
PLACE = TargetNow({"primary.orders": HERE}, {T0: LogRange(0, 1000)})


def other(**changes: Any) -> TargetNow:
    """Is the place with another topic description."""
    return TargetNow({"primary.orders": msgspec.structs.replace(HERE, **changes)}, PLACE.logs)


def hidden(fault: Fault) -> TargetNow:
    return TargetNow({"primary.orders": fault}, {})


def found(
    made: Any, committed: int | None, *, place: TargetNow = PLACE, earlier: EarlierWrite | None = None
) -> list[tuple[str, bool]]:
    commits = {} if committed is None else {T0: Commit(committed)}
    writes = {} if earlier is None else {T0: earlier}
    found = differences(made, made.groups[0], commits, place, writes)
    assert all(difference.text for difference in found)
    return [(difference.code, difference.refuses) for difference in found]


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        (100, 100, []),
        (100, 480, []),  # there already
        (100, 300, [("moved", False)]),  # MM2's sync moved it; the commit overtakes it
        (100, None, [("expired", False)]),
        (None, 300, [("moved", False)]),
        (None, 481, [("would-rewind", True)]),
        (100, 700, [("would-rewind", True)]),
        (100, 50, [("commits-moving", True)]),
    ],
)
def test_a_planned_commit(before, now, expected):
    made = plan(world(**PLANNED, target_commits={} if before is None else {0: before}))
    assert found(made, now) == expected


@pytest.mark.parametrize(("now", "moved"), [(480, False), (479, True), (None, True), (600, True)])
def test_a_partition_the_plan_leaves_alone_is_named_when_it_moved(now, moved):
    made = plan(world(**PLANNED, target_commits={0: 480}))
    assert found(made, now) == ([("moved", False)] if moved else [])


def test_a_rewind_on_purpose_rewinds_only_what_the_plan_saw():
    made = plan(world(**PLANNED, target_commits={0: 780}), PlanOptions(allow_rewind=True))
    assert found(made, 780) == []
    assert found(made, 900) == [("would-rewind", True)]
    assert found(made, 700) == [("moved", False)]


@pytest.mark.parametrize(
    ("place", "code"),
    [
        (other(topic_id="id-2"), "target-recreated"),
        (other(operations=frozenset({"DESCRIBE", "WRITE"})), "not-authorized"),
        (other(partitions=0), "partition-missing"),
        (TargetNow({}, PLACE.logs), "topic-missing"),
        (hidden(Fault(3, "UNKNOWN_TOPIC_OR_PARTITION")), "topic-missing"),
        (hidden(Fault(29, "TOPIC_AUTHORIZATION_FAILED")), "not-authorized"),
        (hidden(Fault(-185, "NO_ANSWER")), "target-unavailable"),
        (TargetNow(PLACE.topics, {T0: LogRange(481, 1000)}), "target-truncated"),
        (TargetNow(PLACE.topics, {T0: LogRange(0, 479)}), "beyond-log-end"),
        (TargetNow(PLACE.topics, {}), "target-unavailable"),
    ],
)
def test_the_partition_itself_changed(place, code):
    assert found(plan(world(**PLANNED)), None, place=place) == [(code, True)]


LANDED, OPEN = EarlierWrite(100, 480, landed=True), EarlierWrite(100, 480, landed=False)


@pytest.mark.parametrize(
    ("earlier", "now", "expected"),
    [
        (LANDED, 480, []),
        (LANDED, 700, []),  # its consumers went on
        (LANDED, 470, [("commits-moving", True)]),
        (LANDED, None, [("expired", True)]),
        (OPEN, 480, []),
        (OPEN, 700, []),
        (OPEN, 100, []),  # still as before: it is to be written
        (OPEN, 300, [("commits-moving", True)]),  # used since the interruption
        (OPEN, None, [("expired", False)]),
    ],
)
def test_what_an_earlier_execution_wrote_is_compared_with_that(earlier, now, expected):
    assert found(plan(world(**PLANNED, target_commits={0: 100})), now, earlier=earlier) == expected


@pytest.mark.parametrize(
    ("info", "code"),
    [
        (GroupInfo("payments", True, GroupType.CLASSIC, "Stable", (MEMBER,)), "group-active"),
        (GroupInfo("payments", True, GroupType.CONSUMER, "Assigning"), "group-active"),
        (GroupInfo("payments", True, GroupType.SHARE, "Empty"), "group-type-unsupported"),
        (
            GroupInfo("payments", True, GroupType.CLASSIC, "Unknown", fault=Fault(-1, "GONE")),
            "group-state-unknown",
        ),
        (GroupInfo("payments", True, GroupType.CLASSIC, "Empty", operations=frozenset()), "not-authorized"),
    ],
)
def test_refused_as_a_plan_made_now_would(info, code):
    refused = refusal(info, {}, "standby")
    assert refused is not None
    assert refused[0] == code
    assert "payments" in refused[1]


def test_a_free_group_is_not_refused_and_unreadable_commits_are():
    assert refusal(empty(), {}, "standby") is None
    assert refusal(empty(exists=False), {}, "standby") is None
    refused = refusal(empty(), Fault(15, "COORDINATOR_NOT_AVAILABLE"), "standby")
    assert refused is not None
    assert refused[0] == "target-unavailable"
    refused = refusal(empty(), Fault(30, "GROUP_AUTHORIZATION_FAILED"), "standby")
    assert refused is not None
    assert refused[0] == "not-authorized"


def test_a_plan_is_void_when_done_expired_rolled_back_or_for_another_cluster():
    made = plan(world(**PLANNED), ttl_seconds=60.0)

    def check(
        seconds: float = 0, cluster: str | None = "TGT", begun: bool = False, done: bool = False, undone: str = ""
    ) -> None:
        now = TAKEN + timedelta(seconds=seconds)
        check_usable(made, now=now, target_cluster_id=cluster, written_before=begun, complete=done, rolled_back=undone)

    check()
    check(seconds=59)
    check(seconds=600, begun=True)
    check(cluster=None)
    with pytest.raises(StalePlan, match="expired at 2026-11-05 03:15:07 UTC"):
        check(seconds=60)
    with pytest.raises(StalePlan, match="executed completely"):
        check(done=True)
    with pytest.raises(StalePlan, match="rolled back"):
        check(undone="e-1")
    with pytest.raises(StalePlan, match="leads to cluster X"):
        check(cluster="X")
