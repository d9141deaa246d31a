"""`failover plan`: a look at both clusters, the decision, the dry-run report. Writes nothing to either cluster."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from failover.cli.frame import Command, Settings, format_option, pass_settings
from failover.cli.options import DEFAULT_TTL, plan_options, selection_of, times_of, to_options
from failover.cli.progress import ProgressBar
from failover.cli.wiring import check_clients, choose_flow, load, open_cluster, operator, state_folder, utc_now
from failover.errors import StateError, UsageError
from failover.library.memory import last_written, recall, undecided

if TYPE_CHECKING:
    from failover.config.flow import Config, SelectedFlow
    from failover.kafka.port import Cluster
    from failover.model.plan import Plan, PlanOptions
    from failover.state.folder import StateFolder


@click.command(cls=Command, params=plan_options())
@click.option("--evidence", is_flag=True, help="Show how each offset is known.")
@click.option("--exported", metavar="FILE", default="", help="Failback: groups may pass records in this exported tail.")
@click.option("-o", "--output", "output", metavar="FILE", help="Also write the plan there, as JSON.")
@format_option("table", "json", "yaml", "csv", "markdown", "html", "kafka-acls")
@pass_settings
def command(settings: Settings, /, *, evidence: bool, exported: str, output: str | None, **values: Any) -> int:
    """Shows what execute would commit, how each offset is known, and what it costs.

    Reads both clusters and writes nothing to either. The plan is saved and its id printed;
    `failover execute` then commits exactly this plan.
    """
    if output is not None:
        require_place(Path(output).expanduser())
    config = load(settings)
    selected = choose_flow(settings, config, allow_reverse=True)
    options = to_options(values)
    state = state_folder(settings, config)
    ttl, reason = values["ttl"], values["reason"]
    plan, path = make(settings, config, selected, state, options, ttl=ttl, reason=reason, exported=exported)
    if output is not None:
        write_copy(Path(output).expanduser(), path)
    show(settings, plan, evidence=evidence)
    tell_further(settings, state, selected, plan)
    from failover.cli.connect_states import tell_stop
    from failover.planning.build import exit_code

    tell_stop(settings, config, selected)

    return exit_code(plan)


def make(
    settings: Settings,
    config: Config,
    selected: SelectedFlow,
    state: StateFolder,
    options: PlanOptions,
    *,
    ttl: float | None,
    reason: str | None,
    exported: str = "",
) -> tuple[Plan, Path]:
    """Looks at both clusters, decides, and saves the plan; gives the plan and its file.

    ``exported``: a file with the tail that the target alone has, "" for none.
    """
    from failover._version import __version__
    from failover.inventory.comparison import comparison_of
    from failover.inventory.flow import flow_of
    from failover.inventory.snapshot import take_snapshot
    from failover.state.tails import exported_tails

    flow = flow_of(config, selected)
    # What cannot work is said before anything is contacted, and before a silent cluster costs its time.
    state.require_usable()
    tails = exported_tails(exported, selected.target)
    check_clients(settings, selected)
    memory = recall(state, selected)
    clusters: dict[str, Cluster] = {}
    with ProgressBar(settings) as progress, ExitStack() as opened:

        def open_one(alias: str) -> Cluster:
            cluster = open_cluster(settings, selected, alias)
            opened.callback(cluster.close)
            clusters[alias] = cluster
            return cluster

        snapshot = take_snapshot(
            flow,
            open_one,
            selection_of(options),
            source_down=settings.source_down,
            now=utc_now,
            progress=progress,
            earlier=memory.earlier,
            comparison=comparison_of(config) if options.content else None,
            times=times_of(options),
            plain=options.local_topics != "none",
            settled={tp: tail.end for tp, tail in tails.items()},
        )
        # What follows is not needed before the clusters were asked, and loading it takes its time.
        from failover.cli.shared import holder
        from failover.library.flows import runs_topic
        from failover.planning.build import make_plan
        from failover.planning.plan_file import encode_plan
        from failover.state.plans import save_plan

        answers = snapshot.target.status.answers and selected.target in clusters
        locked_by = holder(clusters[selected.target], runs_topic(config, selected.source)) if answers else ""
        if locked_by:
            settings.say(f"locked: {locked_by}")
    plan = make_plan(
        snapshot,
        options,
        plan_id=state.new_id("", state.plans),
        operator=operator(),
        reason=reason or "",
        ttl_seconds=DEFAULT_TTL if ttl is None else ttl,
        tool_version=__version__,
        earlier=memory.plan,
        written=last_written(state, selected, undecided(snapshot)),
        locked_by=locked_by,
    )
    return plan, save_plan(state, plan.id, encode_plan(plan))


def tell_further(settings: Settings, state: StateFolder, selected: SelectedFlow, plan: Plan) -> None:
    """Names an earlier plan that reads less again than this one, made without the source."""
    from failover.library.memory import further_plan
    from failover.report.values import clock, things

    found = further_plan(state, selected, plan)
    if found is None:
        return
    settings.say(
        f"plan {found.plan.id} of {clock(found.plan.created, plan.created)}, made while {plan.source.alias} answered, "
        f"is still valid and reads {things(found.records, 'record')} fewer again: failover execute {found.plan.id}"
    )


def require_place(target: Path) -> None:
    """Raises ``UsageError`` when a copy of the plan could not be written there."""
    if target.is_dir() or not target.absolute().parent.is_dir():
        said = "is a folder" if target.is_dir() else "lies in a folder that does not exist"
        raise UsageError(f"-o {target}: {said}", hint="name a file in a folder that exists")


def write_out(target: Path, text: str) -> None:
    """Writes what was asked for into a file; raises ``StateError`` when that cannot be."""
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StateError(f"cannot write {target}: {error.strerror}", hint="give -o another place") from error


def write_copy(target: Path, saved: Path) -> None:
    """Copies a saved plan to where the operator wants it; raises ``StateError`` when that cannot be."""
    try:
        target.write_bytes(saved.read_bytes())
    except OSError as error:
        raise StateError(
            f"cannot write {target}: {error.strerror}",
            hint=f"the plan itself is saved at {saved}; give -o another place",
        ) from error


def show(settings: Settings, plan: Plan, *, evidence: bool) -> None:
    """Prints a plan in the asked format."""
    from failover.report.plan_csv import plan_csv
    from failover.report.plan_markdown import plan_markdown
    from failover.report.plan_text import plan_text

    settings.emit_value(
        plan,
        {
            "table": lambda: plan_text(plan, verbosity=settings.verbosity, evidence=evidence),
            "csv": lambda: plan_csv(plan),
            "markdown": lambda: plan_markdown(plan),
            "html": lambda: _html(plan),
            "kafka-acls": lambda: _kafka_acls(plan),
        },
    )


def _html(plan: Plan) -> str:
    from failover.report.html import plan_html

    return plan_html(plan)


def _kafka_acls(plan: Plan) -> str:
    from failover.report.kafka_acls import kafka_acls

    return kafka_acls(plan)
