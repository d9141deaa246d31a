"""`failover status`: ready or not, and what a failover this second would cost."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from failover.cli.frame import Command, Settings, format_option, pass_settings
from failover.cli.looking import looking, on_connect
from failover.cli.params import SOME_TIME
from failover.cli.wiring import choose_flow, load
from failover.errors import ClusterError, UsageError

if TYPE_CHECKING:
    from failover.config.flow import Config, SelectedFlow
    from failover.library.open_flow import OpenFlow
    from failover.model.status import Status

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
        status = status_of(settings, look)
    _show(settings, status)
    return status.exit_code if check else 0


def status_of(settings: Settings, look: OpenFlow) -> Status:
    """Looks at both clusters and at the connectors, and weighs what is there."""
    from failover.library.status import take_status

    return take_status(look, on_connect(settings, look))


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
                settings.emit(_painted(settings, config, selected, FOLD, every))
                time.sleep(every)
        from rich.live import Live
        from rich.text import Text

        with Live(console=console, screen=True, auto_refresh=False) as live:
            while True:
                # both tables, the head and a few findings have to fit
                text = _painted(settings, config, selected, max(3, (console.height - 16) // 2), every)
                live.update(Text(text), refresh=True)
                time.sleep(every)
    except KeyboardInterrupt:
        return 130


def _painted(settings: Settings, config: Config, selected: SelectedFlow, rows: int, every: float) -> str:
    """Takes one look over connections of its own: a cluster that was silent may be back. Tells why there is none."""
    from failover.report.inert import inert_line
    from failover.report.status_text import status_text

    try:
        with looking(settings, config, selected) as look:
            return status_text(status_of(settings, look), verbosity=settings.verbosity, rows=rows, every=every)
    except ClusterError as error:
        return f"error: {inert_line(error.message)}\nhint: {inert_line(error.hint)}\n"
