"""All that decides one partition of one group, brought together from the snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from failover.model.cluster import LogRange, TopicInfo
from failover.model.groups import Commit
from failover.model.snapshot import SeenCheckpoint, Tracked
from failover.model.translation import Precision, Proof, Translation


class PartitionView(NamedTuple):
    """Is one target partition as one group sees it.

    ``source_known``: the group's committed offsets on the source were read in this look, so that
    an absent one means "never committed". ``topic_info``, ``target_range``: None when the target
    has no such topic or did not tell the range. ``foreign``: aliases of other sources mirrored
    into this topic. ``recreated``: the target topic is younger than the evidence. ``written``:
    what this tool committed here last. ``active``: the group has members on the target. ``original``: the
    source's topic is a copy of this one (failback). ``hidden``: this client may not see the topic.
    ``tracked``: what was kept of the position while the source was up. ``by_time``: where the log stood
    at the moment that ``--missing`` names. ``gone_back``: offset → where going back by time leads from there; None when
    it was not asked for.
    """

    topic: str
    partition: int
    source_topic: str
    source_known: bool
    source_commit: Commit | None
    source_range: LogRange | None
    checkpoint: SeenCheckpoint | None
    translation: Translation | None
    mm2_answer: int | None
    target_commit: Commit | None
    topic_info: TopicInfo | None
    target_range: LogRange | None
    unavailable: bool
    foreign: tuple[str, ...]
    recreated: bool
    written: int | None
    active: bool
    synced: bool
    original: bool = False
    hidden: bool = False
    tracked: Tracked | None = None
    by_time: int | None = None
    gone_back: Mapping[int, int] | None = None


def best_translation(view: PartitionView) -> tuple[Translation | None, str]:
    """Finds where the group's last known position lies on the target, or the skip code saying why not.

    What the evidence of this look says (``_by_evidence``), raised to what this tool wrote earlier
    with better evidence (``_raised``).
    """
    known, code = _by_evidence(view)
    return (known if known is None else _raised(view, known)), code


def _raised(view: PartitionView, known: Translation) -> Translation:
    """Raises an answer that is not exact to the offset this tool wrote last, where that still holds.

    Every offset it writes lies at or below the true position of that moment (offsets written under
    an override that may pass it are not remembered). That holds until the group is set back on the
    source, which shows as a checkpoint written again lower, as an exact answer below, or as a bound
    below the offset; and until the topic is made anew or truncated.
    """
    written, log = view.written, view.target_range
    if written is None or known.offset is None or written <= known.offset or known.precision is Precision.EXACT:
        return known
    if view.recreated or (log is not None and written > log.end):
        return known
    if view.gone_back is not None and written not in view.gone_back:
        return known  # nothing tells where going back leads from there
    if view.checkpoint is not None and view.checkpoint.earlier_upstream is not None:
        return known
    raised = written - known.offset
    if known.reread_max is not None and raised > known.reread_max:
        return known
    return msgspec.structs.replace(
        known,
        offset=written,
        proof=Proof.TRACKED,
        reread=None if known.reread is None else max(0, known.reread - raised),
        reread_max=None if known.reread_max is None else known.reread_max - raised,
        evidence=(*known.evidence, f"an earlier execution wrote {written}, proven to be read then"),
    )


def _by_evidence(view: PartitionView) -> tuple[Translation | None, str]:
    """Finds where the group's last known position lies on the target, or the skip code saying why not.

    The rules, in order:

    * The source answers and holds no commit: ``source-never-committed``; with a checkpoint from
      earlier, ``source-offset-expired`` (Kafka: ``offsets.retention.minutes``, or somebody deleted
      it). The old checkpoint is not used: the source's own consumers would not start there either.
    * A translation counts unless it belongs to a position beyond the group's commit. One that found
      the target's topic made anew forbids everything older, checkpoints too.
    * MM2's checkpoint counts unless its upstream lies beyond the group's commit: the group was
      rewound on the source since, and the checkpoint would skip (MM2: a checkpoint's downstream
      never lies beyond the translation of its upstream).
    * Committed 0: nothing was consumed, so the target's log start is exact, syncs or not.
    * Nothing on the source is consumed and the target holds nothing: its end is exact. Fails only
      if MM2 copied records again that the source no longer has, which it cannot.
    """
    commit, checkpoint = view.source_commit, view.checkpoint
    if view.source_known and commit is None:
        return None, "source-never-committed" if checkpoint is None else "source-offset-expired"
    limit = commit.offset if commit is not None else None
    found = view.translation
    if found is not None and found.offset is not None and (limit is None or found.upstream <= limit):
        return found, ""
    if found is not None and found.failure == "target-recreated":
        return None, found.failure
    if checkpoint is not None and (limit is None or checkpoint.upstream <= limit):
        return _known(checkpoint.upstream, checkpoint.downstream, Precision.CONSERVATIVE, Proof.CHECKPOINT, ()), ""
    if commit is not None and view.target_range is not None:
        start, end = view.target_range
        if commit.offset == 0:
            return _known(
                0, start, Precision.EXACT, Proof.LOG_START, ("the source's commit is 0: nothing consumed",)
            ), ""
        if start == end and view.source_range is not None and commit.offset <= view.source_range.start:
            evidence = ("the target holds no record and every record the source holds is unread",)
            return _known(commit.offset, end, Precision.EXACT, Proof.LOG_END, evidence), ""
    if found is not None and found.failure:
        return None, found.failure
    never_filled = view.target_range is not None and view.target_range.end == 0
    return None, "not-mirrored" if never_filled else "no-checkpoint"


def _known(upstream: int, offset: int, precision: Precision, proof: Proof, evidence: tuple[str, ...]) -> Translation:
    exact = 0 if precision is Precision.EXACT else None
    return Translation(upstream, offset, precision, proof, exact, exact, evidence)
