"""`failover connect watch`: a line for each change of a connector, and restarts of what failed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from failover.cli.connecting import teller
from failover.connect.client import ConnectClient
from failover.connect.mirrors import Mirror, choose, exit_code, mirrors, of_flow
from failover.connect.waiting import Event, Watching
from failover.errors import ClusterError, ConnectAnswer, ConnectorNotFound, ConnectRefused, CredentialsRefused

if TYPE_CHECKING:
    from failover.cli.connecting import Reached
    from failover.cli.frame import Settings


def follow(
    settings: Settings,
    reached: Reached,
    names: tuple[str, ...],
    flow: tuple[str | None, str | None],
    *,
    restart_failed: bool,
    backoff: float,
    backoff_max: float,
    interval: float,
    seconds: float | None,
) -> int:
    """Looks every ``interval`` seconds until ``seconds`` are over; gives the exit status of the last look."""
    client = reached.client
    say = teller(settings)

    def restart(name: str) -> None:
        assert isinstance(client, ConnectClient)
        try:
            client.restart(name, only_failed=True)
        except (ClusterError, ConnectAnswer, ConnectRefused, ConnectorNotFound) as error:
            say(f"{name}: not restarted: {error.message}")

    watching = Watching(restart=restart if restart_failed else None, least=backoff, most=backoff_max)
    deadline = None if seconds is None else time.monotonic() + seconds
    silent = ""
    first = True
    while True:
        now = time.monotonic()
        try:
            found = mirrors(reached.source.connectors())
            # a name that is wrong is said at once; one that goes away later is an event
            found = choose(found, names, *flow, at=reached.at) if first else _of(found, names, flow)
            first = False
        except CredentialsRefused:
            raise
        except (ClusterError, ConnectAnswer) as error:
            if first:
                raise
            if error.message != silent:
                say(f"no answer: {error.message}")
            silent = error.message
        else:
            silent = ""
            for event in watching.see(found, now):
                _tell(settings, event)
        if deadline is not None and time.monotonic() + interval > deadline:
            return exit_code(watching.states.values()) if watching.states else 4
        time.sleep(interval)


def _of(found: list[Mirror], names: tuple[str, ...], flow: tuple[str | None, str | None]) -> list[Mirror]:
    return [one for one in found if one.name in names] if names else of_flow(found, *flow)


def _tell(settings: Settings, event: Event) -> None:
    from failover.cli.wiring import utc_now

    at = utc_now()
    if settings.format == "json":
        import msgspec

        from failover.report.inert import inert_json

        line = {"at": at.isoformat(timespec="seconds"), **msgspec.to_builtins(event)}
        settings.emit(inert_json(msgspec.json.encode(line).decode()))
        return
    from failover.report.inert import inert_line

    parts = [f"{at:%H:%M:%S}", event.state, inert_line(event.connector), event.what]
    settings.emit("  ".join(parts) + (f": {inert_line(event.detail)}" if event.detail else ""))
