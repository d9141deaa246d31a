"""Writes to one broker of the target: one batch a partition a request, requests pipelined."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Protocol

import msgspec

from failover.errors import BrokerError, ClusterError
from failover.kafka.faults import fault, fault_of_loss
from failover.kafka.wire.cluster import WireCluster
from failover.kafka.wire.connection import Connection, ConnectionLost
from failover.kafka.wire.produce import ProduceBatch, Sent, submit_produce
from failover.model.names import Fault, TopicPartition
from failover.replication.lane import Flight, State
from failover.replication.route import Route

_PURPOSE = "replicate"
_LOOK_AGAIN_SECONDS = 0.5


class WriteSettings(msgspec.Struct, frozen=True):
    """Says how the target is written to.

    ``request_bytes``: a request takes no further batch once it holds so much. ``requests``: so many are on their way
    at most. ``timeout_ms``: how long a broker may wait for its replicas.
    """

    request_bytes: int = 4 << 20
    requests: int = 20
    timeout_ms: int = 30_000


class WriteEvents(Protocol):
    """Is told what became of what was sent."""

    def accepted(self, route: Route, flight: Flight) -> None:
        """Says that the target has a batch."""

    def heard(self, side: str, node: int) -> None:
        """Says that a broker answers."""

    def drained(self, route: Route) -> None:
        """Says that a lane in trouble has no batch on its way any more."""

    def target_lost(self, node: int, error: ClusterError) -> None:
        """Says that the broker does not answer."""

    async def reconnected(self, node: int) -> None:
        """Says that there is a new connection to a broker, over which nothing was sent yet. Raises ``ClusterError``."""


class Writer:
    """Takes what lanes have ready to one broker, each in its turn."""

    def __init__(
        self,
        cluster: WireCluster,
        node: int,
        settings: WriteSettings,
        *,
        events: WriteEvents,
        fresh_from: Callable[[], int],
        alive: Callable[[], bool],
    ) -> None:
        self.node = node
        self._cluster = cluster
        self._settings = settings
        self._events = events
        self._fresh_from = fresh_from
        self._alive = alive
        self._ready: dict[Route, None] = {}
        self._work = asyncio.Event()
        self._on_way = 0
        self._connection: Connection | None = None
        self.requests = 0

    def wake(self, route: Route) -> None:
        """Looks whether a lane has something to send."""
        self._ready[route] = None
        self._work.set()

    async def run(self) -> None:
        """Writes until cancelled. Nothing is sent while ``alive`` says no."""
        pause = 0.05
        while True:
            await self._work.wait()
            self._work.clear()
            try:
                connection = await self._cluster.connection(self.node, _PURPOSE)
                if connection is not self._connection:
                    if self._connection is not None:
                        await self._events.reconnected(self.node)
                    self._connection = connection
                while self._ready and self._on_way < self._settings.requests:
                    await connection.ready()
                    if not self._alive():
                        asyncio.get_running_loop().call_later(_LOOK_AGAIN_SECONDS, self._work.set)
                        break
                    batches, flights = self._gather()
                    if not batches:
                        break
                    try:
                        sent = submit_produce(connection, batches, timeout_ms=self._settings.timeout_ms)
                    except (ClusterError, BrokerError) as error:
                        self._lost(flights, error)
                        raise
                    self._on_way += 1
                    self.requests += 1
                    sent.raw.add_done_callback(partial(self._answered, sent, flights))
                pause = 0.05
            except ClusterError as error:
                self._events.target_lost(self.node, error)
                await asyncio.sleep(pause)
                pause = min(pause * 2, 1.0)
                if self._ready:
                    self._work.set()

    # -- inside ----------------------------------------------------------------------------------

    def _gather(self) -> tuple[list[ProduceBatch], list[tuple[Route, Flight]]]:
        """Takes one batch of each ready lane, as many as a request holds; lanes left over come first next time."""
        batches: list[ProduceBatch] = []
        flights: list[tuple[Route, Flight]] = []
        size, fresh_from = 0, self._fresh_from()
        took = []
        for route in list(self._ready):
            del self._ready[route]
            shard = route.shard
            if route.target_node != self.node or not shard.sending:
                continue
            stood = route.lane.state
            flight = route.lane.next(shard.producer_id, shard.epoch, fresh_from=fresh_from)
            if flight is None:
                if stood is State.OPEN and route.lane.state is State.DRAINED:  # what was to come again is too old now
                    route.count()
                    self._events.drained(route)
                continue
            target, data = route.lane.target, flight.outgoing.data
            batches.append(ProduceBatch(target.topic, target.partition, data, route.target_id))
            flights.append((route, flight))
            took.append(route)
            size += len(data)
            if size >= self._settings.request_bytes:
                break
        for route in took:
            self._ready[route] = None  # it may have more
        return batches, flights

    def _answered(self, sent: Sent, flights: list[tuple[Route, Flight]], raw: asyncio.Future[memoryview]) -> None:
        self._on_way -= 1
        self._work.set()
        if raw.cancelled():
            return
        error = raw.exception()
        if error is not None:
            if not isinstance(error, (ClusterError, BrokerError)):
                raise error
            self._lost(flights, error)
            return
        try:
            answer = sent.read(raw.result())
        except ConnectionLost as broken:
            self._lost(flights, broken)
            return
        self._events.heard("target", self.node)
        found = {TopicPartition(part.topic, part.partition): part for part in answer.partitions}
        for route, flight in flights:
            produced = found.get(route.lane.target)
            if produced is None:
                self._failed(route, flight, Fault(-1, "NOT_ANSWERED", "the answer does not name the partition"))
            elif produced.fault is not None:
                self._failed(route, flight, produced.fault)
            else:
                drained = route.lane.acknowledged(flight, produced.base_offset)
                route.count()
                if flight.placed:  # else nobody waits for it any more, or it lies elsewhere
                    self._events.accepted(route, flight)
                if drained:
                    self._events.drained(route)
                else:
                    self._ready[route] = None

    def _failed(self, route: Route, flight: Flight, reason: Fault) -> None:
        drained = route.lane.failed(flight, reason, fresh_from=self._fresh_from())
        route.count()
        if drained:
            self._events.drained(route)

    def _lost(self, flights: list[tuple[Route, Flight]], error: ClusterError | BrokerError) -> None:
        """Notes that answers will not come; what could not even be written was certainly not appended."""
        if isinstance(error, BrokerError):
            reason = fault(error.number, error.message)
        elif isinstance(error, ConnectionLost) and not error.written:
            reason = fault(13, error.message)
        else:
            reason = fault_of_loss(error)
        for route, flight in flights:
            self._failed(route, flight, reason)
