"""Runs and playbooks on the screen."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from statistics import median

from failover.report.inert import inert_line
from failover.report.table import labelled, table
from failover.report.values import duration, moment, things
from failover.runbook.kinds import KINDS, kind
from failover.runbook.playbook import Playbook, Step, Value, Variable, When
from failover.runbook.record import RunRecord, StepRecord
from failover.runbook.runner import Preview

OUTCOMES = {
    "done": "DONE",
    "partly": "PARTLY: a step failed where the playbook says to go on",
    "failed": "FAILED",
    "declined": "WAITING for somebody's yes",
    "undone": "UNDONE: a step failed, and all that was done before is put back",
    "stuck": "STUCK: something could not be put back",
    "stopped": "STOPPED between two steps",
    "running": "RUNNING, or cut short",
}

_STANDING = ("done", "running", "stuck", "undoing")


def run_text(record: RunRecord, *, width: int = 100) -> str:
    """Tells a run: how it ended, every step, what stands, and what to do next."""
    where = f", {record.source} to {record.target}" if record.source else ""
    head = [f"{record.playbook}{where}: {OUTCOMES[record.outcome]}"]
    rows = [
        (
            str(number),
            step.status,
            step.id,
            "" if step.seconds is None else duration(step.seconds),
            step.error or step.undo or step.why or _brief(step.result),
        )
        for number, step in enumerate(record.steps, 1)
    ]
    blocks = ["\n".join(head), table(("", "STATE", "STEP", "TOOK", "WHAT CAME OF IT"), rows, width=width, wrap=True)]
    wrong = [step for step in record.steps if step.error or step.hint]
    for step in wrong:
        lines = labelled("", f"{step.id}: {inert_line(step.error or step.why)}", width=width, indent=2)
        blocks.append(
            "\n".join(
                [*lines, *(labelled("", f"hint: {inert_line(step.hint)}", width=width, indent=2) if step.hint else [])]
            )
        )
    standing = [step.id for step in record.steps if step.status in _STANDING and _acts(step)]
    if record.outcome != "done" and standing:
        blocks.append("\n".join(labelled("Stands: ", ", ".join(standing), width=width, indent=8)))
    if record.final and record.outcome not in ("done", "undone"):
        blocks.append(f"Step {record.final} has begun: from there on nothing is put back by itself.")
    if record.outages:
        blocks.append("\n".join(labelled("Without service: ", outage_text(record), width=width, indent=2)))
    blocks.append(_next(record))
    return "\n\n".join(blocks) + "\n"


def can_turn_back(record: RunRecord) -> bool:
    """Says whether the run changed something and has not begun what cannot be put back."""
    return not record.final and any(_acts(step) for step in record.steps if step.begun is not None)


def _acts(step: StepRecord) -> bool:
    """Says whether a step changes something outside this program."""
    return step.uses not in KINDS or kind(step.uses).acts


def outage_text(record: RunRecord) -> str:
    """Says how long producers and consumers stood still, by which steps; "" where no application was moved."""
    said = []
    undone = {step.id for step in record.steps if step.status == "undone"}
    for one in record.outages:
        since = one.out or "the run's beginning"
        if one.seconds is None:
            said.append(f"{one.what} since {since}, {moment(one.begun)}, and they are not back")
        elif one.back in undone:
            which = "it" if one.back == one.out else one.back
            said.append(f"{one.what} {duration(one.seconds)} ({since} until {which} was put back)")
        else:
            said.append(f"{one.what} {duration(one.seconds)} ({since} to {one.back})")
    return "; ".join(said)


def _brief(result: Mapping[str, Value]) -> str:
    return ", ".join(f"{name} {_short(value)}" for name, value in result.items() if value not in ("", None, []))


def _short(value: Value) -> str:
    text = ", ".join(value) if isinstance(value, list) else str(value)
    first = text.splitlines()[0] if text else ""
    return first if len(first) <= 60 else f"{first[:59]}…"


def _next(record: RunRecord) -> str:
    if record.outcome in ("done", "undone"):
        return f"In full: failover show {record.id}"
    back = f"\nPut back what was done: failover run --resume {record.id} --undo" if can_turn_back(record) else ""
    return f"Go on: failover run --resume {record.id}{back}"


def preview_text(playbook: Playbook, previews: Sequence[Preview], *, width: int = 100) -> str:
    """Tells what each step would do, and what would keep it from that now."""
    blocks = [f"{playbook.name}: dry run, nothing was changed"]
    for number, (step, each) in enumerate(zip(playbook.steps, previews, strict=True), 1):
        mark = "  <- no way back from here" if step.final else ""
        lines = [f"{number}. {inert_line(each.title)}{mark}"]
        lines += labelled("", inert_line(each.would), width=width, indent=3)
        if step.when is not None:
            lines += labelled("", inert_line(f"only if {condition(step.when)}"), width=width, indent=3)
        if each.problem:
            lines += labelled("", f"PROBLEM: {inert_line(each.problem)}", width=width, indent=3)
        blocks.append("\n".join(lines))
    problems = sum(bool(each.problem) for each in previews)
    blocks.append(
        f"{things(problems, 'step')} could not be done as things stand."
        if problems
        else "Nothing seen now stands in the way."
    )
    return "\n\n".join(blocks) + "\n"


def condition(when: When) -> str:
    """Says a condition in words."""
    if when.equals is True:
        return f"{'not ' if when.negated else ''}{when.value}"
    return f"{when.value} {'is not' if when.negated else 'is'} {'empty' if when.equals == '' else when.equals}"


def playbook_text(
    playbook: Playbook, undoable: Collection[str], took: Mapping[str, Sequence[float]], *, width: int = 100
) -> str:
    """Tells a playbook: what it is for, its variables, its steps with the point of no return."""
    what_for = inert_line(" ".join(playbook.description.split()))
    blocks = ["\n".join(labelled("", f"{playbook.name}: {what_for}", width=width, indent=0))]
    if playbook.variables:
        rows = [
            (each.name, each.type, "required" if each.required else default(each), each.description)
            for each in playbook.variables
        ]
        blocks.append(table(("VARIABLE", "TYPE", "DEFAULT", "MEANING"), rows, width=width, wrap=True))
    steps = [
        (str(number), step.id, step.action.uses, _marks(step, undoable), expected(step, took), step.title)
        for number, step in enumerate(playbook.steps, 1)
    ]
    blocks.append(table(("", "STEP", "USES", "", "TOOK", "WHAT"), steps, width=width, wrap=True))
    final = next((step for step in playbook.steps if step.final), None)
    if final is not None:
        blocks.append(f"No way back once step {final.id} has begun; until then a failure puts everything back.")
    blocks.append(f"Try it: failover run {playbook.name} --dry-run")
    return "\n\n".join(blocks) + "\n"


def default(variable: Variable) -> str:
    """Writes a variable's default."""
    value = variable.default
    if isinstance(value, (int, float)) and variable.type == "duration":
        return duration(value)
    return ", ".join(value) if isinstance(value, list) else "" if value is None else str(value).lower()


def _marks(step: Step, undoable: Collection[str]) -> str:
    marks = ["asks"] if step.confirm is not None else []
    marks += ["undoes"] if step.id in undoable else []
    marks += ["FINAL"] if step.final else []
    return " ".join(marks)


def expected(step: Step, took: Mapping[str, Sequence[float]]) -> str:
    """Says how long a step took in earlier runs, "" where there were none."""
    seconds = took.get(step.id)
    return duration(median(seconds)) if seconds else ""


def runs_text(records: Sequence[RunRecord], *, width: int = 100) -> str:
    """Lists runs, a line each."""
    rows = [
        (
            each.id,
            moment(each.started),
            each.playbook,
            "waiting" if each.outcome == "declined" else each.outcome,
            "" if each.finished is None else duration((each.finished - each.started).total_seconds()),
            ", ".join(each.operators),
        )
        for each in records
    ]
    return table(("PLAYBOOK RUN", "STARTED", "PLAYBOOK", "OUTCOME", "TOOK", "OPERATORS"), rows, width=width) + "\n"
