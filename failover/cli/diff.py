"""`failover diff`: what changed between two plans."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from failover.cli.frame import Command, Settings, format_option, pass_settings
from failover.cli.wiring import state_folder
from failover.errors import UsageError

if TYPE_CHECKING:
    from failover.model.plan import Plan
    from failover.state.folder import StateFolder


@click.command(cls=Command)
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW")
@format_option("table", "json", "yaml")
@pass_settings
def command(settings: Settings, /, *, old: str, new: str) -> int:
    """Shows what changed from one plan to another: sums, groups, partitions and findings.

    OLD and NEW are ids or files of plans of the same flow. Contacts no cluster.
    """
    from failover.report.diff_text import diff_text
    from failover.report.plan_diff import plan_diff

    state = state_folder(settings)
    before, after = _plan(state, old), _plan(state, new)
    flows = [f"{plan.source.alias}->{plan.target.alias}" for plan in (before, after)]
    if flows[0] != flows[1]:
        raise UsageError(
            f"plan {before.id} is of {flows[0]} and plan {after.id} of {flows[1]}: they have nothing in common",
            hint="compare two plans of one flow",
        )
    diff = plan_diff(before, after)
    settings.emit_value(diff, {"table": lambda: diff_text(diff, verbosity=settings.verbosity)})
    return 0


def _plan(state: StateFolder, reference: str) -> Plan:
    from failover.planning.plan_file import decode_plan
    from failover.state.plans import find_plan, read_plan

    return decode_plan(read_plan(find_plan(state, reference)), reference)
