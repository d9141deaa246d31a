"""How far each source partition was copied, as Kafka Connect's offsets topic on the target has it."""

from __future__ import annotations

from typing import NamedTuple

from failover.errors import ClusterError
from failover.kafka.faults import fault_of_loss
from failover.kafka.port import Cluster
from failover.mm2.connect_offsets import SourceOffsetKey, decode_offset, decode_offset_key
from failover.mm2.fields import DecodeError
from failover.mm2.worker_name import signed_by
from failover.model.cluster import LogRange, TopicInfo
from failover.model.names import Fault, TopicPartition
from failover.model.records import WindowRequest


class Position(NamedTuple):
    """Is where copying goes on after a restart: every record before ``next`` is on the target.

    ``timestamp``: when it was kept, epoch milliseconds. ``connector``: under which name. ``worker``: of `failover
    replicate`, where one kept it.
    """

    next: int
    timestamp: int
    connector: str
    worker: str = ""


class Positions(NamedTuple):
    """Is what the topic holds of one source, by source partition; ``fault``: why it could not be read whole."""

    by_partition: dict[TopicPartition, Position]
    fault: Fault | None = None


NONE = Positions({})


def read_positions(cluster: Cluster, info: TopicInfo | None, source: str) -> Positions:
    """Reads the newest position of every partition of ``source``, all partitions of the topic at once.

    ``info``: the topic, None where it is not there. Where two connectors keep one partition the further one counts.
    """
    if info is None:
        return NONE
    newest: dict[bytes, tuple[int, int | None, SourceOffsetKey, str]] = {}
    try:
        ranges = cluster.log_ranges([TopicPartition(info.name, number) for number in range(info.partitions)])
        wanted = [
            WindowRequest("target", tp, log.start, log.end)
            for tp, log in ranges.items()
            if isinstance(log, LogRange) and log.end > log.start
        ]
        windows = cluster.windows(wanted) if wanted else {}
    except ClusterError as error:
        return Positions({}, fault_of_loss(error))
    lost = next((found for found in ranges.values() if isinstance(found, Fault)), None)
    for window in windows.values():
        lost = lost or window.fault
        for record in window.records:
            try:
                key = decode_offset_key(record.key)
                offset = decode_offset(record.value)
            except DecodeError:
                continue  # other connectors may keep anything here
            if isinstance(key, SourceOffsetKey) and key.cluster == source and record.key is not None:
                newest[record.key] = record.timestamp, offset, key, signed_by(record.headers)
    found: dict[TopicPartition, Position] = {}
    for timestamp, offset, key, worker in newest.values():
        tp = TopicPartition(key.topic, key.partition)
        if offset is not None and (tp not in found or found[tp].next <= offset):
            found[tp] = Position(offset + 1, timestamp, key.connector, worker)
    return Positions(found, lost)
