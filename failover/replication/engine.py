"""Copies one flow: owns its shards, keeps readers and writers going."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Collection, Coroutine, Iterable
from typing import Any

from failover.errors import ClusterError, FailoverError, NotAuthorized
from failover.inventory.flow import Flow
from failover.kafka.faults import fault
from failover.kafka.wire.cluster import Leader, WireCluster
from failover.kafka.wire.fetch import Fetched
from failover.kafka.wire.producer_ids import ProducerFenced
from failover.model.names import TopicPartition
from failover.replication.crowding import Crowding
from failover.replication.discovery import Discovery
from failover.replication.hold import Hold
from failover.replication.lane import Flight
from failover.replication.leaders import Leaders
from failover.replication.mending import Mender
from failover.replication.options import ReplicateOptions
from failover.replication.overtaken import overtaken
from failover.replication.positions import Positions
from failover.replication.progress import Progress
from failover.replication.pulse import Pulse
from failover.replication.rate import Rate
from failover.replication.reader import Reader
from failover.replication.recorder import Recorder
from failover.replication.route import Room, Route
from failover.replication.shard import Shard
from failover.replication.shards import transactional_id
from failover.replication.share import Share
from failover.replication.starting import Starter
from failover.replication.syncs import Syncs
from failover.replication.topics import Topics
from failover.replication.traffic import Traffic
from failover.replication.writer import Writer

_log = logging.getLogger(__name__)

PULSE_SECONDS = 5.0
"""So long may the event loop be silent before nothing is sent until the shards are proven to be ours."""
_BEAT_SECONDS = 0.25
_KEEP_SECONDS = 86_400.0
_KEEPS = 8
"""So often is a transactional id used in the time after which the target would forget it."""
_TELL_SECONDS = 10.0
_ROOM_SECONDS = 2.0
_FINISH_SECONDS = 10.0
_SHARDS_AT_ONCE = 16
_PRODUCER_EXPIRATION_MS = 86_400_000


class Engine:
    """Replicates the flow ``source`` -> ``target`` until ``stop`` is called.

    Data goes from a reader (one a source broker) through the lanes to a writer (one a target broker); everything
    else acts on lanes that stand still: shards start them, the mender starts them again. ``beside``: work that begins
    with the copying and is cancelled at its end. ``share``: the part of the flow that is copied here; ``fenced_out`` is
    called where another worker takes a shard of it, instead of ending the engine.
    """

    def __init__(
        self,
        flow: Flow,
        source: WireCluster,
        target: WireCluster,
        *,
        topics: Topics,
        positions: Positions,
        syncs: Syncs,
        options: ReplicateOptions,
        beside: Iterable[Callable[[], Coroutine[Any, Any, None]]] = (),
        share: Share | None = None,
    ) -> None:
        self.flow = flow
        self.share = share or Share()
        self.fenced_out: Callable[[int], None] | None = None
        self.options = options
        self.routes: dict[TopicPartition, Route] = {}
        self.shards: dict[int, Shard] = {}
        self.recorder = Recorder(positions, syncs, alive=self.alive)
        self.traffic = Traffic()
        self.source_leaders, self.target_leaders = Leaders(source), Leaders(target)
        self._source, self._target = source, target
        self._topics, self._positions, self._syncs = topics, positions, syncs
        self._room = Room(options.buffer_bytes)
        self._rate = Rate(options.rate_bytes)
        self._pulse = Pulse(PULSE_SECONDS)
        self._readers: dict[int, Reader] = {}
        self._writers: dict[int, Writer] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._owning: dict[int, asyncio.Task[None]] = {}
        self._turns = asyncio.Semaphore(_SHARDS_AT_ONCE)
        self._stop = asyncio.Event()
        self._answered = asyncio.Event()
        self._failure: BaseException | None = None
        self._expiration_ms = _PRODUCER_EXPIRATION_MS
        self.starter = Starter(self, source, target, positions, syncs)
        self.mender = Mender(self, source, target)
        self.discovery = Discovery(self, topics, room=self._room)
        self._lost: set[tuple[str, int]] = set()
        self._unguarded = False
        self._overtaken = False
        self._began_ms = int(time.time() * 1000)
        self._beside = list(beside)
        self.hold = Hold(self)

    # -- life ------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Replicates until ``stop``; what is on its way then is waited for and written down.

        Raises ``Refused`` when another worker has taken a shard, ``ClusterError`` when a cluster cannot be used at the
        start.
        """
        await self._positions.open()
        await self._syncs.open()
        await self.starter.read_anchors()
        self._topics.recorded = self.starter.recorded
        self._expiration_ms = await self._topics.producer_expiration_ms() or _PRODUCER_EXPIRATION_MS
        if (first := self.share.first) is not None:
            self.shard(first).begin()
        forgotten_ms = await self._topics.transactional_expiration_ms()
        keep = self._keep(_KEEP_SECONDS if forgotten_ms is None else min(_KEEP_SECONDS, forgotten_ms / 1000 / _KEEPS))
        background = [self._beat(), keep, self.discovery.run(), self._tell(), self.recorder.run(), self._make_room()]
        background += [work() for work in self._beside]
        for work in background:
            self.spawn(work)
        try:
            await self._stop.wait()
        finally:
            await self._finish()
        if self._failure is not None:
            raise self._failure

    def beside(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Has further work begin with the copying, and be cancelled at its end."""
        self._beside.append(work)

    def stop(self) -> None:
        """Ends ``run`` in good order."""
        self._stop.set()

    def fail(self, error: BaseException) -> None:
        """Ends ``run`` with an error, the first one."""
        if self._failure is None:
            self._failure = error
        self._stop.set()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Runs a coroutine beside the others; an error nobody expects ends the engine."""
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def look_soon(self) -> None:
        """Looks at the topics of both clusters before it is time to."""
        self.discovery.look_soon()

    @property
    def worker(self) -> str:
        """Names this worker as the positions do that it writes."""
        return self._positions.worker

    @property
    def buffered(self) -> int:
        """Is how many bytes are read and not yet acknowledged."""
        return self._room.used

    @property
    def stopping(self) -> bool:
        return self._stop.is_set()

    def alive(self) -> bool:
        """Says whether this process has been running all the time, and hears of its group: else it may own nothing."""
        return self._pulse.alive() and self.share.alive()

    def fresh_from(self) -> int:
        """Gives the timestamp (epoch ms) from which on records keep their producer in a broker's memory for a while."""
        return int(time.time() * 1000) - self._expiration_ms // 2

    # -- what the parts report -------------------------------------------------------------------

    def arrived(self, route: Route) -> None:
        writer = self._writers.get(route.target_node)
        if writer is not None:
            writer.wake(route)

    def accepted(self, route: Route, flight: Flight) -> None:
        batch = flight.outgoing
        size = len(batch.data)
        now = time.time()
        self.traffic.add(batch.records, size, batch.kind, now)
        route.tally.sent(batch, now)
        route.tally.seen(route.lane.upstream, route.source_end, now)
        route.parked = False
        self._answered.set()
        self.recorder.moved(route, size)
        if route.reason:
            self.mender.recovered(route)
        reader = self._readers.get(route.source_node)
        if reader is not None:
            reader.freed(route)

    def drained(self, route: Route) -> None:
        self._answered.set()
        if route.lane.fault is not None:
            self.traffic.failed("target", route.lane.fault.name)
        route.shard.quiet()
        self.mender.drained(route)

    def unreadable(self, route: Route, fetched: Fetched) -> None:
        self.traffic.failed("source", "DIVERGED" if fetched.diverging is not None else fault(fetched.error).name)
        self.mender.unreadable(route, fetched)

    def readable(self, route: Route) -> None:
        self.mender.recovered(route)

    def damaged(self, route: Route, why: str) -> None:
        self.traffic.failed("source", "DAMAGED")
        self.mender.damaged(route, why)

    def source_lost(self, routes: Iterable[Route], error: ClusterError) -> None:
        routes = list(routes)
        self.traffic.failed("source", "NO_ANSWER")
        for route in routes[:1]:
            self._say_lost("source", route.source_node, error)
        self.spawn(self.mender.follow_source(routes))

    def target_lost(self, node: int, error: ClusterError) -> None:
        self.traffic.failed("target", "NO_ANSWER")
        self._say_lost("target", node, error)
        self.spawn(self.mender.follow_target([route for route in self.routes.values() if route.target_node == node]))

    async def reconnected(self, node: int) -> None:
        await self.mender.check([route for route in self.routes.values() if route.target_node == node])

    def heard(self, side: str, node: int) -> None:
        """Notes that a broker answers (again)."""
        self.traffic.heard[side] = time.time()
        if (side, node) in self._lost:
            self._lost.discard((side, node))
            _log.warning("%s broker %d answers again", side, node)

    def started(self, routes: Iterable[Route]) -> None:
        routes = list(routes)
        if not self.hold.let_go(routes):
            self.spawn(self._open(routes))

    def unguarded(self, error: FailoverError) -> None:
        """Says once what it costs that the target does not let us fence."""
        if self._unguarded:
            return
        self._unguarded = True
        flow = self.flow
        prefix = transactional_id(flow.source, flow.target)
        grant = f"; grant WRITE and DESCRIBE on transactional ids that begin with {prefix}"
        _log.warning(
            "flow %s->%s: %s: exact for one worker, not fenced against a second%s",
            flow.source,
            flow.target,
            error,
            grant if isinstance(error, NotAuthorized) else "",
        )

    def stands_still(self, route: Route, why: str) -> None:
        self.mender.say(route, why)

    def fenced(self, shard: Shard, error: ProducerFenced) -> None:
        if self.fenced_out is not None:
            self.fenced_out(shard.number)
        elif not self._overtaken:
            self._overtaken = True
            self.spawn(self._end_overtaken(shard, error))

    # -- routes ----------------------------------------------------------------------------------

    def place(self, route: Route, *, source: Leader | None = None, target: Leader | None = None) -> None:
        """Gives a route its brokers, and wakes whoever has to do with it."""
        if source is not None:
            if route.source_node != source.node and (old := self._readers.get(route.source_node)) is not None:
                old.remove(route)
            route.source_node, route.source_epoch = source.node, source.epoch
            self._reader(source.node).add(route)
        if target is not None:
            route.target_node, route.target_epoch = target.node, target.epoch
        if route.target_node >= 0:
            self._writer(route.target_node).wake(route)

    def touch(self, route: Route) -> None:
        """Looks again at what a lane wants to read."""
        if (reader := self._readers.get(route.source_node)) is not None:
            reader.touch(route)

    def shard(self, number: int) -> Shard:
        """Gives a shard, owned from its first lane on."""
        shard = self.shards.get(number)
        if shard is None:
            flow, first = self.flow, self.share.first
            shard = self.shards[number] = Shard(
                number,
                transactional_id(flow.source, flow.target, number),
                self._target,
                start=self.starter.start,
                events=self,
                turns=self._turns,
                # Without a fence, whoever loses a shard while it is frozen would write there when it wakes.
                required=self.options.exactly_once == "required" or bool(self.share.group),
                lead=None if first is None or number == first else self.shard(first),
                unused=self._positions.partition_of(number),
            )
            self._owning[number] = self.spawn(shard.run())
        return shard

    async def take(self, numbers: Iterable[int]) -> None:
        """Owns further shards from now on. Raises ``ClusterError``, ``BrokerError``; then none of them."""
        wanted = set(numbers)
        await self.starter.read_anchors()  # their last owner has written since
        self._topics.recorded = self.starter.recorded
        self.share.shards |= wanted
        for number in wanted:
            self.shard(number).begin()  # also one without lanes: by that shard another worker may know what it owns
        self.discovery.begin(wanted)

    async def give(self, numbers: Iterable[int], *, seconds: float) -> None:
        """Lets shards go: nothing new is sent, what is on its way is waited for a little, and put on record.

        What is still on its way then belongs to the next owner's fence, as after a kill.
        """
        wanted = set(numbers)
        self.share.shards -= wanted
        routes = [route for route in self.routes.values() if route.shard.number in wanted]
        ended = [task for number in wanted if (task := self._owning.pop(number, None)) is not None]
        for task in ended:
            task.cancel()
        for number in wanted & self.shards.keys():
            self.shards.pop(number).sending = False
        await self._settled(routes, seconds)
        for route in routes:
            if self.routes.get(route.lane.source) is route:
                del self.routes[route.lane.source]
                self.close(route)
                self.traffic.left(route.tally)
        self.recorder.forget(route for route in routes if route.shard.unproven)
        if routes:
            await asyncio.wait([self.spawn(self.recorder.flush())], timeout=seconds)
        await asyncio.gather(*ended, return_exceptions=True)

    # -- inside ----------------------------------------------------------------------------------

    def close(self, route: Route) -> None:
        """Ends a lane; where it stands is kept."""
        if (reader := self._readers.get(route.source_node)) is not None:
            reader.remove(route)
        self.starter.left(route)
        route.shard.remove(route)

    def doubt(self, why: str) -> None:
        """Sends nothing more until each shard has proven to be still this worker's."""
        for shard in self.shards.values():
            shard.sending = False
            shard.doubt(why)

    async def on_record(self) -> None:
        """Writes down where every lane stands."""
        await self.recorder.flush()

    async def _end_overtaken(self, shard: Shard, error: ProducerFenced) -> None:
        name = f"{self.flow.source}->{self.flow.target}"
        why = f"shard {shard.number}: {error.message}"
        part = self.share.part
        lost = None if part is None else shard.number
        self.fail(await overtaken(name, why, self._positions, self._began_ms, part=part, shard=lost))

    async def _open(self, routes: list[Route]) -> None:
        """Finds the brokers of lanes that have just been started."""
        await self.mender.follow_source(routes, known=True)
        await self.mender.follow_target(routes, known=True)

    async def _beat(self) -> None:
        while True:
            silent = self._pulse.beat()
            if silent:
                _log.warning("this process stood still for %.1f s; every shard is looked at again", silent)
                self.doubt(f"silent for {silent:.1f} s")
            await asyncio.sleep(_BEAT_SECONDS)

    async def _make_room(self) -> None:
        crowding = Crowding(self._room)
        while True:
            await asyncio.sleep(_ROOM_SECONDS)
            for route in crowding.look(self.routes.values()):
                self.touch(route)

    async def _tell(self) -> None:
        progress = Progress(f"{self.flow.source}->{self.flow.target}")
        while True:
            await asyncio.sleep(_TELL_SECONDS)
            if line := progress.line(self.routes.values(), self.traffic, _TELL_SECONDS):
                _log.info("%s", line)

    async def _keep(self, seconds: float) -> None:
        """Uses each transactional id every so many seconds (Kafka: one that is not used is forgotten)."""
        while True:
            await asyncio.sleep(seconds)
            for shard in self.shards.values():
                shard.keep()

    async def _finish(self) -> None:
        """Sends nothing new, waits for what is on its way, writes down where every lane stands."""
        for shard in self.shards.values():
            shard.sending = False
        await self._settled(self.routes.values(), _FINISH_SECONDS)
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.recorder.flush()

    async def _settled(self, routes: Collection[Route], seconds: float) -> None:
        """Waits so long at most until nothing of these lanes is on its way any more."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while any(route.lane.on_the_way for route in routes):
                    self._answered.clear()
                    await self._answered.wait()

    def _reader(self, node: int) -> Reader:
        reader = self._readers.get(node)
        if reader is None:
            reader = self._readers[node] = Reader(
                self._source,
                node,
                self.options.read,
                room=self._room,
                rate=self._rate,
                events=self,
                gate=self.hold.gate,
            )
            self.spawn(reader.run())
        return reader

    def _writer(self, node: int) -> Writer:
        writer = self._writers.get(node)
        if writer is None:
            writer = self._writers[node] = Writer(
                self._target,
                node,
                self.options.write,
                events=self,
                fresh_from=self.fresh_from,
                alive=self.alive,
            )
            self.spawn(writer.run())
        return writer

    def _say_lost(self, side: str, node: int, error: ClusterError) -> None:
        if (side, node) not in self._lost:
            self._lost.add((side, node))
            _log.warning("%s broker %d: %s", side, node, error)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.fail(error)
