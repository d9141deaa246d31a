"""Sees to it that a topic the replicator writes for itself is there."""

from __future__ import annotations

from collections.abc import Sequence

from failover.kafka.wire.cluster import Leader, WireCluster
from failover.kafka.wire.rounds import settle
from failover.kafka.wire.topics import NewTopic, create_topics
from failover.model.names import Fault, TopicPartition

_ALREADY_EXISTS = 36


async def ensure_topic(cluster: WireCluster, topic: NewTopic) -> tuple[Fault | None, bool]:
    """Makes a topic unless it is there, and waits until a new one can be written.

    Gives why it cannot be used, None if it can, and whether it was there. An existing topic stays as it is. Raises
    ``ClusterUnreachable``, ``CredentialsRefused``.
    """
    state = (await cluster.metadata([topic.name])).topics[topic.name]
    if state.fault is None:
        return None, True
    made = (await create_topics(cluster, [topic]))[topic.name]
    if isinstance(made, Fault):
        if made.number != _ALREADY_EXISTS:
            return made, False
        return await _led(cluster, [TopicPartition(topic.name, 0)]), True
    return await _led(cluster, [TopicPartition(topic.name, number) for number in range(topic.partitions)]), False


async def _led(cluster: WireCluster, partitions: Sequence[TopicPartition]) -> Fault | None:
    """Waits until each partition has a leader: the controller answers before every broker knows a new topic."""

    async def ask(open_partitions: Sequence[TopicPartition], _: bool) -> dict[TopicPartition, Leader | Fault]:
        found = await cluster.leaders(open_partitions, refresh=True)
        return {
            tp: leader if isinstance(leader, Leader) else Fault(leader.number, leader.name, leader.message, True)
            for tp, leader in found.items()
        }

    found = await settle(partitions, ask, budget=cluster.silence)
    return next((leader for leader in found.values() if isinstance(leader, Fault)), None)
