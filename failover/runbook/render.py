"""The runbook for people, made from the same file: what is done, how long it takes, what to type, the way back."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from statistics import median
from typing import Any

import msgspec

from failover.report.inert import inert_line, inert_markdown, markdown_code
from failover.report.values import duration, things
from failover.runbook.guide import back, by_hand, named, plain, who, wrong
from failover.runbook.kinds import KINDS
from failover.runbook.playbook import Playbook, Step
from failover.runbook.text import condition, default, expected

Took = Mapping[str, Sequence[float]]
"""Seconds each step took in earlier runs, by its id."""
_FAILING = {
    "undo": "all that was done before is put back",
    "stop": "everything stays as it is, and somebody decides",
    "continue": "it is said, and the next step follows",
}
_MARK = {True: "no way back", False: ""}
_CAPITALS = "In commands, capitals stand for what has to be put in."
_GOING_BACK = (
    "A run puts this back by itself, when a step fails or by failover run --resume RUN --undo. By hand, in this order, "
    "and only what was done:"
)


class StepView(msgspec.Struct, frozen=True):
    """Is one step for readers: ``facts`` are (label, text), ``by_hand`` the command that does the same.

    ``usual``: how long it took in earlier runs, "" where there were none.
    """

    id: str
    title: str
    final: bool
    prose: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    by_hand: str
    who: str
    usual: str


def as_markdown(playbook: Playbook, undoable: Collection[str], took: Took) -> str:
    """Renders a playbook as Markdown."""
    final = final_of(playbook)
    parts = [
        f"# {inert_markdown(playbook.name)}",
        *map(inert_markdown, _paragraphs(playbook.description)),
        f"All at once: {markdown_code(f'failover run {playbook.name}')}",
        f"**Point of no return:** step {inert_markdown(final)}. Until it has begun a failure puts back what was done."
        if final
        else "There is a way back from every step.",
    ]
    if playbook.variables:
        cells = [
            f"| {markdown_code(a)} | {inert_markdown(b)} | {inert_markdown(c)} |" for a, b, c in _variables(playbook)
        ]
        parts.append("\n".join(["| variable | default | meaning |", "|--|--|--|", *cells]))
    every = views(playbook, undoable, took)
    rows = [
        f"| {number} | {inert_markdown(view.title)} | {view.who} | {view.usual} | {_MARK[view.final]} |"
        for number, view in enumerate(every, 1)
    ]
    parts += ["## Overview", "\n".join(["|  | step | who | usual time |  |", "|--|--|--|--|--|", *rows])]
    parts += [_total(playbook, took)] if took else []
    parts.append(_CAPITALS)
    for number, view in enumerate(every, 1):
        parts.append(f"## {number}. {inert_markdown(view.title)}")
        if view.final:
            parts.append("**From here on there is no way back.**")
        parts += map(inert_markdown, view.prose)
        parts.append("\n".join(f"- {label}: {inert_markdown(text)}" for label, text in view.facts))
        if view.by_hand:
            parts.append("By hand:\n\n" + "\n".join(f"    $ {inert_line(line)}" for line in view.by_hand.splitlines()))
    undo = _undo(playbook, undoable)
    if undo:
        rows = [f"| {inert_markdown(title)} | {markdown_code(how)} |" for title, how in undo]
        parts += ["## To go back", _GOING_BACK, "\n".join(["| step | how |", "|--|--|", *rows])]
    return "\n\n".join(parts) + "\n"


def as_html(playbook: Playbook, undoable: Collection[str], took: Took) -> str:
    """Renders a playbook as one self-contained HTML page."""
    from failover._version import __version__
    from failover.report.html.page import render

    context: dict[str, Any] = {
        "name": playbook.name,
        "description": playbook.description,
        "final": final_of(playbook),
        "all_at_once": f"failover run {playbook.name}",
        "variables": _variables(playbook),
        "steps": views(playbook, undoable, took),
        "undo": _undo(playbook, undoable),
        "total": _total(playbook, took) if took else "",
        "capitals": _CAPITALS,
        "going_back": _GOING_BACK,
        "version": __version__,
    }
    return render("runbook.html.j2", context)


def final_of(playbook: Playbook) -> str:
    """Names the step after which there is no way back, with its number; "" for none."""
    for number, step in enumerate(playbook.steps, 1):
        if step.final:
            return f"{number}, {step.title}"
    return ""


def views(playbook: Playbook, undoable: Collection[str], took: Took) -> list[StepView]:
    """Makes each step's view for readers."""
    found = []
    passed = False
    for step in playbook.steps:
        told = step.action.parameters.get("instructions") or step.action.parameters.get("question") or ""
        usual = expected(step, took)
        facts = [
            ("who", who(step)),
            ("does", KINDS.get(step.action.uses, step.action.uses)),
            ("time", (f"{usual} in earlier runs; " if usual else "") + f"given up after {duration(step.timeout)}"),
        ]
        facts += [("only if", named(condition(step.when)))] if step.when is not None else []
        facts += [("asks", step.confirm.text)] if step.confirm is not None else []
        passed = passed or step.final
        facts += [("can go wrong", wrong(step.action)), ("if it fails", _failing(step, passed=passed))]
        facts += [("can be put back", "as the table at the end says")] if step.id in undoable else []
        found.append(
            StepView(
                step.id,
                step.title,
                step.final,
                (*_paragraphs(step.why), *_paragraphs(plain(str(told)))),
                tuple(facts),
                by_hand(step.action),
                who(step),
                usual,
            )
        )
    return found


def _paragraphs(text: str) -> list[str]:
    return [" ".join(part.split()) for part in text.split("\n\n") if part.strip()]


def _variables(playbook: Playbook) -> list[tuple[str, str, str]]:
    found = []
    for each in playbook.variables:
        told = "required" if each.required else default(each)
        found.append((each.name, told, " ".join(each.description.split())))
    return found


def _failing(step: Step, *, passed: bool) -> str:
    times = step.retry.times if step.retry is not None else 0
    again = f"tried {things(times, 'time')} more, every {step.retry.wait:g} s; then " if step.retry is not None else ""
    return again + _FAILING["stop" if passed and step.on_failure == "undo" else step.on_failure]


def _undo(playbook: Playbook, undoable: Collection[str]) -> list[tuple[str, str]]:
    return [
        (step.title, back(step) or "failover run --resume RUN --undo")
        for step in reversed(playbook.steps)
        if step.id in undoable
    ]


def _total(playbook: Playbook, took: Took) -> str:
    """Says how long the steps took together that earlier runs tell of."""
    known = [median(took[step.id]) for step in playbook.steps if took.get(step.id)]
    return (
        f"{things(len(known), 'step')} of {len(playbook.steps)} took {duration(sum(known))} together in earlier runs "
        "(medians)."
    )
