"""`failover inspect`: what MirrorMaker 2's internal topics hold, readable."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import click

from failover.cli.frame import Command, Settings, format_option, pass_settings
from failover.cli.wiring import check_clients, choose_flow, load, open_cluster, utc_now
from failover.errors import ClusterUnreachable, UsageError

if TYPE_CHECKING:
    from failover.inventory.inspection import Inspector
    from failover.kafka.port import Cluster
    from failover.model.inspection import Inspection, Row

_PAUSE = 0.5


@click.command(cls=Command)
@click.argument("what", metavar="WHAT", required=False)
@click.option("--group", "groups", multiple=True, metavar="G", help="Only checkpoints of this group (repeatable).")
@click.option("--topic", "topics", multiple=True, metavar="T", help="Only this topic, by either name (repeatable).")
@click.option("--all", "everything", is_flag=True, help="Every record, not the newest of each key alone.")
@click.option("-f", "--follow", is_flag=True, help="Then go on with what is appended, until Ctrl-C.")
@format_option("table", "json", "yaml", "markdown")
@pass_settings
def command(
    settings: Settings,
    /,
    *,
    what: str | None,
    groups: tuple[str, ...],
    topics: tuple[str, ...],
    everything: bool,
    follow: bool,
) -> int:
    """Shows the records of MirrorMaker 2's own topics, decoded, and this tool's exact checkpoints with their proof.

    WHAT is checkpoints, offset-syncs, heartbeats or positions. A topic's name will do as well, also one that
    only guides know: the real one is then said. With --follow and --format json every record is one line.
    """
    from failover.inventory.flow import flow_of
    from failover.inventory.inspection import Inspector, Wanted, meant_by, places_of

    if what is None:
        raise UsageError(
            "inspect wants to know what", hint="failover inspect checkpoints|offset-syncs|heartbeats|positions"
        )
    if follow and settings.format not in ("table", "json"):
        raise UsageError(f"--follow does not go with --format {settings.format}", hint="table or json")
    config = load(settings)
    selected = choose_flow(settings, config, allow_reverse=True)
    flow = flow_of(config, selected)
    kind, notes = meant_by(what, flow)
    if groups and kind != "checkpoints":
        raise UsageError(f"--group does not go with {kind}", hint="only checkpoints are of groups")
    check_clients(settings, selected)
    with ExitStack() as opened:
        clusters: dict[str, Cluster] = {}
        for place in places_of(kind, flow.internal):
            if place.alias in clusters or (place.alias == flow.source and settings.source_down):
                continue
            cluster = open_cluster(settings, selected, place.alias)
            opened.callback(cluster.close)
            try:
                cluster.facts()
            except ClusterUnreachable as error:
                if not place.optional:
                    raise
                notes = (*notes, f"{place.topic} on {place.alias} is not shown: {error.message}")
                continue
            clusters[place.alias] = cluster
        if not clusters:
            raise UsageError(
                f"{kind} of {flow.source}->{flow.target} are on {flow.source}, which --source-down leaves alone",
                hint="leave --source-down out; once the source is dead they are lost with it",
            )
        inspector = Inspector(flow, kind, clusters, Wanted(frozenset(groups), frozenset(topics)))
        found = inspector.inspect(taken=utc_now(), everything=everything, notes=notes)
        if not follow:
            _show(settings, found)
            return 0
        return _follow(settings, inspector, found)


def _show(settings: Settings, found: Inspection) -> None:
    from failover.report.inspection_text import inspection_markdown, inspection_text

    settings.emit_value(
        found, {"table": lambda: inspection_text(found), "markdown": lambda: inspection_markdown(found)}
    )


def _follow(settings: Settings, inspector: Inspector, found: Inspection) -> int:
    """Prints what is there, then what comes, until Ctrl-C."""
    from failover.report.encode import to_json_line
    from failover.report.inspection_text import followed_line, followed_widths, unreadable_text

    widths = followed_widths(found)

    def line(row: Row) -> str:
        return to_json_line(row) if settings.format == "json" else followed_line(row, utc_now(), widths)

    if settings.format == "table":
        _show(settings, found)
    else:
        settings.emit("".join(line(row) for row in found.records))
    inspector.unreadable.clear()
    try:
        while True:
            for row in inspector.appended():
                settings.emit(line(row))
            for bad in inspector.unreadable:
                settings.say(f"unreadable: {unreadable_text(bad)}")
            inspector.unreadable.clear()
            time.sleep(_PAUSE)
    except KeyboardInterrupt:
        return 130
