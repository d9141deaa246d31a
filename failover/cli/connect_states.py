"""What Kafka Connect says of a flow's connectors, for commands that work on the clusters themselves."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from failover.cli.connecting import Where, find

if TYPE_CHECKING:
    from failover.cli.frame import Settings
    from failover.config.flow import Config, SelectedFlow
    from failover.connect.access import Elsewhere
    from failover.connect.mirrors import Mirror

_NOTHING = Where(None, None, None, None)


def is_configured(settings: Settings, config: Config) -> bool:
    """Says whether the configuration names a Connect cluster, an operator's resource, or a vendor's service."""
    from failover.cli.looking import connect_address

    return "connect.url" in config.failover or config.form == "strimzi" or bool(connect_address(settings))


def tell_stop(settings: Settings, config: Config, selected: SelectedFlow) -> None:
    """Says on stderr which connectors still run, and the command that stops them before a plan is executed.

    MM2 (MirrorCheckpointTask) may write to a group that it saw active a moment before, and set it back.
    """
    if not is_configured(settings, config):
        return
    from failover.connect.access import Elsewhere
    from failover.connect.values import STOPPED
    from failover.report.inert import inert_line

    flow = selected.flow
    named = f"--source {shlex.quote(flow.source.alias)} --target {shlex.quote(flow.target.alias)}"
    if config.form == "strimzi" and "connect.url" not in config.failover:
        settings.say(f"before execute: failover connect stop --kubectl {named}")
        return
    _, access = find(settings, _NOTHING, config=config)
    if isinstance(access, Elsewhere):
        settings.say(f"before execute, stop the mirror: failover connect stop {named} prints the commands")
        return
    found = _connectors(settings, config, selected)
    if not found:
        return
    states = ", ".join(f"{inert_line(one.name)} {inert_line(one.condition)}" for one in found)
    settings.say(f"connectors at {access.shown}: {states}")
    if any(one.state != STOPPED for one in found):
        kubectl = "--kubectl " if any(one.operator for one in found) else ""
        settings.say(f"before execute: failover connect stop {kubectl}{named}")


def vendor_status(settings: Settings, access: Elsewhere, names: tuple[str, ...], config: Config | None) -> int:
    """Prints a vendor's command and, with a configuration, what both clusters themselves tell of the mirror.

    The exit status is that of ``status --check``; 0 without a configuration.
    """
    from failover.cli.looking import looking
    from failover.cli.status import status_of
    from failover.cli.wiring import choose_flow
    from failover.connect.vendors import vendor_commands
    from failover.report.connect_text import vendor_text
    from failover.report.status_text import status_text

    commands = vendor_commands(access, "status", names)
    if config is None:
        settings.emit_value({"vendor": commands, "status": None}, {"table": lambda: vendor_text(commands)})
        return 0
    selected = choose_flow(settings, config, allow_reverse=True)
    with looking(settings, config, selected) as look:
        status = status_of(settings, look)
    settings.emit_value(
        {"vendor": commands, "status": status},
        {"table": lambda: f"{vendor_text(commands)}\n{status_text(status, verbosity=settings.verbosity)}"},
    )
    return status.exit_code


def _connectors(settings: Settings, config: Config, selected: SelectedFlow) -> list[Mirror]:
    from failover.cli.looking import connect_address
    from failover.library.connectors import flow_connectors
    from failover.library.flows import MirrorFlow

    return flow_connectors(
        MirrorFlow(config, selected),
        url=connect_address(settings),
        timeout=settings.target_timeout(),
        warn=settings.say,
    )
