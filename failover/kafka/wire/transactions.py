"""Transactions as their coordinators know them."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence

import msgspec

from failover.errors import ClusterError, ClusterUnreachable, CredentialsRefused
from failover.kafka.faults import maybe_fault
from failover.kafka.wire.cluster import TRANSACTION, WireCluster
from failover.kafka.wire.logs import partitions_of
from failover.kafka.wire.messages import Call, written
from failover.kafka.wire.primitives import Reader, Writer
from failover.kafka.wire.rounds import lost
from failover.model.names import Fault, TopicPartition

_DESCRIBE, _LIST = 65, 66


class ListedTransaction(msgspec.Struct, frozen=True):
    """Is a row of a listing; ``state`` is Kafka's own word (Ongoing, PrepareAbort, CompleteCommit, Empty …)."""

    transactional_id: str
    producer_id: int
    state: str


class Transaction(msgspec.Struct, frozen=True):
    """Is one transactional id; ``started``: epoch ms, -1 when no transaction is open."""

    transactional_id: str
    state: str
    producer_id: int
    epoch: int
    timeout_ms: int
    started: int
    partitions: tuple[TopicPartition, ...]


async def list_transactions(
    cluster: WireCluster, states: Collection[str] = ()
) -> tuple[dict[str, ListedTransaction], tuple[Fault, ...]]:
    """Lists the transactional ids of every broker, in these states or in any, and faults of brokers not heard.

    Brokers from Kafka 3.0 on. Raises ``ClusterUnreachable`` when none answered.
    """
    answers = await asyncio.gather(
        *(cluster.send(node, _list_call(states)) for node in cluster.brokers), return_exceptions=True
    )
    listed: dict[str, ListedTransaction] = {}
    faults: list[Fault] = []
    for answer in answers:
        if isinstance(answer, ClusterError) and not isinstance(answer, CredentialsRefused):
            faults.append(lost(answer))
        elif isinstance(answer, BaseException):
            raise answer
        else:
            listed.update(answer[0])
            faults += filter(None, [answer[1]])
    if all(isinstance(answer, BaseException) for answer in answers):
        raise ClusterUnreachable(
            f"no broker of cluster {cluster.alias} lists its transactions: {faults[0].message}", alias=cluster.alias
        )
    return listed, tuple(faults)


async def describe_transactions(cluster: WireCluster, ids: Iterable[str]) -> dict[str, Transaction | Fault]:
    """Describes transactional ids; TRANSACTIONAL_ID_NOT_FOUND (105) for one the cluster does not know."""

    async def send(node: int, share: list[str]) -> dict[str, Transaction | Fault]:
        return await cluster.send(node, _describe_call(share))

    return await cluster.spread_groups(ids, send, kind=TRANSACTION)


def _list_call(states: Collection[str]) -> Call[tuple[dict[str, ListedTransaction], Fault | None]]:
    def write(out: Writer, version: int) -> None:
        out.strings(states)
        out.array(0)  # of every producer id
        if version >= 1:
            out.int64(-1)  # however long they run
        out.tags()

    def read(reader: Reader, _: int) -> tuple[dict[str, ListedTransaction], Fault | None]:
        reader.int32()
        error = reader.int16()
        reader.strings()  # states the broker does not know
        listed = {}
        for _ in range(reader.array()):
            row = ListedTransaction(reader.string(), reader.int64(), reader.string())
            reader.tags()
            listed[row.transactional_id] = row
        return listed, maybe_fault(error)

    return written(_LIST, 0, 1, flexible_from=0, write=write, read=read)


def _describe_call(ids: Sequence[str]) -> Call[dict[str, Transaction | Fault]]:
    def write(out: Writer, _: int) -> None:
        out.strings(ids)
        out.tags()

    def read(reader: Reader, _: int) -> dict[str, Transaction | Fault]:
        reader.int32()
        described: dict[str, Transaction | Fault] = {}
        for _ in range(reader.array()):
            error, name, state, timeout = reader.int16(), reader.string(), reader.string(), reader.int32()
            started, producer_id, epoch = reader.int64(), reader.int64(), reader.int16()
            partitions = tuple(partitions_of(reader))
            reader.tags()
            described[name] = maybe_fault(error) or Transaction(
                name, state, producer_id, epoch, timeout, started, partitions
            )
        return described

    return written(_DESCRIBE, 0, 0, flexible_from=0, write=write, read=read)
