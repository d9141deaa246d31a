"""A plan made as a step."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

import msgspec

from failover.errors import Refused
from failover.report.values import at_most, count, things
from failover.runbook.kinds import Context, Kind, Result


class PlanStep(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``groups``: literal names; none: every group the flow's filters pick.

    ``precision``: the least accepted (exact, bounded or conservative). ``missing``: leave, earliest or fail.
    ``source_inactive``: a group with members on the source is refused. ``most_reread``: fail where more records than
    this would be read again (-1: no bound). ``most_missing``: likewise where the target lacks more, or nobody can tell.
    ``all_ready``: fail unless every group is ready, has nothing to do, or stands further on by what it consumed itself.
    ``exported``: a file of a step ``tail``: groups may pass the target's records that are in it.
    """

    groups: list[str] = []
    precision: str = "conservative"
    missing: str = "leave"
    source_inactive: bool = False
    most_reread: int = -1
    most_missing: int = -1
    all_ready: bool = False
    exported: str = ""


class PlanKind(Kind[PlanStep]):
    """Looks at both clusters and saves a plan, as ``failover plan`` does; writes nothing to either.

    Fails where no group is ready or partial, and where the bounds it is given are passed.
    """

    parameters = PlanStep
    results = {  # noqa: RUF012 - a class's constant
        "plan_id": "the plan's id, for execute",
        "ready": "groups that are ready",
        "partial": "groups of which something is left",
        "refused": "groups that are refused",
        "reread": "records that will be read again (estimate; unknown where the source is gone)",
        "skipped": "records that will be passed over, whatever the cause",
        "unreplicated": "records that the target does not have (unknown where nobody can tell)",
    }
    acts = False

    def preview(self, given: PlanStep, context: Context) -> str:
        found = self._made(given, context)
        return f"would save a plan: {_told(found)}"

    def run(self, given: PlanStep, context: Context) -> Result:
        from failover.planning.plan_file import encode_plan
        from failover.state.plans import save_plan

        plan = self._made(given, context)
        save_plan(context.reach.state, plan.id, encode_plan(plan))
        context.say(f"plan {plan.id}: {_told(plan)}")
        summary, counts = plan.summary, plan.summary.groups
        look = f"failover show {plan.id} says why"
        if counts.refused + counts.partial + counts.ready and not counts.ready + counts.partial:
            raise Refused(f"plan {plan.id}: no group is ready", hint=look)
        partial = counts.partial - sum(map(further_by_itself, plan.groups))
        if given.all_ready and counts.refused + partial:
            raise Refused(f"plan {plan.id}: {counts.refused} groups are refused, {partial} partial", hint=look)
        if 0 <= given.most_reread < (summary.reread if summary.reread is not None else summary.reread_max or 0):
            raise Refused(f"plan {plan.id}: more than {given.most_reread} records would be read again", hint=look)
        lost = summary.unreplicated
        if given.most_missing >= 0 and (lost is None or lost > given.most_missing):
            said = f"the target lacks {'an unknown number of' if lost is None else lost} records"
            raise Refused(f"plan {plan.id}: {said}, more than {given.most_missing}", hint=look)
        return {
            "plan_id": plan.id,
            "ready": counts.ready,
            "partial": counts.partial,
            "refused": counts.refused,
            "reread": summary.reread,
            "skipped": summary.skipped,
            "unreplicated": summary.unreplicated,
        }

    def _made(self, given: PlanStep, context: Context) -> Any:
        from failover.library.looking import take_snapshot
        from failover.library.planning import make_plan
        from failover.model.plan import PlanOptions
        from failover.state.tails import exported_tails

        reach = context.reach
        tails = exported_tails(given.exported, reach.target.alias)
        snapshot = take_snapshot(
            reach.flow,
            groups=given.groups,
            source_down=reach.source_down,
            source_timeout=reach.timeouts[0],
            target_timeout=reach.timeouts[1],
            settled={tp: tail.end for tp, tail in tails.items()},
        )
        options = PlanOptions(
            groups=tuple(given.groups),
            missing=given.missing,
            precision=given.precision,
            require_source_inactive=given.source_inactive,
        )
        return make_plan(
            snapshot, options=options, reason=f"{context.playbook} {context.run_id}", operator=context.operators[-1]
        )

    def by_hand(self, given: Mapping[str, Any]) -> str:
        groups = given.get("groups") or []
        named = [groups] if isinstance(groups, str) else [str(group) for group in groups]
        options = "".join(f" --group {shlex.quote(name)}" for name in named)
        options += " --require-source-inactive" if given.get("source_inactive") else ""
        options += " --exported TAIL" if given.get("exported") else ""
        return f"failover plan{options}"


def further_by_itself(group: Any) -> bool:
    """Says whether a group is partial only where it stands further on, by what it consumed there itself.

    On the way back that is usual: it read the old primary's last records, or the marker behind them, before it left.
    """
    from failover.model.plan import Verdict
    from failover.planning.verdict import plain

    odd = [p for p in group.partitions if not plain(p)]
    held = all(p.reason == "would-rewind" and p.skipped == 0 for p in odd)
    return group.verdict is Verdict.PARTIAL and bool(odd) and held


def _told(plan: Any) -> str:
    counts, summary = plan.summary.groups, plan.summary
    again = at_most(summary.reread, summary.reread_max).replace("<=", "at most")
    lost = summary.unreplicated
    return ", ".join(
        [
            f"{things(counts.ready, 'group')} ready, {counts.partial} partial, {counts.refused} refused",
            f"{'an unknown number of' if again == '-' else again} records read again",
            f"{count(summary.skipped)} skipped",
            f"{'an unknown number' if lost is None else count(lost)} not on the target",
        ]
    )


KIND = PlanKind()
