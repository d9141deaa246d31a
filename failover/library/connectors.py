"""What Kafka Connect says of a flow's connectors, for what works on the clusters themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from failover.errors import FailoverError
from failover.model.names import TopicPartition

if TYPE_CHECKING:
    from failover.connect.client import ConnectClient
    from failover.connect.mirrors import Mirror
    from failover.inventory.positions import Position
    from failover.library.flows import MirrorFlow
    from failover.model.status import ConnectorState

T = TypeVar("T")

PATIENCE = 5.0
"""Seconds that are waited for a Connect cluster nothing depends on."""


class OnConnect(NamedTuple):
    """Is what was told: the connectors' states, and how far each source partition was copied."""

    states: tuple[ConnectorState, ...] = ()
    positions: Mapping[TopicPartition, Position] = {}


def ask_connect(
    mirror: MirrorFlow, *, url: str = "", timeout: float = PATIENCE, warn: Callable[[str], None]
) -> OnConnect:
    """Asks for the flow's connectors and their positions, which workers before Kafka 3.5 do not tell.

    ``url``, ``timeout``, ``warn``: see ``flow_connectors``.
    """
    from failover.model.status import ConnectorState

    def ask(client: ConnectClient) -> OnConnect:
        found = _of_flow(mirror, client)
        states = (
            ConnectorState(one.name, one.kind, one.state, tuple(task.state for task in one.tasks), one.problem)
            for one in found
        )
        return OnConnect(tuple(states), {} if mirror.selected.reversed else _positions(client, found))

    return _asked(mirror, url, timeout, warn, ask) or OnConnect()


def flow_connectors(
    mirror: MirrorFlow, *, url: str = "", timeout: float = PATIENCE, warn: Callable[[str], None]
) -> list[Mirror]:
    """Asks the Connect cluster at ``url``, "" for ``failover.connect.url``; a vendor's service has nothing to ask.

    ``warn`` is told of one that does not answer within ``timeout`` seconds, five at most: nothing depends on it.
    """
    return _asked(mirror, url, timeout, warn, lambda client: _of_flow(mirror, client)) or []


def _of_flow(mirror: MirrorFlow, client: ConnectClient) -> list[Mirror]:
    from failover.connect import mirrors

    flow = mirror.selected.flow
    return mirrors.connector_states(client, flow.source.alias, flow.target.alias)


def _positions(client: ConnectClient, found: list[Mirror]) -> dict[TopicPartition, Position]:
    from failover.inventory.positions import Position

    positions: dict[TopicPartition, Position] = {}
    for one in found:
        if one.kind != "source":
            continue
        try:
            rows = client.offsets(one.name)
        except FailoverError:
            continue  # the lag is told by two more ways
        for row in rows:
            match row.partition, row.offset:
                case {"cluster": one.source, "topic": str(topic), "partition": int(number)}, {"offset": int(offset)}:
                    # MM2 keeps the last record's offset; Connect does not tell when
                    positions[TopicPartition(topic, number)] = Position(offset + 1, -1, one.name)
    return positions


def _asked(
    mirror: MirrorFlow, url: str, timeout: float, warn: Callable[[str], None], ask: Callable[[ConnectClient], T]
) -> T | None:
    if not url and "connect.url" not in mirror.config.failover:
        return None
    from failover.connect.access import ConnectAccess, find_access
    from failover.connect.client import ConnectClient
    from failover.report.inert import inert_line

    try:
        access = find_access(mirror.config.failover, url=url or None, timeout=min(timeout, PATIENCE))
        if not isinstance(access, ConnectAccess):
            return None
        with ConnectClient(access, rebalance_seconds=PATIENCE) as client:
            return ask(client)
    except FailoverError as error:
        warn(inert_line(f"warning: the connectors' states are not known: {error.message}"))
        return None
