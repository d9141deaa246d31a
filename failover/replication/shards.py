"""Into which of a flow's 64 shards a partition belongs, and the transactional id that a shard's owner holds. Pure."""

from __future__ import annotations

from failover.mm2.connect_offsets import murmur2
from failover.model.names import TopicPartition

SHARDS = 64
LEAD = 1
"""The shard that each worker takes before any other: whoever took it last owns the flow."""


def shard_of(tp: TopicPartition) -> int:
    """Gives the shard of a source partition, 1 to 64.

    It must not change from one release to the next: two workers that cut a flow otherwise would not fence each other.
    """
    return murmur2(f"{tp.topic}-{tp.partition}".encode()) % SHARDS + 1


def transactional_id(source: str, target: str, shard: int | None = None) -> str:
    """Names a shard of the flow ``source`` -> ``target`` to the target's transaction coordinator.

    None: what the names of all its shards begin with, for a prefixed ACL.
    """
    return f"failover|{source}->{target}|{'' if shard is None else shard}"
