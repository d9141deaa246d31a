"""An execution as one HTML file; with its plan at hand also what it meant to do and what that cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from failover.model.execution import ExecutedGroup, ExecutedPartition, Execution, Now, Outcome, Status
from failover.model.plan import Plan
from failover.report.execution_text import HEADERS, group_cells, next_steps, outcome_words, rank
from failover.report.html.charts import Timeline, timeline
from failover.report.html.page import Answer, Note, Verdict, glossary, render
from failover.report.html.plan_page import plan_facts
from failover.report.html.plan_parts import (
    answers,
    charts,
    findings,
    lost_table,
    not_in_table,
    topics_table,
    words,
    worst_first,
)
from failover.report.html.tables import Cell, Column, Table, number, place, text
from failover.report.inert import inert_line
from failover.report.phrases import phrase
from failover.report.plan_rows import rows
from failover.report.values import count, duration, members, moment, things
from failover.report.verify_text import GOOD, last_look, meanings

_TONES = {
    Status.COMMITTED: "good",
    Status.UNCHANGED: "good",
    Status.SKIPPED: "",
    Status.REFUSED: "warn",
    Status.FAILED: "bad",
    Status.UNKNOWN: "bad",
}
_OUTCOME_TONES = {
    Outcome.DONE: "good",
    Outcome.PARTIAL: "warn",
    Outcome.REFUSED: "bad",
    Outcome.FAILED: "bad",
    Outcome.UNKNOWN: "bad",
}
_IN_PLACE = (Status.COMMITTED, Status.UNCHANGED)
_FROM_PLAN = ("SOURCE", "LOSS", "RE-READ", "SKIP", "UNKNOWN", "NOT IN")


def execution_html(execution: Execution, plan: Plan | None = None, *, undone: str = "") -> str:
    """Writes an execution as a page that needs nothing else; the plan adds losses, costs and findings.

    ``undone``: by which run, and when, it was rolled back since; "" where it was not.
    """
    found = rows(plan) if plan is not None else []
    tables: list[Table | None] = [_groups_table(execution), _verified_table(execution), _partitions_table(execution)]
    if plan is not None:
        tables += [topics_table(plan), lost_table(plan), not_in_table(plan)]
    what = (
        f"Roll back of {inert_line(execution.undoes)}"
        if execution.undoes
        else f"Execution of plan {inert_line(execution.plan_id)}"
    )
    return render(
        "execution.html.j2",
        {
            "title": f"{'Roll back' if execution.undoes else 'Execution'} {inert_line(execution.id)}",
            "flow": (inert_line(execution.source_alias), inert_line(execution.target_alias)),
            "subtitle": f"{what}, {_when(execution)}, by {inert_line(execution.operator)}.",
            "verdict": execution_verdict(execution) if not undone else _undone(execution, undone),
            "answers": list(_answers(execution)),
            "planned": [one for one in answers(plan, found) if one.label in _FROM_PLAN] if plan is not None else [],
            "steps": [_step(step) for step in next_steps(execution, plan, undone)],
            "findings": worst_first([*_warnings(execution), *(findings(plan) if plan is not None else [])]),
            "timeline": _timeline(execution),
            "charts": list(charts(plan)) if plan is not None else [],
            "tables": {table.id: table for table in tables if table is not None},
            "about": f"About this {'roll back' if execution.undoes else 'execution'}",
            "facts": list(_facts(execution)),
            "plan_facts": list(plan_facts(plan)) if plan is not None else [],
            "words": glossary(_words(execution) | (words(plan) if plan is not None else set())),
            "version": inert_line(execution.tool_version),
        },
    )


def _when(execution: Execution) -> str:
    if execution.finished is None:
        return f"begun {moment(execution.started)}, its end is not on record"
    took = duration((execution.finished - execution.started).total_seconds())
    return f"{moment(execution.started)}, {took}"


def _undone(execution: Execution, undone: str) -> Verdict:
    before = execution_verdict(execution)
    return Verdict(
        "warn", "Rolled back", f"It was rolled back since, by {inert_line(undone)}. When it ended: {before.sentence}"
    )


def execution_verdict(execution: Execution) -> Verdict:
    """Sums an execution up in one sentence for somebody who was not there."""
    alias = inert_line(execution.target_alias)
    totals = _totals(execution)
    placed = sum(any(p.status in _IN_PLACE for p in group.partitions) for group in execution.groups)
    committed = sum(any(p.status is Status.COMMITTED for p in group.partitions) for group in execution.groups)
    everything = sum(any(_aimed(p) for p in group.partitions) for group in execution.groups)
    written = f"{things(totals[Status.COMMITTED], 'offset')} of {things(committed, 'group')}"
    undone = "put back" if execution.undoes else "committed"
    tone = _OUTCOME_TONES[execution.outcome]
    word = outcome_words(execution).partition(",")[0].partition(":")[0].capitalize()
    if execution.outcome is Outcome.DONE:
        same = f"; {count(totals[Status.UNCHANGED])} stood there already" if totals[Status.UNCHANGED] else ""
        said = f"Everything planned is in place on {alias}: {written} {undone}, each read back and found right{same}."
    elif execution.outcome is Outcome.PARTIAL:
        said = (
            f"{count(placed)} of {things(max(everything, placed), 'group')} "
            f"{'stands' if placed == 1 else 'stand'} on {alias} where the plan put {'it' if placed == 1 else 'them'} "
            f"({things(totals[Status.COMMITTED], 'offset')} {undone}, each read back and found right); "
            f"the rest was left untouched: {_rest(execution)}."
        )
    elif execution.outcome is Outcome.REFUSED:
        said = f"Nothing was written to {alias}: {_rest(execution)}."
    else:
        odd = Status.FAILED if execution.outcome is Outcome.FAILED else Status.UNKNOWN
        fault = (
            f"{alias} does not hold what was written"
            if odd is Status.FAILED
            else f"nobody can tell whether the offset arrived on {alias}"
        )
        said = f"For {things(totals[odd], 'partition')} {fault}; {written} {undone} and read back."
    return Verdict(tone, word, said)


def _aimed(p: ExecutedPartition) -> bool:
    return p.status is not Status.SKIPPED or p.reason == "not-reached"


def _rest(execution: Execution) -> str:
    totals = _totals(execution)
    refused = sum(bool(g.message) or any(p.status is Status.REFUSED for p in g.partitions) for g in execution.groups)
    missed = sum(p.reason == "not-reached" for group in execution.groups for p in group.partitions)
    parts = []
    if refused:
        parts.append(f"{things(refused, 'group')} refused in whole or in part")
    if missed:
        parts.append(f"{things(missed, 'partition')} not reached")
    left = totals[Status.SKIPPED] - missed
    if left:
        parts.append(f"{things(left, 'partition')} left as they stood, as planned")
    return ", ".join(parts) or "nothing was to be written"


def _totals(execution: Execution) -> Counter[Status]:
    return Counter(p.status for group in execution.groups for p in group.partitions)


def _answers(execution: Execution) -> Iterator[Answer]:
    totals = _totals(execution)

    def groups(*statuses: Status) -> str:
        found = sum(any(p.status in statuses for p in group.partitions) for group in execution.groups)
        return f" in {things(found, 'group')}"

    def said(status: Status) -> str:
        return things(totals[status], "partition") + groups(status) if totals[status] else "nothing"

    yield Answer(
        "COMMITTED",
        "What was written and read back?",
        said(Status.COMMITTED),
        "good" if totals[Status.COMMITTED] else "",
    )
    if totals[Status.UNCHANGED]:
        yield Answer("SAME", "What stood there already?", said(Status.UNCHANGED), "good")
    yield Answer("LEFT", "What was left as it stood?", said(Status.SKIPPED))
    yield Answer("REFUSED", "What was refused?", said(Status.REFUSED), "warn" if totals[Status.REFUSED] else "good")
    yield Answer(
        "FAILED", "What is not as it was written?", said(Status.FAILED), "bad" if totals[Status.FAILED] else "good"
    )
    yield Answer("UNKNOWN", "What can nobody tell?", said(Status.UNKNOWN), "bad" if totals[Status.UNKNOWN] else "good")
    if execution.stopped:
        yield Answer("STOPPED", "Why did it end early?", inert_line(execution.stopped), "warn")
    verified = execution.verified
    if verified is not None:
        tone = {0: "good", 4: "warn"}.get(verified.exit_code, "bad")
        yield Answer("VERIFIED", "Does it hold?", last_look(verified), tone)


def _step(step: str) -> tuple[str, str]:
    """Takes a sentence that ends with a command apart."""
    before, found, command = step.rpartition(": failover ")
    return (before, f"failover {command}") if found and not step.endswith(".") else (step.removesuffix("."), "")


def _warnings(execution: Execution) -> Iterator[Note]:
    for warning in execution.warnings:
        code, found, said = warning.partition(": ")
        coded = bool(found) and " " not in code
        yield Note("warning", code if coded else "", inert_line(said if coded else warning), "")
    for group in execution.groups:
        for note in group.notes:
            yield Note("info", "", f"{inert_line(group.group)}: {inert_line(note)}", "")


def _timeline(execution: Execution) -> Timeline | None:
    done, troubled = [], []
    for group in execution.groups:
        if group.finished is not None and group.partitions:
            statuses = {p.status for p in group.partitions}
            if group.message or statuses & {Status.REFUSED, Status.FAILED, Status.UNKNOWN}:
                troubled.append(group.finished)
            elif statuses & set(_IN_PLACE):
                done.append(group.finished)
    return timeline(execution.started, execution.finished, done, troubled)


def _groups_table(execution: Execution) -> Table:
    *most, why = HEADERS
    columns = [Column(name, "number" if name not in ("GROUP", "WAS") else "text") for name in most]
    columns[0] = Column("GROUP", "name")
    columns += [Column("AT", "number"), Column(why, "prose")]
    ordered = sorted(execution.groups, key=lambda group: (rank(group), group.group))
    return Table(
        "groups", "Groups", tuple(columns), [_group(execution, group) for group in ordered], opens="partitions"
    )


def _group(execution: Execution, group: ExecutedGroup) -> tuple[Cell, ...]:
    name, state, *counts, why = group_cells(group)
    tones = ("good", "good", "", "warn", "bad", "bad")
    at = Cell("-")
    if group.finished is not None:
        seconds = (group.finished - execution.started).total_seconds()
        at = Cell(f"+{seconds:,.3f} s", seconds)
    return (
        text(name),
        text(state),
        *(
            Cell(said, int(said.replace(",", "")), tone if said != "0" else "")
            for said, tone in zip(counts, tones, strict=True)
        ),
        at,
        text(why),
    )


def _partitions_table(execution: Execution) -> Table:
    removes = any(p.removes for group in execution.groups for p in group.partitions)
    forecast = any(p.reread is not None for group in execution.groups for p in group.partitions)
    columns = [
        Column("GROUP", "name"),
        Column("PARTITION", "name"),
        Column("STATUS", "tag", choice=True),
        Column("BEFORE", "number"),
        Column("PLANNED", "number"),
        Column("WRITTEN", "number"),
        Column("READ BACK", "number"),
    ]
    columns += [Column("RE-READ", "number"), Column("LAG AFTER", "number")] if forecast else []
    columns += (
        [Column("NOW", "number"), Column("VERDICT", "tag", choice=True)] if execution.verified is not None else []
    )
    columns.append(Column("WHY", "prose"))
    ordered = sorted(execution.groups, key=lambda group: (rank(group), group.group))
    cells = []
    for group in ordered:
        for p in group.partitions:
            gone = "deleted" if removes and p.removes else "-"
            row = [
                text(group.group),
                text(f"{p.topic}-{p.partition}"),
                Cell(str(p.status), None, _TONES[p.status]),
                place(p.before.offset if p.before is not None else None, "none"),
                place(p.planned, gone),
                place(p.written),
                place(p.read_back, gone),
            ]
            row += [number(p.reread), number(p.lag_after)] if forecast else []
            row += [place(p.now), _held(p)] if execution.verified is not None else []
            row.append(text(p.error or phrase(p.reason)))
            cells.append(tuple(row))
    return Table("partitions", "Partitions", tuple(columns), cells)


def _held(p: ExecutedPartition) -> Cell:
    if p.verdict is None:
        return Cell("-")
    return Cell(str(p.verdict), None, "good" if p.verdict in GOOD else "bad")


def _verified_table(execution: Execution) -> Table | None:
    """Sets the forecast of each group against what was found when it was looked at again; None without a look."""
    if execution.verified is None:
        return None
    columns = (
        Column("GROUP", "name"),
        Column("STATE"),
        Column("MEMBERS", "number"),
        Column("BACK", "tag", choice=True),
        Column("FORECAST LAG", "number"),
        Column("CONSUMED", "number"),
        Column("LAG NOW", "number"),
        Column("HELD", "number"),
        Column("ADVANCED", "number"),
        Column("NOT", "number"),
        Column("WHY", "prose"),
    )
    executed = {group.group: group for group in execution.groups}
    found = []
    for looked in sorted(execution.verified.groups, key=lambda one: (not one.text, one.group)):
        group = executed.get(looked.group)
        partitions = [p for p in (group.partitions if group else ()) if p.verdict is not None]
        totals = Counter(p.verdict for p in partitions)
        forecast = [p.lag_after for p in partitions]
        why = "; ".join([looked.text] * bool(looked.text) + [members(looked.members)] * bool(looked.members))
        found.append(
            (
                text(looked.group),
                text(looked.state),
                number(len(looked.members)),
                Cell("yes", None, "good") if looked.seen else Cell("no", None, "warn"),
                number(None if None in forecast else sum(one for one in forecast if one is not None)),
                number(looked.moved),
                number(looked.lag),
                number(totals[Now.HELD]),
                number(totals[Now.ADVANCED]),
                number(sum(n for verdict, n in totals.items() if verdict not in GOOD), "bad"),
                text(why),
            )
        )
    return Table("verified", "Forecast and fact", columns, found)


def _facts(execution: Execution) -> Iterator[tuple[str, str]]:
    yield "Run", inert_line(execution.id)
    yield ("Undoes", inert_line(execution.undoes)) if execution.undoes else ("Plan", inert_line(execution.plan_id))
    yield "Operator", inert_line(execution.operator)
    if execution.reason:
        yield "Reason", inert_line(execution.reason)
    if execution.overrides:
        yield "Allowed", inert_line(", ".join(f"--{name.replace('_', '-')}" for name in execution.overrides))
    yield "Began", moment(execution.started)
    yield "Ended", moment(execution.finished) if execution.finished is not None else "not on record"
    if execution.continues:
        yield "Continues", inert_line(", ".join(execution.continues))
    identity = f", cluster id {inert_line(execution.target_cluster_id)}" if execution.target_cluster_id else ""
    yield "Target", f"{inert_line(execution.target_alias)}{identity}"
    yield "Fingerprint of the plan", inert_line(execution.fingerprint)
    for verdict, meaning in meanings(execution):
        yield str(verdict).capitalize(), meaning


def _words(execution: Execution) -> set[str]:
    found: set[Any] = {str(execution.outcome)}
    for group in execution.groups:
        found |= set(group.reasons)
        for p in group.partitions:
            found |= {str(p.status), p.reason} | ({str(p.verdict)} if p.verdict is not None else set())
    return found
