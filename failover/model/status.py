"""How a flow stands: what a failover this very second would cost, per partition and group, and what is wrong."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Literal

import msgspec

from failover.model.plan import Finding, PlannedCluster, Severity

Bound = Literal["exact", "at-least", "at-most"]
KnownBy = Literal["position", "sync", "checkpoint", "kept", "nothing"]


class Readiness(StrEnum):
    """Says whether a failover may begin: ``warnings`` is ready with something to look at."""

    READY = "ready"
    WARNINGS = "warnings"
    NOT_READY = "not-ready"


class ConnectorState(msgspec.Struct, frozen=True):
    """Is one connector as Kafka Connect tells it, in Connect's own words; ``reason``: a failure's first line."""

    name: str
    kind: str
    state: str
    tasks: tuple[str, ...] = ()
    reason: str = ""


class MirroredPartition(msgspec.Struct, frozen=True, gc=False):
    """Is how far one partition is mirrored.

    ``source_end``: the source's log end; None: unknown. ``mirrored_to``: the first source offset the target does not
    have, ``known_by`` says from what: Connect's position, offset syncs and the target's log end, a checkpoint, what
    was kept on the target. ``records``: offsets between both, ``bound`` says which way that may err. ``seconds``: how
    long the first missing record has waited. ``last_record``, ``last_mirrored``: the newest timestamps on source and
    target. ``position``: the source offset at which copying would go on after a restart, kept at ``position_time``.
    """

    source_topic: str
    topic: str
    partition: int
    source_end: int | None
    target_end: int | None
    mirrored_to: int | None
    known_by: KnownBy
    records: int | None
    bound: Bound | None
    seconds: float | None
    last_record: datetime | None = None
    last_mirrored: datetime | None = None
    position: int | None = None
    position_time: datetime | None = None


class GroupStatus(msgspec.Struct, frozen=True):
    """Is what one group would find on the target if the source died this second.

    ``verdict``: the plan's word without the source, ``unknown`` for a group that nothing on the target tells of;
    ``reasons``: the codes behind it. ``reread_max``: records read again at most, None: unknown. ``checkpoint_age``,
    ``exact_age``: seconds since its newest MM2 checkpoint, and since an exact one is known to have held.
    """

    group: str
    ready: bool
    verdict: str
    reasons: tuple[str, ...]
    source_state: str | None
    source_members: int | None
    target_state: str
    target_members: int
    partitions: int
    reread_max: int | None
    checkpoint_age: float | None
    exact_age: float | None


class SkippedTopic(msgspec.Struct, frozen=True):
    """Is a topic of the source that the flow does not mirror, and why."""

    topic: str
    reason: str


class Replicator(msgspec.Struct, frozen=True):
    """Is a program that runs the flow, or left positions: ``running`` None where nothing tells."""

    program: str
    running: bool | None
    detail: str


class HeartbeatStatus(msgspec.Struct, frozen=True):
    """Is the newest mirrored heartbeat: ``state`` is on, off (not configured) or none (none was mirrored)."""

    state: Literal["on", "off", "none"]
    newest: datetime | None = None
    age_seconds: float | None = None


class Cost(msgspec.Struct, frozen=True):
    """Sums up what a failover this second would cost.

    ``records``: lost, None: unknown; ``bound`` says which way that may err; ``seconds``: how far back the loss reaches.
    ``reread_max``: read again at most, over the groups that are ready; None: unknown. ``execute_seconds``: what
    execute would take.
    """

    records: int | None
    bound: Bound
    seconds: float | None
    unknown_partitions: int
    reread_max: int | None
    groups_ready: int
    groups: int
    execute_seconds: float


class Status(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="failover.status"):
    """Is one look at a flow.

    ``as_of``: when the source was last known, None while it answers. ``back``: the flow is the way back of the one that
    is configured; nothing is copied on it, and groups are ready by what both clusters tell.
    """

    taken: datetime
    source: PlannedCluster
    target: PlannedCluster
    readiness: Readiness
    as_of: datetime | None
    back: bool
    cost: Cost
    heartbeat: HeartbeatStatus
    replicators: tuple[Replicator, ...]
    connectors: tuple[ConnectorState, ...]
    partitions: tuple[MirroredPartition, ...]
    groups: tuple[GroupStatus, ...]
    skipped: tuple[SkippedTopic, ...]
    findings: tuple[Finding, ...]

    @property
    def exit_code(self) -> int:
        """Gives what ``--check`` ends with; see ``weight_of``."""
        return weight_of(self.findings)


def weight_of(findings: Iterable[Finding]) -> int:
    """Gives the exit status of what only looks: 0 nothing above info, 3 an error, 4 a warning."""
    severities = {finding.severity for finding in findings}
    if Severity.ERROR in severities:
        return 3
    return 4 if Severity.WARNING in severities else 0
