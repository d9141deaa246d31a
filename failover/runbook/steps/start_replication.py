"""MirrorMaker 2's connectors, or the replicator's, resumed by their REST interface."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from failover.runbook.kinds import Context, Kind, Result, Settled
from failover.runbook.steps.stop_replication import StopReplication, act, chosen, client


class StartReplicationKind(Kind[StopReplication]):
    """Resumes the flow's connectors and waits until they run; those that were stopped are stopped on the way back."""

    parameters = StopReplication
    results = {"started": "connectors that were stopped before and run"}  # noqa: RUF012 - a class's constant
    undoes = True

    def preview(self, given: StopReplication, context: Context) -> str:
        with client(given.url, context) as where:
            said = ", ".join(f"{one.name} ({one.condition})" for one in chosen(where, given, context))
            return f"would resume at {where.shown}: {said}"

    def run(self, given: StopReplication, context: Context) -> Result:
        with client(given.url, context) as where:
            found = chosen(where, given, context)
            stood = [one.name for one in found if not one.healthy]
            context.note(stood=stood)
            act(where, found, "resume", given, context)
        return {"started": stood}

    def settle(self, given: StopReplication, context: Context) -> Settled:  # noqa: ARG002
        return Settled(done=False)  # resuming what runs changes nothing

    def undo(self, given: StopReplication, context: Context) -> str:
        stood = context.notes.get("stood") or []
        assert isinstance(stood, list)
        if not stood:
            return "nothing had been started"
        with client(given.url, context) as where:
            act(where, [one for one in chosen(where, given, context) if one.name in stood], "stop", given, context)
        return f"stopped {', '.join(stood)}"

    def by_hand(self, given: Mapping[str, Any]) -> str:
        url = given.get("url")
        return f"failover connect resume --url {url}" if url else "failover connect resume"


KIND = StartReplicationKind()
