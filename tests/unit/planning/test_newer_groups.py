"""Groups that MM2 has not checkpointed yet: planned where anything places them, else left out and said so."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from failover.model import Fault
from failover.model.cluster import ClusterState
from failover.model.plan import Plan, PlanOptions
from failover.model.snapshot import InternalTopicReading, NotPlanned, Snapshot
from failover.planning.build import exit_code
from failover.report.plan_text import plan_text
from tests.unit.planning.worlds import checkpoint, exact, plan, world

CHECKPOINTS = InternalTopicReading("primary.checkpoints.internal", "standby", True, records=9, newest=1)
LEFT = NotPlanned("payments", "newer-than-checkpoints", ("orders",))


def new(reading: InternalTopicReading = CHECKPOINTS, **more: Any) -> Snapshot:
    fields: dict[str, Any] = {"source_commits": {0: 500}, "readings": (reading,)}
    return world(**(fields | more))


def planned(made: Plan) -> list[tuple[str, str]]:
    return [(group.group, group.verdict) for group in made.groups]


def test_a_group_that_nothing_places_is_newer_than_the_checkpoints() -> None:
    made = plan(new(not_planned=(NotPlanned("x", "excluded"),)))
    assert made.groups == ()
    assert made.not_planned == (LEFT, NotPlanned("x", "excluded"))
    assert made.summary.groups.not_planned == 2
    assert exit_code(made) == 3


def test_beside_a_ready_group_the_plan_is_partial() -> None:
    alone = new()
    ready = world(source_commits={0: 5}, translations={0: exact(5, 5)}, group="ready")
    both = msgspec.structs.replace(
        alone,
        groups=("payments", "ready"),
        source=msgspec.structs.replace(alone.source, commits=alone.source.commits | ready.source.commits),
        target=msgspec.structs.replace(alone.target, groups=alone.target.groups | ready.target.groups),
        translations=ready.translations,
    )
    made = plan(both)
    assert planned(made) == [("ready", "ready")]
    assert made.not_planned == (LEFT,)
    assert exit_code(made) == 4


@pytest.mark.parametrize(
    "more",
    [
        {"translations": {0: exact(500, 490)}},
        {"checkpoints": {0: checkpoint(400, 390)}},
        {"partitions": 2, "source_commits": {0: 500, 1: 7}, "translations": {1: exact(7, 7)}},
        {"partitions": 2, "source_commits": {0: 500, 1: 7}, "checkpoints": {1: checkpoint(5, 5)}},
        {"source_commits": {0: 0}},
    ],
    ids=["by syncs or records", "by a checkpoint", "one partition", "one checkpoint", "nothing consumed"],
)
def test_what_anything_places_is_planned(more: dict[str, Any]) -> None:
    made = plan(new(**more))
    assert [group.group for group in made.groups] == ["payments"]
    assert made.not_planned == ()


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        # its consumers would start there, and what they pass over must be said
        ({"target_commits": {0: 700}}, "no-checkpoint"),
        ({"target_log": (0, 0)}, "not-mirrored"),
        ({"source": ClusterState.DOWN, "target_commits": {0: 700}}, "no-checkpoint"),
    ],
    ids=["a standing commit", "nothing mirrored", "source down"],
)
def test_other_gaps_stay_in_the_plan(more: dict[str, Any], reason: str) -> None:
    [group] = plan(new(**more)).groups
    assert [p.reason for p in group.partitions] == [reason]


def test_a_group_named_by_hand_is_planned_and_partial() -> None:
    made = plan(new(), PlanOptions(groups=("payments",)))
    assert planned(made) == [("payments", "partial")]
    assert exit_code(made) == 4


@pytest.mark.parametrize(("missing", "reason"), [("earliest", "at-log-start"), ("fail", "no-checkpoint")])
def test_a_policy_for_missing_positions_decides_instead(missing: str, reason: str) -> None:
    [group] = plan(new(), PlanOptions(missing=missing)).groups
    assert [p.reason for p in group.partitions] == [reason]


@pytest.mark.parametrize(
    "reading",
    [
        InternalTopicReading("primary.checkpoints.internal", "standby", False),
        InternalTopicReading("primary.checkpoints.internal", "standby", True),
        InternalTopicReading(
            "primary.checkpoints.internal", "standby", True, fault=Fault(29, "TOPIC_AUTHORIZATION_FAILED"), newest=1
        ),
    ],
    ids=["missing", "empty", "unreadable"],
)
def test_without_checkpoints_no_group_is_newer_than_they_are(reading: InternalTopicReading) -> None:
    assert planned(plan(new(reading))) == [("payments", "partial")]


def test_the_screen_names_what_is_left_behind_and_what_comes_next() -> None:
    text = plan_text(plan(new()))
    assert "1 group newer than the checkpoints" in text
    assert "next: wait for MM2's first checkpoint" in text
    assert "failover explain newer-than-checkpoints" in text
    # where nothing is left to write, consumers must not be sent off without it
    ready = plan(new(partitions=1, translations={0: exact(500, 500)}, target_commits={0: 500}))
    assert "start the consumers" in plan_text(ready)
    behind = msgspec.structs.replace(ready, not_planned=(LEFT,))
    assert "start the consumers" not in plan_text(behind)
