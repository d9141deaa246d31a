"""Puts back what an execution wrote."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from failover.library.flows import MirrorFlow, runs_topic
from failover.library.planning import user
from failover.model.execution import Execution
from failover.state.folder import StateFolder

if TYPE_CHECKING:
    from failover.kafka.port import Cluster


def roll_back(
    undone: Execution,
    flow: MirrorFlow,
    cluster: Cluster,
    state: StateFolder,
    *,
    reason: str = "",
    operator: str | None = None,
    warn: Callable[[str], None],
) -> Execution:
    """Puts back the offsets from before an execution and gives the record of it, as `failover rollback` does.

    What is back already is not written again. ``cluster``: the flow's target. Raises ``Locked``, ``StalePlan`` for
    another cluster under the alias, and what the cluster raises.
    """
    from failover.execution.holding import holding
    from failover.execution.session import Session, Ways
    from failover.planning.drift import check_cluster

    found = cluster.facts().cluster_id
    check_cluster(undone.target_alias, undone.target_cluster_id, found, f"execution {undone.id}")
    topic = runs_topic(flow.config, flow.source)
    who = user() if operator is None else operator
    with holding(cluster, topic, f"rollback {undone.id}", operator=who, warn=warn) as common:
        ways = Ways(operator=who, reason=reason, log=common.log, warnings=common.warnings, warn=warn)
        return Session.of_undo(undone, state, cluster, ways).run()
