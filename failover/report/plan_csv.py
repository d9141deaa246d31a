"""A plan as CSV: one row a partition, for spreadsheets and scripts; column names are stable."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime

from failover.model.plan import Plan, PlannedGroup, PlannedPartition
from failover.report.inert import inert_csv

COLUMNS = (
    "plan",
    "source",
    "target",
    "group",
    "verdict",
    "type",
    "state",
    "members",
    "topic",
    "partition",
    "source_topic",
    "source_committed",
    "source_end",
    "checkpoint_upstream",
    "checkpoint_downstream",
    "checkpoint_time",
    "target_committed",
    "target_start",
    "target_end",
    "action",
    "reason",
    "offset",
    "precision",
    "proof",
    "position_after",
    "position_by",
    "reread",
    "reread_max",
    "skipped",
    "ahead",
    "ahead_because",
    "mm2_offset",
    "mm2_reread",
    "lag_after",
    "metadata",
)


def plan_csv(plan: Plan) -> str:
    """Writes a plan's partitions with a header line; unknown is an empty cell, numbers are plain.

    A group without partitions (nothing to move, or found nowhere) has one row with its verdict and
    its reason.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for group in plan.groups:
        start: list[object] = [plan.id, plan.source.alias, plan.target.alias, group.group]
        start += [str(group.verdict), group.type, group.state, len(group.members)]
        for partition in group.partitions or (None,):
            row = _partition(partition) if partition is not None else _no_partition(group)
            writer.writerow([_cell(value) for value in (*start, *row)])
    return out.getvalue()


def _partition(p: PlannedPartition) -> tuple[object, ...]:
    seen, mm2 = p.checkpoint, p.mm2
    return (
        p.topic,
        p.partition,
        p.source_topic,
        p.source_committed,
        p.source_end,
        seen.upstream if seen is not None else None,
        seen.downstream if seen is not None else None,
        seen.timestamp if seen is not None else None,
        p.target_committed,
        p.target_start,
        p.target_end,
        str(p.action),
        p.reason,
        p.offset,
        p.precision,
        p.proof,
        p.position_after.offset,
        p.position_after.by,
        p.reread,
        p.reread_max,
        p.skipped,
        p.ahead,
        p.ahead_because,
        mm2.offset if mm2 is not None else None,
        mm2.reread if mm2 is not None else None,
        p.lag_after,
        p.metadata,
    )


def _no_partition(group: PlannedGroup) -> tuple[object, ...]:
    row: list[object] = [None] * (len(COLUMNS) - COLUMNS.index("topic"))
    row[COLUMNS.index("reason") - COLUMNS.index("topic")] = " ".join(group.reasons)
    return tuple(row)


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    return inert_csv(value) if isinstance(value, str) else str(value)
