"""The line that says how far the copying is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from failover.replication.lane import State
from failover.replication.progress import Progress
from failover.replication.traffic import Traffic


def route(**more: Any) -> Any:
    lane = SimpleNamespace(state=more.pop("state", State.OPEN), upstream=more.pop("upstream", 10))
    return SimpleNamespace(lane=lane, source_end=10, reason="", **more)


def test_what_was_copied_and_what_stands_in_the_way() -> None:
    traffic, progress = Traffic(), Progress("A->B")
    traffic.records, traffic.bytes = 1, 100
    assert progress.line([route()], traffic, 10) == "A->B: 1 record copied in 10 s (0 records/s, 0.0 MB/s); 1 partition"
    assert progress.line([route()], traffic, 10) == ""
    traffic.records, traffic.bytes = 20_001, 2_000_100
    assert progress.line([route(), route(upstream=4)], traffic, 10) == (
        "A->B: 20,000 records copied in 10 s (2,000 records/s, 0.2 MB/s); 2 partitions, 1 behind by 6 records"
    )
