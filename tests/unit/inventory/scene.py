"""A flow from "a" to "b" on two clusters in memory, and the look at it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from failover.config.load import load_config, select_flow
from failover.inventory.flow import Flow, flow_of
from failover.inventory.selection import Selection
from failover.inventory.snapshot import take_snapshot
from failover.mm2.checkpoint import Checkpoint
from failover.mm2.offset_sync import OffsetSync
from failover.model.names import TopicPartition
from failover.model.snapshot import Snapshot
from tests.fake_cluster import FakeCluster

NOW = datetime(2026, 11, 5, 3, 14, 7, tzinfo=UTC)
CHECKPOINTS = "a.checkpoints.internal"


def flow(folder: Path, settings: Mapping[str, str] | None = None, *, reverse: bool = False) -> Flow:
    lines = {
        "clusters": "a, b",
        "a.bootstrap.servers": "127.0.0.1:9092",
        "b.bootstrap.servers": "127.0.0.1:9093",
        "a->b.enabled": "true",
    } | dict(settings or {})
    path = folder / "mm2.properties"
    path.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
    config = load_config([str(path)])
    sides = ("b", "a") if reverse else ("a", "b")
    return flow_of(config, select_flow(config, *sides, allow_reverse=True))


class Scene:
    """Holds both clusters; ``look`` takes the snapshot."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.a = FakeCluster("a")
        self.b = FakeCluster("b").topic(CHECKPOINTS)
        self.opened: list[str] = []

    def mirror(self, topic: str, partitions: int = 1, *, end: int = 0) -> TopicPartition:
        """Adds a topic on both sides, mirrored one to one up to ``end``; returns the target's partition 0."""
        self.a.topic(topic, partitions, end=end)
        remote = self.flow.target_topic(topic)
        self.b.topic(remote, partitions, end=end)
        return TopicPartition(remote, 0)

    def checkpoint(
        self,
        group: str,
        topic: str,
        upstream: int,
        downstream: int,
        *,
        partition: int = 0,
        timestamp: int = 0,
        metadata: bytes = b"",
    ) -> None:
        record = Checkpoint(group, topic, partition, upstream, downstream, metadata)
        self.b.append(CHECKPOINTS, record.encode_key(), record.encode_value(), timestamp=timestamp)

    def sync(self, topic: str, upstream: int, downstream: int, *, partition: int = 0) -> None:
        record = OffsetSync(topic, partition, upstream, downstream)
        internal = self.flow.internal
        holder = self.a if internal.offset_syncs_on == "a" else self.b
        holder.append(internal.offset_syncs, record.encode_key(), record.encode_value())

    def look(self, selection: Selection | None = None, **options: Any) -> Snapshot:
        def open_cluster(alias: str) -> FakeCluster:
            self.opened.append(alias)
            return {"a": self.a, "b": self.b}[alias]

        return take_snapshot(self.flow, open_cluster, selection or Selection(), now=lambda: NOW, **options)
