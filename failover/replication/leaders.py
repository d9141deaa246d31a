"""Who leads what, asked for many lanes at once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from failover.kafka.wire.cluster import Leader, WireCluster
from failover.model.names import Fault, TopicPartition

_GATHER_SECONDS = 0.02


class Leaders:
    """Looks leaders up anew; whoever asks while a question is being gathered is answered by the same request.

    A broker that goes down troubles hundreds of lanes at one moment, and each asks.
    """

    def __init__(self, cluster: WireCluster) -> None:
        self._cluster = cluster
        self._asked: set[TopicPartition] = set()
        self._answer: asyncio.Task[dict[TopicPartition, Leader | Fault]] | None = None

    async def find(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Leader | Fault]:
        """Gives each partition's leader as the cluster knows it now. Raises ``ClusterError``."""
        wanted = set(partitions)
        self._asked |= wanted
        if self._answer is None:
            self._answer = asyncio.get_running_loop().create_task(self._ask())
        found = await asyncio.shield(self._answer)
        return {tp: found[tp] for tp in wanted}

    async def known(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Leader | Fault]:
        """Gives each partition's leader as it was known last. Raises ``ClusterError``."""
        return await self._cluster.leaders(partitions)

    async def _ask(self) -> dict[TopicPartition, Leader | Fault]:
        await asyncio.sleep(_GATHER_SECONDS)
        asked, self._asked, self._answer = self._asked, set(), None
        return await self._cluster.leaders(asked, refresh=True)
