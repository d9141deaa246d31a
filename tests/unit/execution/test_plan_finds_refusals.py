"""What execute would refuse in some state of the target, a plan made in that state refuses too."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from failover.execution.recheck import decide
from failover.model.cluster import ClusterState, LogRange, TopicInfo
from failover.model.groups import Commit, GroupInfo, GroupType, Member
from failover.model.names import Fault
from failover.model.plan import Action, PlanOptions
from failover.planning.drift import TargetNow, refusal
from failover.planning.group_rules import GroupLook, group_refusal
from failover.state.journal import Intent, Left
from tests.unit.planning.worlds import MEMBER, T0, TAKEN, checkpoint, empty, plan, world

STATES = ("Empty", "Dead", "Stable", "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling", "Unknown")
FAULTS = (None, Fault(15, "COORDINATOR_NOT_AVAILABLE"), Fault(30, "GROUP_AUTHORIZATION_FAILED"))
RIGHTS = (None, frozenset({"READ", "DESCRIBE"}), frozenset({"DESCRIBE"}))
NOT_OF_THE_GROUP = {"same-cluster", "locked", "group-unknown", "source-active", "commits-moving"}
"""Refusals that no re-check of a group finds: they are decided for the whole execution, or by a watch."""


def infos() -> list[GroupInfo]:
    found = []
    for kind, state, members, fault, rights in itertools.product(GroupType, STATES, ((), (MEMBER,)), FAULTS, RIGHTS):
        # a fault comes without a type and with the state Unknown, and an unknown type otherwise only from a new broker
        if fault is not None and (kind is not GroupType.UNKNOWN or state != "Unknown"):
            continue
        held: tuple[Member, ...] = members
        found.append(GroupInfo("payments", True, kind, state, held, operations=rights, fault=fault))
    return found


@pytest.mark.parametrize("unread", FAULTS, ids=lambda fault: fault.name if fault else "readable")
def test_the_state_of_a_group(unread: Fault | None) -> None:
    codes = set()
    for info in infos():
        snapshot = world(source=ClusterState.DOWN, checkpoints={0: checkpoint(500, 480)}, info=info)
        if unread is not None:
            snapshot.target.group_faults["payments"] = unread
        planned = group_refusal(GroupLook("payments", info, True, snapshot, PlanOptions(), "", {}))
        executed = refusal(info, unread or {}, "standby")
        code = executed[0] if executed else None
        # where several forbid it, either may be named: both refuse, or neither
        assert (planned is None) == (code is None), info
        assert planned not in NOT_OF_THE_GROUP
        codes.add(code)
    assert {"group-type-unsupported", "not-authorized"} <= codes
    assert ("group-active" in codes) is (unread is None or unread.number == 15)
    assert (None in codes) is (unread is None)


GOOD: dict[str, Any] = {
    "source": ClusterState.DOWN,
    "checkpoints": {0: checkpoint(500, 480)},
    "target_commits": {0: 100},
}


@pytest.mark.parametrize(
    ("committed", "log", "topic_id", "code"),
    [
        (100, (0, 1000), "id-1", None),
        (300, (0, 1000), "id-1", None),
        (480, (0, 1000), "id-1", None),
        (481, (0, 1000), "id-1", "would-rewind"),
        (900, (0, 1000), "id-1", "would-rewind"),
        (100, (0, 479), "id-1", "beyond-log-end"),
        (100, (0, 1000), "id-2", "target-recreated"),
    ],
)
def test_the_state_of_a_partition(committed: int, log: tuple[int, int], topic_id: str, code: str | None) -> None:
    """A plan made before the change is re-checked after it; a plan made after it finds the same."""
    old = plan(world(**GOOD))
    changed = world(**(GOOD | {"target_commits": {0: committed}, "target_log": log}))
    changed.target.topics["primary.orders"] = TopicInfo("primary.orders", 1, topic_id)
    event = decide(
        old,
        old.groups[0],
        empty(),
        {T0: Commit(committed)},
        TargetNow({"primary.orders": TopicInfo("primary.orders", 1, topic_id)}, {T0: LogRange(*log)}),
        at=TAKEN,
    )
    (fresh,) = plan(changed, earlier=old).groups[0].partitions
    if code is None:
        assert isinstance(event, Intent)
        assert fresh.action is Action.COMMIT or fresh.reason == "already-there"
    else:
        assert isinstance(event, Left)
        assert event.reason == code
        assert fresh.action is not Action.COMMIT
        assert fresh.reason == code
