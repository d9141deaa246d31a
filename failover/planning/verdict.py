"""The verdict for one group, from what was decided for its partitions."""

from __future__ import annotations

from collections.abc import Sequence

from failover.model.plan import Action, PlannedGroup, PlannedPartition, Verdict

HARMLESS = frozenset({"already-there", "source-never-committed"})
"""Skips that leave a group ready: nothing is left to write, or nothing was ever consumed."""


def verdict(partitions: Sequence[PlannedPartition], refusal: str | None, has_trace: bool, found: bool) -> Verdict:
    """Judges a group; the rules are tested in this order.

    ``nothing``: no committed offset and no checkpoint on any mirrored topic (and nothing to
    commit by ``--create-group``). A group found nowhere at all is refused instead: its name is
    most likely mistyped, and "nothing to do" would hide that. ``refused``: a group-level refusal,
    or nothing can be committed and something is refused. ``partial``: a skip that is not
    harmless, a refusal, or records that are or may be passed over. ``ready``: the rest.
    """
    commits = any(p.action is Action.COMMIT for p in partitions)
    if not has_trace and not commits and found:
        return Verdict.NOTHING
    if refusal is not None:
        return Verdict.REFUSED
    if not has_trace and not commits:
        return Verdict.NOTHING
    if not commits and any(p.action is Action.REFUSE for p in partitions):
        return Verdict.REFUSED
    return Verdict.PARTIAL if any(not plain(p) for p in partitions) else Verdict.READY


def plain(partition: PlannedPartition) -> bool:
    """Says whether a partition leaves its group ready."""
    if partition.action is Action.REFUSE:
        return False
    if partition.action is Action.SKIP and partition.reason not in HARMLESS:
        return False
    return partition.skipped == 0 or partition.reason == "source-never-committed"


def newer_than_checkpoints(group: PlannedGroup) -> bool:
    """Says whether all that is known of a group is what it committed on the source, and nothing places it.

    It committed on mirrored topics whose copies hold records; the source answers, but neither offset syncs nor
    compared records speak to any of its partitions, MM2 has checkpointed none, and on the target it has committed
    nothing. MM2 looks for new groups every ``refresh.groups.interval.seconds`` (MirrorCheckpointConnector).
    """
    committed = [p for p in group.partitions if p.source_committed is not None]
    return (
        bool(committed)
        and all(p.checkpoint is None and p.target_committed is None for p in group.partitions)
        and all(p.action is Action.SKIP and p.reason == "no-checkpoint" for p in committed)
    )


def reasons(
    judged: Verdict, partitions: Sequence[PlannedPartition], refusal: str | None, found: bool
) -> tuple[str, ...]:
    """Names why a group is not ready: the group's own code, else its partitions' codes, refusals first."""
    if judged is Verdict.READY or (judged is Verdict.NOTHING and found):
        return ()
    if refusal is not None:
        return (refusal,)
    odd = sorted((p.action is not Action.REFUSE, p.reason) for p in partitions if not plain(p))
    return tuple(dict.fromkeys(reason for _, reason in odd))
