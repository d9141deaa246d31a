"""A plan tried out on groups of its own, beside the live ones."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from failover.errors import StepFailed
from failover.model.groups import Commit
from failover.model.names import Fault, TopicPartition
from failover.runbook.kinds import Context, Kind, Result, Settled
from failover.runbook.steps.drill_groups import delete, drill_group, mark, standing
from failover.runbook.steps.noted import noted
from failover.runbook.steps.verify import VerificationFailed

if TYPE_CHECKING:
    from failover.inventory.following import Found, Place
    from failover.kafka.port import CommitResults
    from failover.model.plan import Plan, PlannedGroup, PlannedPartition


class GroupShadow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``plan``: its id. ``groups``: literal names in it; none: all. ``records``: compared on each side of an offset."""

    plan: str
    groups: list[str] = []
    records: int = 100


class GroupShadowKind(Kind[GroupShadow]):
    """Commits a plan's offsets to groups ``drill.GROUP`` on the target, reads there, compares with the source, deletes.

    Neither the groups themselves nor any topic are touched. Keys, values, headers and timestamps are compared around
    each position; contents stay in memory. What an earlier drill left behind that was killed is deleted first, told by
    a mark in its offsets; a group ``drill.GROUP`` of somebody else's is left alone and the step fails.
    """

    parameters = GroupShadow
    results = {  # noqa: RUF012 - a class's constant
        "groups": "groups that were tried",
        "partitions": "partitions that were tried",
        "compared": "records of the target that were found to be the source's",
        "reread": "records behind the positions that had been consumed, as far as was read",
        "ready_seconds": "from the first commit until every group had its first records",
        "missing_records": "records the target lacks: lost if the source were gone (RPO)",
        "missing_seconds": "how old the oldest of them is",
        "left_out": "partitions not tried: the plan starts them elsewhere and says why",
        "cleaned": "groups deleted that an earlier drill had left",
    }
    undoes = True

    def preview(self, given: GroupShadow, context: Context) -> str:
        places, _ = _places(given, context, _plan(given, context))
        left, others = standing(context)
        taken = _taken(places, others)
        if taken:
            raise _Taken(taken, context.reach.flow.target)
        cleaned = f"delete {len(left)} groups an earlier drill left, " if left else ""
        return (
            f"would {cleaned}commit {len(places)} offsets of {len(_groups(places))} groups to drill.GROUP on "
            f"{context.reach.flow.target}, compare {given.records} records around each, and delete those groups"
        )

    def run(self, given: GroupShadow, context: Context) -> Result:
        from failover.inventory.following import compare, read_first

        plan = _plan(given, context)
        places, left_out = _places(given, context, plan)
        groups = _groups(places)
        left, others = standing(context)
        cleaned = delete(context, left)
        if cleaned:
            context.say(f"deleted {cleaned} groups that an earlier drill had left on {context.reach.flow.target}")
        if taken := _taken(places, others):
            raise _Taken(taken, context.reach.flow.target)
        context.note(groups=[drill_group(name) for name in groups])
        try:
            began = time.monotonic()
            self._commit(places, context)
            read_first(context.reach.target, places)
            ready = time.monotonic() - began
            found = compare(context.reach.source, context.reach.target, places, given.records)
        finally:
            delete(context, [drill_group(name) for name in groups])
        _judge(given, found)
        records, seconds = _missing(plan)
        result: dict[str, Any] = {
            "groups": len(groups),
            "ready_seconds": round(ready, 2),
            "missing_records": records,
            "missing_seconds": seconds,
            "compared": sum(each.followed.compared for each in found),
            "partitions": len(found),
            "reread": sum(each.followed.reread for each in found),
            "left_out": left_out,
            "cleaned": cleaned,
        }
        lacks = "an unknown number of" if records is None else records
        context.say(
            f"{len(groups)} groups stand in {result['ready_seconds']:g} s, {result['compared']} records are the "
            f"source's; {context.reach.flow.target} lacks {lacks} records"
            + (f"; {left_out} partitions are left out: failover show {given.plan}" if left_out else "")
        )
        return result

    def settle(self, given: GroupShadow, context: Context) -> Settled:  # noqa: ARG002
        return Settled(done=False)  # it begins with deleting what it left

    def undo(self, given: GroupShadow, context: Context) -> str:  # noqa: ARG002
        mine = set(noted(context, "groups"))
        left, _ = standing(context, mine)
        gone = delete(context, [name for name in left if name in mine])
        return f"deleted {gone} groups" if gone else "no group is left"

    def _commit(self, places: Sequence[Place], context: Context) -> None:
        """Commits and reads back. Raises ``StepFailed``."""
        target, tag = context.reach.target, mark(context)
        commits: dict[str, dict[TopicPartition, Commit]] = {}
        for place in places:
            commits.setdefault(drill_group(place.group), {})[place.target] = Commit(place.position, tag)
        refused: dict[str, str] = {}

        def done(name: str, answer: CommitResults | Fault) -> None:
            if isinstance(answer, Fault):
                refused[name] = str(answer)
                return
            for tp, fault in answer.items():
                if fault is not None:
                    refused[name] = f"{tp}: {fault}"

        target.commit(commits, done)
        if refused:
            said = "; ".join(f"{name}: {why}" for name, why in list(refused.items())[:5])
            raise StepFailed(
                f"{context.reach.flow.target} takes no offsets for {len(refused)} groups: {said}",
                hint="the right to READ groups drill.* and their topics",
            )
        standing_now = target.committed(commits, lambda name, found: all(tp in found for tp in commits.get(name, ())))
        for place in places:
            answer = standing_now[drill_group(place.group)]
            commit = None if isinstance(answer, Fault) else answer.get(place.target)
            if commit is None or commit.offset != place.position:
                raise VerificationFailed(
                    f"{drill_group(place.group)} {place.target} was committed at {place.position} and reads back "
                    f"{answer if isinstance(answer, Fault) else commit and commit.offset}"
                )

    def by_hand(self, given: Mapping[str, Any]) -> str:
        return f"failover plan; failover show {given.get('plan', 'PLAN')} -v"


