"""Applications stopped on one cluster and started on the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from failover.errors import Declined
from failover.runbook.kinds import Context, Kind, Result, Settled
from failover.runbook.steps.command import run_program
from failover.runbook.steps.manual import done_by_hand


class MoveApplications(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``action``: stop or start; ``what``: producers or consumers; ``on``: source or target.

    ``hook``: a program and its arguments, empty: by hand. ``instructions``: what to do by hand.
    ``plan``: a plan's id, which says what consumers subscribe to.
    """

    action: Literal["stop", "start"]
    what: Literal["producers", "consumers"]
    on: Literal["source", "target"]
    instructions: str
    hook: list[str] = []
    plan: str = ""


class MoveApplicationsKind(Kind[MoveApplications]):
    """Stops or starts producers or consumers on a cluster: by a hook of yours, or by hand.

    The hook is called as ``HOOK ACTION WHAT ALIAS`` (``stop producers primary``) and finds ``FAILOVER_BOOTSTRAP``, the
    cluster's addresses, and ``FAILOVER_PLAN_FILE``, the plan's JSON, in its environment beside what command gives. The
    way back calls it with the opposite action on the same cluster, so it has to do no harm when it is called twice.
    """

    parameters = MoveApplications
    results = {"by": "who said that it is done, or the hook"}  # noqa: RUF012 - a class's constant
    undoes = True
    asks = True

    def preview(self, given: MoveApplications, context: Context) -> str:
        if given.hook:
            return f"would run: {' '.join([*given.hook, *_arguments(given, given.action, context)])}"
        return f"would wait for somebody to say that this is done: {given.instructions}"

    def run(self, given: MoveApplications, context: Context) -> Result:
        if given.hook:
            self._call(given, given.action, context)
            return {"by": given.hook[0]}
        return done_by_hand(given.instructions, "", context)

    def settle(self, given: MoveApplications, context: Context) -> Settled:  # noqa: ARG002
        return Settled(done=False)  # a hook does no harm when it is called twice; a question is asked again

    def undo(self, given: MoveApplications, context: Context) -> str:
        back: Literal["stop", "start"] = "start" if given.action == "stop" else "stop"
        if given.hook:
            self._call(given, back, context)
            return f"by {given.hook[0]} {' '.join(_arguments(given, back, context))}"
        alias = context.source if given.on == "source" else context.target
        told = f"{back} the {given.what} on {alias}"
        if not context.ask(f"To go back: {told}. Is this done?"):
            raise Declined(f"declined: somebody has to {told}")
        return f"by hand: {told}"

    def _call(self, given: MoveApplications, action: str, context: Context) -> None:
        from failover.state.plans import find_plan

        selected = context.reach.flow.selected
        client = selected.source_client() if given.on == "source" else selected.target_client()
        env = {"FAILOVER_BOOTSTRAP": ",".join(f"{host}:{port}" for host, port in client.bootstrap)}
        if given.plan:
            env["FAILOVER_PLAN_FILE"] = str(find_plan(context.reach.state, given.plan))
        run_program([*given.hook, *_arguments(given, action, context)], context, env=env)

    def by_hand(self, given: Mapping[str, Any]) -> str:
        hook = given.get("hook")
        return " ".join([*map(str, hook), *_told(given)]) if isinstance(hook, list) and hook else ""


def _arguments(given: MoveApplications, action: str, context: Context) -> list[str]:
    return [action, given.what, context.source if given.on == "source" else context.target]


def _told(given: Mapping[str, Any]) -> list[str]:
    return [str(given.get(name, name.upper())) for name in ("action", "what", "on")]


KIND = MoveApplicationsKind()
