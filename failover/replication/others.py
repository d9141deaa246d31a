"""Whether somebody else writes into a partition that the replicator copies to."""

from __future__ import annotations

from collections.abc import Mapping, Set
from struct import Struct
from typing import NamedTuple

from failover.kafka.wire.batches import Batch
from failover.kafka.wire.cluster import WireCluster
from failover.kafka.wire.logs import log_ranges
from failover.kafka.wire.windows import Reading, read_all
from failover.model.cluster import LogRange
from failover.model.names import TopicPartition

_PRODUCER = Struct(">q")
_PRODUCER_AT = 43
_OFFSETS_READ = 100_000


class Foreign(NamedTuple):
    """Is what somebody else wrote: the first offset, how many records, and by which producer id (-1: by none)."""

    offset: int
    records: int
    producer_id: int


class _OthersReading(Reading):
    """Looks at batch headers for another's producer id; an older batch than version 2 has none."""

    __slots__ = ("_own", "found")
    whole = True

    def __init__(self, tp: TopicPartition, start: int, stop: int, own: Set[int]) -> None:
        super().__init__(tp, start, stop)
        self._own = own
        self.found: Foreign | None = None

    def take(self, batch: Batch) -> None:
        if batch.control:
            return
        producer_id = _PRODUCER.unpack_from(batch.data, _PRODUCER_AT)[0] if batch.magic >= 2 else -1
        if producer_id in self._own:
            return
        first = max(batch.base_offset, self.start)
        before = self.found or Foreign(first, 0, producer_id)
        self.found = before._replace(records=before.records + batch.next_offset - first)


async def find_foreign(
    target: WireCluster, places: Mapping[TopicPartition, tuple[int, Set[int]]]
) -> dict[TopicPartition, Foreign]:
    """Finds records from an offset on that none of these producer ids wrote; ``places``: (offset, own producer ids).

    Up to 100,000 offsets of each partition are looked at. A partition that cannot be read is left out: what is to be
    read there next will say so. Raises ``ClusterUnreachable``, ``CredentialsRefused``.
    """
    ranges = await log_ranges(target, places)
    readings = []
    for tp, (offset, own) in places.items():
        log = ranges[tp]
        if isinstance(log, LogRange) and (start := max(offset, log.start)) < log.end:
            readings.append(_OthersReading(tp, start, min(log.end, start + _OFFSETS_READ), own))
    if readings:
        await read_all(target, readings)
    return {reading.tp: reading.found for reading in readings if reading.found is not None}
