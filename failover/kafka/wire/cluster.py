"""One cluster as raw connections see it: who is there, who leads what, and a way to send each broker its requests."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, Self, TypeVar

from failover.config.clients import ClientSettings
from failover.errors import ClusterUnreachable
from failover.kafka.faults import fault, maybe_fault
from failover.kafka.wire.connection import Connection, ConnectionLost
from failover.kafka.wire.dial import Address, Dialer
from failover.kafka.wire.messages import Call, written
from failover.kafka.wire.metadata import Metadata, TopicState, metadata_call
from failover.kafka.wire.pool import Node, Pool
from failover.kafka.wire.primitives import Reader, Writer
from failover.kafka.wire.rounds import first_answer, scatter, settle
from failover.model.names import Fault, TopicPartition

R = TypeVar("R")

GROUP, TRANSACTION, SHARE = 0, 1, 2
"""Kinds of coordinators (Kafka: FindCoordinatorRequest.CoordinatorType)."""

_FIND_COORDINATOR = 10
_HEDGE_AFTER = 0.5
_KEYS_AT_ONCE = 500


class Leader(NamedTuple):
    """Is where a partition is read and written."""

    node: int
    epoch: int
    topic_id: bytes


class WireCluster:
    """Is one cluster, reached by raw connections; an async context manager.

    ``silence``: the longest silence accepted from a broker, in seconds; it also bounds how long faults that pass by
    themselves are waited for. Every method raises ``ClusterUnreachable`` when no broker answers within it and
    ``CredentialsRefused`` as soon as one refuses them.
    """

    def __init__(
        self, settings: ClientSettings, *, alias: str, silence: float = 30.0, client_id: str | None = None
    ) -> None:
        self.alias = alias
        self.silence = silence
        self._bootstrap = [Node(-1, Address(host, port)) for host, port in settings.bootstrap]
        self._pool = Pool(Dialer(settings, alias=alias, client_id=client_id or settings.client_id), silence=silence)
        self._nodes: dict[int, Node] = {}
        self._offered: dict[int, int] = {}
        self._topics: dict[str, TopicState] = {}
        self._coordinators: dict[tuple[int, str], int] = {}
        self.cluster_id: str | None = None
        self.controller: int | None = None

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def open(self) -> None:
        """Finds the cluster's brokers by asking all bootstrap addresses at once; the first answer counts.

        Where none answers nothing is left open, so that no ``close`` is owed.
        """
        try:
            self._learn(await self._first(self._bootstrap, metadata_call(()), stagger=0.0))
        except BaseException:
            await self._pool.close()
            raise
        self._pool.drop(self._bootstrap)

    async def close(self) -> None:
        """Ends all connections, for good."""
        await self._pool.close()

    # -- who is there ----------------------------------------------------------------------------

    @property
    def brokers(self) -> tuple[int, ...]:
        """Lists the ids of the brokers the cluster named last."""
        return tuple(sorted(self._nodes))

    async def metadata(self, topics: Collection[str] | None = (), *, operations: bool = False) -> Metadata:
        """Asks for brokers and for these topics, all of them with None. Absent ones carry fault 3; none is created."""
        answer = await self.ask_any(metadata_call(topics, operations=operations))
        self._learn(answer)
        return answer

    def topic(self, name: str) -> TopicState | None:
        """Gives what the last metadata said of a topic."""
        return self._topics.get(name)

    def highest(self, key: int) -> int:
        """Tells the highest version of an API that every broker connected so far speaks, -1 for none."""
        return self._offered.get(key, -1)

    async def api_versions(self) -> dict[int, dict[int, int]]:
        """Tells of each broker the highest version of every API it speaks."""
        connections = await asyncio.gather(*(self.connection(node) for node in self.brokers))
        return {
            node: {key: high for key, (_, high) in connection.versions.items()}
            for node, connection in zip(self.brokers, connections, strict=True)
        }

    async def leaders(
        self, partitions: Iterable[TopicPartition], *, refresh: bool = False
    ) -> dict[TopicPartition, Leader | Fault]:
        """Tells the leader of each partition; a topic or partition that does not exist is fault 3, final."""
        wanted = list(partitions)
        # What was not there when it was last asked for may have been made since.
        unknown = {
            tp.topic
            for tp in wanted
            if refresh or (known := self._topics.get(tp.topic)) is None or known.fault is not None
        }
        if unknown:
            await self.metadata(unknown)
        return {tp: self._leader(tp) for tp in wanted}

    async def coordinators(
        self, keys: Iterable[str], kind: int = GROUP, *, refresh: bool = False
    ) -> dict[str, int | Fault]:
        """Tells the coordinator of each group or transactional id, asking for those not known yet."""
        wanted = list(dict.fromkeys(keys))
        found: dict[str, int | Fault] = {}
        if not refresh:
            found = {key: self._coordinators[kind, key] for key in wanted if (kind, key) in self._coordinators}
        missing = [key for key in wanted if key not in found]
        size = _KEYS_AT_ONCE if self.highest(_FIND_COORDINATOR) >= 4 else 1
        pieces = [missing[at : at + size] for at in range(0, len(missing), size)]
        for answer in await asyncio.gather(*(self.ask_any(_find(piece, kind)) for piece in pieces)):
            found.update(answer)
        for key in missing:
            node = found[key]
            if isinstance(node, int):
                self._coordinators[kind, key] = node
        return found

    # -- sending ---------------------------------------------------------------------------------

    async def connection(self, node: int, purpose: str = "control") -> Connection:
        """Gives the open connection to a broker for one purpose, for callers that pipeline by themselves."""
        return await self._connected(self._node(node), purpose)

    async def send(
        self,
        node: int,
        call: Call[R],
        *,
        purpose: str = "control",
        patience: float = 0.0,
        deadline: float | None = None,
    ) -> R:
        """Sends one broker a request and gives its answer. ``patience``, ``deadline``: see ``Connection``.

        Raises ``ConnectionLost`` (which says whether the request may have been read), ``CredentialsRefused``, and
        ``BrokerError`` 35 where the broker speaks no fitting version.
        """
        return await self._send(self._node(node), call, purpose, patience, deadline)

    async def ask_any(self, call: Call[R]) -> R:
        """Asks whichever broker answers first: the next is asked when one fails or takes half a second."""
        nodes = sorted(self._nodes.values(), key=lambda node: not self._pool.connected(node, "control"))
        # The bootstrap addresses come last: every broker may have moved since they were asked.
        return await self._first([*nodes, *self._bootstrap], call, stagger=_HEDGE_AFTER)

    async def spread(
        self,
        partitions: Iterable[TopicPartition],
        send: Callable[[int, list[TopicPartition]], Awaitable[Mapping[TopicPartition, R | Fault]]],
    ) -> dict[TopicPartition, R | Fault]:
        """Sends each leader its partitions, follows leaders that move, and gathers an answer or a fault for each.

        ``send`` asks one broker for some partitions and answers all of them.
        """

        async def ask(items: Sequence[TopicPartition], again: bool) -> dict[TopicPartition, R | Fault]:
            leaders = await self.leaders(items, refresh=again)
            routes = {tp: leader.node if isinstance(leader, Leader) else leader for tp, leader in leaders.items()}
            return await scatter(routes, send)

        return await settle(partitions, ask, budget=self.silence)

    async def spread_groups(
        self,
        keys: Iterable[str],
        send: Callable[[int, list[str]], Awaitable[Mapping[str, R | Fault]]],
        *,
        kind: int = GROUP,
    ) -> dict[str, R | Fault]:
        """Sends each coordinator its keys, follows those that move, and gathers an answer or a fault for each."""

        async def ask(items: Sequence[str], again: bool) -> dict[str, R | Fault]:
            return await scatter(await self.coordinators(items, kind, refresh=again), send)

        return await settle(keys, ask, budget=self.silence)

    # -- inside ----------------------------------------------------------------------------------

    async def _first(self, nodes: Sequence[Node], call: Call[R], *, stagger: float) -> R:
        return await first_answer(
            [partial(self._send, node, call, "control", 0.0, None) for node in nodes], stagger=stagger
        )

    async def _connected(self, node: Node, purpose: str) -> Connection:
        connection = await self._pool.get(node, purpose)
        for key, (_, high) in connection.versions.items():
            self._offered[key] = min(high, self._offered.get(key, high))
        return connection

    async def _send(self, node: Node, call: Call[R], purpose: str, patience: float, deadline: float | None) -> R:
        connection = await self._connected(node, purpose)
        version = connection.version(call.key, call.low, call.high)
        try:
            body = await connection.request(
                call.key,
                version,
                call.encode(version),
                flexible=version >= call.flexible_from,
                patience=patience,
                deadline=deadline,
            )
        except ConnectionLost as error:
            if error.silent:
                self._pool.suspect(node)
            raise
        if call.throttle_at is not None:
            throttled = int.from_bytes(body[call.throttle_at : call.throttle_at + 4], "big", signed=True)
            connection.pace.throttle(throttled, asyncio.get_running_loop().time())
        try:
            return call.decode(version, body)
        except (ValueError, struct.error) as error:
            connection.close()
            raise connection.error(f"sent an answer to API {call.key} version {version} that ends too early") from error

    def _node(self, node: int) -> Node:
        try:
            return self._nodes[node]
        except KeyError:
            raise ConnectionLost(
                f"cluster {self.alias}: broker {node} is not among the brokers it names",
                alias=self.alias,
                written=False,
            ) from None

    def _learn(self, answer: Metadata) -> None:
        self.cluster_id, self.controller = answer.cluster_id, answer.controller
        if not answer.brokers:
            raise ClusterUnreachable(f"cluster {self.alias} names no brokers", alias=self.alias)
        self._nodes = {broker.id: Node(broker.id, Address(broker.host, broker.port)) for broker in answer.brokers}
        self._topics.update(answer.topics)

    def _leader(self, tp: TopicPartition) -> Leader | Fault:
        topic = self._topics.get(tp.topic)
        if topic is None or topic.fault is not None:
            absent = fault(3) if topic is None or topic.fault is None else topic.fault
            # Metadata of a topic that does not exist is the answer, not a state that passes.
            return Fault(absent.number, absent.name, absent.message, retriable=absent.retriable and absent.number != 3)
        partition = topic.partitions.get(tp.partition)
        if partition is None:
            return Fault(3, "UNKNOWN_TOPIC_OR_PARTITION", f"topic {tp.topic} has {len(topic.partitions)} partitions")
        if partition.leader < 0:
            return fault(5)
        return Leader(partition.leader, partition.leader_epoch, topic.topic_id)


def _find(keys: Sequence[str], kind: int) -> Call[dict[str, int | Fault]]:
    """Asks for the coordinators of several keys; before version 4 of exactly one."""

    def write(out: Writer, version: int) -> None:
        if version < 4:
            out.string(keys[0])
        out.int8(kind)
        if version >= 4:
            out.strings(keys)
        out.tags()

    def read(reader: Reader, version: int) -> dict[str, int | Fault]:
        reader.int32()
        found: dict[str, int | Fault] = {}
        if version < 4:
            error, text, node = reader.int16(), reader.nullable_string(), reader.int32()
            return {keys[0]: maybe_fault(error, text) or node}
        for _ in range(reader.array()):
            key, node = reader.string(), reader.int32()
            reader.string()  # host
            reader.int32()  # port
            error, text = reader.int16(), reader.nullable_string()
            reader.tags()
            found[key] = maybe_fault(error, text) or node
        return found

    return written(_FIND_COORDINATOR, 3, 6, flexible_from=3, write=write, read=read)
