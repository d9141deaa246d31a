"""Past executions, newest first."""

from __future__ import annotations

from datetime import datetime

from failover.model.execution import History, RunSummary
from failover.report.inert import inert_line
from failover.report.table import labelled, table
from failover.report.values import age, count, moment


def history_text(history: History, now: datetime, *, width: int = 100) -> str:
    """Lists what is on record, a line each; the last line says how to see one in full."""
    blocks = []
    if history.runs:
        headers = ("RUN", "STARTED", "WHAT", "OUTCOME", "GROUPS", "IN PLACE", "OPEN", "OPERATOR", "REASON")
        numbers = frozenset({"GROUPS", "IN PLACE", "OPEN"})
        flows = len({(run.source_alias, run.target_alias) for run in history.runs}) > 1
        blocks.append(table(headers, [_cells(run, flows) for run in history.runs], width=width, numbers=numbers))
    lost = [line for text in history.unreadable for line in labelled("unreadable:", text, width=width, indent=12)]
    blocks += ["\n".join(lost)] if lost else []
    blocks += [history.note] if history.note else []
    if history.runs:
        latest = age(history.runs[0].started, now)
        blocks.append(
            f"Times are UTC; the newest began {latest}. One in full: failover show {inert_line(history.runs[0].id)}"
        )
    return "\n\n".join(blocks or ["No execution is on record here."]) + "\n"


def _cells(run: RunSummary, flows: bool) -> tuple[str, ...]:
    words = {"execution": "plan", "rollback": "undoes"}
    what = f"{words.get(run.what, 'evicts')} {run.of}"
    if flows:
        what += f", {run.source_alias} -> {run.target_alias}"
    if run.elsewhere:
        what += f" (on {run.elsewhere})"
    return (
        run.id,
        moment(run.started)[:16],
        what,
        str(run.outcome) if run.finished else f"{run.outcome}, not closed",
        count(run.groups),
        count(run.committed),
        count(run.open),
        run.operator,
        run.reason,
    )
