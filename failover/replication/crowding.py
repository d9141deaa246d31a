"""Keeps lanes that do not get on from taking all the room there is for what is read. Pure.

A target broker that is down, or answers late, may lead hundreds of partitions. Each would go on being read until it
holds as much as one lane may, and nothing would be left for those whose brokers are well.
"""

from __future__ import annotations

from collections.abc import Iterable

from failover.replication.lane import State
from failover.replication.route import Room, Route


class Crowding:
    """Looks now and then, with some seconds between: what a lane needs at most for its next answer."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._before: dict[Route, int] = {}

    def look(self, routes: Iterable[Route]) -> list[Route]:
        """Parks the lanes that nothing was taken of since the last look, once half of the room is used; gives them.

        What they have not sent is let go and read again once the target takes the rest.
        """
        before, self._before = self._before, {}
        if 2 * self._room.used < self._room.most:
            return []
        parked = []
        for route in routes:
            lane = route.lane
            if lane.state is not State.OPEN or not lane.waiting:
                continue
            self._before[route] = lane.records
            if before.get(route) == lane.records and not route.parked:
                lane.shed()
                route.count()
                route.parked = True
                parked.append(route)
        return parked
