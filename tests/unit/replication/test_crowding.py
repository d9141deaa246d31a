"""Whose read batches are let go where there is no room."""

from __future__ import annotations

from typing import Any

from failover.model.names import TopicPartition
from failover.replication.batches import prepare
from failover.replication.crowding import Crowding
from failover.replication.lane import Lane
from failover.replication.route import Room, Route
from tests.unit.wire.batch_bytes import batch

SHARD: Any = None


def reading(number: int, room: Room) -> Route:
    route = Route(Lane(TopicPartition("t", number), TopicPartition("a.t", number)), SHARD, room)
    route.lane.start(0, 0)
    for at in range(4):
        data = memoryview(bytearray(batch(at, [0])))
        route.lane.offer(prepare(route.lane.source, data, at, now_ms=0).outgoing, at + 1)
    route.count()
    return route


def acknowledge(route: Route) -> None:
    flight = route.lane.next(1, 0, fresh_from=0)
    assert flight is not None
    route.lane.acknowledged(flight, flight.expected)
    route.count()


def test_a_lane_that_does_not_get_on_keeps_what_it_needs_to():
    room = Room(1)
    quick, dead, idle = (reading(number, room) for number in range(3))
    for _ in range(4):
        acknowledge(idle)
    crowding = Crowding(room)
    assert crowding.look([quick, dead, idle]) == []
    acknowledge(quick)
    assert crowding.look([quick, dead, idle]) == [dead]
    assert (dead.lane.pending, dead.lane.fetch_offset, dead.parked) == (1, 1, True)
    assert (quick.lane.pending, quick.parked, idle.parked) == (3, False, False)
    assert room.used == quick.lane.buffered + dead.lane.buffered
    assert crowding.look([dead, idle]) == []


def test_while_there_is_room_nothing_is_let_go():
    room = Room(1 << 20)
    routes = [reading(number, room) for number in range(3)]
    crowding = Crowding(room)
    assert [crowding.look(routes) for _ in range(3)] == [[], [], []]
    assert all(route.lane.pending == 4 for route in routes)
