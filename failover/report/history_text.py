"""Past executions, newest first."""

from __future__ import annotations

from datetime import datetime

from failover.model.execution import History, LastLook, RunSummary
from failover.report.inert import inert_line
from failover.report.table import labelled, table
from failover.report.values import age, count, moment, things

HEADERS = ("RUN", "STARTED", "WHAT", "OUTCOME", "GROUPS", "IN PLACE", "OPEN", "OPERATOR", "REASON")
KEPT = frozenset({"RUN", "STARTED", "OUTCOME"})
IDS = 24
"""Columns up to which RUN and WHAT together are never cut: two ids, and what was done with the second."""
VERDICTS = {0: "holds", 4: "holds, not all back", 6: "does not hold", 7: "unknown"}


def history_text(history: History, now: datetime, *, width: int = 100) -> str:
    """Lists what is on record, a line each; the last line says how to see one in full."""
    blocks = []
    if history.runs:
        numbers = frozenset({"GROUPS", "IN PLACE", "OPEN"})
        flows = len({(run.source_alias, run.target_alias) for run in history.runs}) > 1
        undone = {run.of for run in history.runs if run.what == "rollback" and run.committed}
        cells = [_cells(run, flows, run.id in undone) for run in history.runs]
        keep = KEPT | {"WHAT"} if max(len(row[0] + row[2]) for row in cells) <= IDS else KEPT
        blocks.append(table(HEADERS, cells, width=width, numbers=numbers, keep=keep))
    looks = [(run, run.verified) for run in history.runs if run.verified is not None]
    if looks:
        cells = [_verified(run, look) for run, look in looks]
        blocks.append(table(("VERIFIED", "LAST", "FOUND", "EXIT"), cells, width=width, numbers=frozenset({"EXIT"})))
    lost = [line for text in history.unreadable for line in labelled("unreadable:", text, width=width, indent=12)]
    blocks += ["\n".join(lost)] if lost else []
    blocks += [history.note] if history.note else []
    if history.runs:
        latest = age(history.runs[0].started, now)
        blocks.append(
            f"Times are UTC; the newest began {latest}. One in full: failover show {inert_line(history.runs[0].id)}"
        )
    return "\n\n".join(blocks or ["No execution is on record here."]) + "\n"


def _verified(run: RunSummary, look: LastLook) -> tuple[str, ...]:
    found = VERDICTS.get(look.exit_code, "not known")
    bad = f": {look.bad} of {things(look.groups, 'group')}" if look.bad else ""
    return (run.id, moment(look.at)[:16], found + bad, str(look.exit_code))


def _cells(run: RunSummary, flows: bool, undone: bool) -> tuple[str, ...]:
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
        "rolled back" if undone else str(run.outcome) if run.finished else "not ended",
        count(run.groups),
        "0" if undone else count(run.committed),
        count(run.open),
        run.operator,
        run.reason,
    )
