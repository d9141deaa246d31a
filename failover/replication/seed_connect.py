"""Start positions of a connector on a Kafka Connect cluster, set by its REST interface while it is stopped."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Mapping

from failover.connect.client import ConnectClient
from failover.connect.mirrors import Mirror, connector_states
from failover.connect.values import STOPPED, Offset, Offsets
from failover.errors import ConnectorNotFound, Refused
from failover.model.names import Fault, TopicPartition
from failover.replication.anchor import Anchor


def source_connector(client: ConnectClient, source: str, target: str, name: str | None = None) -> Mirror:
    """Finds the source connector of a flow, or the one of this name, and makes sure that it is stopped.

    Connect sets positions of no other. Raises ConnectorNotFound, Refused.
    """
    found = [one for one in connector_states(client, source, target) if one.kind == "source"]
    if name is not None:
        found = [one for one in found if one.name == name]
    at = client.access.shown
    if len(found) != 1:
        which = f"{source}->{target}" if name is None else f"{source}->{target} called {name}"
        names = ", ".join(one.name for one in found)
        raise ConnectorNotFound(
            f"{at} has {'several source connectors' if found else 'no source connector'} of {which}"
            + (f": {names}" if found else ""),
            hint="name one with --connector" if found else "failover connect deploy --stopped makes it, not running",
        )
    [one] = found
    if one.state != STOPPED or one.tasks:
        raise Refused(
            f"connector {one.name} at {at} is {one.state} with {len(one.tasks)} tasks; only a stopped one can be given"
            " positions",
            hint=f"failover connect stop {shlex.quote(one.name)}",
        )
    return one


def kept(anchor: Anchor) -> Anchor | None:
    """Gives what Connect keeps of a position: the next source offset, and nothing at all where that is 0."""
    return Anchor(anchor.upstream) if anchor.upstream > 0 else None


class ConnectPositions:
    """Reads and writes the positions of one connector for one source, as ``Positions`` does in a topic."""

    def __init__(self, client: ConnectClient, connector: str, *, source: str) -> None:
        self._client, self._connector, self._source = client, connector, source

    async def open(self) -> None:
        """Has nothing to make: the topic is Connect's own."""

    async def read(self) -> dict[TopicPartition, Anchor]:
        """Reads every position by source partition; raises what ``ConnectClient`` raises."""
        found = await asyncio.to_thread(self._client.offsets, self._connector)
        return dict(filter(None, map(self._anchor, found)))

    async def write(self, anchors: Mapping[TopicPartition, Anchor]) -> dict[TopicPartition, Fault]:
        """Sets positions in one request, which Connect carries out whole or not at all; gives no faults.

        A position at 0 is taken away: Connect refuses the -1 that would say so, and MM2 begins at the log's start
        without one. Raises what ``ConnectClient`` raises.
        """
        rows = tuple(
            Offset(
                {"cluster": self._source, "partition": tp.partition, "topic": tp.topic},
                {"offset": anchor.upstream - 1} if anchor.upstream > 0 else None,
            )
            for tp, anchor in anchors.items()
        )
        await asyncio.to_thread(self._client.patch_offsets, self._connector, Offsets(rows))
        return {}

    def _anchor(self, row: Offset) -> tuple[TopicPartition, Anchor] | None:
        where, at = row.partition, (row.offset or {}).get("offset")
        topic, partition = where.get("topic"), where.get("partition")
        if where.get("cluster") != self._source or not isinstance(topic, str) or not isinstance(partition, int):
            return None
        if not isinstance(at, int) or at < 0:
            return None
        return TopicPartition(topic, partition), Anchor(at + 1)
