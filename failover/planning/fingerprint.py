"""The seal of a plan: a hash over all that execute relies on."""

from __future__ import annotations

import hashlib

import msgspec

from failover.model.plan import Plan, PlannedPartition


def fingerprint(plan: Plan) -> str:
    """Gives ``sha256:…`` over a canonical JSON of what execute relies on.

    Fields are listed here one by one and written as arrays, so that a plan of a newer version
    with more fields keeps the fingerprint an older reader computes. A change of any of them shows;
    findings, evidence and sums are for people and are not part of it.
    """
    options = plan.options
    canonical = [
        [plan.version, plan.id, plan.created, plan.expires, plan.tool_version, plan.operator, plan.reason],
        [plan.source.alias, plan.source.cluster_id, plan.target.alias, plan.target.cluster_id],
        [plan.flow.source, plan.flow.target, plan.flow.replication_policy, plan.flow.separator, plan.flow.reversed],
        [options.missing, options.precision, options.all_or_nothing, options.require_source_inactive],
        [options.allow_rewind, options.allow_skip, options.allow_moving_commits, options.allow_unverified],
        [options.create_group],
        sorted(plan.topic_ids.items()),
        [
            [
                group.group,
                group.exists,
                group.type,
                group.state,
                group.verdict,
                group.reasons,
                [_partition(p) for p in group.partitions],
                [_partition(p) for p in group.when_free],
            ]
            for group in plan.groups
        ],
    ]
    return "sha256:" + hashlib.sha256(msgspec.json.encode(canonical)).hexdigest()


def _partition(p: PlannedPartition) -> tuple[object, ...]:
    return (
        p.topic,
        p.partition,
        p.source_topic,
        p.source_committed,
        p.target_committed,
        p.target_start,
        p.target_end,
        p.action,
        p.reason,
        p.offset,
        p.precision,
        p.proof,
        p.position_after.offset,
        p.position_after.by,
        p.reread,
        p.reread_max,
        p.skipped,
        p.metadata,
        p.metadata_base64,
    )
