"""The record of one execution; also its file format (version 1)."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import msgspec

from failover.model.groups import Member


class Status(StrEnum):
    """Is what became of one partition.

    ``unchanged``: it already stood at the planned value. ``failed``: sent, and the target holds
    something else. ``unknown``: sent, and neither answer nor reading back told the outcome.
    ``skipped``: the plan leaves it alone, or (reason ``not-reached``) the execution ended before
    it came to this group.
    """

    COMMITTED = "committed"
    UNCHANGED = "unchanged"
    SKIPPED = "skipped"
    REFUSED = "refused"
    FAILED = "failed"
    UNKNOWN = "unknown"


class Outcome(StrEnum):
    """Is what became of the whole execution."""

    DONE = "done"
    PARTIAL = "partial"
    REFUSED = "refused"
    FAILED = "failed"
    UNKNOWN = "unknown"


class CommitRecord(msgspec.Struct, frozen=True):
    """Is a committed offset in a file. ``metadata_base64`` is set when it is not UTF-8."""

    offset: int
    metadata: str = ""
    leader_epoch: int | None = None
    metadata_base64: str | None = None


class ExecutedPartition(msgspec.Struct, frozen=True):
    """Is one partition's story. ``before``: None when nothing was committed before.

    ``written``: sent to the broker; ``read_back``: found afterwards, None when not read.
    """

    topic: str
    partition: int
    before: CommitRecord | None
    planned: int | None
    written: int | None
    read_back: int | None
    status: Status
    reason: str = ""
    error: str | None = None


class ExecutedGroup(msgspec.Struct, frozen=True):
    """Is one group's story. ``existed``: the target knew it before; ``reasons``: codes.

    ``message``: why nothing was written for it, for people; ``stale``: because the plan no
    longer holds for this group.
    """

    group: str
    existed: bool
    state: str
    members: tuple[Member, ...]
    reasons: tuple[str, ...]
    partitions: tuple[ExecutedPartition, ...]
    message: str = ""
    stale: bool = False
    finished: datetime | None = None


class Execution(msgspec.Struct, frozen=True, tag_field="kind", tag="failover.execution"):
    """Is what an execution did, enough to verify, undo and report it on another machine."""

    version: int
    id: str
    plan_id: str
    fingerprint: str
    started: datetime
    finished: datetime | None
    outcome: Outcome
    tool_version: str
    operator: str
    reason: str
    source_alias: str
    target_alias: str
    target_cluster_id: str | None
    groups: tuple[ExecutedGroup, ...]
    warnings: tuple[str, ...] = ()
