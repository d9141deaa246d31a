"""A plan as Markdown, to paste into a ticket: the same answers and the same rows as the screen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from failover.model.plan import Plan, PlannedPartition, Severity, Verdict
from failover.report.inert import inert_markdown, markdown_code
from failover.report.phrases import phrase
from failover.report.plan_head import head
from failover.report.plan_rows import HEADERS, NUMBERS, GroupRow, plainly_ready, rows, told_by_group
from failover.report.plan_text import FOLD_ABOVE, next_command
from failover.report.values import at_most, count, moment, offset, things

SHOWN_NOT_READY = 200
SHOWN_PARTITIONS = 200


def plan_markdown(plan: Plan) -> str:
    """Writes a plan as GitHub-flavoured Markdown."""
    found = rows(plan)
    lines = [
        f"## Failover plan {markdown_code(plan.id)}: "
        f"{markdown_code(plan.source.alias)} to {markdown_code(plan.target.alias)}",
        "",
        f"Made {moment(plan.created)} by {markdown_code(plan.operator)}, expires {moment(plan.expires)}."
        + (f" Reason: {inert_markdown(plan.reason)}." if plan.reason else ""),
        "",
        *_table(("", ""), [(f"**{label}**", _prose(text)) for label, text in head(plan, found)]),
        "",
        "### Groups",
        "",
        *_groups(found),
        *_odd_partitions(found),
        *_notes(plan),
        "",
        f"Next: {inert_markdown(next_command(plan))}",
    ]
    return "\n".join(lines) + "\n"


def _prose(text: str) -> str:
    return _cell(text.replace(" (-v lists them)", "").replace("      UNKNOWN  ", "; unknown: "))


def _cell(text: str) -> str:
    return inert_markdown(text.replace("<= ", "≤ "))


def _groups(found: list[GroupRow]) -> Iterator[str]:
    shown = [row for row in found if row.group.verdict is not Verdict.NOTHING]
    ready = withheld = cut = 0
    if len(shown) > FOLD_ABOVE:
        ready = sum(row.group.verdict is Verdict.READY for row in shown)
        withheld = sum(row.withheld for row in shown)
        shown = [row for row in shown if not row.plain]
        cut = max(0, len(shown) - SHOWN_NOT_READY)
        shown = shown[:SHOWN_NOT_READY]
    if shown:
        cells = []
        for row in shown:
            group, *middle, why = row.cells()
            cells.append((markdown_code(group), *(_cell(cell) for cell in middle), _cell(why)))
        yield from _table(HEADERS, cells)
    if cut:
        yield from ("", f"{things(cut, 'more group')} not ready.")
    if ready:
        yield from ("", f"{things(ready, 'more group')} ready.")
    if withheld:
        yield from ("", f"{things(withheld, 'more group')} withheld by --all-or-nothing.")
    nothing = sum(row.group.verdict is Verdict.NOTHING for row in found)
    if nothing:
        yield ""
        yield f"{things(nothing, 'group')} with nothing to move."
    if not found:
        yield "No group is in this plan."


def _odd_partitions(found: list[GroupRow]) -> Iterator[str]:
    odd = [
        (row.group.group, p)
        for row in found
        for p in row.group.partitions
        if not plainly_ready(p) and not told_by_group(row.group, p)
    ]
    if not odd:
        return
    yield from ("", "### Partitions that need a look", "")
    headers = ("GROUP", "PARTITION", "ACTION", "NOW", "AFTER", "RE-READ", "SKIP", "WHY")
    yield from _table(headers, [_partition(group, p) for group, p in odd[:SHOWN_PARTITIONS]])
    if len(odd) > SHOWN_PARTITIONS:
        yield from ("", f"{things(len(odd) - SHOWN_PARTITIONS, 'more partition')}: see the plan's CSV.")


def _partition(group: str, p: PlannedPartition) -> tuple[str, ...]:
    why = phrase(p.reason)
    if p.ahead:
        why = f"stands {count(p.ahead)} AHEAD"
    return (
        markdown_code(group),
        markdown_code(f"{p.topic}-{p.partition}"),
        str(p.action),
        offset(p.target_committed),
        offset(p.position_after.offset) if p.position_after.offset is not None else "auto.offset.reset",
        _cell(at_most(p.reread, p.reread_max)),
        "unknown" if p.skipped is None else count(p.skipped),
        inert_markdown(why),
    )


def _notes(plan: Plan) -> Iterator[str]:
    lists: dict[tuple[str, ...], int] = {}
    for group in plan.groups:
        if group.local_topics:
            lists[group.subscribe] = lists.get(group.subscribe, 0) + 1
    findings = [f for f in plan.findings if f.severity is not Severity.INFO]
    if not lists and not findings:
        return
    yield from ("", "### Before consumers start", "")
    for topics, groups in sorted(lists.items(), key=lambda item: -item[1])[:10]:
        names = " and ".join(markdown_code(topic) for topic in topics)
        yield f"- Consumers must subscribe to {names} ({things(groups, 'group')})."
    for finding in findings:
        yield f"- **{finding.severity}** {inert_markdown(finding.message)}. To do: {inert_markdown(finding.remedy)}."


def _table(headers: Sequence[str], cells: Sequence[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(headers) + " |"
    yield "|" + "|".join(" ---: " if header in NUMBERS else " --- " for header in headers) + "|"
    for row in cells:
        yield "| " + " | ".join(row) + " |"
