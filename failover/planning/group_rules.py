"""Why nothing may be committed for a whole group: one function a rule, tested in one order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from failover.model.groups import GroupInfo, GroupType
from failover.model.names import Fault, TopicPartition
from failover.model.plan import PlanOptions
from failover.model.snapshot import Snapshot

RECENT_SAMPLE_SECONDS = 300.0
"""How old an earlier sample of the target's commits may be to say that they move now."""

UNTIL_FREE = frozenset({"group-active", "group-state-unknown", "commits-moving"})
"""Refusals that end by themselves or by stopping consumers; the group's offsets stay decided."""

_AUTHORIZATION = ("GROUP_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED", "TOPIC_AUTHORIZATION_FAILED")


class GroupLook(NamedTuple):
    """Is all that the rules see of one group.

    ``found``: it exists or left a trace somewhere. ``written``: what this tool committed last.
    """

    name: str
    info: GroupInfo | None
    found: bool
    snapshot: Snapshot
    options: PlanOptions
    locked_by: str
    written: Mapping[TopicPartition, int]


def may(operations: frozenset[str] | None, operation: str) -> bool:
    """Says whether a right is there; a broker that does not say (None) is believed to allow it."""
    return operations is None or operation in operations or "ALL" in operations


def denied(fault: Fault | None) -> bool:
    """Says whether a fault means a missing right."""
    return fault is not None and fault.name in _AUTHORIZATION


def group_refusal(look: GroupLook) -> str | None:
    """Finds the first rule that forbids every commit for the group; gives its code or None."""
    for code, forbids in _RULES:
        if forbids(look):
            return code
    return None


def _same_cluster(look: GroupLook) -> bool:
    """Both aliases lead to one cluster (equal cluster ids): commits would hit the source's own groups.

    Cannot see it when a broker gives no cluster id or the source does not answer.
    """
    source, target = look.snapshot.source.status, look.snapshot.target.status
    return source.cluster_id is not None and source.cluster_id == target.cluster_id


def _target_unavailable(look: GroupLook) -> bool:
    """The target does not answer, or the group's committed offsets there could not be read.

    Without them no rewind could be noticed.
    """
    target = look.snapshot.target
    fault = target.group_faults.get(look.name)
    return not target.status.answers or (fault is not None and not denied(fault))


def _locked(look: GroupLook) -> bool:
    """Another execution on this target holds the lock and lives."""
    return bool(look.locked_by)


def _unknown(look: GroupLook) -> bool:
    """The group exists nowhere and left no checkpoint: most likely a mistyped name.

    A commit would create it (Kafka: a commit from outside creates an absent group).
    """
    return not look.found and not look.options.create_group


def _type_unsupported(look: GroupLook) -> bool:
    """The target knows this id as a share or streams group, or as a type this tool cannot tell.

    Their positions are no consumer commits (Kafka: KIP-932, KIP-1071).
    """
    info = look.info
    return (
        info is not None
        and info.exists
        and info.fault is None
        and info.type not in (GroupType.CLASSIC, GroupType.CONSUMER)
    )


def _not_authorized(look: GroupLook) -> bool:
    """This client may not commit for the group (Kafka: OffsetCommit needs READ on the group).

    Authorized operations are believed; a right withdrawn after this look shows at execute.
    """
    info = look.info
    if denied(look.snapshot.target.group_faults.get(look.name)):
        return True
    return info is not None and (denied(info.fault) or not may(info.operations, "READ"))


def _state_unknown(look: GroupLook) -> bool:
    """Nobody could tell the group's state: it is then taken for active, never for new."""
    info = look.info
    return info is None or info.fault is not None or info.state in ("Unknown", "")


def _active(look: GroupLook) -> bool:
    """The group has members on the target, or is in any state but Empty and Dead.

    Kafka refuses such a commit with UNKNOWN_MEMBER_ID. A group may get members right after this
    look; execute looks again.
    """
    return look.info is not None and not look.info.inactive


def _moving(look: GroupLook) -> bool:
    """The target's commits changed since an earlier look although the group has no members.

    A client with manual assignment has no membership, so it would overwrite the commit. MM2's
    group sync moves commits of empty groups as well: values that are its checkpoints are benign.
    Misses a client that did not commit between the two looks; refuses once too often when
    consumers stopped between them.
    """
    snapshot = look.snapshot
    sample = snapshot.commit_samples.get(look.name)
    if sample is None or snapshot.sampled is None or look.options.allow_moving_commits:
        return False
    if not 0 <= (snapshot.taken - snapshot.sampled).total_seconds() <= RECENT_SAMPLE_SECONDS:
        return False
    return any(
        commit.offset not in (sample.get(tp), look.written.get(tp))
        and not written_by_mm2(snapshot, look.name, tp, commit.offset, sample.get(tp))
        for tp, commit in snapshot.target.commits.get(look.name, {}).items()
    )


def written_by_mm2(snapshot: Snapshot, group: str, tp: TopicPartition, offset: int, before: int | None) -> bool:
    """Says whether a target commit looks like the work of MM2's group sync.

    MM2 (MirrorCheckpointTask) writes its checkpoints' offsets for groups without members, and
    only forward. It may lag one checkpoint behind, so with the sync configured any step forward
    up to the newest checkpoint counts.
    """
    checkpoint = snapshot.checkpoints.get(group, {}).get(tp)
    if checkpoint is None:
        return False
    forward = (-1 if before is None else before) < offset <= checkpoint.downstream
    return offset == checkpoint.downstream or (snapshot.group_offsets_synced and forward)


def _source_active(look: GroupLook) -> bool:
    """``--require-source-inactive``: the group still has members on the source."""
    info = look.snapshot.source.groups.get(look.name)
    return look.options.require_source_inactive and info is not None and bool(info.members)


_RULES: tuple[tuple[str, Callable[[GroupLook], bool]], ...] = (
    ("same-cluster", _same_cluster),
    ("target-unavailable", _target_unavailable),
    ("locked", _locked),
    ("group-unknown", _unknown),
    ("group-type-unsupported", _type_unsupported),
    ("not-authorized", _not_authorized),
    ("group-state-unknown", _state_unknown),
    ("group-active", _active),
    ("commits-moving", _moving),
    ("source-active", _source_active),
)

GROUP_CODES = tuple(code for code, _ in _RULES)
"""Every group-level refusal, in the order of the tests."""
