"""`failover status`: ready or not, and what a failover this second would cost."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from failover.cli.frame import Command, Settings, format_option, pass_settings
from failover.cli.looking import looking
from failover.cli.params import SOME_TIME
from failover.cli.wiring import choose_flow, load, state_folder
from failover.errors import ClusterError, UsageError

if TYPE_CHECKING:
    from failover.checks.status_checks import Limits
    from failover.cli.looking import Looking
    from failover.config.flow import Config, SelectedFlow
    from failover.model.plan import Plan
    from failover.model.snapshot import Snapshot
    from failover.model.status import ConnectorState, Status
    from failover.planning.status import Looks

WIDTH, FOLD = 100, 30


@click.command(cls=Command)
@click.option("--watch", is_flag=True, help="Look again and again, until Ctrl-C.")
@click.option("--every", type=SOME_TIME, default=5.0, help="Time between two looks of --watch (default 5s).")
@click.option("--check", is_flag=True, help="For scripts: end with 3 for an error finding, 4 for a warning.")
@format_option("table", "json", "yaml", "markdown")
@pass_settings
def command(settings: Settings, /, *, watch: bool, every: float, check: bool) -> int:
    """Says whether a failover is ready, and what would be lost and read again if the source died this second.

    Then how far each partition is mirrored, and what each group would find on the target. Writes nothing
    to either cluster. With the source dead its last known values are shown, with their time.
    """
    if watch and settings.format != "table":
        raise UsageError(f"--watch does not go with --format {settings.format}", hint="leave one of them out")
    if watch and check:
        raise UsageError("--watch does not go with --check", hint="leave one of them out")
    config = load(settings)
    selected = choose_flow(settings, config, allow_reverse=True)
    if watch:
        return _watch(settings, config, selected, every)
    with looking(settings, config, selected) as look:
        status = take_status(settings, look)
    _show(settings, status)
    return status.exit_code if check else 0


def take_status(settings: Settings, look: Looking) -> Status:
    """Looks at both clusters and at the connectors, and weighs what is there."""
    from failover.cli.connect_states import connector_states
    from failover.planning.status import make_status

    connectors = connector_states(settings, look.config, look.selected)
    return make_status(take_looks(settings, look, connectors), limits(look))


def limits(look: Looking, *, heartbeat_seconds: float = 60.0) -> Limits:
    """Gives from when on the flow is found wanting."""
    from failover.checks.status_checks import Limits

    own = look.selected.flow.connectors["source"]
    tasks = own.integer("tasks.max") if "tasks.max" in own else None
    return Limits(tasks_max=tasks, heartbeat_seconds=heartbeat_seconds)


def take_looks(settings: Settings, look: Looking, connectors: tuple[ConnectorState, ...] = ()) -> Looks:
    """Looks at both clusters, and at the target as it would be without the source.

    ``connectors``: their states where a Kafka Connect cluster was asked for them.
    """
    from failover.cli.memory import recall
    from failover.inventory.selection import Selection
    from failover.inventory.status import read_beside
    from failover.planning.status import Looks

    memory = recall(state_folder(settings, look.config), look.selected)
    both = look.snapshot(Selection(), content=False, earlier=memory.earlier)
    live = both.source.status.answers
    alone = None
    if live and not look.flow.info.reversed:
        # The same target without the source: what there would be to go by if it died this second.
        alone = look.snapshot(Selection(), content=False, source_down=True, earlier=memory.earlier)
    both, beside = read_beside(look.flow, both, look.open)
    flow = look.selected.flow
    plan = _plan(both, memory.plan)
    return Looks(
        both=both,
        plan=plan,
        alone=both if alone is None else alone,
        alone_plan=plan if alone is None else _plan(alone, memory.plan),
        beside=beside,
        heartbeats=flow.emit_heartbeats_enabled and flow.heartbeats_replication_enabled,
        connectors=connectors,
    )


def _plan(snapshot: Snapshot, earlier: Plan | None) -> Plan:
    from failover._version import __version__
    from failover.model.plan import PlanOptions
    from failover.planning.build import make_plan

    return make_plan(
        snapshot,
        PlanOptions(),
        plan_id="status",
        operator="",
        reason="",
        ttl_seconds=0,
        tool_version=__version__,
        earlier=earlier,
    )


def _show(settings: Settings, status: Status) -> None:
    from failover.report.status_text import status_markdown, status_text

    settings.emit_value(
        status,
        {
            "table": lambda: status_text(status, verbosity=settings.verbosity),
            "markdown": lambda: status_markdown(status),
        },
    )


def _watch(settings: Settings, config: Config, selected: SelectedFlow, every: float) -> int:
    """Paints the status again and again; where stdout is no terminal each look is printed below the one before."""
    from rich.console import Console

    console = Console(width=WIDTH, no_color=None if settings.color else True)
    try:
        if not console.is_terminal:
            while True:
                settings.emit(_painted(settings, config, selected, FOLD))
                time.sleep(every)
        from rich.live import Live
        from rich.text import Text

        with Live(console=console, screen=True, auto_refresh=False) as live:
            while True:
                # both tables, the head and a few findings have to fit
                text = _painted(settings, config, selected, max(3, (console.height - 16) // 2))
                live.update(Text(text), refresh=True)
                time.sleep(every)
    except KeyboardInterrupt:
        return 130


def _painted(settings: Settings, config: Config, selected: SelectedFlow, rows: int) -> str:
    """Takes one look over connections of its own: a cluster that was silent may be back. Tells why there is none."""
    from failover.report.inert import inert_line
    from failover.report.status_text import status_text

    try:
        with looking(settings, config, selected) as look:
            return status_text(take_status(settings, look), verbosity=settings.verbosity, rows=rows)
    except ClusterError as error:
        return f"error: {inert_line(error.message)}\nhint: {inert_line(error.hint)}\n"
