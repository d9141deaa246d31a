"""What a flow consists of while it runs, for whoever looks at it from outside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from failover.inventory.flow import Flow
    from failover.replication.checkpointing import Checkpointing, CheckpointOptions
    from failover.replication.engine import Engine
    from failover.replication.heartbeats import Heartbeats
    from failover.replication.switch import Switch
    from failover.replication.topics import Topics


class Parts(NamedTuple):
    """Is one flow at work. ``heartbeats``: None where they are switched off. ``switches``: by connector.

    ``cluster_id``: the target's.
    """

    flow: Flow
    engine: Engine
    topics: Topics
    checkpointing: Checkpointing
    heartbeats: Heartbeats | None
    options: CheckpointOptions
    switches: Mapping[str, Switch]
    cluster_id: str | None
