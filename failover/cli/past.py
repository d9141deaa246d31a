"""What the commands about an execution share: finding it, and reaching the cluster it wrote to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from failover.cli.wiring import choose_flow, load, open_cluster
from failover.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from failover.cli.frame import Settings
    from failover.kafka.port import Cluster
    from failover.model.execution import Execution
    from failover.model.plan import Plan


def target_of(settings: Settings, execution: Execution) -> Cluster:
    """Opens the cluster an execution wrote to, by its alias in the configuration.

    Raises ``UsageError`` when --source or --target name another flow.
    """
    for given, own, option in (
        (settings.source, execution.source_alias, "--source"),
        (settings.target, execution.target_alias, "--target"),
    ):
        if given is not None and given != own:
            raise UsageError(
                f"{execution.id} went from {execution.source_alias} to {execution.target_alias}, not {given}",
                hint=f"leave {option} out: the execution names its clusters",
            )
    settings.source, settings.target = execution.source_alias, execution.target_alias
    selected = choose_flow(settings, load(settings), allow_reverse=True)
    return open_cluster(settings, selected, selected.target)


def plan_of(folder: Path) -> Plan | None:
    """Reads the plan an execution was of, None where only the record is at hand."""
    from failover.planning.plan_file import decode_plan
    from failover.state.runs import PLAN

    path = folder / PLAN
    return decode_plan(path.read_bytes()) if folder.is_dir() and path.is_file() else None
