"""Positions that somebody chose: put back where they cannot be written, and begun with only once they are on record."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, cast

import pytest

from failover.errors import BrokerError, ClusterUnreachable
from failover.kafka.wire.cluster import Leader
from failover.kafka.wire.metadata import NO_TOPIC_ID
from failover.model.names import TopicPartition
from failover.replication import starting as module
from failover.replication.anchor import Anchor
from failover.replication.lane import Lane, State
from failover.replication.locate_answer import Located
from failover.replication.recorder import anchors_of
from failover.replication.route import UNFENCED, Room, Route
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


class Cluster:
    """Knows leaders, and topics by their ids, which change as somebody reads them."""

    def __init__(self) -> None:
        self.ids: dict[str, bytes] = {}

    async def leaders(self, partitions: Collection[TopicPartition], *, refresh: bool = False) -> dict[Any, Leader]:
        return {tp: Leader(1, 0, self.ids.get(tp.topic, NO_TOPIC_ID)) for tp in partitions}


class Shard:
    producers = frozenset({7})


class Scene:
    """Has two partitions that were copied and then let go, at source offsets 10 and 20."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.positions = AnchorFake()
        self.routes = [
            Route(Lane(tp, tp._replace(topic=f"A.{tp.topic}")), cast("Any", Shard()), Room(1)) for tp in (HERE, THERE)
        ]
        monkeypatch.setattr(module, "find_foreign", self.find_foreign)
        self.engine = Engine(self.routes)
        self.source, self.target = Cluster(), Cluster()
        self.starter = Starter(cast("Any", self.engine), *cast("Any", (self.source, self.target, self.positions, None)))
        self.reading: Callable[[], None] = lambda: None
        self.anchors: dict[TopicPartition, tuple[Anchor, ...]] = {}
        self.meanwhile: Mapping[TopicPartition, int] = {}
        for number, route in enumerate(self.routes, 1):
            route.lane.start(number * 10, number * 100)
            route.generation = 1
            self.starter.left(route)
            route.lane.close()

        async def locate(routes: Sequence[Route], _: object) -> dict[TopicPartition, Located]:
            found = {}
            self.reading()
            for route in routes:
                self.anchors[route.lane.source] = anchors_of(route, [self.starter._kept[route.lane.source]])
                kept = self.starter._kept[route.lane.source]
                how: Any = "chosen" if kept.chosen else "anchor"
                since = 500 if kept.chosen else None
                found[route.lane.source] = Located(upstream=kept.upstream, downstream=500, how=how, since=since)
            if self.meanwhile:
                wanted, self.meanwhile = self.meanwhile, {}
                await self.starter.choose(wanted)
            return found

        monkeypatch.setattr(self.starter, "_locate", locate)

    async def find_foreign(self, *_: object) -> dict[TopicPartition, object]:
        return {}

    def choose(self, wanted: Mapping[TopicPartition, int]) -> None:
        asyncio.run(self.starter.choose(wanted))

    def start(self, *, generation: int = 0) -> None:
        for route in self.routes:
            route.generation = generation
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


OLD, NEW = b"o" * 16, b"n" * 16


@pytest.mark.parametrize("generation", [0, 1], ids=["let go", "in doubt"])
def test_what_is_known_of_a_source_topic_is_not_taken_for_its_successor(scene: Scene, generation: int) -> None:
    """Whoever looks at the topics now and then has not seen it yet."""
    for route in scene.routes:
        route.source_id = OLD
        scene.source.ids[route.lane.source.topic] = OLD
        scene.starter._kept[route.lane.source] = Anchor(route.lane.upstream, route.lane.downstream, OLD)
    scene.source.ids[HERE.topic] = NEW
    scene.start(generation=generation)
    assert [route.source_id for route in scene.routes] == [NEW, OLD]
    newest = {tp: anchors[0].source_topic_id for tp, anchors in scene.anchors.items()}
    assert newest == {HERE: OLD, THERE: OLD}


@pytest.mark.parametrize("side", ["source", "target"])
def test_where_a_topic_is_made_anew_while_it_is_read_nothing_begins(scene: Scene, side: str) -> None:
    ids = getattr(scene, side).ids
    here = scene.routes[0]
    scene.reading = lambda: ids.update({getattr(here.lane, side).topic: NEW})
    scene.start()
    assert [route.lane.state for route in scene.routes] == [State.CLOSED, State.OPEN]
    assert "made anew while it was looked at" in scene.engine.said[HERE]


def test_anchors_of_what_the_target_lost_are_forgotten(scene: Scene) -> None:
    here = scene.routes[0]
    here.anchors.extend(Anchor(at, at + 90) for at in (4, 6, 8))
    here.whole = 96
    scene.start()
    assert [anchor.upstream for anchor in here.anchors] == [4, 6]
    assert here.whole == UNFENCED
