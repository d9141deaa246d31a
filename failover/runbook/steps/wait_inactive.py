"""Groups waited for until nobody is in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from failover.errors import StepFailed, UsageError
from failover.model.groups import GroupInfo
from failover.runbook.kinds import Context, Kind, Result


class WaitInactive(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``groups``: literal names; none: those of ``plan``. ``plan``: its id. ``on``: source or target."""

    groups: list[str] = []
    plan: str = ""
    on: str = "target"


class WaitInactiveKind(Kind[WaitInactive]):
    """Waits until groups have no member on a cluster: the broker takes no commit for a group that has one."""

    parameters = WaitInactive
    results = {"groups": "how many were looked at", "seconds": "how long it took"}  # noqa: RUF012
    acts = False

    def preview(self, given: WaitInactive, context: Context) -> str:
        names = chosen(given.groups, given.plan, context)
        there = _active(given.on, names, context)
        return f"would wait for {len(names)} groups on the {given.on}; with members now: {_told(there) or 'none'}"

    def run(self, given: WaitInactive, context: Context) -> Result:
        names = chosen(given.groups, given.plan, context)
        began = context.remaining()
        seen: list[GroupInfo] = []

        def gone() -> bool:
            seen[:] = _active(given.on, names, context)
            return not seen

        context.wait(gone, what=lambda: f"still with members on the {given.on}: {_told(seen)}", every=0.25)
        return {"groups": len(names), "seconds": round(began - context.remaining(), 1)}


def chosen(groups: Sequence[str], plan: str, context: Context) -> list[str]:
    """Gives the groups that were named, or a plan's. Raises ``UsageError`` where there are neither."""
    if groups:
        return list(dict.fromkeys(groups))
    if not plan:
        raise UsageError("neither groups nor a plan is given", hint="with: {groups: [...]} or {plan: '{{ … }}'}")
    from failover.library.planning import saved_plan

    found = saved_plan(context.reach.state, plan)
    return [group.group for group in found.groups]


def _active(on: str, names: Sequence[str], context: Context) -> list[GroupInfo]:
    if on not in ("source", "target"):
        raise UsageError(f"on is {on!r}", hint="source or target")
    cluster = context.reach.source if on == "source" else context.reach.target
    infos = cluster.describe_groups(names)
    require_seen(infos, on)
    return [infos[name] for name in names if infos[name].exists and not infos[name].inactive]


def require_seen(infos: Mapping[str, GroupInfo], on: str) -> None:
    """Raises ``StepFailed`` for groups of which nobody will be told by waiting who is in them."""
    hidden = [info for info in infos.values() if info.fault is not None and not info.fault.retriable]
    if hidden:
        raise StepFailed(
            f"who is in {len(hidden)} groups cannot be seen on the {on}: {hidden[0].name}: {hidden[0].fault}",
            hint="this user needs DESCRIBE on the groups",
        )


def _told(groups: Sequence[GroupInfo]) -> str:
    said = []
    for group in groups[:5]:
        who = ", ".join(f"{one.client_id} at {one.host}" for one in group.members[:2])
        said.append(f"{group.name} ({group.state}: {who or group.fault or 'no member told'})")
    return "; ".join(said) + (f" and {len(groups) - 5} more" if len(groups) > 5 else "")


KIND = WaitInactiveKind()
