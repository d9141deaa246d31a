"""Both clusters of a flow as the tracker asks them, in memory; every question is counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

import pytest

from failover.errors import ClusterUnreachable, NotAuthorized
from failover.inventory.flow import Flow
from failover.kafka.wire.append import NewRecord
from failover.kafka.wire.logs import OffsetAt
from failover.kafka.wire.metadata import PartitionState, TopicState
from failover.mm2.exact_checkpoint import Exact, ExactRecords
from failover.model.cluster import LogRange
from failover.model.groups import Commit, GroupType, ListedGroup
from failover.model.names import Fault, TopicPartition
from failover.model.records import Record, Window, WindowRequest
from failover.replication import source_groups
from failover.replication import tracker as module
from failover.replication.tracker import Tracker, TrackerOptions
from failover.translate.segments import Syncs

LOST = Fault(-2, "NO_ANSWER", "silent")
UNKNOWN = Fault(3, "UNKNOWN_TOPIC_OR_PARTITION")


class Side:
    """Is one cluster: topics with their records, brokers with their groups."""

    def __init__(self, alias: str, brokers: int = 1) -> None:
        self.alias = alias
        self.brokers = tuple(range(1, brokers + 1))
        self.logs: dict[TopicPartition, list[Record]] = {}
        self.ids: dict[str, bytes] = {}
        self.asked: Counter[str] = Counter()

    def topic(self, name: str, partitions: int = 1, records: int = 0) -> None:
        self.ids[name] = name.encode().ljust(16, b".")[:16]
        for number in range(partitions):
            self.logs[TopicPartition(name, number)] = []
            self.grow(TopicPartition(name, number), records)

    def grow(self, tp: TopicPartition, records: int) -> None:
        log = self.logs[tp]
        plain = tp.topic.removeprefix("a.")
        for _ in range(records):
            log.append(Record(len(log), 7, None, f"{plain}-{tp.partition}:{len(log)}".encode()))

    async def metadata(self, topics: Collection[str] | None, **_: Any) -> Any:
        self.asked["metadata"] += 1
        names = self.ids if topics is None else topics
        found = {name: self._state(name) for name in names}
        return type("Answer", (), {"topics": found})

    def _state(self, name: str) -> TopicState:
        partitions = {tp.partition: PartitionState(1, 0, (1,), (1,)) for tp in self.logs if tp.topic == name}
        fault = None if name in self.ids else UNKNOWN
        return TopicState(name, self.ids.get(name, bytes(16)), False, partitions, None, fault)


class Kept:
    """Is the exact checkpoints topic. ``failing``: the error of the next write; ``denied``: it may not be used."""

    place = TopicPartition("mm2-exact-checkpoints.a.internal", 0)

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.failing: Exception | None = None
        self.denied = False

    async def open(self) -> None:
        if self.denied:
            raise NotAuthorized("no WRITE", alias="b", hint="grant WRITE")

    async def read(self) -> Exact:
        return self.found()

    def found(self) -> Exact:
        found = ExactRecords()
        found.take(self.records)
        return found.decoded()

    async def write(self, records: Sequence[NewRecord]) -> None:
        if self.failing is not None:
            error, self.failing = self.failing, None
            raise error
        for record in records:
            self.records.append(Record(len(self.records), 0, record.key, record.value, record.headers))


class FakeSyncs:
    """Is the offset syncs followed. ``failing``: the error of the next look."""

    def __init__(self) -> None:
        self.known: dict[TopicPartition, Syncs] = {}
        self.last: dict[TopicPartition, tuple[int, int]] = {}
        self.failing: Exception | None = None

    async def follow(self) -> None:
        if self.failing is not None:
            raise self.failing

    def of(self, source: TopicPartition) -> Syncs | None:
        return self.known.get(source)

    def newest(self, source: TopicPartition) -> tuple[int, int] | None:
        return self.last.get(source)


class World:
    """Holds both sides; groups live on the source's brokers. ``down``: brokers that give no answer."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, flow: Flow, *, brokers: int = 1) -> None:
        self.flow = flow
        self.a, self.b = Side("a", brokers), Side("b")
        self.groups: dict[str, dict[TopicPartition, Commit]] = {}
        self.rows: dict[str, ListedGroup] = {}
        self.homes: dict[str, int] = {}
        self.down: set[int] = set()
        self.kept, self.syncs = Kept(), FakeSyncs()
        monkeypatch.setattr(source_groups, "groups_of_brokers", self._groups_of_brokers)
        for name in ("committed_offsets", "log_ranges", "list_offsets", "read_windows"):
            monkeypatch.setattr(module, name, getattr(self, f"_{name}"))

    def mirror(self, topic: str, partitions: int = 1, records: int = 0) -> None:
        self.a.topic(topic, partitions, records)
        self.b.topic(f"a.{topic}", partitions, records)

    def commit(self, group: str, topic: str, offset: int, partition: int = 0, *, home: int = 1) -> None:
        self.groups.setdefault(group, {})[TopicPartition(topic, partition)] = Commit(offset)
        self.rows.setdefault(group, ListedGroup(group, GroupType.CLASSIC, "Empty"))
        self.homes.setdefault(group, home)

    def tracker(self, **options: Any) -> Tracker:
        return Tracker(
            self.flow,
            self.a,  # type: ignore[arg-type]
            self.b,  # type: ignore[arg-type]
            log=self.kept,  # type: ignore[arg-type]
            syncs=self.syncs,  # type: ignore[arg-type]
            options=TrackerOptions(**options),
        )

    @property
    def asked(self) -> Counter[str]:
        return self.a.asked + self.b.asked

    def forget(self) -> None:
        self.a.asked.clear()
        self.b.asked.clear()

    # -- what the tracker calls ------------------------------------------------------------------

    async def _groups_of_brokers(self, side: Side, nodes: Collection[int]) -> dict[int, Any]:
        side.asked["list"] += 1
        listed = {node: {name: row for name, row in self.rows.items() if self.homes[name] == node} for node in nodes}
        return {node: LOST if node in self.down else found for node, found in listed.items()}

    async def _committed_offsets(self, side: Side, groups: Collection[str]) -> dict[str, Any]:
        side.asked["commits"] += 1
        side.asked["groups"] += len(groups)
        if self.down >= set(self.a.brokers):
            raise ClusterUnreachable("gone", alias="a")
        return {group: LOST if self.homes[group] in self.down else dict(self.groups[group]) for group in groups}

    async def _log_ranges(self, side: Side, partitions: Collection[TopicPartition]) -> dict[TopicPartition, Any]:
        side.asked["ranges"] += 1
        return {tp: LogRange(0, len(side.logs[tp])) if tp in side.logs else UNKNOWN for tp in partitions}

    async def _list_offsets(self, side: Side, asked: Collection[TopicPartition]) -> dict[TopicPartition, Any]:
        side.asked["ends"] += 1
        return {tp: OffsetAt(len(side.logs[tp]), -1, 0) for tp in asked}

    async def _read_windows(
        self, side: Side, requests: Sequence[WindowRequest], **_: Any
    ) -> dict[WindowRequest, Window]:
        side.asked["windows"] += 1
        found = {}
        for request in requests:
            log = side.logs[request.tp]
            covered = min(request.stop, len(log))
            found[request] = Window(tuple(log[request.start : request.stop]), covered, 0, len(log))
        return found
