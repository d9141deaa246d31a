"""How many bytes logs take on the brokers' disks."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from failover.kafka.faults import maybe_fault
from failover.kafka.wire.cluster import WireCluster
from failover.kafka.wire.messages import Call, written
from failover.kafka.wire.primitives import Reader, Writer
from failover.kafka.wire.rounds import scatter, settle
from failover.model.names import Fault

_DESCRIBE_LOG_DIRS = 35
_SECONDS = 3.0

Sizes = dict[str, int]


async def log_bytes(cluster: WireCluster, topics: Collection[str]) -> Sizes | Fault:
    """Sums the bytes of topics over all brokers, replicas included (Kafka: DescribeLogDirs).

    A fault when any broker did not tell: CLUSTER_AUTHORIZATION_FAILED (31) without DESCRIBE on the cluster. Raises
    ``ClusterUnreachable``, ``CredentialsRefused``.
    """

    async def send(node: int, _: list[int]) -> dict[int, Sizes | Fault]:
        # No topics stands for all of them, which costs less to ask for than their partitions to know.
        return {node: await cluster.send(node, _call())}

    async def ask(nodes: Sequence[int], _: bool) -> dict[int, Sizes | Fault]:
        return await scatter({node: node for node in nodes}, send)

    answers = await settle(cluster.brokers, ask, budget=min(cluster.silence, _SECONDS))
    total = dict.fromkeys(topics, 0)
    for answer in answers.values():
        if isinstance(answer, Fault):
            return answer
        for topic in total.keys() & answer.keys():
            total[topic] += answer[topic]
    return total


def _call() -> Call[Sizes | Fault]:
    def write(out: Writer, _: int) -> None:
        out.array(None)
        out.tags()

    def read(reader: Reader, version: int) -> Sizes | Fault:
        reader.int32()
        reason = maybe_fault(reader.int16()) if version >= 3 else None
        sizes: Sizes = {}
        told = False
        for _ in range(reader.array()):
            broken = maybe_fault(reader.int16())
            told = told or broken is None
            reason = reason or broken
            reader.string()  # the folder
            for _ in range(reader.array()):
                name = reader.string()
                for _ in range(reader.array()):
                    reader.int32()
                    sizes[name] = sizes.get(name, 0) + reader.int64()
                    reader.int64()  # how far a replica that moves here is behind
                    reader.int8()  # whether it will take the place of another one
                    reader.tags()
                reader.tags()
            if version >= 4:
                reader.int64()  # the disk's size
                reader.int64()  # and what is free of it
            reader.tags()
        reader.tags()
        return sizes if told or reason is None else reason

    return written(_DESCRIBE_LOG_DIRS, 1, 4, flexible_from=2, write=write, read=read)
