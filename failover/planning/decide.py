"""The decision for one partition of one group: commit, skip or refuse, by which code, at what offset.

``place`` is the decision table; the rows are tested from top to bottom and the first that fits
decides. ``decide`` adds what the decision costs.
"""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import NamedTuple

from failover.model.names import TopicPartition
from failover.model.plan import Action, Mm2Answer, PlannedCheckpoint, PlannedPartition, PlanOptions, PositionAfter
from failover.model.translation import Precision, Proof, Translation
from failover.planning.group_rules import may
from failover.planning.missing import start_of
from failover.planning.position import ahead_because, lag_after, left_alone, read_again, skipped_by
from failover.planning.view import PartitionView, best_translation

RANK = {Precision.NONE: 0, Precision.CONSERVATIVE: 1, Precision.BOUNDED: 2, Precision.EXACT: 3}

COMMIT_CODES = ("translated", "gone-back", "at-log-end", "at-log-start", "at-time", "raised-to-log-start")
SKIP_CODES = (
    "already-there",
    "would-rewind",
    "no-checkpoint",
    "source-never-committed",
    "source-offset-expired",
    "not-mirrored",
    "topic-missing",
    "partition-missing",
    "older-than-first-sync",
)
REFUSE_CODES = (
    "two-sources",
    "not-authorized",
    "target-unavailable",
    "target-recreated",
    "below-precision",
    "beyond-log-end",
    "all-or-nothing",
)


class Placed(NamedTuple):
    """Is a row of the decision table that fitted. ``offset``: what would be committed or is wanted.

    ``skipped``: unread records that this very commit passes over (overrides only), None unknown.
    """

    action: Action
    reason: str
    offset: int | None
    proof: Proof
    skipped: int | None = 0


def place(view: PartitionView, known: Translation | None, code: str, options: PlanOptions) -> Placed:
    """Walks the decision table.

    Invariants, whatever the input: a commit lies in [log start, log end]; it never lies below the
    standing commit unless ``allow_rewind``; it never lies beyond the translation unless raised to
    the log start or by an override named for it.
    """
    blocked = _place_blocked(view, options)
    if blocked is not None:
        return blocked
    assert view.target_range is not None  # _place_blocked refuses a partition without its range
    if known is None or known.offset is None:
        return _place_missing(view, code, options)
    start, end = view.target_range
    if RANK[known.precision] < RANK[Precision(options.precision)]:
        return Placed(Action.REFUSE, "below-precision", known.offset, known.proof)
    if known.offset > end:
        # A raw copy of the source's offset (MM2 before 3.3), or the topic shrank or was recreated.
        if not options.allow_unverified:
            return Placed(Action.REFUSE, "beyond-log-end", None, known.proof)
        return _against_standing(view, Placed(Action.COMMIT, "at-log-end", end, Proof.LOG_END, None), options)
    if known.offset < start:
        return _against_standing(view, Placed(Action.COMMIT, "raised-to-log-start", start, Proof.LOG_START), options)
    reason = "at-log-end" if known.proof is Proof.LOG_END else "translated"
    return _against_standing(view, _gone_back(view, Placed(Action.COMMIT, reason, known.offset, known.proof)), options)


def _place_blocked(view: PartitionView, options: PlanOptions) -> Placed | None:
    """Tests what makes the target partition itself unusable; MM2 creates and grows topics, not this tool."""
    info = view.topic_info
    if view.hidden:
        return Placed(Action.REFUSE, "not-authorized", None, Proof.NONE)
    if info is None:
        return Placed(Action.SKIP, "topic-missing", None, Proof.NONE)
    if view.partition >= info.partitions:
        return Placed(Action.SKIP, "partition-missing", None, Proof.NONE)
    if view.foreign:
        return Placed(Action.REFUSE, "two-sources", None, Proof.NONE)
    if not may(info.operations, "READ"):
        # Kafka: OffsetCommit needs READ on each topic.
        return Placed(Action.REFUSE, "not-authorized", None, Proof.NONE)
    if view.unavailable or view.target_range is None:
        return Placed(Action.REFUSE, "target-unavailable", None, Proof.NONE)
    if view.recreated and not options.allow_unverified:
        return Placed(Action.REFUSE, "target-recreated", None, Proof.NONE)
    return None


def _place_missing(view: PartitionView, code: str, options: PlanOptions) -> Placed:
    """Applies ``--missing`` where no position is known and no standing commit serves.

    A standing commit is a position; the policy is for partitions left to ``auto.offset.reset``. One that was never
    committed on the source misses nothing, so ``fail`` leaves it alone. What may pass over unread records takes
    ``allow_skip``, or ``allow_unverified`` where a position is known and only its place is not: then the log end is
    taken if no policy says otherwise.
    """
    unplaced = options.allow_unverified and _has_position(view)
    refused = code in REFUSE_CODES and not unplaced
    if refused or (options.missing == "fail" and code != "source-never-committed"):
        return Placed(Action.REFUSE, code, None, Proof.NONE)
    left = Placed(Action.REFUSE if code in REFUSE_CODES else Action.SKIP, code, None, Proof.NONE)
    policy = "latest" if unplaced and options.missing == "leave" else options.missing
    start = start_of(view, policy) if left_alone(view).offset is None else None
    if start is None or (start.passed_over and not (options.allow_skip or unplaced)):
        return left
    wanted = Placed(Action.COMMIT, start.reason, start.offset, start.proof, start.passed_over)
    judged = _against_standing(view, wanted, options)
    return judged if judged.action is Action.COMMIT else left


def _has_position(view: PartitionView) -> bool:
    """Tells whether a position on the source is known, wherever it may lie on the target."""
    if view.source_known:
        return view.source_commit is not None
    return view.tracked is not None or view.checkpoint is not None


