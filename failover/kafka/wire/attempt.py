"""Whether this client may write to a topic, found out by trying, without anything being written."""

from __future__ import annotations

import struct
from collections.abc import Collection

from failover.kafka.wire.cluster import WireCluster
from failover.kafka.wire.produce import ProduceBatch, produce_call
from failover.model.names import Fault, TopicPartition

_CORRUPT, _NOT_AUTHORIZED, _INVALID = 2, 29, 87

_RECORD = b"\x0c\0\0\0\x01\0\0"  # its length, attributes, deltas 0, no key, an empty value, no headers
_BATCH = struct.pack(">qiibIhiqqqhii", 0, 49 + len(_RECORD), -1, 2, 0, 0, 0, 0, 0, -1, -1, -1, 1) + _RECORD
"""A batch of one record whose checksum is wrong: whoever may write is told that it is damaged.

Brokers look at rights before they look at records (Kafka: KafkaApis.handleProduceRequest), and refuse damaged ones
whole (UnifiedLog.analyzeAndValidateRecords).
"""


async def may_write(cluster: WireCluster, topics: Collection[str]) -> dict[str, bool | Fault]:
    """Tries to write a damaged batch to partition 0 of each topic and says whether only the damage kept it out."""

    async def send(node: int, share: list[TopicPartition]) -> dict[TopicPartition, bool | Fault]:
        answer = await cluster.send(node, produce_call([ProduceBatch(*tp, _BATCH) for tp in share]))
        found: dict[TopicPartition, bool | Fault] = {}
        for each in answer.partitions:
            fault, tp = each.fault, TopicPartition(each.topic, each.partition)
            if fault is not None and fault.number in (_CORRUPT, _INVALID):
                found[tp] = True
            elif fault is not None and fault.number == _NOT_AUTHORIZED:
                found[tp] = False
            else:
                found[tp] = fault if fault is not None else Fault(-1, "WRITTEN", "a damaged batch was taken")
        return found

    found = await cluster.spread([TopicPartition(topic, 0) for topic in topics], send)
    return {tp.topic: answer for tp, answer in found.items()}
