"""An execution as Markdown, to paste into a ticket: the same answers and the same rows as the screen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from failover.model.execution import ExecutedGroup, ExecutedPartition, Execution, Status
from failover.model.plan import Plan
from failover.report.execution_text import HEADERS, facts, group_cells, in_place, next_steps, rank
from failover.report.inert import inert_markdown, markdown_code
from failover.report.phrases import phrase
from failover.report.values import moment, offset, things
from failover.report.verify_text import LOOKED_HEADERS, last_look, looked_cells, looked_rows

FOLD_ABOVE = 30
SHOWN_GROUPS = 200
SHOWN_PARTITIONS = 200
_ODD = (Status.FAILED, Status.UNKNOWN, Status.REFUSED)


def execution_markdown(execution: Execution, plan: Plan | None = None, *, undone: str = "") -> str:
    """Writes an execution as GitHub-flavoured Markdown; with its plan also what consumers must subscribe to.

    ``undone``: by which run, and when, it was rolled back since; "" where it was not.
    """
    what = "Roll back" if execution.undoes else "Execution"
    of = f"of {markdown_code(execution.undoes)}" if execution.undoes else f"of plan {markdown_code(execution.plan_id)}"
    lines = [
        f"## {what} {markdown_code(execution.id)}: "
        f"{markdown_code(execution.source_alias)} to {markdown_code(execution.target_alias)}",
        "",
        f"{what} {of} by {markdown_code(execution.operator)}, begun {moment(execution.started)}."
        + (f" Reason: {inert_markdown(execution.reason)}." if execution.reason else ""),
        "",
        *_table(("", ""), [(f"**{label}**", inert_markdown(text)) for label, text in facts(execution, undone)]),
        "",
        "### Groups",
        "",
        *_groups(execution),
        *_partitions(execution),
        *_verified(execution),
    ]
    if execution.warnings:
        lines += ["", *(f"- **warning** {inert_markdown(warning)}" for warning in execution.warnings)]
    steps = list(next_steps(execution, plan, undone))
    if steps:
        lines += ["", "### What to do next", ""]
        lines += [f"{number}. {inert_markdown(step)}" for number, step in enumerate(steps, 1)]
    return "\n".join(lines) + "\n"


def _groups(execution: Execution) -> Iterator[str]:
    ordered = sorted(execution.groups, key=lambda group: (rank(group), group.group))
    placed = sum(map(in_place, ordered)) if len(ordered) > FOLD_ABOVE else 0
    odd = [group for group in ordered if not in_place(group)] if placed else ordered
    cells = []
    for group in odd[:SHOWN_GROUPS]:
        name, *rest = group_cells(group)
        cells.append((markdown_code(name), *map(inert_markdown, rest)))
    if cells:
        yield from _table(HEADERS, cells, numbers=HEADERS[2:-1])
    if len(odd) > SHOWN_GROUPS:
        yield from ("", f"{things(len(odd) - SHOWN_GROUPS, 'more group')} not in place.")
    if placed:
        yield from ("", f"{things(placed, 'more group' if cells else 'group')} in place.")
    if not ordered:
        yield "No group is in this execution."


def _partitions(execution: Execution) -> Iterator[str]:
    odd = [(group, p) for group in execution.groups for p in group.partitions if _needs_a_look(group, p)]
    if not odd:
        return
    yield from ("", "### Partitions that need a look", "")
    headers = ("GROUP", "PARTITION", "BEFORE", "PLANNED", "READ BACK", "STATUS", "WHY")
    cells = [
        (
            markdown_code(group.group),
            markdown_code(f"{p.topic}-{p.partition}"),
            offset(p.before.offset if p.before is not None else None),
            offset(p.planned),
            offset(p.read_back),
            str(p.status),
            inert_markdown(p.error or phrase(p.reason)),
        )
        for group, p in odd[:SHOWN_PARTITIONS]
    ]
    yield from _table(headers, cells, numbers=headers[2:5])
    if len(odd) > SHOWN_PARTITIONS:
        yield from ("", f"{things(len(odd) - SHOWN_PARTITIONS, 'more partition')}: see the execution's JSON.")


def _verified(execution: Execution) -> Iterator[str]:
    if execution.verified is None:
        return
    rows = looked_rows(execution, execution.verified)
    yield from ("", "### Verified", "", f"{inert_markdown(last_look(execution.verified))}.", "")
    cells = []
    for group, looked in rows[:SHOWN_GROUPS]:
        name, *rest = looked_cells(group, looked)
        cells.append((markdown_code(name), *map(inert_markdown, rest)))
    yield from _table(LOOKED_HEADERS, cells, numbers=LOOKED_HEADERS[2:-1])
    if len(rows) > SHOWN_GROUPS:
        yield from ("", f"{things(len(rows) - SHOWN_GROUPS, 'more group')}: see the execution's JSON.")


def _needs_a_look(group: ExecutedGroup, p: ExecutedPartition) -> bool:
    """Leaves out what the group's own line says already: one refused as a whole names its reason once."""
    return p.status in _ODD and not (p.status is Status.REFUSED and group.message)


def _table(headers: Sequence[str], cells: Sequence[Sequence[str]], numbers: Sequence[str] = ()) -> Iterator[str]:
    yield "| " + " | ".join(headers) + " |"
    yield "|" + "|".join(" ---: " if header in numbers else " --- " for header in headers) + "|"
    for row in cells:
        yield "| " + " | ".join(row) + " |"
