"""The plan: what would be committed, why, and what it costs; also its file format (version 1)."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Literal

import msgspec

from failover.model.groups import Member
from failover.model.rights import AclBinding, ScramUser
from failover.model.snapshot import FlowInfo, NotPlanned


class Verdict(StrEnum):
    """Is the outcome for one group; the order of the members is worst first on the screen."""

    REFUSED = "refused"
    PARTIAL = "partial"
    READY = "ready"
    NOTHING = "nothing"


class Action(StrEnum):
    """Is what the plan does with one partition."""

    COMMIT = "commit"
    SKIP = "skip"
    REFUSE = "refuse"


class Severity(StrEnum):
    """Is the weight of a finding."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Finding(msgspec.Struct, frozen=True):
    """Is something an operator should know. ``subject``: group, topic, partition or alias."""

    code: str
    severity: Severity
    subject: str
    message: str
    remedy: str


class PlannedCluster(msgspec.Struct, frozen=True):
    """Is one side of the flow as the plan saw it. ``bootstrap``: where a few of its brokers listen, as host:port."""

    alias: str
    cluster_id: str | None
    state: str
    detail: str = ""
    silent_since: datetime | None = None
    bootstrap: tuple[str, ...] = ()


class PlannedCheckpoint(msgspec.Struct, frozen=True, gc=False):
    """Is MM2's newest checkpoint of the partition; ``age_seconds`` counts from its record."""

    upstream: int
    downstream: int
    timestamp: datetime
    age_seconds: float


class PositionAfter(msgspec.Struct, frozen=True, gc=False):
    """Is where consumers start after the plan was executed, and what decides it."""

    offset: int | None
    by: Literal["plan", "standing-commit", "auto.offset.reset"]


class Mm2Answer(msgspec.Struct, frozen=True, gc=False):
    """Is MM2's own answer for the partition and what it would read again (None: unknown)."""

    offset: int
    reread: int | None


class PlannedPartition(msgspec.Struct, frozen=True, gc=False):
    """Is the decision for one partition of one group; ``topic`` is the target's name.

    ``source_committed``, ``source_end``, ``target_committed``: None = unknown or none.
    ``offset``: None unless ``action`` is commit. ``reread``: records consumed already that will
    come again, estimated; ``reread_max`` the proven bound. With the source not up ``reread`` is
    None and ``reread_max`` is what the target holds beyond ``offset``. ``skipped``: records not
    consumed that will be passed over if consumers start after this plan was executed, whatever
    the cause; None where ``auto.offset.reset`` decides. ``metadata`` is text; bytes that are not
    UTF-8 also stand in ``metadata_base64``, which is then what is committed.
    """

    topic: str
    partition: int
    source_topic: str
    source_committed: int | None
    source_end: int | None
    checkpoint: PlannedCheckpoint | None
    target_committed: int | None
    target_start: int | None
    target_end: int | None
    action: Action
    reason: str
    offset: int | None
    precision: str
    proof: str
    position_after: PositionAfter
    reread: int | None
    reread_max: int | None
    skipped: int | None
    lag_after: int | None
    ahead: int | None = None
    ahead_because: str | None = None
    mm2: Mm2Answer | None = None
    metadata: str = ""
    metadata_base64: str | None = None
    evidence: tuple[str, ...] = ()


class LocalTopic(msgspec.Struct, frozen=True):
    """Is a topic under its plain name that the group's consumers must read on the target too."""

    topic: str
    exists: bool
    partitions: int | None
    expected_partitions: int | None
    committed: bool


class PlannedGroup(msgspec.Struct, frozen=True):
    """Is the decision for one group; ``state`` is Kafka's own word on the target.

    ``when_free``: for a group that is refused only because of its state (members, moving commits,
    no answer), the decisions that hold once it is empty; () for every other group.
    """

    group: str
    exists: bool
    type: str
    state: str
    members: tuple[Member, ...]
    source_state: str | None
    source_members: int | None
    verdict: Verdict
    reasons: tuple[str, ...]
    subscribe: tuple[str, ...]
    local_topics: tuple[LocalTopic, ...]
    partitions: tuple[PlannedPartition, ...]
    when_free: tuple[PlannedPartition, ...] = ()


class Unreplicated(msgspec.Struct, frozen=True):
    """Is what the target does not have of one partition: lost if the source is gone."""

    source_topic: str
    topic: str
    partition: int
    records: int
    seconds: float | None
    as_of: datetime
    bound: Literal["exact", "at-least", "at-most"]


class GroupCounts(msgspec.Struct, frozen=True):
    """Counts groups by verdict."""

    ready: int
    partial: int
    refused: int
    nothing: int
    not_planned: int


class PartitionCounts(msgspec.Struct, frozen=True):
    """Counts partitions by action."""

    commit: int
    skip: int
    refuse: int


class Summary(msgspec.Struct, frozen=True):
    """Sums up the plan.

    ``unknown``: partitions whose ``skipped`` is None, except in refused groups and those never
    committed on the source. ``unreplicated``: records, None when unknown. ``execute_seconds``:
    expected length of execute.
    """

    groups: GroupCounts
    partitions: PartitionCounts
    reread: int | None
    reread_max: int | None
    skipped: int
    unknown: int
    unreplicated: int | None
    execute_seconds: float


class PlanOptions(msgspec.Struct, frozen=True):
    """Is what the operator asked of the plan; saved with it, since execute relies on it.

    ``groups`` are literal names; empty means every group the filters pick. ``missing``:
    leave, earliest, latest, at=TIME, ago=D or fail. ``precision``: the least accepted. ``rewind_by``: seconds.
    ``local_topics``: none or earliest.
    """

    groups: tuple[str, ...] = ()
    group_pattern: str | None = None
    exclude_groups: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    missing: str = "leave"
    precision: str = "conservative"
    content: bool = True
    all_or_nothing: bool = False
    require_source_inactive: bool = False
    allow_rewind: bool = False
    allow_skip: bool = False
    allow_moving_commits: bool = False
    allow_unverified: bool = False
    create_group: bool = False
    rewind_by: float = 0.0
    local_topics: str = "none"


class Plan(msgspec.Struct, frozen=True, tag_field="kind", tag="failover.plan"):
    """Is a dry run's result and a contract: execute commits this and nothing else.

    ``fingerprint`` is ``sha256:`` over all that execute relies on. ``topic_ids``: target topic →
    its id, to notice a recreated topic; ``source_topic_ids``: likewise on the source. ``missing_acls``,
    ``missing_users``: what applications have on the source and not on the target, as far as both told.
    """

    version: int
    id: str
    created: datetime
    expires: datetime
    tool_version: str
    operator: str
    reason: str
    source: PlannedCluster
    target: PlannedCluster
    flow: FlowInfo
    options: PlanOptions
    groups: tuple[PlannedGroup, ...]
    not_planned: tuple[NotPlanned, ...]
    unreplicated: tuple[Unreplicated, ...] | None
    summary: Summary
    findings: tuple[Finding, ...]
    topic_ids: dict[str, str] = {}
    source_topic_ids: dict[str, str] = {}
    missing_acls: tuple[AclBinding, ...] = ()
    missing_users: tuple[ScramUser, ...] = ()
    fingerprint: str = ""
