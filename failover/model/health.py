"""A flow's health: a checklist with an answer to each of its points, and what was found wanting."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from failover.model.names import Fault, TopicPartition
from failover.model.plan import Finding, PlannedCluster
from failover.model.snapshot import Snapshot
from failover.model.status import Readiness, Status, weight_of

Period = Literal["daily", "weekly"]
Result = Literal["ok", "remark", "warning", "error", "unknown"]

PointName = Literal[
    "connectors",
    "lag",
    "heartbeat",
    "checkpoints",
    "groups",
    "new-topics",
    "stuck-groups",
    "acls",
    "configs",
    "partitions",
    "offsets",
    "unused",
    "disk",
    "versions",
]
"""The points of the lists; those of a day come first, as far as ``groups``."""

Settings = dict[str, dict[str, str]]
"""Topic → setting → value as it is in effect."""


class Sides(msgspec.Struct, frozen=True):
    """Is what the weekly checks ask of one cluster beside its status; empty where it was not told.

    ``settings``: of the topics of the flow there; ``sizes``: bytes on disk, replicas included; ``speaks``: broker → API
    key → highest version; ``untold``: why something is missing, by what it is.
    """

    settings: Settings = {}
    sizes: dict[str, int] = {}
    speaks: dict[int, dict[int, int]] = {}
    untold: dict[str, Fault] = {}


class HealthFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Is everything that the checks look at.

    ``internal``: internal topics by cluster alias. ``refresh_seconds``: how long a new topic may take to be mirrored.
    ``configs_synced``: MM2 keeps topic settings equal. ``last_records``: newest timestamp of each source partition.
    """

    period: Period
    status: Status
    snapshot: Snapshot
    source: Sides = Sides()
    target: Sides = Sides()
    internal: dict[str, tuple[str, ...]] = {}
    refresh_seconds: int = 600
    configs_synced: bool = True
    last_records: dict[TopicPartition, int] = {}


class Lag(msgspec.Struct, frozen=True):
    """Is the lag as one way of measuring has it; None: this way does not tell, ``detail`` says why or from what."""

    by: Literal["offsets", "heartbeats", "connect-offsets"]
    records: int | None
    seconds: float | None
    detail: str


class CheckPoint(msgspec.Struct, frozen=True):
    """Is one point of the checklist and its answer."""

    name: PointName
    question: str
    result: Result
    detail: str


class Health(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="failover.health"):
    """Is the outcome of a checklist."""

    period: Period
    taken: datetime
    source: PlannedCluster
    target: PlannedCluster
    readiness: Readiness
    lags: tuple[Lag, ...]
    points: tuple[CheckPoint, ...]
    findings: tuple[Finding, ...]

    @property
    def exit_code(self) -> int:
        """Gives the command's exit status; see ``weight_of``."""
        return weight_of(self.findings)
