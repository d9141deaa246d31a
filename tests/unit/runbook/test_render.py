"""The runbook for people: who does what, for how long, by which command, what can go wrong, the way back."""

from __future__ import annotations

import re

import pytest

from failover.runbook.guide import GUIDES, back, by_hand
from failover.runbook.kinds import KINDS, kind
from failover.runbook.library import find_playbook, shipped
from failover.runbook.parse import parse
from failover.runbook.render import as_html, as_markdown
from failover.runbook.runner import undoable

WITHOUT_COMMAND = {"approve", "manual", "notify", "move-applications", "at-most", "schema-ids"}


def test_every_kind_says_what_can_go_wrong_and_what_puts_it_back():
    assert set(GUIDES) == set(KINDS)
    for name, guide in GUIDES.items():
        assert guide.wrong, name
        if kind(name).undoes and name != "move-applications" and not guide.back:
            pytest.fail(f"{name} is put back, and its guide does not say by which command")


@pytest.mark.parametrize("name", shipped())
def test_shipped_playbooks_tell_who_does_what_and_by_which_command(name):
    book = find_playbook(name)
    took = {book.steps[0].id: [12.0, 14.0]}
    told = as_markdown(book, undoable(book), took)
    page = as_html(book, undoable(book), took)
    overview = told.partition("## Overview")[2].partition("In commands")[0]
    assert len(re.findall(r"(?m)^\| \d+ \|", overview)) == len(book.steps)
    assert "13 s in earlier runs" in told
    assert f"1 step of {len(book.steps)} took 13 s together" in told
    assert "{{" not in re.sub(r"(?m)^\|? .*`.*$|^- asks: .*$", "", told.partition("## Overview")[2])
    for step in book.steps:
        assert f'<section id="{step.id}">' in page
        assert by_hand(step.action) or step.action.uses in WITHOUT_COMMAND, step.id
        assert "{{" not in by_hand(step.action)
        if step.id in undoable(book):
            assert back(step), step.id
    final = [number for number, step in enumerate(book.steps, 1) if step.final]
    if final:
        assert f"**Point of no return:** step {final[0]}," in told
        assert f"Once step {final[0]}," in page
        assert overview.count("no way back") == 1
        assert "To go back" in page


def test_references_become_what_has_to_be_put_in_and_text_is_inert():
    book = parse(
        "name: x\ndescription: <script>alert(1)</script>\nvars: {dry: {type: flag, default: false}}\nsteps:\n"
        "  - {id: plan, title: P|Q, uses: plan}\n"
        "  - {id: e, title: E, uses: execute, when: '{{ dry }}', with: {plan: '{{ steps.plan.plan_id }}'}}\n"
        "  - {id: dns, title: D, uses: command, with: {run: [./dns, b]},"
        " undo: {uses: command, with: {run: [./dns, a]}}}\n",
        "x.yaml",
    )
    told, page = as_markdown(book, undoable(book), {}), as_html(book, undoable(book), {})
    assert "$ failover execute PLAN_ID" in told
    assert "- only if: dry" in told
    assert "| D | `./dns a` |\n| E | `failover rollback EXECUTION_ID` |" in told
    assert "<script>alert" not in page
    assert "<script>alert" not in told
    assert "| 1 | P&#124;Q | failover |" in told
    assert "in earlier runs" not in told
