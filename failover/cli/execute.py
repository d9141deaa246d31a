"""`failover execute`: commits a plan's offsets to the target."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from failover.cli.frame import Command, Settings, confirm_typed, format_option, pass_settings
from failover.cli.options import plan_options, to_options, typed
from failover.cli.params import DURATION
from failover.cli.progress import ProgressBar
from failover.cli.wiring import choose_flow, load, open_cluster, operator, state_folder, utc_now
from failover.errors import GroupNotFound, PlanNotFound, UsageError

if TYPE_CHECKING:
    from failover.config.flow import SelectedFlow
    from failover.kafka.port import Cluster
    from failover.model.execution import Execution
    from failover.model.plan import Plan
    from failover.state.folder import StateFolder

_SELECTING = ("--group", "--exclude-group")
_PLANNING = ("--group", "--group-pattern", "--all")


@click.command(
    cls=Command, params=[click.Argument(["plan_reference"], required=False, metavar="[PLAN]"), *plan_options()]
)
@click.option("--dry-run", is_flag=True, help="Check the plan against the clusters now; write nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--only-ready", is_flag=True, help="Only groups whose verdict is ready.")
@click.option(
    "--wait", type=DURATION, default=0.0, metavar="D", help="Keep trying refused groups until they are empty."
)
@click.option(
    "--settle", type=DURATION, default=6.0, show_default="6s", metavar="D", help="First watch that commits stand still."
)
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
    **values: Any,
) -> int:
    """Commits offsets to the target's __consumer_offsets.

    PLAN is an id or a file. Without it and without a group option: the newest plan of this flow
    that is neither expired nor done. With --group, --group-pattern or --all: plans first.
    """
    config = load(settings)
    selected = choose_flow(settings, config, allow_reverse=True)
    state = state_folder(settings, config)
    given = typed(click.get_current_context(), plan_options())
    if plan_reference is None and any(name in _PLANNING for name in given):
        from failover.cli.plan import make

        plan, _ = make(
            settings, config, selected, state, to_options(values), ttl=values["ttl"], reason=values["reason"]
        )
        wanted = {group.group for group in plan.groups}
    else:
        allowed = _SELECTING if plan_reference is not None else ()
        wrong = [name for name in given if name not in allowed]
        if wrong:
            raise UsageError(
                f"{wrong[0]} decides what a plan contains and cannot change one that is made",
                hint="give it to failover plan, or together with --group or --all",
            )
        plan = _saved(state, selected, plan_reference)
        wanted = _within(plan, values["groups"], values["exclude_groups"])
    if only_ready:
        wanted &= {group.group for group in plan.groups if group.verdict == "ready"}
    return _execute(
        settings,
        selected,
        state,
        plan,
        wanted,
        dry_run=dry_run,
        yes=yes,
        wait=wait,
        settle=settle,
        reason=values["reason"],
    )


def _saved(state: StateFolder, selected: SelectedFlow, reference: str | None) -> Plan:
    """Finds the plan to execute; without a reference the newest usable one of this flow."""
    from failover.execution.runs import runs_of_plan, used_up
    from failover.planning.plan_file import decode_plan
    from failover.state.plans import find_plan, newest_plans, read_plan

    if reference is not None:
        plan = decode_plan(read_plan(find_plan(state, reference)))
        if (plan.flow.source, plan.flow.target) != (selected.source, selected.target):
            raise UsageError(
                f"plan {plan.id} is for {plan.flow.source}->{plan.flow.target}, not {selected.name}",
                hint=f"add --source {plan.flow.source} --target {plan.flow.target}",
            )
        return plan
    now = utc_now()
    for path in newest_plans(state):
        plan = decode_plan(read_plan(path))
        if (plan.flow.source, plan.flow.target) != (selected.source, selected.target):
            continue
        runs = runs_of_plan(state, plan.id)
        if not used_up(runs) and (runs or now < plan.expires):
            return plan
    raise PlanNotFound(f"there is no usable plan for {selected.name}", hint="failover plan makes one")


def _within(plan: Plan, groups: tuple[str, ...], excluded: tuple[str, ...]) -> set[str]:
    """Selects within a plan; raises ``GroupNotFound`` for a name that is not in it."""
    names = {group.group for group in plan.groups}
    for name in (*groups, *excluded):
        if name not in names:
            raise GroupNotFound(
                f"group {name} is not in plan {plan.id}",
                hint=f"failover show {plan.id} lists its groups; or plan it anew",
            )
    return (set(groups) if groups else names) - set(excluded)


def _execute(
    settings: Settings,
    selected: SelectedFlow,
    state: StateFolder,
    plan: Plan,
    wanted: set[str],
    *,
    dry_run: bool,
    yes: bool,
    wait: float,
    settle: float,
    reason: str | None,
) -> int:
    """Checks, asks, executes, prints what became of it; gives the exit code."""
    from failover.execution.recheck import check_usable
    from failover.execution.runs import begun, runs_of_plan, used_up
    from failover.report.execution_text import execution_text
    from failover.report.plan_text import before_after

    runs = runs_of_plan(state, plan.id)
    cluster = open_cluster(settings, selected, selected.target)
    try:
        check_usable(
            plan,
            now=utc_now(),
            target_cluster_id=cluster.facts().cluster_id,
            written_before=begun(runs),
            complete=used_up(runs),
        )
        if dry_run:
            return _dry_run(settings, cluster, plan, wanted)
        confirm_typed(before_after(plan, wanted), plan.target.alias, assume_yes=yes)
        execution = _run(settings, cluster, state, plan, wanted, wait=wait, settle=settle, reason=reason)
    finally:
        cluster.close()
    settings.emit_value(execution, {"table": lambda: execution_text(execution, plan, verbosity=settings.verbosity)})
    from failover.execution.record import exit_code

    return exit_code(execution)


def _dry_run(settings: Settings, cluster: Cluster, plan: Plan, wanted: set[str]) -> int:
    """Re-checks the plan against the target now and shows what would be written; writes nothing."""
    from failover.execution.rehearsal import rehearse
    from failover.report.execution_text import rehearsal_text

    rehearsal = rehearse(plan, cluster, wanted, utc_now())
    settings.emit_value(rehearsal, {"table": lambda: rehearsal_text(rehearsal, plan)})
    return rehearsal.exit_code


def _run(
    settings: Settings,
    cluster: Cluster,
    state: StateFolder,
    plan: Plan,
    wanted: set[str],
    *,
    wait: float,
    settle: float,
    reason: str | None,
) -> Execution:
    """Opens the journal and executes."""
    from failover._version import __version__
    from failover.execution.commit import Executor, Timing
    from failover.execution.runs import encode_execution
    from failover.planning.plan_file import encode_plan
    from failover.state.journal import Journal, Started
    from failover.state.runs import JOURNAL, PLAN, RECORD, new_run

    run_id, folder = new_run(state)
    state.write(folder / PLAN, encode_plan(plan))
    journal = Journal(folder / JOURNAL)
    started = Started(
        at=utc_now(),
        execution_id=run_id,
        plan_id=plan.id,
        fingerprint=plan.fingerprint,
        tool_version=__version__,
        operator=operator(),
        reason=plan.reason if reason is None else reason,
        source_alias=plan.source.alias,
        target_alias=plan.target.alias,
        target_cluster_id=plan.target.cluster_id,
        selected=tuple(sorted(wanted)),
        overrides=_overrides(plan),
    )
    try:
        with ProgressBar(settings) as progress:
            executor = Executor(plan, cluster, journal, clock=utc_now, sleep=time.sleep, progress=progress)
            execution = executor.run(started, Timing(settle, wait))
    finally:
        journal.close()
    state.write(folder / RECORD, encode_execution(execution))
    return execution


def _overrides(plan: Plan) -> tuple[str, ...]:
    """Names the hazards the operator allowed, for the journal."""
    options = plan.options
    return tuple(
        name
        for name in ("allow_rewind", "allow_skip", "allow_moving_commits", "allow_unverified", "create_group")
        if getattr(options, name)
    )
