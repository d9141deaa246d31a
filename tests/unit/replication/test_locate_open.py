"""Positions beyond a source's last stable offset: copied while aborted records were not left out yet."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest

from failover.kafka.wire.logs import OffsetAt
from failover.model.cluster import LogRange
from failover.model.names import TopicPartition
from failover.replication import locate as module
from failover.replication.anchor import Anchor
from failover.replication.locate import Located, Place, Unknown, locate
from failover.replication.reading import Stretch, Want
from tests.unit.replication.log_pair import SOURCE_ID, TARGET_ID, Copying, Datum, MemoryLog

HERE, THERE = TopicPartition("t", 0), TopicPartition("a.t", 0)
SOURCE: Any = "source"
TARGET: Any = "target"


class Scene:
    """Has a source of 100 records, of which those from 60 on belong to an open transaction, and the first 90 copied."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.source, self.target = MemoryLog(), MemoryLog()
        self.source.add(*(Datum(b"v%d" % number, number) for number in range(100)))
        self.stable = 60
        self.copying = Copying(self.source, self.target)
        for name in ("log_ranges", "list_offsets", "read_stretches"):
            monkeypatch.setattr(module, name, getattr(self, f"_{name}"))

    async def _log_ranges(
        self, cluster: object, partitions: Iterable[TopicPartition], *, read_committed: bool = False
    ) -> dict[TopicPartition, LogRange]:
        log = self.source if cluster == "source" else self.target
        end = self.stable if read_committed else log.end
        return dict.fromkeys(partitions, LogRange(log.start, end))

    async def _list_offsets(
        self, cluster: object, asked: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAt]:
        assert cluster == "source"
        assert set(asked.values()) == {-1}
        return dict.fromkeys(asked, OffsetAt(self.source.end, -1, 3))

    async def _read_stretches(
        self, cluster: object, wanted: Sequence[tuple[TopicPartition, Want]], *, committed: bool
    ) -> list[Stretch]:
        log = self.source if cluster == "source" else self.target
        assert cluster == "target" or all(want.stop <= self.stable for _, want in wanted)
        return [log.stretch(want, committed=committed) for _, want in wanted]

    def ask(self, *anchors: Anchor) -> object:
        place = Place(source=HERE, target=THERE, anchors=anchors, source_topic_id=SOURCE_ID, target_topic_id=TARGET_ID)
        return asyncio.run(locate(SOURCE, TARGET, [place], read_committed=True))[HERE]


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(monkeypatch)


@pytest.mark.parametrize("counted", [0, 40])
def test_what_is_copied_of_an_open_transaction_is_not_taken_for_a_truncation(scene, counted):
    scene.copying.copy(90 - counted)
    anchor = scene.copying.anchor()
    scene.copying.copy(counted)
    scene.copying.fence()
    answer = scene.ask(anchor)
    assert isinstance(answer, Unknown), answer
    assert "transactions are open from source offset 60 on" in answer.reason
    scene.stable = 100
    answer = scene.ask(anchor)
    assert isinstance(answer, Located)
    assert answer.upstream == 90


def test_where_the_copying_stood_below_it_nothing_is_waited_for(scene):
    scene.copying.copy(60)
    anchor = scene.copying.anchor()
    scene.copying.fence()
    answer = scene.ask(anchor)
    assert isinstance(answer, Located)
    assert answer.upstream == 60


def test_a_position_of_mirrormaker_waits_too_and_a_chosen_one_does_not(scene):
    scene.copying.copy(90)
    scene.copying.fence()
    assert isinstance(scene.ask(Anchor(90)), Unknown)
    answer = scene.ask(Anchor(90, chosen=True))
    assert isinstance(answer, Located)
    assert answer.upstream == 90
