"""Producer ids that belong to transactional ids, and the fence that an empty transaction is.

Data is never sent in a transaction here. A transactional id gives one producer id to whoever asks last, one epoch
higher each time, and every broker refuses an epoch older than the newest it has seen on a partition. It sees one by the
markers that end a transaction, so a transaction over partitions without any data, aborted, is a fence without data.
Measured on Kafka 4.1.1.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

from failover.errors import BrokerError, ClusterUnreachable, NotAuthorized
from failover.kafka.faults import fault, maybe_fault
from failover.kafka.wire.cluster import TRANSACTION, WireCluster
from failover.kafka.wire.logs import LATEST, by_topic, list_offsets, partitions_of, write_topics
from failover.kafka.wire.messages import Call, written
from failover.kafka.wire.primitives import Reader, Writer
from failover.kafka.wire.rounds import FIRST_PAUSE, LONGEST_PAUSE
from failover.kafka.wire.transactions import Transaction, describe_transactions
from failover.model.names import Fault, TopicPartition

R = TypeVar("R")

LAST_EPOCH = 32_766
"""Kafka: the coordinator hands out a new producer id instead of an epoch after this one (ProducerIdManager)."""

_INIT_PRODUCER_ID, _ADD_PARTITIONS, _END = 22, 24, 26
_PRODUCER_FENCED = 90
_FENCED = frozenset({47, 49, _PRODUCER_FENCED})  # 49: the id has been forgotten, or belongs to another producer id
_ID_DENIED, _NOT_ATTEMPTED = 53, 55
_OF_THE_PARTITION = frozenset({3, 17, 29})  # it or its topic does not exist, is not allowed
_TRANSACTION_TIMEOUT_MS = 60_000


class ProducerFenced(BrokerError):
    """Says that a transactional id has gone to a newer owner; whoever gets this must stop, not ask for it again."""


class Fence(NamedTuple):
    """Is the ownership of a transactional id. ``left_out``: partitions it does not cover, and why.

    ``ends``: the high watermarks of the others just before. What had been acknowledged there lay below, unless the log
    has lost it; behind them lie the fence's own markers.
    """

    producer_id: int
    epoch: int
    left_out: dict[TopicPartition, Fault]
    ends: dict[TopicPartition, int]


async def fence(
    cluster: WireCluster,
    transactional_id: str,
    partitions: Iterable[TopicPartition],
    *,
    owned: tuple[int, int] | None = None,
    begun: Callable[[tuple[int, int]], None] = lambda _: None,
) -> Fence:
    """Takes a transactional id over and shuts every earlier owner out of these partitions.

    When it returns, on each partition not left out:

    - every batch of an older epoch is refused with INVALID_PRODUCER_EPOCH (47), whether the new owner wrote or not;
    - whatever an older epoch got appended lies below the high watermark, since the marker behind it does;
    - the new owner's sequences start at 0; a batch that begins elsewhere is refused (45), so a second one that
      overtakes the first is not appended.

    The coordinator answers EndTxn before the markers are written, so their completion is waited for. A partition that
    does not exist or may not be written (3, 17, 29) is left out, as the coordinator adds all or none; so is one whose
    leader does not answer for it in the time silence is accepted. At the last epoch of a producer id the coordinator
    goes on with another id, whose markers fence nobody of the old one: so the last epoch only fences and is never
    handed out.

    ``owned``: the (producer id, epoch) this caller has; then the id is taken from nobody else. ``begun`` is given each
    (producer id, epoch) as soon as it is ours: should this be cut short later on, the newest is the one that is owned.
    Its transaction may be open then, and is ended first: left to the coordinator, its end would look like another
    owner's (measured on Kafka 4.1.1). Raises ``ProducerFenced`` if somebody else takes the id over meanwhile,
    ``NotAuthorized`` without WRITE and DESCRIBE on it, ``ClusterUnreachable`` when no further marker is written for as
    long as silence is accepted, ``BrokerError`` 35 for brokers before Kafka 3.0. Takes 0.1 s for 1,000 partitions.
    """
    wanted = list(dict.fromkeys(partitions))
    ends: dict[TopicPartition, int] = {}
    if owned is not None:
        with contextlib.suppress(BrokerError):  # mostly none is open; whose the id is shows with the next request
            await _Owner(cluster, transactional_id, *owned).ask(_abort_call(transactional_id, *owned))
    while True:
        producer_id, epoch = await init_producer_id(cluster, transactional_id, owned=owned)
        begun((producer_id, epoch))
        fenced = await fence_again(cluster, transactional_id, producer_id, epoch, wanted)
        ends = {tp: min(end, ends.get(tp, end)) for tp, end in fenced.ends.items()}
        if epoch < LAST_EPOCH:
            return fenced._replace(ends=ends)
        owned = producer_id, epoch


async def fence_again(
    cluster: WireCluster, transactional_id: str, producer_id: int, epoch: int, partitions: Iterable[TopicPartition]
) -> Fence:
    """Fences further partitions at the epoch already owned, or the same ones again.

    Sequences go on as they were. It proves that the id is still ours, and a coordinator forgets an id that is not used
    for ``transactional.id.expiration.ms`` (7 days): then a second worker would get another producer id, and neither
    would fence the other. Plain data is no use of the id, this is. Raises what ``fence`` raises.
    """
    owner = _Owner(cluster, transactional_id, producer_id, epoch)
    wanted = list(dict.fromkeys(partitions))
    # A cluster names a leader before that broker has made the log, or loaded it. A marker that comes then is answered
    # after request.timeout.ms, and no other one goes to that broker meanwhile: 200 new topics took 31 s, and 1 to 3 s
    # where their leaders were asked first (measured on Kafka 4.1.1).
    ends = await list_offsets(cluster, dict.fromkeys(wanted, LATEST))
    left_out = {tp: end for tp, end in ends.items() if isinstance(end, Fault)}
    wanted = [tp for tp in wanted if tp not in left_out]
    while wanted:
        refused = await owner.ask(_add_call(transactional_id, producer_id, epoch, wanted))
        if not refused:
            break
        left_out.update(refused)
        wanted = [tp for tp in wanted if tp not in refused]
    if wanted:
        await owner.ask(_abort_call(transactional_id, producer_id, epoch))
        await owner.aborted()
    known = {tp: end.offset for tp, end in ends.items() if not isinstance(end, Fault) and tp not in left_out}
    return Fence(producer_id, epoch, left_out, known)


async def init_producer_id(
    cluster: WireCluster, transactional_id: str, *, owned: tuple[int, int] | None = None
) -> tuple[int, int]:
    """Takes a transactional id over: (producer id, epoch), the epoch higher than any handed out before.

    A transaction left open by an earlier owner is aborted and waited for. By itself it fences nobody on a partition
    (see ``fence``). ``owned``: only from this (producer id, epoch), the caller's own (Kafka: KIP-360). Raises
    ``ProducerFenced`` if that is no longer the newest, ``NotAuthorized``, ``ClusterUnreachable``, ``BrokerError``.
    """
    mine = owned or (-1, -1)
    return await _Owner(cluster, transactional_id, *mine).ask(_init_call(transactional_id, mine))


async def new_producer_id(cluster: WireCluster) -> tuple[int, int]:
    """Asks for a producer id of nobody else's, at epoch 0, that no transactional id guards.

    Raises ``ClusterUnreachable``, ``BrokerError`` (31 on brokers before 2.8 without IDEMPOTENT_WRITE).
    """
    answer = await cluster.ask_any(_init_call(None, (-1, -1)))
    if isinstance(answer, Fault):
        raise BrokerError(
            f"cluster {cluster.alias} gives no producer id: {answer}", number=answer.number, name=answer.name
        )
    return answer


class _Owner:
    """Speaks for one transactional id to its coordinator, wherever that moves."""

    def __init__(self, cluster: WireCluster, transactional_id: str, producer_id: int, epoch: int) -> None:
        self._cluster = cluster
        self._id = transactional_id
        self._producer = producer_id, epoch

    async def ask(self, call: Call[R | Fault]) -> R:
        async def send(node: int, _: list[str]) -> dict[str, R | Fault]:
            return {self._id: await self._cluster.send(node, call)}

        answer = (await self._cluster.spread_groups([self._id], send, kind=TRANSACTION))[self._id]
        if isinstance(answer, Fault):
            raise self._error(answer)
        return answer

    async def aborted(self) -> None:
        """Waits until the markers of our aborted transaction are written, as long as some are between two looks.

        Until then the coordinator lists the partitions that still lack theirs; a broker answers for all of its own at
        once.
        """
        loop = asyncio.get_running_loop()
        end, pause, lacking = 0.0, FIRST_PAUSE / 10, -1
        while True:
            found = (await describe_transactions(self._cluster, [self._id]))[self._id]
            if isinstance(found, Fault):
                raise self._error(found)
            if (found.producer_id, found.epoch) != self._producer:
                raise self._error(fault(_PRODUCER_FENCED))
            if found.state == "CompleteAbort":
                return
            if len(found.partitions) != lacking:
                end, lacking = loop.time() + self._cluster.silence, len(found.partitions)
            elif loop.time() + pause >= end:
                raise ClusterUnreachable(
                    f"cluster {self._cluster.alias}: the fence of transactional id {self._id} still lacks"
                    f" {_some(found)} after {self._cluster.silence:g} s (state {found.state})",
                    alias=self._cluster.alias,
                    hint="does each of these partitions have a leader?",
                )
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    def _error(self, reason: Fault) -> Exception:
        where = f"cluster {self._cluster.alias}: transactional id {self._id}"
        if reason.number in _FENCED:
            return ProducerFenced(
                f"{where} has a newer owner than producer {self._producer[0]} at epoch {self._producer[1]}: {reason}",
                number=reason.number,
                name=reason.name,
                hint="two workers of one flow exclude each other: leave one of them running",
            )
        if reason.number == _ID_DENIED:
            return NotAuthorized(
                f"{where} may not be used: {reason}",
                alias=self._cluster.alias,
                hint=f"grant WRITE and DESCRIBE on transactional id {self._id}",
            )
        if reason.number < -1:
            return ClusterUnreachable(f"{where}: {reason}", alias=self._cluster.alias)
        return BrokerError(f"{where}: {reason}", number=reason.number, name=reason.name)


def _some(transaction: Transaction) -> str:
    names = [str(tp) for tp in transaction.partitions[:3]]
    more = len(transaction.partitions) - len(names)
    return ", ".join(names) + (f" and {more} more" if more > 0 else "")


def _init_call(transactional_id: str | None, owned: tuple[int, int]) -> Call[tuple[int, int] | Fault]:
    """Asks for the next epoch; ``owned`` (-1, -1): whoever had the last."""

    def write(out: Writer, version: int) -> None:
        out.string(transactional_id)
        out.int32(_TRANSACTION_TIMEOUT_MS)
        if version >= 3:
            out.int64(owned[0])
            out.int16(owned[1])
        out.tags()

    def read(reader: Reader, _: int) -> tuple[int, int] | Fault:
        reader.int32()
        error, producer_id, epoch = reader.int16(), reader.int64(), reader.int16()
        return maybe_fault(error) or (producer_id, epoch)

    return written(_INIT_PRODUCER_ID, 1, 4, flexible_from=2, write=write, read=read)


def _add_call(
    transactional_id: str, producer_id: int, epoch: int, partitions: list[TopicPartition]
) -> Call[dict[TopicPartition, Fault] | Fault]:
    """Adds partitions to the transaction; gives the refused ones, none of the others having been added then.

    Version 3 is the last for one transaction of a client; the later ones are between brokers.
    """

    def write(out: Writer, _: int) -> None:
        out.string(transactional_id)
        out.int64(producer_id)
        out.int16(epoch)
        write_topics(out, by_topic(partitions))
        out.tags()

    def read(reader: Reader, _: int) -> dict[TopicPartition, Fault] | Fault:
        reader.int32()
        refused: dict[TopicPartition, Fault] = {}
        other: Fault | None = None
        for tp in partitions_of(reader):
            reason = maybe_fault(reader.int16())
            reader.tags()
            if reason is None or reason.number == _NOT_ATTEMPTED:
                continue
            if reason.number in _OF_THE_PARTITION:
                refused[tp] = reason
            else:
                other = reason
        return other or refused

    return written(_ADD_PARTITIONS, 1, 3, flexible_from=3, write=write, read=read)


def _abort_call(transactional_id: str, producer_id: int, epoch: int) -> Call[bool | Fault]:
    """Aborts the transaction; from version 5 on this would raise the epoch (Kafka: KIP-890)."""

    def write(out: Writer, _: int) -> None:
        out.string(transactional_id)
        out.int64(producer_id)
        out.int16(epoch)
        out.int8(0)
        out.tags()

    def read(reader: Reader, _: int) -> bool | Fault:
        reader.int32()
        return maybe_fault(reader.int16()) or True

    return written(_END, 1, 4, flexible_from=3, write=write, read=read)
