"""Pauses, resumes, stops and restarts a flow's connectors, and sees whether it lasts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from failover.connect.client import ConnectClient
from failover.connect.kubectl import Kubectl
from failover.connect.mirrors import Mirror, at_rest
from failover.connect.strimzi import Patch
from failover.connect.waiting import Clock, stays, wait_for

Verb = Literal["pause", "resume", "stop", "restart"]
Outcome = Literal["done", "not-yet", "failed", "undone", "owned"]

# what writes to the target's groups stops first and begins last
_ORDER = {"checkpoint": 0, "source": 1, "heartbeat": 2}


class Acted(msgspec.Struct, frozen=True, kw_only=True):
    """Is what was done about connectors and what became of it.

    ``outcome``: ``done``; ``not-yet`` within the wait; ``failed``; ``undone``: somebody put them back, an operator as
    it seems; ``owned``: nothing was done, since Strimzi's operator would undo it, and ``patch`` (or ``snippet``, where
    the resource is not known) says how to tell it. ``undone``: the connectors that changed again.
    """

    kind: Literal["failover.connect-action"] = "failover.connect-action"
    version: int = 1
    verb: Verb
    flow: str
    at: str
    outcome: Outcome
    connectors: tuple[Mirror, ...]
    undone: tuple[str, ...] = ()
    watched_seconds: float = 0.0
    patch: Patch | None = None
    snippet: str = ""

    @property
    def exit_code(self) -> int:
        """Gives the exit status: 3 nothing was done, 4 not all are what was asked for, 6 it was undone."""
        return {"done": 0, "not-yet": 4, "failed": 4, "undone": 6, "owned": 3}[self.outcome]


def by_rest(
    client: ConnectClient,
    chosen: Sequence[Mirror],
    verb: Verb,
    *,
    wait: float,
    recheck: float,
    only_failed: bool = False,
    say: Callable[[str], None],
    clock: Clock | None = None,
) -> Acted:
    """Asks Connect, waits ``wait`` seconds until it is so, and watches ``recheck`` seconds that it stays so."""
    order = sorted(chosen, key=lambda one: _ORDER[one.kind], reverse=verb in ("resume", "restart"))
    for one in order:
        if verb == "restart":
            client.restart(one.name, only_failed=only_failed)
        elif not at_rest(one, verb=verb):
            client.act(one.name, verb)
        say(f"{verb}: {one.name}")
    names = [one.name for one in chosen]
    found = wait_for(client, names, verb, seconds=wait, clock=clock)
    outcome = outcome_of(found, names, verb)
    undone: list[Mirror] = []
    if outcome == "done" and recheck:
        say(f"watching for {recheck:g} s whether it stays so")
        undone = stays(client, names, verb, seconds=recheck, clock=clock)
        if undone:
            changed = {one.name: one for one in undone}
            found, outcome = [changed.get(one.name, one) for one in found], "undone"
    return Acted(
        verb=verb,
        flow=flow_name(chosen),
        at=client.access.shown,
        outcome=outcome,
        connectors=tuple(found),
        undone=tuple(one.name for one in undone),
        watched_seconds=recheck,
    )


def by_patch(
    kubectl: Kubectl,
    client: ConnectClient | None,
    chosen: Sequence[Mirror],
    verb: Verb,
    patch: Patch,
    *,
    wait: float,
    say: Callable[[str], None],
    clock: Clock | None = None,
) -> Acted:
    """Tells the operator, and waits ``wait`` seconds until Connect says so; without a client, the resource."""
    say(kubectl.apply(patch) or "applied")
    names = [one.name for one in chosen]
    found = wait_for(client or kubectl, names, verb, seconds=wait, clock=clock)
    return Acted(
        verb=verb,
        flow=flow_name(chosen),
        at=kubectl.shown,
        outcome=outcome_of(found, names, verb),
        connectors=tuple(found),
        patch=patch,
    )


def outcome_of(found: Sequence[Mirror], names: Sequence[str], verb: Verb) -> Outcome:
    """Judges a last look."""
    if len(found) == len(names) and all(at_rest(one, verb=verb) for one in found):
        return "done"
    return "failed" if any(one.failed for one in found) else "not-yet"


def flow_name(chosen: Sequence[Mirror]) -> str:
    """Names the flow, or the flows, of connectors."""
    return ", ".join(dict.fromkeys(one.flow for one in chosen))
