"""`failover config`: what is in effect, what is wrong with it, and the same in another form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

import click

from failover.cli.convert import convert
from failover.cli.frame import Group, Settings, format_option, pass_settings
from failover.cli.wiring import choose_flow, load, open_cluster, read

if TYPE_CHECKING:
    from failover.config.describe import ShownConfig, ShownFlow, ShownNote, ShownSetting
    from failover.config.flow import FlowConfig
    from failover.report.check_text import ConfigCheck

_WIDEST_VALUE = 47


@click.group(cls=Group)
def command() -> None:
    """Shows, checks and converts the configuration; contacts a cluster only for check --connect."""


command.add_command(convert)


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


@command.command()
@click.option("--connect", is_flag=True, help="Try the clusters, and the rights there; nothing is written.")
@format_option("table", "json", "yaml")
@pass_settings
def check(settings: Settings, /, *, connect: bool) -> int:
    """Finds what MirrorMaker 2 ignores, refuses or takes otherwise than it was meant.

    Exit code 0: nothing above info, 4: warnings, 3: errors. Without --connect no cluster is asked.
    """
    from failover.report.check_text import check_text

    found = check_configuration(settings, connect=connect)
    settings.emit_value(found, {"table": lambda: check_text(found)})
    severities = {finding.severity for finding in found.findings}
    return 3 if "error" in severities else 4 if "warning" in severities else 0


def check_configuration(settings: Settings, *, connect: bool) -> ConfigCheck:
    """Reads the configuration and gives every finding about it; ``connect`` asks the clusters too.

    Raises ConfigError for what cannot be read at all.
    """
    from failover.checks.access_checks import check_access
    from failover.checks.config_checks import by_severity, check_config
    from failover.config.findings import invalid, note_findings, value_findings
    from failover.config.load import notes_of, resolve_loaded
    from failover.errors import ConfigError
    from failover.report.check_text import ConfigCheck

    loaded = read(settings)
    try:
        config = resolve_loaded(loaded)
    except ConfigError as error:
        findings = [invalid("", error), *note_findings(notes_of(loaded), loaded.shown)]
        return ConfigCheck(loaded.shown, (), by_severity(findings))
    flows = [flow for flow in config.enabled_flows if _fits(settings, flow)]
    findings = [*note_findings(config.notes, config.path), *value_findings(config), *check_config(config)]
    asked: list[str] = []
    if connect:
        from failover.config.flow import SelectedFlow
        from failover.inventory.config_look import try_clusters

        selected = [SelectedFlow(flow, flow.source.alias, flow.target.alias) for flow in flows]
        if settings.source_down:
            settings.say("--source-down: only the targets are asked")
        opened = partial(open_cluster, settings)
        accesses = try_clusters(config, selected, opened, target_only=settings.source_down)
        asked = list(dict.fromkeys(access.alias for access in accesses if access.trouble is None))
        findings += check_access(accesses)
    return ConfigCheck(config.path, tuple(flow.name for flow in flows), by_severity(findings), tuple(asked))


def _fits(settings: Settings, flow: FlowConfig) -> bool:
    return settings.source in (None, flow.source.alias) and settings.target in (None, flow.target.alias)


def _table(shown: ShownConfig, *, workers: bool) -> Iterator[str]:
    from failover.report.inert import inert_line

    yield f"configuration {inert_line(shown.path)}"
    for cluster in shown.clusters:
        yield from _section(f"CLUSTER {cluster.alias}", cluster.settings, shown.path)
        if cluster.overrides:
            yield from _section(f"CLUSTER {cluster.alias}, connection of this tool", cluster.overrides, shown.path)
    for flow in shown.flows:
        if flow.enabled:
            yield from _flow(flow, shown.path, workers=workers)
    if shown.failover:
        yield from _section("THIS TOOL (failover.)", shown.failover, shown.path)
    if shown.notes:
        yield from ("", "NOTES", *(inert_line(_note(note)) for note in shown.notes))
    idle = [flow.flow for flow in shown.flows if not flow.enabled]
    if idle:
        yield from ("", inert_line(f"not enabled: {', '.join(idle)}"))


def _flow(flow: ShownFlow, path: str, *, workers: bool) -> Iterator[str]:
    yield from _section(f"FLOW {flow.flow}", flow.settings, path)
    for connector, settings in flow.connectors.items():
        if any(one.origin != "driver" for one in settings.values()):
            yield from _section(f"FLOW {flow.flow}, {connector} connector", settings, path)
    if workers:
        yield from _section(f"FLOW {flow.flow}, worker", flow.worker, path)


def _section(title: str, settings: Mapping[str, ShownSetting], path: str) -> Iterator[str]:
    from tabulate import tabulate

    from failover.report.inert import inert_line

    yield from ("", inert_line(title))
    # What somebody wrote comes first, by name; defaults need no column for where they come from.
    written = {key: one for key, one in settings.items() if one.origin != "default"}
    rows = [
        (inert_line(key), _value(inert_line(one.value)), inert_line(_origin(key, one, path)))
        for key, one in sorted(written.items(), key=lambda item: (item[1].origin == "driver", item[0]))
    ]
    if rows:
        yield tabulate(rows, headers=("KEY", "VALUE", "FROM"), tablefmt="plain", disable_numparse=True)
    defaults = [(inert_line(key), _value(inert_line(settings[key].value))) for key in sorted(settings.keys() - written)]
    if defaults:
        yield tabulate(defaults, headers=("DEFAULT", "VALUE"), tablefmt="plain", disable_numparse=True)


def _value(text: str) -> str:
    if len(text) <= _WIDEST_VALUE:
        return text
    # A class name tells most at its end, a list or a certificate at its beginning: keep some of both.
    return f"{text[:17]}…{text[18 - _WIDEST_VALUE :]}"


def _origin(key: str, setting: ShownSetting, path: str) -> str:
    match setting.origin:
        case "file":
            # One file is named above; of several, each setting names its own.
            file = "" if setting.file == path else setting.file.rpartition("/")[2]
            line = "" if setting.line is None else f"line {setting.line}"
            place = " ".join(part for part in (file, line) if part) or "file"
        case "set":
            place = "--set"
        case _:
            return setting.origin
    if setting.written == key:
        return place
    before = (setting.written or "").removesuffix(f".{key}")
    return f"{place}: {setting.written}" if before == setting.written else f"{place}: {before}.…"


def _note(note: ShownNote) -> str:
    return f"line {note.line}: {note.message}" if note.line is not None else note.message
