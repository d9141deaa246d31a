"""Owns one shard of a flow: fences those before it, finds where copying goes on, starts the lanes, and doubts again."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Protocol

from failover.errors import BrokerError, ClusterError, FailoverError, NotAuthorized
from failover.kafka.wire.cluster import Leader, WireCluster
from failover.kafka.wire.producer_ids import Fence, ProducerFenced, fence, fence_again, new_producer_id
from failover.model.names import TopicPartition
from failover.replication.lane import State
from failover.replication.route import Route

_log = logging.getLogger(__name__)

_UNSUPPORTED, _NO_MAPPING = 35, 49
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
_LEAD_SECONDS = 10.0
_TAKEN_BACK, _CONTEST_SECONDS = 6 + os.urandom(1)[0] % 8, 60.0
"""So often may a shard be taken back in so many seconds. Workers that start together need one for each of them; ones
that cut a flow into different shares would go on for ever. It is not the same for all, else both would end."""

Start = Callable[[Sequence[Route]], Awaitable[None]]
"""Finds where each route goes on and starts its lane, or says in ``Route.reason`` why it cannot."""


class ShardEvents(Protocol):
    """Is told what becomes of a shard."""

    def started(self, routes: Iterable[Route]) -> None:
        """Says that lanes are open."""

    def fenced(self, shard: Shard, error: ProducerFenced) -> None:
        """Says that another worker owns the shard now."""

    def unguarded(self, error: FailoverError) -> None:
        """Says that a shard is used though it cannot be fenced."""

    def stands_still(self, route: Route, why: str) -> None:
        """Says that a lane cannot be started for the moment; it is tried again."""

    def look_soon(self) -> None:
        """Asks for a look at the topics: one is not what it was."""


class Shard:
    """Keeps one transactional id and the lanes that write with its producer.

    Invariants:

    - A lane of the shard is open only under the producer and epoch of ``producer_id`` and ``epoch``, and only after
      these were fenced on its target partition and what the target holds was looked at behind the fence.
    - A new epoch is asked for only while none of the shard's lanes has a batch on its way.
    - After the first, each new epoch is taken from this worker's own (Kafka: KIP-360): one that was overtaken gets
      ``ProducerFenced`` and stops, so two workers never take a shard from one another in turns.
    - One shard of a flow leads: every worker takes it before any other, so whoever took it last is the owner of all.
      Workers that start at the same moment may take the others from one another, each some. Whoever is shut out of one
      proves that the leading one is still its own and takes that shard back; who cannot has been overtaken.

    ``lead``: the leading shard, None for that one itself. ``unused``: a partition that holds no data, over which the id
    can be used. ``taken``: whether it was ever ours. ``guarded``: False where the target does not let us fence (no
    right on the transactional id, a broker without the requests): what one worker writes is exact then, a second one is
    not held off. ``unproven``: it may be another worker's by now. ``producers``: every producer id with which this
    shard has written.
    """

    def __init__(
        self,
        number: int,
        transactional_id: str,
        target: WireCluster,
        *,
        start: Start,
        events: ShardEvents,
        turns: asyncio.Semaphore,
        required: bool,
        lead: Shard | None = None,
        unused: TopicPartition | None = None,
    ) -> None:
        self.number = number
        self.transactional_id = transactional_id
        self.routes: dict[TopicPartition, Route] = {}
        self.producer_id = self.epoch = -1
        self.sending = False
        self.guarded = True
        self.generation = 0
        self.producers: set[int] = set()
        self.taken = asyncio.Event()
        self.unproven = False
        self._lead = lead
        self._unused = unused
        self._proof: asyncio.Future[bool] | None = None
        self._taken_back: deque[float] = deque(maxlen=_TAKEN_BACK)
        self._over = False
        self._target = target
        self._start = start
        self._events = events
        self._turns = turns
        self._required = required
        self._new: dict[Route, None] = {}
        self._used: dict[TopicPartition, int] = {}
        self._begun: tuple[int, int] | None = None  # an epoch that is ours and has not been fenced with yet
        self._doubt = ""
        self._keep = False
        self._work = asyncio.Event()
        self._quiet = asyncio.Event()

    def add(self, routes: Iterable[Route]) -> None:
        """Takes further lanes, or stopped ones again."""
        for route in routes:
            self.routes[route.lane.source] = route
            self._new[route] = None
        self._work.set()

    def remove(self, route: Route) -> None:
        """Lets a lane go; it is closed."""
        route.lane.close()
        route.count()
        self.routes.pop(route.lane.source, None)
        self._new.pop(route, None)
        self.quiet()

    def doubt(self, why: str) -> None:
        """Says that what the target holds must be looked up behind a new fence."""
        self.unproven = True
        if not self._doubt:
            self._doubt = why
            if self.owned:
                _log.warning("shard %d: %s; fencing anew and looking at the target", self.number, why)
        self._work.set()

    def quiet(self) -> None:
        """Says that a lane has nothing on its way any more."""
        self._quiet.set()

    @property
    def owned(self) -> bool:
        return self.producer_id >= 0

    def begin(self) -> None:
        """Takes the shard though it has no lane yet."""
        self._work.set()

    async def proven(self) -> bool:
        """Says whether the shard is still this worker's, by using its id; waits for an answer as long as it takes."""
        if self._over or not self.guarded or self._unused is None:
            return False
        self._proof = self._proof or asyncio.get_running_loop().create_future()
        self.keep()
        return await asyncio.shield(self._proof)

    async def run(self) -> None:
        """Works until cancelled, or until another worker has taken the shard."""
        if self._lead is not None:
            with contextlib.suppress(TimeoutError):  # better without it than not at all
                async with asyncio.timeout(_LEAD_SECONDS):
                    await self._lead.taken.wait()
        pause, left, said, taking = 0.0, False, "", True
        while True:
            pause = min(max(pause * 2, _FIRST_PAUSE), _LONGEST_PAUSE) if left else 0.0
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause if left else None):
                    await self._work.wait()
            self._work.clear()
            try:
                async with self._turns:
                    taking = not self.owned or bool(self._doubt)
                    if taking:
                        await self._take()
                    elif self._new:
                        await self._extend()
                    elif self._keep and self._unused is not None:
                        await self._use_id(self._unused)
            except ProducerFenced as error:
                self.sending = False
                if error.number == _NO_MAPPING and not taking:
                    # Forgotten while the target was away, or since then another's: its owner is given the next epoch.
                    self.doubt("the target does not know its transactional id as this producer's any more")
                    continue
                if self._lead is not None and self.guarded and not self._contested() and await self._lead.proven():
                    _log.warning(
                        "shard %d: another worker, which has been overtaken itself, had it; taken back", self.number
                    )
                    self.producer_id = self.epoch = -1
                    self._begun = None
                    self.doubt("another worker had it for a while")
                    continue
                self._over = True
                self._proved(False)
                self._events.fenced(self, error)
                return
            except (ClusterError, BrokerError) as error:
                _log.log(logging.DEBUG if str(error) == said else logging.WARNING, "shard %d: %s", self.number, error)
                left, said = True, str(error)
            else:
                said = ""
                left = bool(self._new or self._doubt or self._keep)

    def keep(self) -> None:
        """Has the transactional id used once, over ``unused``, so that it is not forgotten.

        In its turn: while a new epoch is taken, the present one would be refused as an old owner's.
        """
        if self.owned and self.guarded and self._unused is not None:
            self._keep = True
            self._work.set()

    # -- inside ----------------------------------------------------------------------------------

    async def _take(self) -> None:
        """Fences all of the shard's partitions at a new epoch and starts their lanes anew."""
        self.sending = False
        for route in self.routes.values():
            route.lane.hold()
            route.count()
        while any(route.lane.state is State.DRAINING for route in self.routes.values()):
            self._quiet.clear()
            await self._quiet.wait()
        doubt, self._doubt, self._new = self._doubt, "", {}
        try:
            routes, leaderless = await self._led(list(self.routes.values()))
            await self._fence(routes)
            self.generation += 1
            self.unproven = bool(self._doubt)
            self.taken.set()
            self._new.update(dict.fromkeys(leaderless))
            # A doubt that came meanwhile, say because this process stood still, is of this epoch, too.
            self.sending = not self._doubt
            await self._begin(routes)
        except (ClusterError, BrokerError):
            self._doubt = self._doubt or doubt or "its start was cut short"
            raise

    async def _use_id(self, partition: TopicPartition) -> None:
        fenced = await fence_again(self._target, self.transactional_id, self.producer_id, self.epoch, [partition])
        self._keep = False
        self._proved(not fenced.left_out)

    def _contested(self) -> bool:
        """Notes that it is to be taken back; says whether that has been done so often that it is of no use."""
        now = asyncio.get_running_loop().time()
        often = len(self._taken_back) == _TAKEN_BACK and now - self._taken_back[0] < _CONTEST_SECONDS
        self._taken_back.append(now)
        return often

    def _proved(self, ours: bool) -> None:
        if self._proof is not None and not self._proof.done():
            self._proof.set_result(ours)
        self._proof = None

    async def _extend(self) -> None:
        """Fences further partitions at the epoch we have and starts their lanes."""
        wanted, self._new = [route for route in self._new if route.lane.state is not State.OPEN], {}
        try:
            await self._extend_by(wanted)
        except (ClusterError, BrokerError):
            self._new.update(dict.fromkeys(route for route in wanted if self.routes.get(route.lane.source) is route))
            raise

    async def _extend_by(self, wanted: list[Route]) -> None:
        routes, leaderless = await self._led(wanted)
        self._new.update(dict.fromkeys(leaderless))
        for route in routes:
            if self._used.get(route.lane.target) == self.generation:
                # It has used this epoch's sequences; only a new epoch lets it begin at 0 again.
                self.doubt(f"{route} is started again")
                return
        if routes and self.guarded:
            fenced = await fence_again(
                self._target, self.transactional_id, self.producer_id, self.epoch, [r.lane.target for r in routes]
            )
            routes = self._behind(routes, fenced)
        await self._begin(routes)

    async def _begin(self, routes: list[Route]) -> None:
        if routes:
            await self._start(routes)
            for route in routes:
                route.count()  # what was on its way is forgotten
            opened = [route for route in routes if route.lane.state is State.OPEN]
            for route in opened:
                route.generation = self._used[route.lane.target] = self.generation
            self._events.started(opened)

    async def _fence(self, routes: list[Route]) -> None:
        targets = [route.lane.target for route in routes]
        owned = (self._begun or (self.producer_id, self.epoch)) if self.owned and self.guarded else None
        if self.guarded:
            try:
                fenced = await fence(
                    self._target, self.transactional_id, targets, owned=owned, begun=partial(setattr, self, "_begun")
                )
            except (NotAuthorized, BrokerError) as error:
                if isinstance(error, ProducerFenced) or self._required or self.owned:
                    raise
                if isinstance(error, BrokerError) and error.number != _UNSUPPORTED:
                    raise
                self.guarded = False
                self._events.unguarded(error)
            else:
                self.producer_id, self.epoch = fenced.producer_id, fenced.epoch
                self._begun = None
                self.producers.add(self.producer_id)
                self._keep = False
                self._proved(True)
                routes[:] = self._behind(routes, fenced)
                return
        self.producer_id, self.epoch = await new_producer_id(self._target)
        self.producers.add(self.producer_id)

    def _behind(self, routes: list[Route], fenced: Fence) -> list[Route]:
        """Notes where the others' logs ended, and puts routes that could not be fenced aside, to be tried again."""
        left_out = fenced.left_out
        for route in routes:
            reason = left_out.get(route.lane.target)
            if reason is None:
                route.whole = min(fenced.ends.get(route.lane.target, route.whole), route.whole)
            else:
                route.lane.close()
                route.count()
                self._events.stands_still(route, f"the target lets nothing be written: {reason}")
                self._new[route] = None
        return [route for route in routes if route.lane.target not in left_out]

    async def _led(self, routes: list[Route]) -> tuple[list[Route], list[Route]]:
        """Parts routes by whether their target partition has a leader: one without would hold up the fence."""
        if not routes:
            return [], []
        leaders = await self._target.leaders({route.lane.target for route in routes}, refresh=True)
        led, leaderless = [], []
        for route in routes:
            leader = leaders[route.lane.target]
            if isinstance(leader, Leader) and leader.topic_id == route.target_id:
                led.append(route)
                continue
            why = str(leader)
            if isinstance(leader, Leader):
                self._events.look_soon()  # no anchor is true of another topic under the old name
                why = "its topic was made anew"
            route.lane.close()
            route.count()
            self._events.stands_still(route, f"target partition {route.lane.target}: {why}")
            leaderless.append(route)
        return led, leaderless