def _gone_back(view: PartitionView, wanted: Placed) -> Placed:
    """Applies ``--rewind-by``: goes back by time from where the group stands; nowhere where nothing tells the time."""
    earlier = None if view.gone_back is None or wanted.offset is None else view.gone_back.get(wanted.offset)
    if earlier is None or wanted.offset is None or earlier >= wanted.offset:
        return wanted
    return Placed(Action.COMMIT, "gone-back", earlier, Proof.TIMESTAMP)


def _against_standing(view: PartitionView, wanted: Placed, options: PlanOptions) -> Placed:
    """Keeps a commit from going back. Equal to the standing commit: nothing is left to write."""
    standing = view.target_commit.offset if view.target_commit is not None else None
    if standing is None or wanted.offset is None or standing < wanted.offset:
        return wanted
    if standing == wanted.offset:
        return Placed(Action.SKIP, "already-there", wanted.offset, wanted.proof)
    if options.allow_rewind:
        return wanted
    return Placed(Action.SKIP, "would-rewind", wanted.offset, wanted.proof)


def decide(view: PartitionView, options: PlanOptions, refusal: str | None, taken_ms: int) -> PlannedPartition:
    """Decides one partition. ``refusal``: the group-level code that forbids every commit, if any."""
    known, code = best_translation(view)
    if view.recreated and options.allow_unverified:
        known, code = None, "target-recreated"  # whatever is known is of the topic before
    if refusal is None:
        placed = place(view, known, code, options)
    else:
        placed = Placed(Action.REFUSE, refusal, None, known.proof if known is not None else Proof.NONE)
    return describe(view, known, code, placed, taken_ms)


def describe(
    view: PartitionView, known: Translation | None, code: str, placed: Placed, taken_ms: int
) -> PlannedPartition:
    """Writes a decision down with what it costs."""
    commits = placed.action is Action.COMMIT
    log, source = view.target_range, view.source_range
    standing = view.target_commit.offset if view.target_commit is not None else None
    goal = known.offset if known is not None else None
    ahead: int | None = None
    if commits:
        position = PositionAfter(placed.offset, "plan")
        skipped = placed.skipped
    else:
        position = left_alone(view)
        beyond = goal is not None and view.target_range is not None and goal > view.target_range.end
        skipped = skipped_by(view, position, None if beyond else goal, code)
        if placed.reason == "would-rewind" and standing is not None and placed.offset is not None:
            # with --rewind-by the commit may stand at the position itself, and after where going back leads
            ahead = standing - (placed.offset if goal is None or standing <= goal else max(goal, placed.offset))
    refused = placed.action is Action.REFUSE
    reread, reread_max = (None, None) if refused else read_again(view, known, position.offset)
    if commits and (known is None or known.offset is None):
        # --missing: none of it may have been read, or all of it; nothing, where nothing was ever committed.
        reread, reread_max = (0, 0) if code == "source-never-committed" else (None, lag_after(log, position))
    metadata, encoded = _metadata(view, known)
    return PlannedPartition(
        topic=view.topic,
        partition=view.partition,
        source_topic=view.source_topic,
        source_committed=view.source_commit.offset if view.source_commit is not None else None,
        source_end=source.end if source is not None else None,
        checkpoint=_checkpoint(view, taken_ms),
        target_committed=standing,
        target_start=log.start if log is not None else None,
        target_end=log.end if log is not None else None,
        action=placed.action,
        reason=placed.reason,
        offset=placed.offset if commits else None,
        precision=str(known.precision) if known is not None else "none",
        proof=str(placed.proof),
        position_after=position,
        reread=reread,
        reread_max=reread_max,
        skipped=skipped,
        lag_after=lag_after(log, position),
        ahead=ahead,
        ahead_because=None if ahead is None else ahead_because(view),
        mm2=_mm2(view, known),
        metadata=metadata,
        metadata_base64=encoded,
        evidence=known.evidence if known is not None else (),
    )


def _checkpoint(view: PartitionView, taken_ms: int) -> PlannedCheckpoint | None:
    seen = view.checkpoint
    if seen is None:
        return None
    when = datetime.fromtimestamp(max(0, seen.timestamp) / 1000, UTC)
    return PlannedCheckpoint(seen.upstream, seen.downstream, when, max(0.0, (taken_ms - seen.timestamp) / 1000))


def _mm2(view: PartitionView, known: Translation | None) -> Mm2Answer | None:
    """Gives MM2's own answer, and what it costs where the true position is known exactly."""
    offset = view.mm2_answer
    if offset is None:
        if view.checkpoint is None:
            return None
        offset = view.checkpoint.downstream
    exact = known is not None and known.precision is Precision.EXACT and view.source_known
    return Mm2Answer(offset, max(0, known.offset - offset) if exact and known and known.offset is not None else None)


def _metadata(view: PartitionView, known: Translation | None) -> tuple[str, str | None]:
    """Gives the metadata to commit: the source commit's, else those of where it stood last, byte for byte."""
    if known is None:
        return "", None
    raw = b""
    if view.source_commit is not None:
        raw = view.source_commit.metadata
    elif view.tracked is not None and view.tracked.upstream == known.upstream:
        raw = view.tracked.metadata
    elif view.checkpoint is not None:
        raw = view.checkpoint.metadata
    if not raw:
        return "", None
    try:
        return raw.decode(), None
    except UnicodeDecodeError:
        return raw.decode(errors="replace"), base64.b64encode(raw).decode()


def key(partition: PlannedPartition) -> TopicPartition:
    """Gives a planned partition's name."""
    return TopicPartition(partition.topic, partition.partition)
