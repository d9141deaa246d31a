"""What execute would refuse in some state of the target, a plan made in that state refuses too."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from failover.execution.recheck import decide
from failover.execution.record import exit_code
from failover.execution.rehearsal import rehearse
from failover.inventory.selection import Selection
from failover.model.cluster import ClusterState, LogRange, TopicInfo
from failover.model.execution import Status
from failover.model.groups import Commit, GroupInfo, GroupType, Member
from failover.model.names import Fault, TopicPartition
from failover.model.plan import Action, PlanOptions
from failover.planning.drift import TargetNow, refusal
from failover.planning.group_rules import GroupLook, group_refusal
from failover.state.journal import Intent, Left
from tests.fake_cluster import FakeCluster
from tests.unit.execution import plans, scene
from tests.unit.inventory.scene import Scene as Look
from tests.unit.inventory.scene import flow
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


def test_partitions_of_a_group_that_is_left_have_reasons_of_their_own(tmp_path: Path) -> None:
    """Nothing can be written for the group, for one reason here and another there."""
    cluster = FakeCluster("b").topic("a.orders", 1, end=1000, topic_id="b/a.orders").group("g", {scene.T0: 40})
    made = plans.plan(plans.group("g", {scene.T0: 5, scene.T1: 6}, {scene.T0: 3}))
    execution = scene.run(made, cluster, tmp_path)
    assert [(p.status, p.reason) for p in execution.groups[0].partitions] == [
        (Status.REFUSED, "would-rewind"),
        (Status.REFUSED, "partition-missing"),
    ]
    (dry,) = rehearse(made, cluster, ["g"], TAKEN).groups
    assert [code for _, _, code, _ in dry.refused] == ["would-rewind", "partition-missing"]
    assert exit_code(execution) == 5


NO_ANSWER = Fault(-185, "NO_ANSWER", "no answer for 30 s")
NO_COORDINATOR = Fault(15, "COORDINATOR_NOT_AVAILABLE", "The coordinator is not available.")
NO_LEADER = Fault(5, "LEADER_NOT_AVAILABLE", "There is no leader for this topic-partition.")
PLACES = [TopicPartition("a.orders", number) for number in range(2)]


def no_state(b: FakeCluster) -> None:
    b.faults["describe_groups", "g"] = NO_ANSWER


def no_offsets(b: FakeCluster) -> None:
    b.faults["committed", "g"] = NO_COORDINATOR


def no_leader(b: FakeCluster) -> None:
    b.faults["log_ranges", PLACES[0]] = NO_LEADER
    b.infos["a.orders"] = msgspec.structs.replace(b.infos["a.orders"], leaderless=(0,))


def shorter(b: FakeCluster) -> None:
    """An unclean election lost the end of the log."""
    b.logs[PLACES[0]] = LogRange(0, 25)


def streams(b: FakeCluster) -> None:
    b.group("g", type=GroupType.STREAMS)


def of_a_newer_broker(b: FakeCluster) -> None:
    b.group("g", type=GroupType.UNKNOWN)


def of_a_newer_state(b: FakeCluster) -> None:
    b.group("g", state="Fermenting")


def without_rights(b: FakeCluster) -> None:
    b.group("g", operations=frozenset({"DESCRIBE"}))


@pytest.mark.parametrize(
    ("state", "codes"),
    [
        (no_state, ["group-state-unknown"] * 2),
        (no_offsets, ["target-unavailable"] * 2),
        (no_leader, ["target-unavailable", ""]),
        (shorter, ["beyond-log-end", ""]),
        (streams, ["group-type-unsupported"] * 2),
        (of_a_newer_broker, ["group-type-unsupported"] * 2),
        (of_a_newer_state, ["group-active"] * 2),
        (without_rights, ["not-authorized"] * 2),
    ],
)
def test_states_no_broker_is_put_into(tmp_path: Path, state: Callable[[FakeCluster], None], codes: list[str]) -> None:
    """A plan from before the state is executed in it, and one made in it says the same beforehand."""
    look = Look(flow(tmp_path))
    look.mirror("orders", 2, end=1000)
    for number in range(2):
        look.checkpoint("g", "a.orders", 30, 30, partition=number)
    older = plan(look.look(Selection(groups=("g",)), source_down=True))
    assert [p.action for p in older.groups[0].partitions] == ["commit", "commit"]
    state(look.b)
    newer = plan(look.look(Selection(groups=("g",)), source_down=True), earlier=older)
    assert [p.reason if p.action == "refuse" else "" for p in newer.groups[0].partitions] == codes
    for made, run_id in ((older, "e-1"), (newer, "e-2")):
        execution = scene.run(made, look.b, tmp_path, run_id=run_id)
        (group,) = execution.groups
        assert [p.reason if p.status is Status.REFUSED else "" for p in group.partitions] == codes
        assert exit_code(execution) in ((4,) if "" in codes else (3, 5))
