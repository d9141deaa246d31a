"""MirrorMaker 2's checkpoints from exact positions: by its rules, and only while nobody else writes them."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import Any

import pytest

from failover.kafka.wire.topics import NewTopic
from failover.mm2.checkpoint import Checkpoint
from failover.mm2.exact_checkpoint import Known, Position
from failover.model.names import TopicPartition
from failover.model.records import Record
from failover.replication import mm2_checkpoints as module
from failover.replication.mm2_checkpoints import Mm2Checkpoints

PLACE, OTHER = TopicPartition("a.orders", 0), TopicPartition("a.orders", 1)
TOPIC = NewTopic("a.checkpoints.internal", 1, 1, {"cleanup.policy": "compact"})
NOBODY: Any = None


def milliseconds(ago: float) -> int:
    return int((time.time() - ago) * 1000)


class Topic:
    """Is the topic in memory, and the log that writes to it."""

    place = TopicPartition(TOPIC.name, 0)

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.opened = 0

    async def open(self) -> None:
        self.opened += 1

    async def write(self, records: Any) -> None:
        for one in records:
            self.records.append(Record(len(self.records), one.timestamp, one.key, one.value, one.headers))

    def theirs(self, upstream: int, downstream: int, *, ago: float = 0) -> None:
        one = Checkpoint("g", *PLACE, upstream, downstream)
        self.records.append(Record(len(self.records), milliseconds(ago), one.encode_key(), one.encode_value()))

    def written(self) -> list[tuple[str, int, int, int]]:
        found = []
        for record in self.records:
            one = Checkpoint.decode(record.key, record.value)
            assert one is not None
            if record.headers:
                found.append((one.group, one.partition, one.upstream, one.downstream))
        return found


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> Topic:
    kept = Topic()

    async def read(_cluster: Any, _place: Any, *, start: int | None) -> Any:
        rest = [record for record in kept.records if record.offset >= (start or 0)]
        if rest:
            yield rest

    monkeypatch.setattr(module, "CheckpointLog", lambda *_: kept)
    monkeypatch.setattr(module, "read_records", read)
    return kept


def tracker(**positions: dict[TopicPartition, tuple[int, int]]) -> Any:
    known = Known(proof="content", precision="exact")
    found = {
        group: {place: Position(*offsets, b"m", known) for place, offsets in places.items()}
        for group, places in positions.items()
    }
    return SimpleNamespace(leads=True, positions=found, looked=dict.fromkeys(found, 1_000))


def rounds(checkpoints: Mm2Checkpoints, count: int = 1) -> None:
    async def write() -> None:
        for _ in range(count):
            await checkpoints.write()

    asyncio.run(write())


def test_what_is_written_once_is_not_written_again(topic: Topic) -> None:
    rounds(Mm2Checkpoints(tracker(g={PLACE: (10, 8), OTHER: (5, 5)}), NOBODY, TOPIC), 3)
    assert topic.written() == [("g", 0, 10, 8), ("g", 1, 5, 5)]
    assert topic.records[0].timestamp == 1_000
    assert topic.opened == 1
    # nor by the next process
    rounds(Mm2Checkpoints(tracker(g={PLACE: (10, 8), OTHER: (5, 5)}), NOBODY, TOPIC))
    assert len(topic.records) == 2


@pytest.mark.parametrize(
    ("then", "written"),
    [
        ((12, 9), True),
        ((12, 8), False),  # MirrorMaker 2 writes nothing new where the target's offset does not grow
        ((12, 7), False),
        ((9, 7), True),  # set back on the source
    ],
)
def test_records_follow_mirror_makers_rule(topic: Topic, then: tuple[int, int], written: bool) -> None:
    for offsets in ((10, 8), then):
        rounds(Mm2Checkpoints(tracker(g={PLACE: offsets}), NOBODY, TOPIC))
    assert topic.written() == [("g", 0, 10, 8), *([("g", 0, *then)] if written else [])]


def test_groups_that_are_gone_and_positions_nobody_looks_after_are_not_written(topic: Topic) -> None:
    gone = tracker(g={PLACE: (10, 8)})
    gone.looked.clear()
    rounds(Mm2Checkpoints(gone, NOBODY, TOPIC))
    idle = tracker(g={PLACE: (10, 8)})
    idle.leads = False
    rounds(Mm2Checkpoints(idle, NOBODY, TOPIC))
    assert topic.records == []


def test_nothing_is_written_while_somebody_else_does(topic: Topic, caplog: pytest.LogCaptureFixture) -> None:
    topic.theirs(3, 3, ago=3_000)
    ours = Mm2Checkpoints(tracker(g={PLACE: (10, 8)}), NOBODY, TOPIC, quiet=6_000)
    rounds(ours, 2)
    assert topic.written() == []
    assert [text for text in caplog.messages if "somebody else writes" in text] == caplog.messages[:1]
    old = Mm2Checkpoints(tracker(g={PLACE: (10, 8)}), NOBODY, TOPIC, quiet=2_000)
    rounds(old)
    assert topic.written() == [("g", 0, 10, 8)]
    # and when they come back, it ends at once
    topic.theirs(11, 9)
    old._tracker.positions = tracker(g={PLACE: (20, 18)}).positions
    rounds(old)
    assert topic.written() == [("g", 0, 10, 8)]


def test_whoever_is_known_to_have_stopped_is_not_waited_for(topic: Topic) -> None:
    topic.theirs(3, 3)
    ours = Mm2Checkpoints(tracker(g={PLACE: (10, 8)}), NOBODY, TOPIC, stopped=True)
    rounds(ours)
    assert topic.written() == [("g", 0, 10, 8)]
    topic.theirs(11, 9)
    ours._tracker.positions = tracker(g={PLACE: (20, 18)}).positions
    rounds(ours)
    assert topic.written() == [("g", 0, 10, 8)]


def test_records_nobody_can_read_count_as_somebody_elses(topic: Topic) -> None:
    topic.records.append(Record(0, milliseconds(0), b"\x00", b"x"))
    rounds(Mm2Checkpoints(tracker(g={PLACE: (10, 8)}), NOBODY, TOPIC))
    assert len(topic.records) == 1
