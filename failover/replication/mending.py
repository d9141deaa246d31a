"""What is done about lanes that stand still: wait, follow a leader, send again, begin elsewhere, or say why not."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from failover.errors import ClusterError
from failover.kafka.faults import fault
from failover.kafka.wire.cluster import Leader
from failover.kafka.wire.fetch import Fetched
from failover.kafka.wire.logs import log_ranges
from failover.model.cluster import LogRange
from failover.model.names import Fault, TopicPartition
from failover.replication.batches import Limits
from failover.replication.lane import State, Trouble
from failover.replication.leaders import Leaders
from failover.replication.route import UNFENCED, Route

if TYPE_CHECKING:
    from failover.kafka.wire.cluster import WireCluster
    from failover.replication.engine import Engine

_log = logging.getLogger(__name__)

_OUT_OF_RANGE, _UNKNOWN_TOPIC = 1, 3
_TOO_LARGE = frozenset({10, 18})  # MESSAGE_TOO_LARGE, RECORD_LIST_TOO_LARGE
_INVALID_TIMESTAMP = 32
_DENIED = 29  # TOPIC_AUTHORIZATION_FAILED
# One record may be why a whole batch is refused; INVALID_RECORD (87) is said of a null key where the log is compacted.
_OF_ONE_RECORD = frozenset({*_TOO_LARGE, _INVALID_TIMESTAMP, 87})
_SMALL = Limits().small_bytes
_GONE = frozenset({_UNKNOWN_TOPIC, 100, 103})
_MOVED = frozenset({5, 6, 9, 74, 75, 78})
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
_QUIET_POLL = 0.01


class Mender:
    """Brings lanes back, each by itself: one that stands still holds up no other."""

    def __init__(self, engine: Engine, source: WireCluster, target: WireCluster) -> None:
        self._engine = engine
        self._source, self._target = source, target
        self._following: dict[str, set[TopicPartition]] = {"source": set(), "target": set()}
        self._made_anew: dict[Route, bytes] = {}

    # -- the target's side -----------------------------------------------------------------------

    def drained(self, route: Route) -> None:
        """Decides about a lane in trouble that has nothing on its way any more."""
        lane = route.lane
        if lane.trouble in (Trouble.DOUBT, Trouble.FENCED):
            # A shard takes its next epoch only from its own, so an overtaken one ends there.
            route.shard.doubt(f"{route}: {lane.fault}")
        elif lane.trouble is not Trouble.NONE and not route.mending:
            route.mending = True
            self._engine.spawn(self._resend(route))

    async def _resend(self, route: Route) -> None:
        """Sends the same bytes again, to whoever leads the partition then."""
        lane, shard, options = route.lane, route.shard, self._engine.options
        generation, trouble, reason = shard.generation, lane.trouble, lane.fault
        refused = trouble is Trouble.REFUSED
        try:
            if refused and self._smaller(route):
                return
            if refused:
                self.say(route, f"the target refuses it: {reason}{_refusal(route)}")
                lane.forget()
                route.count()
                if options.restart == "never":
                    return
                pause = min(options.restart_min * 2 ** min(lane.failures - 1, 30), options.restart_max)
            else:
                pause = min(_FIRST_PAUSE * 2 ** min(lane.failures - 1, 30), _LONGEST_PAUSE)
            while True:
                await asyncio.sleep(pause)
                if shard.generation != generation or lane.state is not State.DRAINED:
                    return
                try:
                    leader = (await self._engine.target_leaders.find([lane.target]))[lane.target]
                    await self._check_changed({lane.target: route}, {lane.target: leader})
                except ClusterError as error:
                    leader = fault(-1, error.message)
                if shard.generation != generation or lane.state is not State.DRAINED:
                    return
                if isinstance(leader, Leader):
                    break
                if leader.number == _UNKNOWN_TOPIC:
                    self._engine.look_soon()
                self.say(route, f"target partition {lane.target}: {leader}")
                pause = min(pause * 2, _LONGEST_PAUSE)
            if leader.topic_id != route.target_id:
                self._engine.look_soon()
                shard.doubt(f"{route}: the target's topic is another one now")
            elif not lane.retry(fresh_from=self._engine.fresh_from()):
                shard.doubt(f"{route}: {reason}, and its records are too old to be recognised")
            else:
                self._engine.place(route, target=leader)
                self._engine.touch(route)
        finally:
            route.mending = False

    def _smaller(self, route: Route) -> bool:
        """Goes on in smaller batches where several records together are refused; False where it does not.

        The source's batches may be larger than the target's topic takes, though each record is small enough; and those
        before a record that is refused for itself are none the worse for it.
        """
        lane = route.lane
        if lane.fault is None or lane.fault.number not in _OF_ONE_RECORD or not lane.flights:
            return False
        batch, number = lane.flights[0].outgoing, lane.fault.number
        if batch.records == 1:
            return False
        if not lane.begin_again():
            # The same bytes would be refused for ever. What else was on its way may lie there as it is: that is looked
            # up, and then this batch is sent alone.
            route.shard.doubt(f"{route}: {lane.fault}, and an answer before was lost")
            return True
        if number not in _TOO_LARGE:
            route.sifting = True
        elif route.limits is None:
            _log.warning("%s: the target takes no batch of %d bytes; smaller ones from here on", route, len(batch.data))
        size = min(len(batch.data), route.limits.batch_bytes if route.limits is not None else len(batch.data)) // 4
        route.limits = Limits(small_bytes=min(size, _SMALL), batch_bytes=size)
        route.count()
        self._engine.touch(route)
        return True

    async def check(self, routes: Iterable[Route]) -> None:
        """Looks whether target partitions hold all that they acknowledged, and doubts those that do not.

        A log that lost its end (Kafka: an unclean election; a disk brought back) may have lost its producers with it,
        and takes the next batch whatever its sequence: so it is asked before anything is sent to a leader that is new
        or has been away. Raises ``ClusterError``.
        """
        asked = [route for route in routes if route.generation and route.lane.state is not State.CLOSED]
        found = await log_ranges(self._target, [route.lane.target for route in asked]) if asked else {}
        for route in asked:
            lane, log = route.lane, found[route.lane.target]
            if isinstance(log, LogRange) and log.end < lane.downstream:
                lane.hold()
                route.count()
                route.shard.doubt(
                    f"{route}: target-truncated: the target ends at offset {log.end}, though it had acknowledged"
                    f" all below {lane.downstream}"
                )

    async def _check_changed(
        self, routes: Mapping[TopicPartition, Route], found: Mapping[TopicPartition, Leader | Fault]
    ) -> None:
        """Checks the target partitions that have another leader epoch than before."""
        changed = []
        for tp, route in routes.items():
            leader = found[tp]
            if isinstance(leader, Leader) and route.target_epoch not in (-1, leader.epoch):
                changed.append(route)
        await self.check(changed)

    async def follow_target(self, routes: Iterable[Route], *, known: bool = False) -> None:
        """Finds who leads the target partitions now."""
        await self._follow("target", self._engine.target_leaders, {route.lane.target: route for route in routes}, known)

    # -- the source's side -----------------------------------------------------------------------

    async def follow_source(self, routes: Iterable[Route], *, known: bool = False) -> None:
        """Finds who leads the source partitions now."""
        await self._follow("source", self._engine.source_leaders, {route.lane.source: route for route in routes}, known)

    def unreadable(self, route: Route, fetched: Fetched) -> None:
        """Decides about a partition whose broker answered with an error, or whose log was cut."""
        number = fetched.error
        if fetched.diverging is not None:
            self._engine.spawn(self._diverged(route, fetched.diverging[1]))
        elif number == _OUT_OF_RANGE:
            self._engine.spawn(self._out_of_range(route))
        elif number in _MOVED:
            self._engine.spawn(self.follow_source([route]))
        else:
            reason = fault(number)
            if number in _GONE:
                self._engine.look_soon()
            self._again(route, f"the source does not give it: {reason}")

    def damaged(self, route: Route, why: str) -> None:
        """Decides about a partition whose next batch cannot be read: it waits there, nothing is left out."""
        self._again(route, f"the source's next batch is damaged: {why}")

    def source_recreated(self, route: Route, source_id: bytes) -> None:
        """Goes on with another topic under the old name, from its start, once what was read of the former is there."""
        waiting = route in self._made_anew
        self._made_anew[route] = source_id
        if not waiting:
            self._engine.spawn(self._recreated(route))

    def target_recreated(self, route: Route, target_id: bytes) -> None:
        """Begins anew on another topic under the old name."""
        if route.target_id != target_id:
            route.target_id = target_id
            # Where its lane stands, and where the log ended, is true of the other topic.
            route.generation, route.since, route.whole = 0, None, UNFENCED
            route.anchors.clear()
            _log.warning("%s: the target's topic was made anew", route)
            route.shard.doubt(f"{route}: the target's topic was made anew")

    # -- both ------------------------------------------------------------------------------------

    def stopped(self, route: Route, why: str, *, again: bool = True) -> None:
        """Notes that a lane cannot be started, and tries ``again`` later."""
        self.say(route, why)
        if again and self._engine.options.restart != "never":
            self._engine.spawn(self._start_again(route))

    def recovered(self, route: Route) -> None:
        """Notes that a lane goes on."""
        _log.warning("%s goes on", route)
        route.reason, route.attempts = "", 0
        if route.sifting:
            route.limits, route.sifting = None, False

    def say(self, route: Route, why: str) -> None:
        """Says why a lane stands still, once."""
        if route.reason != why:
            route.reason = why
            _log.error("%s stands still: %s", route, why)

    # -- inside ----------------------------------------------------------------------------------

    def _pause(self, route: Route) -> float:
        options = self._engine.options
        pause: float = min(options.restart_min * 2 ** min(route.attempts, 30), options.restart_max)
        route.attempts += 1
        return pause

    def _again(self, route: Route, why: str) -> None:
        self.say(route, why)
        if self._engine.options.restart != "never":
            self._engine.spawn(self._read_again(route))

    async def _read_again(self, route: Route) -> None:
        await asyncio.sleep(self._pause(route))
        await self.follow_source([route])
        self._engine.touch(route)

    async def _start_again(self, route: Route) -> None:
        await asyncio.sleep(self._pause(route))
        if route.lane.state is State.CLOSED and self._known(route):
            route.shard.add([route])

    async def _follow(self, side: str, leaders: Leaders, routes: dict[TopicPartition, Route], known: bool) -> None:
        following = self._following[side]
        left = {tp: route for tp, route in routes.items() if tp not in following}
        following |= left.keys()
        pause, said = _FIRST_PAUSE, False
        try:
            while left:
                try:
                    found = await (leaders.known(left) if known else leaders.find(left))
                    if side == "target":
                        await self._check_changed(left, found)
                except ClusterError as error:
                    found = dict.fromkeys(left, fault(-1, error.message))
                for tp, leader in found.items():
                    route = left[tp]
                    if isinstance(leader, Leader):
                        self._found(side, route, leader)
                    elif leader.number == _UNKNOWN_TOPIC:
                        self._engine.look_soon()
                    elif self._known(route):
                        continue
                    following.discard(tp)
                    del left[tp]
                known = False
                if left:
                    if pause == _LONGEST_PAUSE and not said:
                        said = True  # one line: a broker that is away may have led thousands
                        tp = next(iter(left))
                        _log.warning(
                            "%d partitions of the %s stand still, among them %s: %s", len(left), side, tp, found[tp]
                        )
                    await asyncio.sleep(pause)
                    pause = min(pause * 2, _LONGEST_PAUSE)
        finally:
            following.difference_update(left)

    def _found(self, side: str, route: Route, leader: Leader) -> None:
        if not self._known(route):
            return
        if leader.topic_id != (route.source_id if side == "source" else route.target_id):
            self._engine.look_soon()
        if side == "source":
            self._engine.place(route, source=leader)
        else:
            self._engine.place(route, target=leader)

    def _known(self, route: Route) -> bool:
        return self._engine.routes.get(route.lane.source) is route

    async def _quiet(self, route: Route) -> bool:
        """Waits until all that was read is acknowledged; False if the lane stands still otherwise."""
        while route.lane.state is State.OPEN and self._known(route):
            if not route.lane.pending:
                return True
            await asyncio.sleep(_QUIET_POLL)
        return False

    async def _diverged(self, route: Route, end: int) -> None:
        lane = route.lane
        if await self._quiet(route) and end < lane.fetch_offset:
            _log.error(
                "%s: source-truncated: it ends at offset %d now, %d records that were copied no longer exist there",
                route,
                end,
                lane.fetch_offset - end,
            )
            self._move(route, end)
        self._engine.touch(route)

    async def _out_of_range(self, route: Route) -> None:
        lane = route.lane
        if not await self._quiet(route):
            return
        leader: Leader | Fault
        try:
            leader = (await self._engine.source_leaders.find([lane.source]))[lane.source]
            found = (await log_ranges(self._source, [lane.source]))[lane.source]
        except ClusterError as error:
            leader = found = fault(-1, error.message)
        if lane.pending or lane.state is not State.OPEN:
            return
        if isinstance(leader, Leader) and leader.topic_id != route.source_id:
            self.source_recreated(route, leader.topic_id)  # brokers before Kafka 3.1 are asked by name
            return
        if isinstance(found, Fault):
            self._again(route, f"the source's log cannot be asked for its ends: {found}")
            return
        position = lane.fetch_offset
        if position < found.start:
            _log.error(
                "%s: %d records were removed from the source before they were copied (offsets %d to %d)",
                route,
                found.start - position,
                position,
                found.start - 1,
            )
            self._move(route, found.start)
        elif position > found.end:
            _log.error(
                "%s: source-truncated: the source ends at offset %d, %d records that were copied no longer exist there",
                route,
                found.end,
                position - found.end,
            )
            self._move(route, found.end)
        elif lane.leader_epoch >= 0:
            # A leader that knows no epoch so new answers so, too (Kafka: Partition.readRecords).
            _log.warning(
                "%s: the source knows nothing of leader epoch %d, under which the record before offset %d was read",
                route,
                lane.leader_epoch,
                position,
            )
            lane.leader_epoch = -1
        else:
            self._again(
                route, f"the source does not give offset {position}, though it has {found.start} to {found.end}"
            )
            return
        self._engine.touch(route)

    async def _recreated(self, route: Route) -> None:
        made_anew = self._made_anew
        try:
            # A lane that stands still is in doubt, closed, or sends again: then it is either started, which looks at
            # the topic itself, or goes on with what it has read of the former one.
            while self._known(route) and route.source_id != made_anew[route]:
                if not await self._quiet(route):
                    await asyncio.sleep(_LONGEST_PAUSE)
                elif route.source_id != made_anew[route]:
                    _log.error(
                        "%s: source-recreated: the source's topic was made anew; it is copied from its start", route
                    )
                    route.source_id = made_anew[route]
                    self._move(route, 0)
                    await self.follow_source([route])
                    self._engine.touch(route)
        finally:
            del made_anew[route]

    def _move(self, route: Route, upstream: int) -> None:
        route.anchors.clear()
        route.lane.move(upstream)
        route.count()
        self._engine.recorder.moved(route, 0)


def _refusal(route: Route) -> str:
    """Says from which record of the source on the target takes nothing, and which of its settings decides that."""
    lane = route.lane
    if lane.fault is None or not lane.flights:
        return ""
    # Not where the batch ends, nor its size where it has several records: it grows while it waits, and is told once.
    batch, topic = lane.flights[0].outgoing, lane.target.topic
    cause = ""
    if lane.fault.number in _TOO_LARGE:
        size = f", {len(batch.data)} bytes" if batch.records == 1 else ""
        cause = f"{size}; max.message.bytes of {topic} allows less"
    elif lane.fault.number == _INVALID_TIMESTAMP:
        cause = f"; message.timestamp.before.max.ms and .after.max.ms of {topic} allow other timestamps"
    elif lane.fault.number == _DENIED:
        cause = f"; grant WRITE on topic {topic}"
    return f" (source offset {batch.first_source_offset}{cause})"
