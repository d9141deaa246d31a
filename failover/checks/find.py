"""The table of checks and their one entry, ``find``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from failover.checks.cluster_checks import (
    acl_missing,
    authorizer_missing,
    clock_skew,
    min_isr_unsatisfiable,
    not_checked,
    offsets_expire,
    source_degraded,
)
from failover.checks.flow_checks import (
    checkpoint_stale,
    checkpoint_unconfirmed,
    internal_topics,
    mm2_group_sync,
    naming_mismatch,
    partition_count_differs,
    partition_uncovered,
)
from failover.checks.group_checks import (
    group_excluded,
    offsets_pending,
    rewound_upstream,
    rollback_limited,
    source_active,
    streams_state,
)
from failover.checks.local_checks import local_topic_missing, local_topic_uncovered, subscription_changes
from failover.checks.look import Look
from failover.checks.mirror_checks import mirror_stalled, source_recreated, source_truncated, two_writers
from failover.model.names import TopicPartition
from failover.model.plan import Finding, Plan, PlannedGroup, Severity
from failover.model.snapshot import Snapshot

Check = Callable[[Look], Iterable[Finding]]

CHECKS: tuple[Check, ...] = (
    source_degraded,
    mm2_group_sync,
    two_writers,
    source_active,
    naming_mismatch,
    internal_topics,
    source_truncated,
    source_recreated,
    mirror_stalled,
    checkpoint_unconfirmed,
    checkpoint_stale,
    rewound_upstream,
    partition_uncovered,
    partition_count_differs,
    offsets_pending,
    offsets_expire,
    rollback_limited,
    min_isr_unsatisfiable,
    streams_state,
    local_topic_missing,
    local_topic_uncovered,
    subscription_changes,
    acl_missing,
    authorizer_missing,
    clock_skew,
    group_excluded,
    not_checked,
)

_ORDER = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}


def find(
    snapshot: Snapshot,
    groups: Sequence[PlannedGroup] = (),
    written: Mapping[str, Mapping[TopicPartition, int]] | None = None,
    earlier: Plan | None = None,
) -> tuple[Finding, ...]:
    """Runs every check on one look and what was decided from it; errors first, then in the table's order.

    ``written``: group → target partition → offset that this tool committed last, so that its own
    work is not taken for MM2's. ``earlier``: the plan of the flow before this one.
    """
    look = Look(snapshot, groups, written or {}, earlier)
    return by_severity(finding for check in CHECKS for finding in check(look))


def by_severity(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Orders findings: errors first; those of one weight stay in their order."""
    return tuple(sorted(findings, key=lambda finding: _ORDER[finding.severity]))


def worst(findings: Iterable[Finding]) -> Severity | None:
    """Gives the heaviest severity, None when there is no finding."""
    return min((finding.severity for finding in findings), key=_ORDER.__getitem__, default=None)
