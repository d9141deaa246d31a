"""Pure: what changed on the target since the plan, and whether it matters.

Only what would break a guarantee refuses: a commit that would move a group back, that would lie
outside the log, or that belongs to a topic that was made anew. Everything else is named and
allowed: the plan's offset stays right when the source's log grew, when the group's commit
expired, or when MirrorMaker 2's own group offset sync moved it forward but not past the plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import msgspec

from failover.errors import StalePlan
from failover.model.cluster import LogRange
from failover.model.groups import Commit
from failover.model.names import TopicPartition
from failover.model.plan import Action, Plan, PlannedGroup, PlannedPartition


class Difference(msgspec.Struct, frozen=True):
    """Is one thing that is no longer as the plan saw it.

    ``refuses``: committing would break a guarantee. ``code``: the reason code then.
    """

    partition: TopicPartition
    code: str
    text: str
    refuses: bool


class TargetNow(msgspec.Struct, frozen=True):
    """Is a fresh look at the target. ``topic_ids`` lacks topics that are gone."""

    topic_ids: Mapping[str, str | None]
    logs: Mapping[TopicPartition, LogRange]


def check_usable(
    plan: Plan, *, now: datetime, target_cluster_id: str | None, written_before: bool, complete: bool
) -> None:
    """Raises ``StalePlan`` when nothing of the plan may be executed any more.

    ``written_before``: an execution of this plan has begun to write, so its expiry counts no
    more; ``complete``: one has finished everything, so the plan is used up.
    """
    if complete:
        raise StalePlan(
            f"plan {plan.id} was executed completely already",
            hint="failover history shows it; failover plan makes a new one",
        )
    if now >= plan.expires and not written_before:
        raise StalePlan(
            f"plan {plan.id} expired at {plan.expires:%Y-%m-%d %H:%M:%S} UTC", hint="failover plan makes a new one"
        )
    if plan.target.cluster_id != target_cluster_id:
        raise StalePlan(
            f"plan {plan.id} was made for cluster {plan.target.cluster_id}, but {plan.target.alias} now leads to "
            f"cluster {target_cluster_id}",
            hint="check the bootstrap servers of that alias; failover plan makes a new plan",
        )


def differences(
    plan: Plan, group: PlannedGroup, commits: Mapping[TopicPartition, Commit], now: TargetNow
) -> list[Difference]:
    """Compares each partition the plan commits with what the target holds now."""
    found = []
    for planned in group.partitions:
        if planned.action is Action.COMMIT and planned.offset is not None:
            tp = TopicPartition(planned.topic, planned.partition)
            difference = _place(plan, tp, planned.offset, now) or _standing(
                planned, tp, planned.offset, commits.get(tp)
            )
            if difference is not None:
                found.append(difference)
    return found


def _place(plan: Plan, tp: TopicPartition, offset: int, now: TargetNow) -> Difference | None:
    """Checks that the offset still names the same place: same topic, inside its log."""
    if tp.topic not in now.topic_ids:
        return Difference(tp, "topic-missing", f"topic {tp.topic} is gone from the target", True)
    planned_id, current_id = plan.topic_ids.get(tp.topic), now.topic_ids[tp.topic]
    if planned_id is not None and current_id is not None and planned_id != current_id:
        return Difference(
            tp,
            "target-recreated",
            f"topic {tp.topic} was deleted and made anew since the plan: its offsets mean nothing now",
            True,
        )
    log = now.logs.get(tp)
    if log is None:
        return Difference(tp, "target-unavailable", f"the log of {tp} cannot be read", True)
    if offset > log.end:
        return Difference(
            tp,
            "beyond-log-end",
            f"{tp} now ends at {log.end}, before the planned offset {offset}: it was truncated",
            True,
        )
    if offset < log.start:
        return Difference(
            tp,
            "target-truncated",
            f"{tp} now starts at {log.start}: retention removed {log.start - offset} records from the planned offset "
            f"{offset} on, and auto.offset.reset would decide",
            True,
        )
    return None


def _standing(planned: PlannedPartition, tp: TopicPartition, offset: int, commit: Commit | None) -> Difference | None:
    """Compares the commit that stands now with the one the plan saw."""
    before, current = planned.target_committed, commit.offset if commit is not None else None
    if current in (before, offset):
        return None
    if current is None:
        return Difference(tp, "expired", f"the group's commit on {tp} ({before}) is gone: no effect on the plan", False)
    if current > offset and (before is None or current > before):
        return Difference(
            tp,
            "would-rewind",
            f"the group moved on {tp} from {_text(before)} to {current} since the plan: committing {offset} would move it "
            f"back by {current - offset} records",
            True,
        )
    if before is not None and current < before:
        if offset < current:
            return Difference(
                tp, "moved", f"the commit on {tp} moved from {before} to {current}: no effect on the plan", False
            )
        return Difference(
            tp,
            "commits-moving",
            f"somebody set {tp} back from {before} to {current} since the plan: committing {offset} would undo that",
            True,
        )
    return Difference(
        tp,
        "moved",
        f"the commit on {tp} moved from {_text(before)} to {current}, still not past the planned {offset}",
        False,
    )


def _text(offset: int | None) -> str:
    return "nothing" if offset is None else str(offset)
