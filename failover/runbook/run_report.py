"""A run of a playbook for people who were not there: as one HTML page, and as Markdown for tickets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from failover.report.inert import inert_line, inert_markdown, markdown_code
from failover.report.values import duration, moment, things
from failover.runbook.playbook import Value
from failover.runbook.record import RunRecord, StepRecord
from failover.runbook.text import OUTCOMES, can_turn_back, outage_text

if TYPE_CHECKING:
    from failover.report.html.tables import Table

Todo = tuple[str, str]
"""What somebody has to do, and the command for it ("" for none)."""
_TONES = {
    "done": "good",
    "undone": "warn",
    "partly": "warn",
    "declined": "warn",
    "stopped": "warn",
    "running": "warn",
    "failed": "bad",
    "stuck": "bad",
}
_STEP_TONES = {"done": "good", "failed": "bad", "stuck": "bad", "running": "warn", "undoing": "warn", "undone": "warn"}
_SENTENCES = {
    "done": "Every step is done, or was passed over as the playbook says.",
    "undone": "A step failed, or somebody turned back; what had been done is put back.",
    "partly": "It went to its end; a step failed where the playbook says to go on.",
    "declined": "It waits before a step for somebody's yes; nothing of that step is done.",
    "stopped": "It was stopped between two steps; nothing is under way.",
    "running": "It has not ended: it runs, or was cut short.",
    "failed": "A step failed, and nothing was put back after it.",
    "stuck": "A step failed, and something that was done could not be put back.",
}


def to_do(record: RunRecord) -> list[Todo]:
    """Lists what is left for people, the most urgent first."""
    again = f"failover run --resume {record.id}"
    found: list[Todo] = []
    for step in record.steps:
        if step.status == "stuck":
            found.append((f"Put back by hand what step {step.id} did ({inert_line(step.undo)})", ""))
        elif step.status == "failed" and step.hint:
            found.append((f"Step {step.id}: {inert_line(step.hint)}", ""))
        elif step.status == "running":
            found.append((f"Find out how far step {step.id} came: it was under way when the run was last heard of", ""))
        elif step.status == "waiting" and (step.why or step.hint):
            found.append((f"Step {step.id} waits: {inert_line(step.why or step.hint)}", ""))
    taken = [step for step in record.steps if step.status == "done" and step.result.get("by") == "--yes"]
    found += [(f"Make sure of step {one.id}: --yes took it for done ({inert_line(one.title)})", "") for one in taken]
    away = [one for one in record.outages if one.seconds is None and record.outcome != "running"]
    found += [(f"Bring the {one.what} back: they have stood still since step {one.out}", "") for one in away]
    if record.outcome not in ("done", "undone"):
        found.append(("Go on with it", again))
        if can_turn_back(record):
            found.append(("Or put back what was done", f"{again} --undo"))
    return found


def run_markdown(record: RunRecord) -> str:
    """Writes a run as GitHub-flavoured Markdown."""
    answers = [(f"**{question}**", inert_markdown(said)) for question, said in _told(record)]
    parts = [
        f"## Run {markdown_code(record.id)} of {markdown_code(record.playbook)}: {OUTCOMES[record.outcome]}",
        f"{inert_markdown(_subtitle(record))} {_SENTENCES[record.outcome]}",
        _table(("", ""), answers),
    ]
    todo = to_do(record)
    if todo:
        lines = [
            f"{number}. {inert_markdown(text)}" + (f": {markdown_code(command)}" if command else "")
            for number, (text, command) in enumerate(todo, 1)
        ]
        parts += ["### What is left to do", "\n".join(lines)]
    rows = [
        (
            str(number),
            markdown_code(step.id),
            inert_markdown(step.title),
            step.status,
            _begun(step),
            _took(step),
            inert_markdown(_came(step)),
        )
        for number, step in enumerate(record.steps, 1)
    ]
    parts += ["### Steps", _table(("", "step", "what", "state", "begun", "took", "what came of it"), rows)]
    parts += ["### About this run", _table(("", ""), [(a, inert_markdown(b)) for a, b in _facts(record)])]
    return "\n\n".join(parts) + "\n"


def run_html(record: RunRecord) -> str:
    """Writes a run as one self-contained HTML page."""
    from failover.report.html.page import Answer, Note, Verdict, render

    tones = {"What is left to do?": "warn" if to_do(record) else "good"}
    answers = [Answer("", question, inert_line(said), tones.get(question, "")) for question, said in _told(record)]
    tables = [_steps_table(record), _results_table(record)]
    wrong = [step for step in record.steps if step.error]
    word = OUTCOMES[record.outcome].partition(":")[0].partition(",")[0].partition(" ")[0].capitalize()
    return render(
        "run.html.j2",
        {
            "title": f"Run of {inert_line(record.playbook)}",
            "flow": (inert_line(record.source), inert_line(record.target)),
            "subtitle": inert_line(_subtitle(record)),
            "verdict": Verdict(_TONES[record.outcome], word, _SENTENCES[record.outcome]),
            "answers": answers,
            "steps": to_do(record),
            "findings": [
                Note("error" if step.status in ("failed", "stuck") else "warning", step.code, inert_line(step.error),
                     inert_line(step.hint), f"step {step.id}")
                for step in wrong
            ],
            "charts": [],
            "timeline": None,
            "tables": {table.id: table for table in tables if table.rows},
            "about": "About this run",
            "facts": _facts(record),
            "words": [],
            "version": inert_line(record.tool_version),
        },
    )  # fmt: skip


def _subtitle(record: RunRecord) -> str:
    took = f", {duration((record.finished - record.started).total_seconds())}" if record.finished is not None else ""
    again = f", gone on with {things(record.resumed, 'time')}" if record.resumed else ""
    return f"Run {record.id}, begun {moment(record.started)}{took}, by {', '.join(record.operators)}{again}."


def _told(record: RunRecord) -> Iterator[tuple[str, str]]:
    """Answers what is asked first."""
    counts = {
        status: sum(step.status == status for step in record.steps)
        for status in dict.fromkeys(step.status for step in record.steps)
    }
    yield "How far did it come?", ", ".join(f"{things(number, 'step')} {status}" for status, number in counts.items())
    if record.outages:
        yield "How long without service?", outage_text(record)
    undone = [step.id for step in record.steps if step.status == "undone"]
    if undone:
        yield "What was put back?", ", ".join(undone)
    yield (
        "Is there a way back?",
        f"not by itself, since step {record.final} began {_at(record, record.final)}"
        if record.final
        else "it was taken: what could be put back is"
        if record.outcome == "undone"
        else "yes, the point of no return was not passed",
    )
    left = len(to_do(record))
    yield "What is left to do?", f"{things(left, 'thing')}, listed below" if left else "nothing"


def _at(record: RunRecord, name: str) -> str:
    begun = next((step.begun for step in record.steps if step.id == name), None)
    return f"at {moment(begun)}" if begun is not None else ""


def _begun(step: StepRecord) -> str:
    return moment(step.begun) if step.begun is not None else ""


def _took(step: StepRecord) -> str:
    return duration(step.seconds) if step.seconds is not None else ""


def _came(step: StepRecord) -> str:
    """Says what came of a step, who agreed to it, and how often it was tried."""
    parts = [step.error or step.undo or step.why or _brief(step.result)]
    parts += [f"agreed to by {step.confirmed_by}"] if step.confirmed_by else []
    parts += [f"tried {things(step.attempts, 'time')}"] if step.attempts > 1 else []
    return "; ".join(part for part in parts if part)


def _brief(result: Mapping[str, Value]) -> str:
    return ", ".join(f"{name} {_value(value)}" for name, value in result.items() if value not in ("", None, []))


def _value(value: Value, most: int = 5) -> str:
    if isinstance(value, list):
        more = f" and {len(value) - most} more" if len(value) > most else ""
        return ", ".join(value[:most]) + more
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def _facts(record: RunRecord) -> list[tuple[str, str]]:
    given = ", ".join(f"{name} = {_value(value) or 'none'}" for name, value in record.variables.items())
    found = [
        ("Run", record.id),
        ("Playbook", f"{record.playbook}, sha256 {record.digest[:16]}"),
        ("Flow", f"{record.source} to {record.target}" if record.source else "none"),
        ("Begun", moment(record.started)),
        ("Ended", moment(record.finished) if record.finished is not None else "not yet"),
        ("Exit code", "" if record.exit_code is None else str(record.exit_code)),
        ("Operators", ", ".join(record.operators)),
        ("Machine", record.host),
        ("Variables", given),
        ("Version", record.tool_version),
    ]
    return [(label, inert_line(said)) for label, said in found if said]


def _steps_table(record: RunRecord) -> Table:
    from failover.report.html.tables import Cell, Column, Table, text

    columns = (
        Column("STEP", "name"),
        Column("WHAT", "prose"),
        Column("STATE", "tag", choice=True),
        Column("BEGUN"),
        Column("TOOK", "number"),
        Column("WHAT CAME OF IT", "prose"),
    )
    rows = [
        (
            text(step.id),
            text(step.title),
            text(step.status, _STEP_TONES.get(step.status, "")),
            text(f"{step.begun:%H:%M:%S}" if step.begun is not None else ""),
            Cell(_took(step), step.seconds),
            text(_came(step)),
        )
        for step in record.steps
    ]
    return Table("run", "Steps", columns, rows)


def _results_table(record: RunRecord) -> Table:
    from failover.report.html.tables import Column, Table, text

    columns = (Column("STEP", "name"), Column("RESULT", "name"), Column("VALUE", "prose"))
    rows = [
        (text(step.id), text(name), text(_value(value, most=100)))
        for step in record.steps
        for name, value in step.result.items()
        if value not in ("", None, [])
    ]
    return Table("results", "Results", columns, rows)


def _table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in [headers, ["--"] * len(headers), *rows])
