"""Where consumers start after the plan was executed, and what they read again or pass over."""

from __future__ import annotations

from failover.model.cluster import LogRange
from failover.model.plan import PositionAfter
from failover.model.translation import Precision, Translation
from failover.planning.view import PartitionView

RESET = PositionAfter(None, "auto.offset.reset")


def left_alone(view: PartitionView) -> PositionAfter:
    """Says where consumers start when nothing is committed.

    Kafka: at the standing commit; without one, or when it lies outside the log (out of range),
    the consumer's ``auto.offset.reset`` decides.
    """
    commit, log = view.target_commit, view.target_range
    if commit is None or (log is not None and not log.start <= commit.offset <= log.end):
        return RESET
    return PositionAfter(commit.offset, "standing-commit")


def ahead_because(view: PartitionView) -> str:
    """Names the likely cause of a commit on the target that lies ahead of the translation.

    ``this-tool``: the value this tool wrote last. ``consumed-here``: members are there now, or it
    moved on from what this tool wrote. ``mm2-group-sync``: it equals MM2's checkpoint, or one from
    before the group was rewound on the source. With the sync configured, moving on from our value
    may be MM2's work as well, hence ``unknown`` then. On an original (failback) the group consumed
    itself, before it went to the copies: ``consumed-here``, too.
    """
    commit, checkpoint = view.target_commit, view.checkpoint
    if commit is None:
        return "unknown"
    if view.written is not None and commit.offset == view.written:
        return "this-tool"
    if view.active:
        return "consumed-here"
    if checkpoint is not None and commit.offset == checkpoint.downstream:
        return "mm2-group-sync"
    if view.written is not None and commit.offset > view.written and not view.synced:
        return "consumed-here"
    if view.original and checkpoint is None:
        return "consumed-here"  # MM2 syncs commits to its copies, by checkpoints
    if view.synced and checkpoint is not None and checkpoint.earlier_upstream is not None:
        return "mm2-group-sync"
    return "unknown"


def skipped_by(view: PartitionView, position: PositionAfter, placed: int | None, code: str) -> int | None:
    """Counts unread records that consumers starting at a standing commit pass over.

    ``placed``: the translated offset, None when it could not be placed; ``code``: why not.
    The true position t lies in [placed, placed + reread_max]. What is passed over is at most
    commit - placed, and exactly that when the translation is exact; the larger number is given,
    since a skip must never be understated. Records consumed on the target itself do not count
    (members there now, or progress beyond what this tool wrote). A group that never committed on
    the source has nothing to lose there: its standing commit is a position of the target's own.
    None: ``auto.offset.reset`` decides, or the true position is unknown.
    """
    if position.offset is None:
        return None
    if placed is None:
        return 0 if code == "source-never-committed" else None
    commit = position.offset
    if ahead_because(view) == "consumed-here" and commit > placed:
        # Up to what this tool wrote nobody consumed here; from there on the group itself did.
        commit = placed if view.written is None else min(commit, view.written)
    start = view.target_range.start if view.target_range is not None else placed
    return max(0, commit - max(placed, start))


def read_again(view: PartitionView, known: Translation | None, offset: int | None) -> tuple[int | None, int | None]:
    """Estimates and bounds the consumed records at or beyond ``offset`` on the target.

    With the source's commit known: the translation's own numbers, less what the offset was raised
    by, or with what it goes back. Where it gives no estimate: what the target holds beyond the
    offset, less what is unread on the source (exact for a mirror that is up to date and one to one;
    the bound stays all the target holds). Without it: (None, all the target holds beyond the
    offset), since later commits on the source are unknown.
    """
    if known is None or known.offset is None or offset is None:
        return None, None
    held = None if view.target_range is None else max(0, view.target_range.end - offset)
    if not view.source_known:
        return None, held
    if known.precision is Precision.EXACT and offset >= known.offset:
        return 0, 0
    raised = offset - known.offset
    bound = held if known.reread_max is None else _least(max(0, known.reread_max - raised), held)
    if known.reread is not None:
        return _least(max(0, known.reread - raised), bound), bound
    return _least(_estimate(view, held), bound), bound


def _estimate(view: PartitionView, held: int | None) -> int | None:
    if held is None or view.source_commit is None or view.source_range is None:
        return None
    unread = max(0, view.source_range.end - max(view.source_commit.offset, view.source_range.start))
    return max(0, held - unread)


def _least(first: int | None, second: int | None) -> int | None:
    if first is None or second is None:
        return first if second is None else second
    return min(first, second)


def lag_after(log: LogRange | None, position: PositionAfter) -> int | None:
    """Counts what the target holds beyond the start position; None where either is unknown."""
    return None if log is None or position.offset is None else max(0, log.end - position.offset)
