"""A plan executed as a step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from failover.errors import StepFailed
from failover.runbook.kinds import Context, Kind, Result, Settled

if TYPE_CHECKING:
    from failover.model.plan import Plan


class ExecuteStep(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``plan``: its id. ``wait``: refused groups are tried again for so long until they are empty.

    ``settle``: commits are watched standing still for so long first. ``earlier``: an older plan's id; where the target
    held the same in both they stood still, and the time between them counts.
    ``all_groups``: fail where a group is left, but for one that stands further on by what it consumed itself.
    """

    plan: str
    wait: float = 0.0
    settle: float = 6.0
    earlier: str = ""
    all_groups: bool = True


class NotAllWritten(StepFailed):
    """Says that an execution left something; the exit code is the execution's own."""

    def __init__(self, message: str, *, exit_code: int, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.exit_code = exit_code


class ExecuteKind(Kind[ExecuteStep]):
    """Commits a plan's offsets to the target, as ``failover execute`` does; rolled back when the run turns back.

    Cut short, it goes on with the same plan: what is written is checked and not written again.
    """

    parameters = ExecuteStep
    results = {  # noqa: RUF012 - a class's constant
        "execution_id": "the execution's id, for verify and rollback",
        "outcome": "done, partial",
        "committed": "partitions written, or found at the planned value",
    }
    undoes = True

    def preview(self, given: ExecuteStep, context: Context) -> str:
        from failover.library.planning import saved_plan

        plan = saved_plan(context.reach.state, given.plan)
        return f"would commit {plan.summary.partitions.commit} offsets of plan {plan.id} to {plan.target.alias}"

    def run(self, given: ExecuteStep, context: Context) -> Result:
        from failover.execution.record import exit_code
        from failover.library.executing import execute
        from failover.library.planning import saved_plan
        from failover.model.plan import Verdict
        from failover.runbook.steps.plan import further_by_itself

        reach = context.reach
        plan = saved_plan(reach.state, given.plan)
        settle = given.settle
        if given.earlier:
            settle = left_to_watch(saved_plan(reach.state, given.earlier), plan, given.settle)
            if settle < given.settle:
                context.say(f"commits on {plan.target.alias} stood still since plan {given.earlier}")
        execution = execute(
            plan,
            reach.flow,
            state_dir=reach.state.path,
            settle_seconds=settle,
            wait_seconds=min(given.wait, context.remaining()),
            reason=f"{context.playbook} {context.run_id}",
            operator=context.operators[-1],
            target_timeout=reach.timeouts[1],
            warn=context.say,
        )
        context.note(execution_id=execution.id)
        code = exit_code(execution)
        context.say(f"execution {execution.id}: {execution.outcome}")
        partial = [group for group in plan.groups if group.verdict is Verdict.PARTIAL]
        further = [group.group for group in partial if further_by_itself(group)]
        left = [group.group for group in execution.groups if group.reasons or group.message]
        left += [group.group for group in partial if group.group not in further]
        # nothing written at all (3) is as good where that is what every group needs
        in_place = code in (3, 4) and further and not left
        if code and not in_place and (given.all_groups or code != 4):
            named = ", ".join(dict.fromkeys(left[:5])) or "see its record"
            raise NotAllWritten(
                f"execution {execution.id} is {execution.outcome}: {named}",
                exit_code=code,
                hint=f"failover show {execution.id}",
            )
        return _result(execution)

    def settle(self, given: ExecuteStep, context: Context) -> Settled:
        from failover.execution.runs import runs_of_plan
        from failover.model.execution import Outcome

        done = [each for each in runs_of_plan(context.reach.state, given.plan)[0] if each.outcome is Outcome.DONE]
        return Settled(done=True, result=_result(done[-1])) if done else Settled(done=False)

    def undo(self, given: ExecuteStep, context: Context) -> str:
        from failover.execution.record import exit_code
        from failover.execution.rollback import written_groups
        from failover.execution.runs import runs_of_plan
        from failover.library.undoing import roll_back

        reach = context.reach
        runs, unreadable = runs_of_plan(reach.state, given.plan)
        if unreadable:
            raise StepFailed(f"a record cannot be read: {unreadable[0]}", hint="failover history")
        said = []
        for execution in reversed(runs):
            if not written_groups(execution):
                continue
            undone = roll_back(
                execution,
                reach.flow,
                reach.target,
                reach.state,
                reason=f"{context.playbook} {context.run_id} turned back",
                operator=context.operators[-1],
                warn=context.say,
            )
            if exit_code(undone):
                raise StepFailed(
                    f"the roll back {undone.id} of {execution.id} is {undone.outcome}",
                    hint=f"failover show {undone.id}",
                )
            said.append(f"{execution.id} by {undone.id}")
        return f"rolled back {', '.join(said)}" if said else "nothing had been written"

    def by_hand(self, given: Mapping[str, Any]) -> str:
        return f"failover execute {given.get('plan', 'PLAN')}"


def left_to_watch(earlier: Plan, plan: Plan, seconds: float) -> float:
    """Says for how long commits are to be watched where a plan from before shows what the target held then.

    Less by the time between both, where they found the same commits for every group of the later one.
    """

    def held(found: Plan) -> dict[str, dict[tuple[str, int], int | None]]:
        return {
            group.group: {(p.topic, p.partition): p.target_committed for p in group.partitions}
            for group in found.groups
        }

    before = held(earlier)
    if any(before.get(group) != commits for group, commits in held(plan).items()):
        return seconds
    return min(seconds, max(0.0, seconds - (plan.created - earlier.created).total_seconds()))


def _result(execution: Any) -> Result:
    from failover.model.execution import Status

    in_place = (Status.COMMITTED, Status.UNCHANGED)
    return {
        "execution_id": execution.id,
        "outcome": str(execution.outcome),
        "committed": sum(p.status in in_place for group in execution.groups for p in group.partitions),
    }


KIND = ExecuteKind()
