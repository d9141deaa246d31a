"""Notes and values of a configuration as findings: the same form in which plans tell what an operator should know."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from failover.config.flow import Config, FlowConfig
from failover.config.mm2_keys import connector_defaults
from failover.config.settings import Note, Origin, Setting
from failover.errors import ConfigError
from failover.model.plan import Finding, Severity

SEVERITIES: Final = {
    "byte-order-mark": Severity.ERROR,
    "unknown-key": Severity.WARNING,
    "dropped": Severity.WARNING,
    "unofficial": Severity.WARNING,
    "deprecated": Severity.WARNING,
    "trailing-comment": Severity.WARNING,
    "duplicate": Severity.WARNING,
    "no-provider": Severity.WARNING,
    "connector-missing": Severity.WARNING,
    "connector-stopped": Severity.INFO,
    "encoding": Severity.INFO,
    "not-used": Severity.INFO,
}
"""How much each note's code weighs."""


def place(key: str, origin: Origin, path: str) -> str:
    """Names a finding's subject: the key, and where it stands (the file only if it is not the one asked about)."""
    if origin.kind == "set":
        return f"{key} (--set)"
    if origin.kind != "file":
        return key
    file = "" if origin.file == path else origin.file
    line = "" if origin.line is None else f"line {origin.line}"
    where = " ".join(part for part in (file, line) if part)
    return f"{key} ({where})".strip() if where else key


def note_findings(notes: Iterable[Note], path: str) -> Iterator[Finding]:
    """Gives the findings of a configuration's notes."""
    for note in notes:
        severity = SEVERITIES[note.code]
        if note.code == "connector-missing" and not note.remedy:
            severity = Severity.INFO
        yield Finding(note.code, severity, place(note.key, note.origin, path), note.message, note.remedy)


def value_findings(config: Config) -> Iterator[Finding]:
    """Gives a finding for each value that MM2 itself refuses, and for connections this tool cannot make of them."""
    seen: set[Setting] = set()
    for flow in config.flows:
        if not flow.enabled:
            continue
        for kind, settings in flow.connectors.items():
            for key, default in connector_defaults(kind, config.mm2_version).items():
                setting = settings[key]
                if settings.is_given(key) and setting not in seen:
                    seen.add(setting)
                    yield from _typed(flow, kind, key, default, config.path)
    for alias in dict.fromkeys(
        alias for flow in config.enabled_flows for alias in (flow.source.alias, flow.target.alias)
    ):
        try:
            config.clusters[alias].client()
        except ConfigError as error:
            yield invalid(alias, error)


def invalid(subject: str, error: ConfigError) -> Finding:
    """Makes the finding of an error in a configuration."""
    return Finding("config-invalid", Severity.ERROR, subject, error.message, error.hint)


def _typed(flow: FlowConfig, kind: str, key: str, default: str, path: str) -> Iterator[Finding]:
    settings = flow.connectors[kind]
    try:
        if key == "offset-syncs.topic.location":
            settings.choice(key, ("source", "target"))
        elif default in ("true", "false"):
            settings.boolean(key)
        elif default.isdigit():
            settings.integer(key)
    except ConfigError as error:
        setting = settings[key]
        subject = place(setting.origin.key or key, setting.origin, path)
        message = f"MM2 does not start with {setting.origin.key or key} = {setting.shown}"
        yield Finding("invalid-value", Severity.ERROR, subject, message, error.hint)
