"""Lingering members removed as a step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from failover.errors import StepFailed
from failover.runbook.kinds import Context, Kind, Result
from failover.runbook.steps.wait_inactive import chosen


class EvictStep(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``groups``: literal names; none: those of ``plan``. ``static_only``: only static members."""

    groups: list[str] = []
    plan: str = ""
    static_only: bool = True


class EvictKind(Kind[EvictStep]):
    """Removes members of processes that are gone from groups on the target; a client that lives joins again."""

    parameters = EvictStep
    results = {"removed": "members removed"}  # noqa: RUF012 - a class's constant

    def preview(self, given: EvictStep, context: Context) -> str:
        found = self._members(given, context)
        return f"would remove {sum(map(len, found.values()))} members of {len(found)} groups"

    def run(self, given: EvictStep, context: Context) -> Result:
        removed = 0
        for group, members in self._members(given, context).items():
            for member, fault in context.reach.target.evict(group, members).items():
                if fault is not None:
                    raise StepFailed(f"member {member} of {group} cannot be removed: {fault}")
                removed += 1
        return {"removed": removed}

    def settle(self, given: EvictStep, context: Context) -> Any:
        from failover.runbook.kinds import Settled

        # whoever is gone is gone: removing what is left is the same step once more
        return Settled(done=not self._members(given, context), result={"removed": 0})

    def _members(self, given: EvictStep, context: Context) -> dict[str, tuple[Any, ...]]:
        from failover.execution.evict import candidates

        names = chosen(given.groups, given.plan, context)
        infos = context.reach.target.describe_groups(names)
        found = {}
        for name in names:
            if infos[name].exists and infos[name].members:
                members = candidates(context.reach.target, name, static_only=given.static_only)[1]
                if members:
                    found[name] = members
        return found

    def by_hand(self, given: Mapping[str, Any]) -> str:
        groups = given.get("groups") or ["GROUP"]
        static = " --static-only" if given.get("static_only", True) else ""
        named = [groups] if isinstance(groups, str) else groups
        return "\n".join(f"failover evict --group {name}{static}" for name in named)


KIND = EvictKind()
