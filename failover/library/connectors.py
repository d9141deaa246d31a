"""What Kafka Connect says of a flow's connectors, for what works on the clusters themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from failover.errors import FailoverError

if TYPE_CHECKING:
    from failover.connect.mirrors import Mirror
    from failover.library.flows import MirrorFlow
    from failover.model.status import ConnectorState

PATIENCE = 5.0
"""Seconds that are waited for a Connect cluster nothing depends on."""


def connector_states(
    mirror: MirrorFlow, *, url: str = "", timeout: float = PATIENCE, warn: Callable[[str], None]
) -> tuple[ConnectorState, ...]:
    """Gives the states of the flow's connectors; none where no Connect cluster is known. See ``flow_connectors``."""
    from failover.model.status import ConnectorState

    return tuple(
        ConnectorState(one.name, one.kind, one.state, tuple(task.state for task in one.tasks), one.problem)
        for one in flow_connectors(mirror, url=url, timeout=timeout, warn=warn)
    )


def flow_connectors(
    mirror: MirrorFlow, *, url: str = "", timeout: float = PATIENCE, warn: Callable[[str], None]
) -> list[Mirror]:
    """Asks the Connect cluster at ``url``, "" for ``failover.connect.url``; a vendor's service has nothing to ask.

    ``warn`` is told of one that does not answer within ``timeout`` seconds, five at most: nothing depends on it.
    """
    if not url and "connect.url" not in mirror.config.failover:
        return []
    from failover.connect import mirrors
    from failover.connect.access import ConnectAccess, find_access
    from failover.connect.client import ConnectClient
    from failover.report.inert import inert_line

    flow = mirror.selected.flow
    try:
        access = find_access(mirror.config.failover, url=url or None, timeout=min(timeout, PATIENCE))
        if not isinstance(access, ConnectAccess):
            return []
        with ConnectClient(access, rebalance_seconds=PATIENCE) as client:
            return mirrors.connector_states(client, flow.source.alias, flow.target.alias)
    except FailoverError as error:
        warn(inert_line(f"warning: the connectors' states are not known: {error.message}"))
        return []
