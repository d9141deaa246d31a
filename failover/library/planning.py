"""From a snapshot to a plan."""

from __future__ import annotations

import getpass
import os
from collections.abc import Collection
from typing import TYPE_CHECKING

import msgspec

from failover._version import __version__
from failover.model.plan import Plan, PlanOptions
from failover.model.snapshot import Snapshot

if TYPE_CHECKING:
    from failover.state.folder import StateFolder

TTL_SECONDS = 3600.0


def make_plan(
    snapshot: Snapshot,
    *,
    groups: Collection[str] = (),
    options: PlanOptions | None = None,
    ttl_seconds: float = TTL_SECONDS,
    reason: str = "",
    operator: str | None = None,
    earlier: Plan | None = None,
) -> Plan:
    """Decides every group of a snapshot, or those named; contacts nothing and keeps nothing.

    ``options``: what `failover plan` takes (``failover.model.plan.PlanOptions``); ``groups`` win over its own.
    ``ttl_seconds``: how long the plan may be executed. ``operator``: None stands for the user of the operating system.
    ``earlier``: a plan of the flow from before, to notice topics made anew since. Raises ``UsageError`` for options
    that contradict each other.
    """
    from failover.planning import build

    wanted = options or PlanOptions()
    if groups:
        wanted = msgspec.structs.replace(wanted, groups=tuple(dict.fromkeys(groups)))
    return build.make_plan(
        snapshot,
        wanted,
        plan_id=os.urandom(3).hex(),
        operator=user() if operator is None else operator,
        reason=reason,
        ttl_seconds=ttl_seconds,
        tool_version=__version__,
        earlier=earlier,
    )


def saved_plan(state: StateFolder, reference: str) -> Plan:
    """Reads a plan by file name, id or an unambiguous beginning of an id.

    Raises ``PlanNotFound`` and ``PlanInvalid``.
    """
    from failover.planning.plan_file import decode_plan
    from failover.state.plans import find_plan, read_plan

    return decode_plan(read_plan(find_plan(state, reference)))


def user() -> str:
    """Names the user of the operating system."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
