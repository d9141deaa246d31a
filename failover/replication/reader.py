"""Reads what one broker of the source leads: one long poll after the other, in a fetch session."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Protocol

import msgspec

from failover.errors import ClusterError
from failover.kafka.wire.batches import UnreadableBatch
from failover.kafka.wire.cluster import WireCluster
from failover.kafka.wire.fetch import Fetched, FetchPartition, fetch_call
from failover.model.names import TopicPartition
from failover.replication.batches import Limits, cut, prepare
from failover.replication.lane import Lane, State
from failover.replication.rate import Rate
from failover.replication.route import Room, Route
from failover.replication.session import FetchSession

_PURPOSE = "replicate"
_SHORT_POLL_MS = 10
_TURN_SECONDS = 0.005
_QUEUED = 4
_TRICKLE_BYTES = 16 << 10
_TRICKLE_PAUSE = 0.003
_AFTER_REFUSAL = 0.02


class ReadSettings(msgspec.Struct, frozen=True):
    """Says how the source is read, in the words of Kafka's consumer.

    ``lane_bytes``: a partition with so much read and not acknowledged waits. ``mark``: records are told where they
    come from, in headers.
    """

    fetch_max_bytes: int = 8 << 20
    max_partition_fetch_bytes: int = 1 << 20
    fetch_max_wait_ms: int = 500
    fetch_min_bytes: int = 1
    read_committed: bool = False
    lane_bytes: int = 4 << 20
    limits: Limits = Limits()
    mark: bool = False


class ReadEvents(Protocol):
    """Is told what reading brings."""

    def arrived(self, route: Route) -> None:
        """Says that a lane has more to send."""

    def unreadable(self, route: Route, fetched: Fetched) -> None:
        """Says that the broker answered with an error or that the logs part."""

    def readable(self, route: Route) -> None:
        """Says that a lane that stood still is read again, and that there is nothing to be copied."""

    def damaged(self, route: Route, why: str) -> None:
        """Says that the next batch cannot be read."""

    def heard(self, side: str, node: int) -> None:
        """Says that a broker answers."""

    def source_lost(self, routes: Iterable[Route], error: ClusterError) -> None:
        """Says that the broker does not answer."""


class Reader:
    """Keeps one broker's partitions coming as fast as the lanes take them.

    A partition is asked for while its lane is open and has room, never otherwise, so one that stands still costs
    nothing and holds up no other. While ``gate`` is closed nothing is asked for.
    """

    def __init__(
        self,
        cluster: WireCluster,
        node: int,
        settings: ReadSettings,
        *,
        room: Room,
        rate: Rate,
        events: ReadEvents,
        gate: asyncio.Event | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.node = node
        self._cluster = cluster
        self._settings = settings
        self._room = room
        self._rate = rate
        self._events = events
        self._gate = gate
        self._clock = clock
        self._routes: dict[TopicPartition, Route] = {}
        self._touched: dict[TopicPartition, Route] = {}
        self._paused: set[TopicPartition] = set()
        self._session = FetchSession()
        self._work = asyncio.Event()
        self.fetches = 0

    @property
    def routes(self) -> int:
        return len(self._routes)

    def add(self, route: Route) -> None:
        """Reads a route's partition from now on."""
        self._routes[route.lane.source] = route
        self.touch(route)

    def remove(self, route: Route) -> None:
        """Reads it no more."""
        tp = route.lane.source
        if self._routes.pop(tp, None) is not None:
            self._paused.discard(tp)
            self._session.drop(tp)

    def touch(self, route: Route) -> None:
        """Looks again, before the next fetch, at what is wanted of a lane."""
        self._touched[route.lane.source] = route
        self._work.set()

    def freed(self, route: Route) -> None:
        """Notes that a lane has handed something over: it may have room again."""
        if route.lane.source in self._paused:
            self.touch(route)

    async def run(self) -> None:
        """Reads until cancelled."""
        pause = 0.05
        while True:
            await self._work.wait()
            if self._gate is not None:
                await self._gate.wait()
            self._update()
            if not self._session.wanted:
                self._work.clear()
                continue
            if self._room.full:
                self._work.clear()
                self._room.when_free(self._work.set)
                continue
            await self._rate.ready()
            try:
                await self._fetch()
                pause = 0.05
            except ClusterError as error:
                self._session.lost()
                self._events.source_lost(list(self._routes.values()), error)
                await asyncio.sleep(pause)
                pause = min(pause * 2, 1.0)

    # -- inside ----------------------------------------------------------------------------------

    def _update(self) -> None:
        """Tells the session what the touched lanes want now."""
        touched, self._touched = self._touched, {}
        for tp, route in touched.items():
            if self._routes.get(tp) is not route:
                continue
            lane = route.lane
            if lane.state is not State.OPEN:
                self._paused.discard(tp)
                self._session.drop(tp)
            elif lane.buffered >= self._settings.lane_bytes or (route.parked and lane.pending) or self._crowded(lane):
                self._paused.add(tp)
                self._session.drop(tp)
            else:
                self._paused.discard(tp)
                self._session.want(
                    FetchPartition(
                        tp.topic,
                        tp.partition,
                        lane.fetch_offset,
                        self._settings.max_partition_fetch_bytes,
                        route.source_id,
                        route.source_epoch,
                        lane.leader_epoch,
                    )
                )

    def _crowded(self, lane: Lane) -> bool:
        """Says whether small batches queue up: read later, their records come together in fewer ones.

        A partition has few batches on their way, so where records trickle in faster than the target answers, a batch
        for each fetch would fall behind ever further.
        """
        return lane.waiting >= _QUEUED and lane.buffered < lane.pending * self._settings.limits.small_bytes

    async def _fetch(self) -> None:
        settings = self._settings
        session, asked, forgotten = self._session.next()
        # What is paused must not wait for the others' silence.
        wait = _SHORT_POLL_MS if self._paused else settings.fetch_max_wait_ms
        call = fetch_call(
            asked,
            max_bytes=settings.fetch_max_bytes,
            max_wait_ms=wait,
            min_bytes=settings.fetch_min_bytes,
            read_committed=settings.read_committed,
            session=session,
            forgotten=forgotten,
            names=self._session.names,
        )
        self.fetches += 1
        answer = await self._cluster.send(self.node, call, purpose=_PURPOSE, patience=wait / 1000)
        self._events.heard("source", self.node)
        if self._gate is not None and not self._gate.is_set():
            self._session.lost()  # what came meanwhile is read again
            return
        if not self._session.answered(answer):
            await asyncio.sleep(_AFTER_REFUSAL)
            return
        began = time.perf_counter()
        size = sum(len(fetched.records) for fetched in answer.partitions)
        for fetched in answer.partitions:
            tp = TopicPartition(fetched.topic, fetched.partition)
            route = self._routes.get(tp)
            if route is not None:
                self._take(route, tp, fetched)
                if time.perf_counter() - began > _TURN_SECONDS:
                    await asyncio.sleep(0)  # answers of the target must not wait for a whole fetch to be gone through
                    began = time.perf_counter()
        if 0 < size < _TRICKLE_BYTES:
            # Single records, each fetched as it comes, cost both clusters a request each: a few come together.
            await asyncio.sleep(_TRICKLE_PAUSE)

    def _take(self, route: Route, tp: TopicPartition, fetched: Fetched) -> None:
        lane, asked = route.lane, self._session.wanted.get(tp)
        if lane.state is not State.OPEN or asked is None or asked.offset != lane.fetch_offset:
            return  # it was stopped or moved while this was on its way
        if fetched.error or fetched.diverging is not None:
            self._session.drop(tp)
            self._events.unreadable(route, fetched)
            return
        committed = self._settings.read_committed
        route.source_end = fetched.last_stable if committed else fetched.high_watermark
        now = self._clock()
        route.tally.seen(lane.upstream, route.source_end, now)
        size = len(fetched.records)
        if not size:
            if route.reason and not lane.pending:
                self._events.readable(route)
            return
        self._rate.took(size)
        prepared = prepare(
            tp,
            fetched.records,
            asked.offset,
            now_ms=int(now * 1000),
            aborted=fetched.aborted if committed else None,
            limits=route.limits or self._settings.limits,
            mark=self._settings.mark,
        )
        outgoing = prepared.outgoing if route.limits is None else cut(prepared.outgoing, route.limits)
        if prepared.next_offset != asked.offset:
            route.tally.took(outgoing, prepared.next_offset - asked.offset, now)
            lane.offer(outgoing, prepared.next_offset, prepared.leader_epoch)
            route.count()
            self.touch(route)
            if outgoing:
                self._events.arrived(route)
        damage = prepared.damage
        if damage is None and prepared.next_offset == asked.offset:
            # Kafka (ReplicaManager.readFromLog): where the first batch would be cut, none is given at all.
            damage = UnreadableBatch(f"partition {tp}: the batch at offset {asked.offset} is cut, or of a wrong length")
        if damage is not None:
            self._session.drop(tp)
            self._events.damaged(route, str(damage))