class _Taken(StepFailed):
    def __init__(self, groups: Sequence[str], alias: str) -> None:
        super().__init__(
            f"{len(groups)} groups on {alias} are not this drill's: {', '.join(groups[:5])}",
            hint="another drill is under way, or somebody uses these names: they are left alone",
        )


def _plan(given: GroupShadow, context: Context) -> Plan:
    from failover.library.planning import saved_plan

    return saved_plan(context.reach.state, given.plan)


def _places(given: GroupShadow, context: Context, plan: Plan) -> tuple[list[Place], int]:
    """Finds where each group would stand, and counts positions left out. Raises ``StepFailed`` where all are.

    A drill on a source that is not to be contacted compares nothing.
    """
    if context.reach.source_down:
        raise StepFailed("the source is not to be contacted, so there is nothing to compare with")
    wanted = set(given.groups)
    if unknown := wanted - {group.group for group in plan.groups}:
        raise StepFailed(f"plan {plan.id} has no group {min(unknown)}", hint=f"failover show {plan.id}")
    asked = [
        _place(group, each)
        for group in plan.groups
        if not wanted or group.group in wanted
        for each in group.when_free or group.partitions
        if each.source_committed is not None
    ]
    places = [place for place in asked if place is not None]
    if not places:
        raise StepFailed(f"plan {plan.id} has no offset that could be tried", hint=f"failover show {plan.id} says why")
    return places, len(asked) - len(places)


def _judge(given: GroupShadow, found: Sequence[Found]) -> None:
    """Raises ``VerificationFailed`` for positions that are wrong, ``StepFailed`` for those nobody can tell of."""
    wrong = [each for each in found if each.followed.fault]
    if wrong:
        said = "; ".join(
            f"{each.place.group} {each.place.target} at {each.followed.at}: {each.followed.fault}" for each in wrong[:5]
        )
        raise VerificationFailed(
            f"{len(wrong)} of {len(found)} positions do not go on where the source's consumers stand: {said}",
            hint=f"failover show {given.plan} -v tells how each was found; do not execute it as it is",
        )
    unread = [each for each in found if each.unread]
    if unread:
        raise StepFailed(
            f"{len(unread)} of {len(found)} positions could not be compared: {unread[0].unread}",
            hint="READ on the topics of both clusters is needed",
        )


def _groups(places: Sequence[Place]) -> list[str]:
    return list(dict.fromkeys(place.group for place in places))


def _taken(places: Sequence[Place], others: Sequence[str]) -> list[str]:
    own = {drill_group(name) for name in _groups(places)}
    return [name for name in others if name in own]


def _place(group: PlannedGroup, each: PlannedPartition) -> Place | None:
    """Gives where a group would read one partition on both clusters.

    None where the plan does not say, or does not mean the source's position: a standing commit that is ahead stays, and
    what the target does not hold is passed over. Its reasons and its counts tell of both.
    """
    from failover.inventory.following import Place

    after = each.position_after
    if after.by == "auto.offset.reset" or after.offset is None or each.source_committed is None:
        return None
    if each.ahead is not None or each.skipped:
        return None
    return Place(
        group.group,
        TopicPartition(each.source_topic, each.partition),
        each.source_committed,
        TopicPartition(each.topic, each.partition),
        after.offset,
        each.reread_max or each.reread or 0,
    )


def _missing(plan: Plan) -> tuple[int | None, float | None]:
    if plan.unreplicated is None:
        return None, None
    missing = [each for each in plan.unreplicated if each.records]
    ages = [each.seconds for each in missing if each.seconds is not None]
    oldest = round(max(ages), 1) if ages else None if missing else 0.0
    return sum(each.records for each in missing), oldest


KIND = GroupShadowKind()
