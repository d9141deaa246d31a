"""`failover config show`: effective settings with their origin, secrets masked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import click

from failover.cli.frame import Group, Settings, format_option, pass_settings
from failover.cli.wiring import choose_flow, load

if TYPE_CHECKING:
    from failover.config.describe import ShownConfig, ShownFlow, ShownNote, ShownSetting

_WIDEST_VALUE = 48


@click.group(cls=Group)
def command() -> None:
    """Shows what the configuration says; contacts no cluster."""


@command.command()
@format_option("table", "json", "yaml")
@pass_settings
def show(settings: Settings) -> None:
    """Shows every effective setting with its origin: a line of the file, --set, MM2's driver or a default.

    With --source or --target, of that flow alone. Secrets are masked in every format.
    """
    from failover.config.describe import describe

    config = load(settings)
    flows = None
    if settings.source is not None or settings.target is not None:
        flows = [choose_flow(settings, config, allow_reverse=True).flow]
    shown = describe(config, flows)
    settings.emit_value(shown, {"table": lambda: "\n".join(_table(shown, workers=settings.verbosity > 0))})


def _table(shown: ShownConfig, *, workers: bool) -> Iterator[str]:
    from failover.report.inert import inert_line

    yield f"configuration {inert_line(shown.path)}"
    for cluster in shown.clusters:
        yield from _section(f"CLUSTER {cluster.alias}", cluster.settings)
        if cluster.overrides:
            yield from _section(f"CLUSTER {cluster.alias}, connection of this tool", cluster.overrides)
    for flow in shown.flows:
        if flow.enabled:
            yield from _flow(flow, workers=workers)
    if shown.failover:
        yield from _section("THIS TOOL (failover.)", shown.failover)
    if shown.notes:
        yield from ("", "NOTES", *(inert_line(_note(note)) for note in shown.notes))
    idle = [flow.flow for flow in shown.flows if not flow.enabled]
    if idle:
        yield from ("", inert_line(f"not enabled: {', '.join(idle)}"))


def _flow(flow: ShownFlow, *, workers: bool) -> Iterator[str]:
    yield from _section(f"FLOW {flow.flow}", flow.settings)
    for connector, settings in flow.connectors.items():
        if any(one.origin != "driver" for one in settings.values()):
            yield from _section(f"FLOW {flow.flow}, {connector} connector", settings)
    if workers:
        yield from _section(f"FLOW {flow.flow}, worker", flow.worker)


def _section(title: str, settings: Mapping[str, ShownSetting]) -> Iterator[str]:
    from tabulate import tabulate

    from failover.report.inert import inert_line

    yield from ("", inert_line(title))
    # What somebody wrote comes first; defaults after it, each part by name.
    ordered = sorted(settings.items(), key=lambda item: (item[1].origin in ("driver", "default"), item[0]))
    rows = [(inert_line(key), _value(inert_line(one.value)), inert_line(_origin(key, one))) for key, one in ordered]
    yield tabulate(rows, headers=("KEY", "VALUE", "FROM"), tablefmt="plain", disable_numparse=True)


def _value(text: str) -> str:
    if len(text) <= _WIDEST_VALUE:
        return text
    # A class name tells most at its end, a list or a certificate at its beginning: keep some of both.
    return f"{text[:17]}…{text[18 - _WIDEST_VALUE :]}"


def _origin(key: str, setting: ShownSetting) -> str:
    match setting.origin:
        case "file":
            place = f"line {setting.line}"
        case "set":
            place = "--set"
        case _:
            return setting.origin
    return place if setting.written == key else f"{place}: {setting.written}"


def _note(note: ShownNote) -> str:
    return f"line {note.line}: {note.message}" if note.line is not None else note.message
