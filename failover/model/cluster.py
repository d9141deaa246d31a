"""What one look at one cluster finds: its state, topics, logs and rights."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

import msgspec


class ClusterState(StrEnum):
    """Says how a cluster answered.

    ``up``: all brokers it names answered. ``degraded``: it answers, but some broker does not or
    some partition has no leader. ``down``: no broker answered within the accepted silence.
    ``denied``: it answered and refused the credentials (never taken for ``down``).
    ``not-asked``: the operator said ``--source-down``.
    """

    UP = "up"
    DEGRADED = "degraded"
    DOWN = "down"
    DENIED = "denied"
    NOT_ASKED = "not-asked"


class ClusterStatus(msgspec.Struct, frozen=True):
    """Is the state of one cluster of the flow. ``detail``: one line for people, "" when up.

    ``silent_since``: when waiting for the first answer that never came began, or None.
    """

    alias: str
    cluster_id: str | None
    state: ClusterState
    detail: str = ""
    silent_since: datetime | None = None

    @property
    def answers(self) -> bool:
        """Says whether the cluster could be asked (``up`` or ``degraded``)."""
        return self.state in (ClusterState.UP, ClusterState.DEGRADED)


class Broker(NamedTuple):
    """Is one broker as the cluster advertises it."""

    id: int
    host: str
    port: int


class TopicInfo(msgspec.Struct, frozen=True):
    """Describes one topic. ``topic_id``: Kafka's UUID in its base64 text, None on old brokers.

    ``leaderless``: partition numbers without a leader. ``operations``: what this client may do
    (Kafka's words: ``READ``, ``DESCRIBE`` …), None when the broker does not say.
    """

    name: str
    partitions: int
    topic_id: str | None = None
    leaderless: tuple[int, ...] = ()
    replication_factor: int = 0
    internal: bool = False
    operations: frozenset[str] | None = None


class LogRange(NamedTuple):
    """Is a partition's log: first offset still there, and the high watermark."""

    start: int
    end: int


class ClusterFacts(msgspec.Struct, frozen=True):
    """Identifies a cluster. ``unreachable``: brokers it names that gave no answer (host "" if not told).

    ``operations``: what this client may do on the cluster resource, None when not said.
    """

    cluster_id: str | None
    controller: int | None
    brokers: tuple[Broker, ...]
    unreachable: tuple[Broker, ...] = ()
    operations: frozenset[str] | None = None
