"""Positions that somebody chose: put back where they cannot be written, and begun with only once they are on record."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest

from failover.errors import BrokerError, ClusterUnreachable
from failover.model.names import TopicPartition
from failover.replication.anchor import Anchor
from failover.replication.lane import Lane, State
from failover.replication.locate_answer import Located
from failover.replication.route import Room, Route
from failover.replication.starting import Starter
from tests.unit.replication.test_recorder import DENIED, UNREACHABLE, AnchorFake

HERE, THERE, LATER = (TopicPartition(topic, 0) for topic in ("here", "there", "later"))


class Engine:
    """Is what a starter tells, and asks for routes."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self.routes = {route.lane.source: route for route in routes}
        self.said: dict[TopicPartition, str] = {}
        self.mender = self.recorder = self

    def stopped(self, route: Route, why: str) -> None:
        self.said[route.lane.source] = why

    def moved(self, route: Route, size: int) -> None:
        assert size == 0

    def look_soon(self) -> None: ...


class Scene:
    """Has two partitions that were copied and then let go, at source offsets 10 and 20."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.positions = AnchorFake()
        self.routes = [
            Route(Lane(tp, tp._replace(topic=f"A.{tp.topic}")), cast("Any", None), Room(1)) for tp in (HERE, THERE)
        ]
        self.engine = Engine(self.routes)
        self.starter = Starter(cast("Any", self.engine), *cast("Any", (None, None, self.positions, None)))
        self.meanwhile: Mapping[TopicPartition, int] = {}
        for number, route in enumerate(self.routes, 1):
            route.lane.start(number * 10, number * 100)
            route.generation = 1
            self.starter.left(route)
            route.lane.close()

        async def locate(routes: Sequence[Route], _: object) -> dict[TopicPartition, Located]:
            found = {}
            for route in routes:
                kept = self.starter._kept[route.lane.source]
                how: Any = "chosen" if kept.chosen else "anchor"
                since = 500 if kept.chosen else None
                found[route.lane.source] = Located(upstream=kept.upstream, downstream=500, how=how, since=since)
            if self.meanwhile:
                wanted, self.meanwhile = self.meanwhile, {}
                await self.starter.choose(wanted)
            return found

        monkeypatch.setattr(self.starter, "_locate", locate)

    def choose(self, wanted: Mapping[TopicPartition, int]) -> None:
        asyncio.run(self.starter.choose(wanted))

    def start(self) -> None:
        for route in self.routes:
            route.generation = 0
        asyncio.run(self.starter.start(self.routes))


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(monkeypatch)


def test_a_choice_is_on_record_at_once_and_known(scene: Scene) -> None:
    assert scene.starter.positions() == {HERE: 10, THERE: 20}
    scene.choose({HERE: 4, LATER: 7})
    assert scene.positions.written == [{HERE: Anchor(4, chosen=True), LATER: Anchor(7, chosen=True)}]
    assert scene.starter.positions() == {HERE: 4, THERE: 20, LATER: 7}
    assert scene.starter.known() == {HERE, THERE, LATER}


def test_what_cannot_be_written_is_not_chosen(scene: Scene) -> None:
    scene.positions.failure = UNREACHABLE
    with pytest.raises(ClusterUnreachable):
        scene.choose({HERE: 4, LATER: 7})
    scene.positions.failure = None
    scene.positions.refused = {HERE: DENIED}
    with pytest.raises(BrokerError, match=r"the position of here-0 cannot be written: .*TOPIC_AUTHORIZATION_FAILED"):
        scene.choose({HERE: 4, THERE: 5})
    assert scene.starter.positions() == {HERE: 10, THERE: 5}


def test_the_copying_begins_there_and_says_where_on_the_target(scene: Scene) -> None:
    scene.choose({HERE: 4})
    scene.start()
    assert [(route.lane.upstream, route.since) for route in scene.routes] == [(4, 500), (20, None)]
    assert all(route.lane.state is State.OPEN for route in scene.routes)
    assert scene.positions.written[-1] == {HERE: Anchor(4, 500, since=500)}
    # a choice is used up: another start goes on from what is on record
    assert not scene.starter._kept[HERE].chosen


def test_it_does_not_begin_while_that_cannot_be_written(scene: Scene) -> None:
    scene.choose({HERE: 4})
    scene.positions.refused = {HERE: DENIED}
    scene.start()
    assert [route.lane.state for route in scene.routes] == [State.CLOSED, State.OPEN]
    assert "the chosen position cannot be written down" in scene.engine.said[HERE]
    scene.positions.refused = {}
    scene.start()
    assert (scene.routes[0].lane.upstream, scene.routes[0].lane.state) == (4, State.OPEN)


def test_a_choice_during_a_start_counts(scene: Scene) -> None:
    scene.meanwhile = {HERE: 4}
    scene.start()
    assert scene.routes[0].lane.state is State.CLOSED
    assert "another position was chosen meanwhile" in scene.engine.said[HERE]
    scene.start()
    assert (scene.routes[0].lane.upstream, scene.routes[0].lane.state) == (4, State.OPEN)
