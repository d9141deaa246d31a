"""MirrorMaker 2's connectors, or the replicator's, stopped and resumed by their REST interface."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from failover.errors import ConfigError, StepFailed
from failover.runbook.kinds import Context, Kind, Result, Settled


class StopReplication(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``url``: of the Connect cluster or of ``failover replicate --rest``; empty: ``failover.connect.url``.

    ``connectors``: names; none: those of the flow. ``recheck``: for so long it is watched that they stay as they are.
    """

    url: str = ""
    connectors: list[str] = []
    recheck: float = 0.0


class StopReplicationKind(Kind[StopReplication]):
    """Stops the flow's connectors, those that write to groups first, and resumes those that ran when it turns back.

    Speaks Kafka Connect's REST interface, which the replicator has too. A replicator or MirrorMaker 2 without it is
    stopped by a step that uses command (systemctl, kubectl) or manual.
    """

    parameters = StopReplication
    results = {"stopped": "connectors that ran before and are stopped"}  # noqa: RUF012 - a class's constant
    undoes = True

    def preview(self, given: StopReplication, context: Context) -> str:
        with client(given.url, context) as where:
            found = chosen(where, given, context)
            said = ", ".join(f"{one.name} ({one.condition})" for one in found)
            return f"would stop at {where.shown}: {said}"

    def run(self, given: StopReplication, context: Context) -> Result:
        with client(given.url, context) as where:
            found = chosen(where, given, context)
            ran = [one.name for one in found if one.state != "STOPPED"]
            context.note(ran=ran)
            act(where, found, "stop", given, context)
        return {"stopped": ran}

    def settle(self, given: StopReplication, context: Context) -> Settled:  # noqa: ARG002
        return Settled(done=False)  # stopping what is stopped changes nothing

    def undo(self, given: StopReplication, context: Context) -> str:
        ran = context.notes.get("ran") or []
        assert isinstance(ran, list)
        if not ran:
            return "nothing had been stopped"
        with client(given.url, context) as where:
            act(where, [one for one in chosen(where, given, context) if one.name in ran], "resume", given, context)
        return f"resumed {', '.join(ran)}"

    def by_hand(self, given: Mapping[str, Any]) -> str:
        url = given.get("url")
        return f"failover connect stop --url {url}" if url else "failover connect stop"


def client(url: str, context: Context) -> Any:
    """Opens the REST interface. Raises ``ConfigError`` where none is known."""
    from failover.connect.access import ConnectAccess, find_access
    from failover.connect.client import ConnectClient

    access = find_access(context.reach.flow.config.failover, url=url or None, timeout=min(30.0, context.remaining()))
    if access is None:
        raise ConfigError(
            "where the flow's connectors run is not known",
            hint="with: {url: …}, or failover.connect.url; without REST use command or manual",
        )
    if not isinstance(access, ConnectAccess):
        raise ConfigError(
            f"{access.name} has no REST interface of Kafka Connect", hint="failover connect stop prints its command"
        )
    return ConnectClient(access)


def chosen(where: Any, given: StopReplication, context: Context) -> list[Any]:
    """Finds the flow's connectors."""
    from failover.connect.mirrors import choose, mirrors

    found = mirrors(where.connectors())
    return choose(found, given.connectors, context.reach.flow.source, context.reach.flow.target, at=where.shown)


def act(
    where: Any, found: list[Any], verb: Literal["stop", "resume"], given: StopReplication, context: Context
) -> None:
    """Does it and waits until it is so. Raises ``StepFailed`` where it is not, or not for long."""
    from failover.connect.acting import by_rest

    acted = by_rest(where, found, verb, wait=context.remaining(), recheck=given.recheck, say=context.say)
    if acted.outcome != "done":
        states = ", ".join(f"{one.name} {one.condition}" for one in acted.connectors)
        back = f"; somebody changed {', '.join(acted.undone)} again" if acted.undone else ""
        raise StepFailed(f"{verb}: {acted.outcome}: {states}{back}", hint="failover connect status")


KIND = StopReplicationKind()
