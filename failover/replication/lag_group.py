"""The flow's positions committed on the source under a group of its own, so that standard tools show the lag.

MM2 commits no such group, though guides tell of one. It has no members, and is read on the source's addresses:
``kafka-consumer-groups.sh --bootstrap-server <source> --describe --group mirrormaker2-cluster-<target>``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from failover.kafka.wire.cluster import WireCluster
from failover.kafka.wire.offsets import commit_offsets
from failover.model.groups import Commit
from failover.model.names import Fault, TopicPartition
from failover.replication.repeating import Troubles

EVERY_SECONDS = 5.0

_ALL_AGAIN = 720
"""So many rounds (an hour) until what did not move is committed again: unused offsets expire (a day on old brokers)."""
_HINTS = {
    25: "the group has members: give consumers another group id",
    29: "grant READ on the topics of the flow",
    30: "grant READ on the group, or remove failover.replicator.lag.group",
}


class _Lane(Protocol):
    @property
    def upstream(self) -> int: ...


class Copied(Protocol):
    """Is a partition being copied; see ``failover.replication.route.Route``. ``generation`` 0: not located yet."""

    @property
    def lane(self) -> _Lane: ...
    @property
    def generation(self) -> int: ...


class LagGroup:
    """Commits where each partition stands (the next source offset to copy) under ``group``.

    ``copied`` gives the partitions by source partition. What cannot be committed is told once, and tried again.
    """

    def __init__(self, source: WireCluster, group: str, copied: Callable[[], Mapping[TopicPartition, Copied]]) -> None:
        self._source = source
        self._group = group
        self._copied = copied
        self._committed: dict[TopicPartition, int] = {}
        self._rounds = 0
        self._troubles = Troubles()

    async def commit(self) -> None:
        """Commits what has moved since the last time. Raises ``ClusterUnreachable``, ``CredentialsRefused``."""
        self._rounds += 1
        if self._rounds % _ALL_AGAIN == 0:
            self._committed.clear()
        stands = {tp: route.lane.upstream for tp, route in self._copied().items() if route.generation}
        moved = {tp: offset for tp, offset in stands.items() if self._committed.get(tp) != offset}
        if not moved:
            return
        asked = {self._group: {tp: Commit(offset) for tp, offset in moved.items()}}
        answer = (await commit_offsets(self._source, asked, lanes=1))[self._group]
        faults = dict.fromkeys(moved, answer) if isinstance(answer, Fault) else answer
        refused = {tp: fault for tp, fault in faults.items() if fault is not None}
        self._committed.update((tp, offset) for tp, offset in moved.items() if tp not in refused)
        if not refused:
            self._troubles.only()
            return
        tp, fault = next(iter(refused.items()))
        hint = _HINTS.get(fault.number)
        self._troubles.tell(
            "refused",
            f"group {self._group} of {self._source.alias}: {len(refused)} positions cannot be committed, so the lag it"
            f" shows is not true; of {tp}: {fault}{f'; {hint}' if hint else ''}; tried again",
            over=f"group {self._group} of {self._source.alias}: positions are committed again",
        )
