"""`failover execute`: commits a plan's offsets to the target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from failover.cli.frame import Command, Settings, confirm_typed, format_option, pass_settings, require_terminal
from failover.cli.options import plan_options, to_options, typed
from failover.cli.params import DURATION
from failover.cli.wiring import choose_flow, load, open_cluster, state_folder, utc_now
from failover.errors import GroupNotFound, PlanNotFound, Refused, UsageError

if TYPE_CHECKING:
    from failover.config.flow import Config, SelectedFlow
    from failover.execution.commit import Timing
    from failover.execution.session import Past, Resumed
    from failover.kafka.port import Cluster
    from failover.model.plan import Plan
    from failover.state.folder import StateFolder

_SELECTING = ("--group", "--exclude-group")
_PLANNING = ("--group", "--group-pattern", "--groups-file", "--all")


@click.command(
    cls=Command, params=[click.Argument(["plan_reference"], required=False, metavar="[PLAN]"), *plan_options()]
)
@click.option("--dry-run", is_flag=True, help="Check the plan against the clusters now; write nothing.")
@click.option("--yes", is_flag=True, help="Do not ask before writing.")
@click.option("--only-ready", is_flag=True, help="Write only groups whose verdict is ready.")
@click.option("--wait", type=DURATION, default=0.0, help="Try refused groups again for so long, until they are empty.")
@click.option(
    "--settle", type=DURATION, default=6.0, help="First watch for so long that commits stand still (default 6s)."
)
@click.option("--resume", metavar="RUN", help="Go on with an execution that was interrupted or left groups.")
@click.option("--ignore-lock", is_flag=True, help="Go on although another process alive holds the lock.")
@format_option("table", "json", "yaml")
@pass_settings
def command(
    settings: Settings,
    /,
    *,
    plan_reference: str | None,
    dry_run: bool,
    yes: bool,
    only_ready: bool,
    wait: float,
    settle: float,
    resume: str | None,
    ignore_lock: bool,
    **values: Any,
) -> int:
    """Commits offsets to the target's __consumer_offsets.

    PLAN is an id or a file. Without it and without a group option: the newest plan of this flow
    that is neither expired nor done. With --group, --group-pattern, --groups-file or --all: plans
    first. With PLAN, --group and --exclude-group choose within it. The same command again continues
    a plan that was executed in part: what is done is checked, not written.
    """
    from failover.execution.commit import Timing
    from failover.execution.session import find_resumed
    from failover.library.flows import runs_topic

    if not dry_run:
        require_terminal(assume_yes=yes)
    config = load(settings)
    state = state_folder(settings, config)
    if not dry_run:
        state.require_usable()
    given = typed(click.get_current_context(), plan_options())
    resumed: Resumed | None = None
    if resume is not None:
        if plan_reference is not None or any(name != "--reason" for name in given):
            raise UsageError(
                "--resume goes on with what an execution was asked to do: no plan and no plan option goes with it",
                hint=f"failover execute --resume {resume}",
            )
        resumed = find_resumed(state, resume)
    named = resumed.plan if resumed is not None else _named(state, plan_reference)
    if named is not None and settings.source is None and settings.target is None:
        settings.source, settings.target = named.flow.source, named.flow.target
    selected = choose_flow(settings, config, allow_reverse=True)
    if named is not None:
        _require_flow(named, selected)
    if resumed is not None:
        plan, wanted = resumed.plan, {group.group for group in resumed.record.groups}
    else:
        plan, wanted = _chosen(
            settings, config, selected, state, named=named, given=given, values=values, when_free=wait > 0
        )
    if only_ready:
        wanted = _ready(plan, wanted)
    return _execute(
        settings,
        selected,
        state,
        plan=plan,
        wanted=wanted,
        timing=Timing(settle, wait),
        dry_run=dry_run,
        yes=yes,
        reason=values["reason"],
        resumed=resumed,
        topic=runs_topic(config, selected.source),
        ignore_lock=ignore_lock,
    )


def _named(state: StateFolder, reference: str | None) -> Plan | None:
    """Reads the plan that PLAN names; None without one."""
    from failover.planning.plan_file import decode_plan
    from failover.state.plans import find_plan, read_plan

    return None if reference is None else decode_plan(read_plan(find_plan(state, reference)), reference)


def _chosen(
    settings: Settings,
    config: Config,
    selected: SelectedFlow,
    state: StateFolder,
    *,
    named: Plan | None,
    given: list[str],
    values: dict[str, Any],
    when_free: bool,
) -> tuple[Plan, set[str]]:
    """Finds or makes the plan, and the groups of it that are meant. ``given``: the plan options that were typed."""
    if named is None and any(name in _PLANNING for name in given):
        from failover.cli.plan import make

        plan, _ = make(
            settings, config, selected, state, to_options(values), ttl=values["ttl"], reason=values["reason"]
        )
        return plan, {group.group for group in plan.groups}
    allowed = (*_SELECTING, "--reason") if named is not None else ("--reason",)
    wrong = [name for name in given if name not in allowed]
    if wrong:
        raise UsageError(
            f"{wrong[0]} decides what a plan contains and cannot change one that is made",
            hint="give it to failover plan; or leave PLAN out and say --group or --all, which plans first",
        )
    plan = named or _newest(settings, state, selected, when_free=when_free)
    return plan, _within(plan, values["groups"], values["exclude_groups"])


def _newest(settings: Settings, state: StateFolder, selected: SelectedFlow, *, when_free: bool) -> Plan:
    """Finds the newest plan of the flow that can still be executed, and names it with its age.

    ``when_free``: groups that a plan refused for their state are still to be executed.
    """
    from failover.cli.plan import tell_further
    from failover.execution.earlier import begun, complete
    from failover.execution.session import past
    from failover.planning.plan_file import decode_plan
    from failover.report.values import age, things
    from failover.state.plans import newest_plans, read_plan

    now = utc_now()
    passed: list[str] = []
    for path in newest_plans(state):
        plan = decode_plan(read_plan(path), str(path))
        if (plan.flow.source, plan.flow.target) != (selected.source, selected.target):
            continue
        before = past(state, plan)
        if before.rolled_back:
            passed.append(f"{plan.id} was rolled back since it was executed")
            continue
        if complete(plan, before.runs, when_free=when_free):
            passed.append(f"{plan.id} is executed completely")
            continue
        if not begun(before.runs) and now >= plan.expires:
            passed.append(f"{plan.id} expired {age(plan.expires, now)}")
            continue
        if (passed or before.runs) and not _commits(plan, {group.group for group in plan.groups}, when_free=True):
            passed.append(f"{plan.id} has nothing to commit")
            continue
        if passed:
            more = f" (and {things(len(passed) - 1, 'more plan')} in between)" if len(passed) > 1 else ""
            settings.say(f"warning: this is NOT the newest plan of {selected.name}: the newest, {passed[0]}{more}")
        settings.say(
            f"{'OLDER ' if passed else ''}plan {plan.id}, made {age(plan.created, now)} by {plan.operator}: "
            f"{things(len(plan.groups), 'group')}, {things(plan.summary.partitions.commit, 'offset')} to commit"
        )
        tell_further(settings, state, selected, plan)
        return plan
    last = f": the newest, {passed[0]}" if passed else ""
    raise PlanNotFound(f"there is no usable plan for {selected.name}{last}", hint="failover plan makes one")


def _require_flow(plan: Plan, selected: SelectedFlow) -> None:
    if (plan.flow.source, plan.flow.target) != (selected.source, selected.target):
        raise UsageError(
            f"plan {plan.id} is for {plan.flow.source}->{plan.flow.target}, not {selected.name}",
            hint=f"add --source {plan.flow.source} --target {plan.flow.target}; or neither: the plan names its flow",
        )


def _within(plan: Plan, groups: tuple[str, ...], excluded: tuple[str, ...]) -> set[str]:
    """Selects within a plan; raises ``GroupNotFound`` for a name that is not in it."""
    names = {group.group for group in plan.groups}
    for name in (*groups, *excluded):
        if name not in names:
            raise GroupNotFound(
                f"group {name} is not in plan {plan.id}",
                hint=f"failover show {plan.id} lists its groups; or plan it anew",
            )
    chosen = (set(groups) if groups else names) - set(excluded)
    if names and not chosen:
        raise UsageError(
            f"--group and --exclude-group leave no group of plan {plan.id}", hint=f"failover show {plan.id} lists them"
        )
    return chosen


def _ready(plan: Plan, wanted: set[str]) -> set[str]:
    """Selects the ready groups; raises ``Refused`` where there is none and others are held back for it."""
    held = [group.group for group in plan.groups if group.group in wanted and group.verdict in ("partial", "refused")]
    ready = {group.group for group in plan.groups if group.group in wanted and group.verdict == "ready"}
    if held and not ready:
        more = f" and {len(held) - 3} more" if len(held) > 3 else ""
        raise Refused(
            f"no group of plan {plan.id} is ready ({', '.join(held[:3])}{more}): --only-ready writes nothing",
            hint=f"failover show {plan.id} says why",
        )
    return ready


def _execute(
    settings: Settings,
    selected: SelectedFlow,
    state: StateFolder,
    *,
    plan: Plan,
    wanted: set[str],
    timing: Timing,
    dry_run: bool,
    yes: bool,
    reason: str | None,
    resumed: Resumed | None,
    topic: str | None,
    ignore_lock: bool,
) -> int:
    """Checks, asks, executes, prints what became of it; gives the exit code."""
    from failover.cli.running import run_session
    from failover.cli.shared import locked, look
    from failover.execution.record import exit_code
    from failover.execution.session import Session, check, past
    from failover.report.execution_text import execution_text
    from failover.report.plan_text import before_after
    from failover.report.values import clock

    cluster = open_cluster(settings, selected, selected.target)
    try:
        if dry_run:
            before = past(state, plan, look(cluster, topic))
            return _dry_run(settings, cluster, plan, wanted, before=before, when_free=timing.wait > 0)
        with locked(settings, cluster, topic, f"execute plan {plan.id}", ignore=ignore_lock) as common:
            before = past(state, plan, common.shared)
            for line in before.unreadable:
                settings.say(f"warning: an execution of this plan cannot be read and is not considered: {line}")
            check(plan, cluster, before, now=utc_now(), when_free=timing.wait > 0)
            if before.text(plan):
                settings.say(before.text(plan))
            if _commits(plan, wanted, when_free=timing.wait > 0):
                valid = f"plan {plan.id} stays valid until {clock(plan.expires, plan.created)}"
                confirm_typed(before_after(plan, wanted), plan.target.alias, assume_yes=yes, declined=valid)
            else:
                settings.say(f"plan {plan.id} has nothing to commit: each of these groups is left as it stands")
            execution = run_session(
                settings,
                common,
                plan.reason if reason is None else reason,
                lambda ways: Session.of_plan(
                    plan,
                    state,
                    cluster,
                    ways,
                    wanted=sorted(wanted),
                    timing=timing,
                    before=before,
                    resumed=resumed,
                ),
                again=lambda run_id: f"failover execute --resume {run_id} goes on",
            )
    finally:
        cluster.close()
    settings.emit_value(execution, {"table": lambda: execution_text(execution, plan, verbosity=settings.verbosity)})
    return exit_code(execution)


def _commits(plan: Plan, wanted: set[str], *, when_free: bool) -> bool:
    """Says whether there is anything to ask about: a commit in one of the groups, also of those freed while waiting."""
    from failover.execution.aims import freed
    from failover.model.plan import Action

    groups = (freed(plan) if when_free else plan).groups
    return any(p.action is Action.COMMIT for group in groups if group.group in wanted for p in group.partitions)


def _dry_run(
    settings: Settings, cluster: Cluster, plan: Plan, wanted: set[str], *, before: Past, when_free: bool
) -> int:
    """Re-checks the plan against the target now and shows what would be written; writes nothing."""
    from failover.execution.aims import freed
    from failover.execution.rehearsal import rehearse
    from failover.execution.session import check
    from failover.report.execution_text import rehearsal_text

    check(plan, cluster, before, now=utc_now(), when_free=when_free)
    plan = freed(plan) if when_free else plan
    rehearsal = rehearse(plan, cluster, wanted, utc_now(), before.writes())
    settings.emit_value(rehearsal, {"table": lambda: rehearsal_text(rehearsal, plan)})
    return rehearsal.exit_code
