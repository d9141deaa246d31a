"""Finds where lanes go on, and opens them there."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from failover.errors import BrokerError, FailoverError
from failover.kafka.wire.cluster import Leader, WireCluster
from failover.model.names import Fault, TopicPartition
from failover.replication.anchor import Anchor
from failover.replication.locate import Located, Place, Unknown, locate
from failover.replication.others import find_foreign
from failover.replication.positions import Positions
from failover.replication.recorder import anchor_of, anchors_of
from failover.replication.route import UNFENCED, Route
from failover.replication.syncs import Syncs

if TYPE_CHECKING:
    from failover.replication.engine import Engine

_log = logging.getLogger(__name__)

_COUNTED = frozenset({"anchor", "counted"})


class Starter:
    """Opens lanes at the place that anchors and the logs of both sides agree on.

    Anchors come from the lane itself, from the positions on record, and, only where these do not tell, from the whole
    topic of offset syncs. A lane for which the logs do not tell stays closed: nothing is guessed. A position that
    somebody chose is taken as it is.
    """

    def __init__(
        self, engine: Engine, source: WireCluster, target: WireCluster, positions: Positions, syncs: Syncs
    ) -> None:
        self._engine = engine
        self._source, self._target = source, target
        self._positions, self._syncs = positions, syncs
        self._kept: dict[TopicPartition, Anchor] = {}

    async def read_anchors(self) -> None:
        """Reads the positions on record. Raises ``ClusterError``, ``BrokerError``."""
        self._kept = await self._positions.read()

    @property
    def recorded(self) -> frozenset[str]:
        """Gives the source topics with a position on record."""
        return frozenset(tp.topic for tp in self._kept)

    async def start(self, routes: Sequence[Route]) -> None:
        """Opens the lanes of routes behind their shard's fence; sets ``Route.reason`` of those that stay closed."""
        routes = await self._without_foreign(routes)
        await self._look_at_sources(routes)
        before = {route.lane.source: self._kept.get(route.lane.source) for route in routes}
        found = await self._locate(routes, {})
        unknown = [route for route in routes if isinstance(found[route.lane.source], Unknown)]
        if unknown:
            found.update(await self._locate(unknown, await self._synced(unknown)))
        found.update(await self._changed(routes))
        noted, refused = await self._note(routes, found)
        for route in routes:
            tp = route.lane.source
            place = found[tp]
            kept = self._kept.get(tp)
            if kept is not before[tp] and kept is not None and kept.chosen:
                place = Unknown("another position was chosen meanwhile")
            elif isinstance(place, Located) and place.how == "chosen":
                # Nothing but its record tells where its copy begins: without it all would be copied again.
                if tp in noted:
                    self._kept[tp] = noted[tp]
                else:
                    place = Unknown(f"the chosen position cannot be written down: {refused}")
            self._open(route, place)

    def positions(self) -> dict[TopicPartition, int]:
        """Gives the source offset at which each partition goes on that has a position: the lanes', those on record."""
        found = {tp: anchor.upstream for tp, anchor in self._kept.items()}
        lanes = self._engine.routes.items()
        return found | {tp: route.lane.upstream for tp, route in lanes if route.generation}

    def known(self) -> set[TopicPartition]:
        """Gives the partitions that are copied, and those that have a position."""
        return self._kept.keys() | self._engine.routes.keys()

    async def choose(self, wanted: Mapping[TopicPartition, int]) -> None:
        """Has partitions go on at source offsets of somebody's choice, 0 being where one begins that is new.

        Only while every lane is let go (``Hold.halted``). What the target holds below its end is no witness from then
        on: records that are copied again are there twice. Raises ``ClusterError``, ``BrokerError`` where a position
        cannot be written; those that were stay chosen.
        """
        before = {tp: self._kept.get(tp) for tp in wanted}
        for tp, upstream in wanted.items():
            self._kept[tp] = Anchor(upstream, chosen=True)
            route = self._engine.routes.get(tp)
            if route is not None:
                route.generation, route.since = 0, None
                route.anchors.clear()
        chosen = {tp: self._kept[tp] for tp in wanted}
        few = ", ".join(f"{tp} at {at}" if at else f"{tp} as a new one" for tp, at in list(wanted.items())[:3])
        _log.warning("%d partitions are to go on elsewhere: %s%s", len(wanted), few, ", ..." if len(wanted) > 3 else "")
        try:
            refused = await self._positions.write(chosen)
        except FailoverError:
            self._put_back(before, chosen)
            raise
        self._put_back({tp: before[tp] for tp in refused}, chosen)
        for tp, reason in refused.items():
            raise BrokerError(
                f"the position of {tp} cannot be written: {reason}", number=reason.number, name=reason.name
            )

    def left(self, route: Route) -> None:
        """Keeps where a route stands that ends: its topic may come back."""
        if route.generation:
            self._kept[route.lane.source] = anchor_of(route)

    # -- inside ----------------------------------------------------------------------------------

    async def _look_at_sources(self, routes: Sequence[Route]) -> None:
        """Notes which source topics were made anew: the shard has looked at the target's.

        Where the copying of the former topic ended is no place in the new one.
        """
        leaders = await self._source.leaders({route.lane.source for route in routes}, refresh=True)
        for route in routes:
            leader = leaders[route.lane.source]
            if isinstance(leader, Leader) and leader.topic_id != route.source_id:
                self.left(route)
                route.generation = 0
                route.anchors.clear()
                route.source_id = leader.topic_id

    async def _changed(self, routes: Sequence[Route]) -> dict[TopicPartition, Unknown]:
        """Finds the partitions of which, while they were read, a topic turned out to be another one."""
        found: dict[TopicPartition, Unknown] = {}
        sources = await self._source.leaders({route.lane.source for route in routes})
        targets = await self._target.leaders({route.lane.target for route in routes})
        for route in routes:
            source, target = sources[route.lane.source], targets[route.lane.target]
            for leader, known in ((source, route.source_id), (target, route.target_id)):
                if isinstance(leader, Leader) and leader.topic_id != known:
                    found[route.lane.source] = Unknown("a topic was made anew while it was looked at")
        return found

    def _put_back(
        self, before: Mapping[TopicPartition, Anchor | None], chosen: Mapping[TopicPartition, Anchor]
    ) -> None:
        """Forgets choices that could not be written, but for those with which a lane has begun meanwhile."""
        for tp, anchor in before.items():
            if self._kept.get(tp) is chosen[tp]:
                del self._kept[tp]
                if anchor is not None:
                    self._kept[tp] = anchor

    async def _without_foreign(self, routes: Sequence[Route]) -> list[Route]:
        """Leaves out, and closes, the lanes behind whose anchor somebody else has written since they were opened.

        No fence holds off a producer without an id of ours. What it wrote cannot be told from copies by its content, so
        going on might put every record there twice.
        """
        asked = {
            route.lane.target: (route.lane.downstream, route.shard.producers) for route in routes if route.generation
        }
        found = await find_foreign(self._target, asked) if asked else {}
        for route in routes:
            foreign = found.get(route.lane.target)
            if foreign is not None:
                route.lane.close()
                route.count()
                by = "no producer id, as MirrorMaker 2 does" if foreign.producer_id < 0 else "another producer id"
                self._engine.mender.stopped(
                    route,
                    f"two-writers: from target offset {foreign.offset} on lie {foreign.records} records that this"
                    f" worker did not write; whoever did has {by}. Stop it (a MirrorMaker 2 on plain Connect has no"
                    " group by which to know it), then start this worker again",
                    again=False,
                )
        return [route for route in routes if route.lane.target not in found]

    async def _locate(
        self, routes: Sequence[Route], synced: Mapping[TopicPartition, Sequence[Anchor]]
    ) -> dict[TopicPartition, Located | Unknown | Fault]:
        options, start = self._engine.options, self._engine.options.start
        places = []
        for route in routes:
            tp = route.lane.source
            kept = [self._kept[tp]] if tp in self._kept else []
            places.append(
                Place(
                    source=tp,
                    target=route.lane.target,
                    anchors=anchors_of(route, [*kept, *synced.get(tp, ())]),
                    source_topic_id=route.source_id,
                    target_topic_id=route.target_id,
                    whole=route.whole,
                )
            )
        return await locate(
            self._source,
            self._target,
            places,
            read_committed=options.read.read_committed,
            start=start if isinstance(start, str) else int((time.time() - start) * 1000),
        )

    async def _synced(self, routes: Sequence[Route]) -> dict[TopicPartition, Sequence[Anchor]]:
        try:
            syncs = await self._syncs.read_last({route.lane.source for route in routes})
        except FailoverError as error:
            _log.warning("offset syncs cannot be read: %s", error)
            return {}
        return {tp: anchors[::-1] for tp, anchors in syncs.items()}

    async def _note(
        self, routes: Sequence[Route], found: Mapping[TopicPartition, Located | Unknown | Fault]
    ) -> tuple[dict[TopicPartition, Anchor], object]:
        """Writes down positions that no anchor on record leads to, before anything is written behind them.

        Gives those that are on record now, and why the others are not. Else a worker that is killed within its first
        second would leave identical records that nothing counts.
        """
        anchors: dict[TopicPartition, Anchor] = {}
        for route in routes:
            place = found[route.lane.source]
            if isinstance(place, Located) and place.how not in _COUNTED:
                anchors[route.lane.source] = Anchor(
                    place.upstream,
                    place.downstream,
                    route.source_id,
                    route.target_id,
                    place.leader_epoch,
                    place.since,
                )
        if not anchors:
            return {}, ""
        try:
            refused = await self._positions.write(anchors)
        except FailoverError as error:
            _log.warning("positions cannot be written: %s", error)
            return {}, error
        for tp, reason in refused.items():
            _log.warning("the position of %s cannot be written: %s", tp, reason)
        noted = {tp: anchor for tp, anchor in anchors.items() if tp not in refused}
        return noted, next(iter(refused.values()), "")

    def _open(self, route: Route, found: Located | Unknown | Fault) -> None:
        lane = route.lane
        if isinstance(found, Located):
            if found.lost:
                _log.warning(
                    "%s: %d records of the source are gone before they were copied; going on at offset %d",
                    route,
                    found.lost,
                    found.upstream,
                )
            if found.how == "source-recreated":
                _log.error("%s: source-recreated: the source's topic was made anew; it is copied from its start", route)
            elif found.how == "source-truncated":
                _log.error(
                    "%s: source-truncated: %d records that were copied no longer exist there; going on at offset %d",
                    route,
                    found.diverged,
                    found.upstream,
                )
            elif found.how == "diverged":
                _log.error(
                    "%s: source-truncated, or somebody else writes there: the last %d records on the target are not on"
                    " the source; going on at source offset %d",
                    route,
                    found.diverged,
                    found.upstream,
                )
            lane.start(found.upstream, found.downstream, leader_epoch=found.leader_epoch)
            route.since = found.since
            route.target_epoch = -1
            for anchor in [each for each in route.anchors if (each.downstream or 0) > route.whole]:
                route.anchors.remove(anchor)  # what the target lost: other records will lie there
            route.whole = UNFENCED
            _log.info(
                "%s: from source offset %d on, to target offset %d (%s)%s",
                route,
                found.upstream,
                found.downstream,
                found.how,
                f": {found.detail}" if found.detail else "",
            )
            if route.reason:
                self._engine.mender.recovered(route)
            self._engine.recorder.moved(route, 0)
            return
        lane.close()
        route.count()
        self._engine.look_soon()  # one of the two topics may be another by now
        why = f"position-unknown: {found.reason}" if isinstance(found, Unknown) else f"its logs cannot be read: {found}"
        self._engine.mender.stopped(route, why)
