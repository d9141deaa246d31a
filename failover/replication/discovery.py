"""Finds what is to be copied: looks at both clusters' topics again and again, begins lanes and ends them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from failover.errors import BrokerError, ClusterError
from failover.replication.lane import Lane
from failover.replication.route import Room, Route
from failover.replication.shards import shard_of
from failover.replication.topics import Topics
from failover.replication.topics_seen import Changes, Pair

if TYPE_CHECKING:
    from failover.replication.engine import Engine

_log = logging.getLogger(__name__)

FOLLOW_SECONDS = 30.0
"""So often at least does a worker that makes no topics itself look for those that the leader has made."""


def until_next_look(seconds: float, *, leads: bool, in_vain: int) -> float:
    """Gives the seconds to the next look, infinity for none that nobody asks for.

    ``seconds``: between two looks of a worker that ``leads``. ``in_vain``: looks so far, one after the other, that
    found topics which their target lacks: a follower waits for them less and less eagerly.
    """
    if leads:
        return seconds
    if in_vain:
        return min(seconds, FOLLOW_SECONDS, 2.0 ** min(in_vain - 1, 10))
    return seconds if math.isinf(seconds) else min(seconds, FOLLOW_SECONDS)


class Discovery:
    """Keeps an engine's lanes as the topics are, those of the shards that the engine has."""

    def __init__(self, engine: Engine, topics: Topics, *, room: Room) -> None:
        self._engine = engine
        self._topics = topics
        self._room = room
        self._look = asyncio.Event()
        self._look.set()

    def look_soon(self) -> None:
        """Looks before it is time to."""
        self._look.set()

    async def run(self) -> None:
        """Looks now, whenever asked, and every ``refresh.topics.interval.seconds``, until cancelled.

        Where the first look fails, so does the engine.
        """
        engine = self._engine
        first, in_vain = True, 0
        while True:
            wait = until_next_look(engine.options.refresh_seconds, leads=engine.share.leads(), in_vain=in_vain)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._look.wait(), None if math.isinf(wait) else wait)
            self._look.clear()
            await engine.hold.gate.wait()
            try:
                self._apply(await self._topics.refresh())
                first = False
                in_vain = in_vain + 1 if self._topics.awaited else 0
            except (ClusterError, BrokerError) as error:
                if first:
                    engine.fail(error)
                    return
                _log.warning("topics cannot be looked at: %s", error)
            await asyncio.sleep(1.0)  # whoever asks again and again is answered once a second

    def begin(self, shards: Collection[int]) -> None:
        """Begins the lanes of shards that have come, by the last look."""
        self._begin(pair for pair in self._topics.seen.pairs.values() if shard_of(pair.source) in shards)

    # -- inside ----------------------------------------------------------------------------------

    def _apply(self, found: Changes) -> None:
        """Begins and ends lanes as the topics have changed."""
        engine = self._engine
        for pair in found.gone:
            route = engine.routes.pop(pair.source, None)
            if route is not None:
                _log.warning("%s ends: the source does not have it any more", route)
                engine.close(route)
        self._begin(found.added)
        for pair in (*found.added, *found.source_recreated, *found.target_recreated):
            known = engine.routes.get(pair.source)
            if known is not None and pair.source_id != known.source_id:
                engine.mender.source_recreated(known, pair.source_id)
            if known is not None and pair.target_id != known.target_id:
                engine.mender.target_recreated(known, pair.target_id)

    def _begin(self, pairs: Iterable[Pair]) -> None:
        engine = self._engine
        by_shard: dict[int, list[Route]] = {}
        for pair in pairs:
            number = shard_of(pair.source)
            if pair.source in engine.routes or number not in engine.share.shards:
                continue  # the target's partition was away for a while, or it is another worker's
            lane = Lane(pair.source, pair.target, offset_lag_max=engine.options.offset_lag_max)
            route = Route(lane, engine.shard(number), self._room)
            route.source_id, route.target_id = pair.source_id, pair.target_id
            engine.routes[pair.source] = route
            by_shard.setdefault(number, []).append(route)
        for number, routes in by_shard.items():
            engine.shard(number).add(routes)
