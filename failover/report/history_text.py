"""Past executions, newest first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from failover.model.execution import Execution, Status
from failover.report.table import table
from failover.report.values import age, count, moment


def history_text(executions: Sequence[Execution], now: datetime, *, width: int = 100) -> str:
    """Lists executions, a line each; the last line says how to see one in full."""
    if not executions:
        return "No execution is on record here.\n"
    ordered = sorted(executions, key=lambda execution: execution.started, reverse=True)
    headers = ("RUN", "STARTED", "FLOW", "OUTCOME", "GROUPS", "OFFSETS", "OPERATOR", "REASON")
    cells = []
    for execution in ordered:
        totals = Counter(p.status for group in execution.groups for p in group.partitions)
        cells.append(
            (
                execution.id,
                moment(execution.started)[:16],
                f"{execution.source_alias}->{execution.target_alias}",
                str(execution.outcome),
                count(len(execution.groups)),
                count(totals[Status.COMMITTED]),
                execution.operator,
                "; ".join(filter(None, (f"undoes {execution.undoes}" if execution.undoes else "", execution.reason))),
            )
        )
    screen = table(
        headers,
        cells,
        width=width,
        numbers=frozenset({"GROUPS", "OFFSETS"}),
        keep=frozenset({"RUN", "STARTED", "FLOW"}),
    )
    newest = age(ordered[0].started, now)
    return f"{screen}\n\nTimes are UTC; the newest was {newest}. One in full: failover show {ordered[0].id}\n"
