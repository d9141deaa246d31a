"""`failover demo`: the whole story on this machine, from two real clusters to consumers on the standby."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from failover.cli.frame import Command, Settings, format_option, pass_settings

if TYPE_CHECKING:
    from failover.lab.demo import DemoOutcome


@click.command(cls=Command)
@click.option("--kafka-version", metavar="V", help="Kafka's version (default 4.1.1).")
@click.option("--keep", metavar="DIR", help="Keep plans, journal and logs there.")
@format_option("table", "json")
@pass_settings
def command(settings: Settings, /, *, kafka_version: str | None, keep: str | None) -> int:
    """Plays a failover on two real Kafka clusters with a real MirrorMaker 2, in under two minutes.

    Nothing is needed beforehand, nothing is left running, and no cluster of yours is touched.
    """
    from failover.lab.demo import Demo
    from failover.lab.down import end_lab

    narrate = settings.say if settings.format == "json" else settings.emit
    with tempfile.TemporaryDirectory(prefix="failover-demo-") as temporary:
        folder = Path(keep).expanduser() if keep else Path(temporary)
        try:
            outcome = Demo(folder, narrate, kafka_version=kafka_version).run()
        finally:
            end_lab(folder / "lab", keep_logs=keep is not None)
    settings.emit_value(outcome, {"table": lambda: _screen(outcome, keep)})
    return 0 if outcome.kept else 6


def _screen(outcome: DemoOutcome, keep: str | None) -> str:
    """Holds forecast against fact, a line a group."""
    from failover.report.table import table
    from failover.report.values import count

    rows = [
        (
            group.group,
            f"<= {count(group.forecast_reread)}",
            count(group.reread),
            count(group.forecast_skipped),
            count(group.skipped),
            count(group.delivered),
        )
        for group in outcome.groups
    ]
    headers = ("GROUP", "READ AGAIN: PLAN", "FACT", "SKIPPED: PLAN", "FACT", "RECORDS GOT")
    lost = "unknown" if outcome.forecast_lost is None else count(outcome.forecast_lost)
    lines = [
        "",
        "Forecast against fact (records)",
        table(headers, rows),
        "",
        f"Lost with the primary, since never mirrored: {count(outcome.lost)} (the plan said: {lost}).",
        "Every forecast held." if outcome.kept else "A FORECAST DID NOT HOLD.",
        "Seconds: " + ", ".join(f"{title.split('.')[0]}: {value}" for title, value in outcome.seconds.items()),
    ]
    if keep:
        lines.append(f"Plans, journal and logs: {keep}")
    lines.append("Nothing is left running. On your clusters: failover plan --config mm2.properties")
    return "\n".join(lines)
