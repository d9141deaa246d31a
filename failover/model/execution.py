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


class Now(StrEnum):
    """Is how a partition stands when it is verified later.

    ``held``: at the written value. ``advanced``: beyond it, and the group had members since.
    ``expired``: gone after the time the brokers keep offsets of a group without members;
    ``missing``: gone before that. ``overwritten``: beyond it though nobody consumed.
    """

    HELD = "held"
    ADVANCED = "advanced"
    EXPIRED = "expired"
    OVERWRITTEN = "overwritten"
    MISSING = "missing"
    BELOW = "below"


BY_MM2 = "mm2-group-sync"


class ExecutedPartition(msgspec.Struct, frozen=True):
    """Is one partition's story. ``before``: None when nothing was committed before.

    ``written``: sent to the broker; ``read_back``: found afterwards, None when not read or, where
    ``removes``, when it is gone. ``removes``: the commit was to be deleted (rolling back).
    ``now`` and ``verdict`` are there once it was verified, ``lag`` (records to the log's end) where
    the end could be read; ``because``: ``mm2-group-sync`` where MirrorMaker 2 is known to have overwritten
    it. ``reread`` and ``lag_after``: the plan's forecast.
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
    removes: bool = False
    reread: int | None = None
    lag_after: int | None = None
    now: int | None = None
    verdict: Now | None = None
    lag: int | None = None
    because: str = ""

    @property
    def sent(self) -> bool:
        """Says whether a commit or a deletion was sent and not refused."""
        return self.written is not None or (self.removes and self.status not in (Status.REFUSED, Status.SKIPPED))


class ExecutedGroup(msgspec.Struct, frozen=True):
    """Is one group's story. ``existed``: the target knew it before; ``reasons``: codes.

    ``message``: why nothing was written for it, for people; ``stale``: because the plan no
    longer holds for this group. ``notes``: what changed since the plan without effect on it.
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
    notes: tuple[str, ...] = ()


class VerifiedGroup(msgspec.Struct, frozen=True):
    """Is one group looked at again. ``seen``: members were there at some look since the execution.

    ``moved``: records consumed on the target since, None where nothing is known. ``text``: for people.
    ``verdict``: the worst of its partitions', None where it could not be read.
    """

    group: str
    state: str
    members: tuple[Member, ...]
    seen: bool
    moved: int | None
    lag: int | None
    text: str = ""
    verdict: Now | None = None


class Verified(msgspec.Struct, frozen=True):
    """Is a look at the target after an execution. ``watched``: seconds it lasted; 0 for a single look."""

    at: datetime
    watched: float
    exit_code: int
    groups: tuple[VerifiedGroup, ...]


class Execution(msgspec.Struct, frozen=True, tag_field="kind", tag="failover.execution"):
    """Is what an execution did, enough to verify, undo and report it on another machine.

    ``undoes``: the id of the execution that this one rolls back, "" otherwise. ``continues``: earlier
    executions of the same plan. ``stopped``: what ended it early, for people. ``overrides``: the hazards that were
    allowed, as the plan's options name them.
    """

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
    undoes: str = ""
    continues: tuple[str, ...] = ()
    stopped: str = ""
    verified: Verified | None = None
    overrides: tuple[str, ...] = ()


class RehearsedGroup(msgspec.Struct, frozen=True):
    """Is what executing, or rolling back, would do with one group now.

    ``commits``: partitions that would be written; ``unchanged``: that stand there already;
    ``refused``: (topic, partition, code, text) for which the plan no longer holds; ``reason`` and
    ``message``: why nothing at all would be written, "" otherwise. ``changes``: (topic, partition,
    offset now, offset after), None where nothing is committed. ``removes``: the group is deleted.
    """

    group: str
    state: str
    members: tuple[Member, ...]
    commits: int
    unchanged: int
    refused: tuple[tuple[str, int, str, str], ...] = ()
    reason: str = ""
    message: str = ""
    changes: tuple[tuple[str, int, int | None, int | None], ...] = ()
    removes: bool = False


class Rehearsal(msgspec.Struct, frozen=True, tag_field="kind", tag="failover.rehearsal"):
    """Is the dry run of an execution, or of rolling one back (``undoes``): nothing written."""

    plan_id: str
    at: datetime
    target_alias: str
    groups: tuple[RehearsedGroup, ...]
    exit_code: int
    undoes: str = ""


class LastLook(msgspec.Struct, frozen=True):
    """Is when an execution was verified last and what came of it; ``bad``: groups that do not hold."""

    at: datetime
    exit_code: int
    groups: int
    bad: int


class RunSummary(msgspec.Struct, frozen=True):
    """Is one line of the history. ``what``: execution, rollback or eviction; ``of``: the plan's, run's or group's name.

    ``committed``: partitions that stand where they were put; ``open``: refused, failed, unknown or not
    reached. ``elsewhere``: the machine whose journal it is, "" for this one's. ``verified``: the last time.
    """

    id: str
    what: str
    of: str
    started: datetime
    finished: datetime | None
    outcome: Outcome
    operator: str
    reason: str
    source_alias: str
    target_alias: str
    groups: int
    committed: int
    open: int
    elsewhere: str = ""
    verified: LastLook | None = None


class History(msgspec.Struct, frozen=True, tag_field="kind", tag="failover.history"):
    """Is what is on record, newest first. ``unreadable``: one line for each execution that cannot be read."""

    runs: tuple[RunSummary, ...]
    unreadable: tuple[str, ...] = ()
    note: str = ""


class Eviction(msgspec.Struct, frozen=True, tag_field="kind", tag="failover.eviction"):
    """Is the removal of members from one group on the target.

    ``members``: whom it was about. ``faults``: (member id, why) of those not removed. ``left``: the
    members found afterwards, None when nobody could tell; a live client has joined again by then.
    """

    id: str
    group: str
    started: datetime
    finished: datetime | None
    outcome: Outcome
    operator: str
    reason: str
    source_alias: str
    target_alias: str
    members: tuple[Member, ...]
    faults: tuple[tuple[str, str], ...] = ()
    left: tuple[Member, ...] | None = None
    state: str = ""
