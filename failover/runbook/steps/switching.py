"""MirrorMaker 2's connectors, or the replicator's, stopped or resumed by their REST interface."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import msgspec

from failover.errors import ConfigError, StepFailed
from failover.runbook.kinds import Context, Kind, Result, Settled
from failover.runbook.steps.noted import note_more, noted

if TYPE_CHECKING:
    from failover.connect.client import ConnectClient
    from failover.connect.mirrors import Mirror

Verb = Literal["stop", "resume"]
_BACK: Mapping[Verb, tuple[Verb, str]] = {"stop": ("resume", "resumed"), "resume": ("stop", "stopped")}


class Connectors(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``url``: of the Connect cluster or of ``failover replicate --rest``; empty: ``failover.connect.url``.

    ``connectors``: names; none: those of the flow. ``recheck``: for so long it is watched that they stay as they are.
    """

    url: str = ""
    connectors: list[str] = []
    recheck: float = 0.0


class SwitchKind(Kind[Connectors]):
    """Brings the flow's connectors into one state, and those that changed back into the other.

    ``done``: what the connectors are called that changed, in the result and in texts; ``noted``: in the notes.
    """

    parameters = Connectors
    undoes = True
    verb: ClassVar[Verb]
    done: ClassVar[str]
    noted: ClassVar[str]

    def preview(self, given: Connectors, context: Context) -> str:
        with rest_client(given.url, context) as where:
            said = ", ".join(f"{one.name} ({one.condition})" for one in _chosen(where, given, context))
            return f"would {self.verb} at {where.access.shown}: {said}"

    def run(self, given: Connectors, context: Context) -> Result:
        with rest_client(given.url, context) as where:
            found = _chosen(where, given, context)
            # Begun again after a crash, what an earlier try changed is no longer seen to change.
            now = [one.name for one in found if self._changes(one)]
            changing = note_more(context, self.noted, now)
            act(where, found, self.verb, context, recheck=given.recheck)
        return {self.done: changing}

    def settle(self, given: Connectors, context: Context) -> Settled:  # noqa: ARG002
        return Settled(done=False)  # doing it once more changes nothing

    def undo(self, given: Connectors, context: Context) -> str:
        changed = noted(context, self.noted)
        if not changed:
            return f"nothing had been {self.done}"
        verb, told = _BACK[self.verb]
        with rest_client(given.url, context) as where:
            found = [one for one in _chosen(where, given, context) if one.name in changed]
            act(where, found, verb, context, recheck=given.recheck)
        return f"{told} {', '.join(changed)}"

    def by_hand(self, given: Mapping[str, Any]) -> str:
        url = given.get("url")
        return f"failover connect {self.verb} --url {url}" if url else f"failover connect {self.verb}"

    def _changes(self, one: Mirror) -> bool:
        return one.state != "STOPPED" if self.verb == "stop" else not one.healthy


def rest_client(url: str, context: Context) -> ConnectClient:
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


def _chosen(where: ConnectClient, given: Connectors, context: Context) -> list[Mirror]:
    from failover.connect.mirrors import choose, mirrors

    found = mirrors(where.connectors())
    return choose(found, given.connectors, context.reach.flow.source, context.reach.flow.target, at=where.access.shown)


def act(where: ConnectClient, found: list[Mirror], verb: Verb, context: Context, *, recheck: float = 0.0) -> None:
    """Does it and waits until it is so. Raises ``StepFailed`` where it is not, or not for long."""
    from failover.connect.acting import by_rest

    acted = by_rest(where, found, verb, wait=context.remaining(), recheck=recheck, say=context.say)
    if acted.outcome != "done":
        states = ", ".join(f"{one.name} {one.condition}" for one in acted.connectors)
        back = f"; somebody changed {', '.join(acted.undone)} again" if acted.undone else ""
        raise StepFailed(f"{verb}: {acted.outcome}: {states}{back}", hint="failover connect status")
