"""Every kind of mistake in a playbook is found before anything runs, with the line it stands on."""

from __future__ import annotations

import pytest

from failover.errors import PlaybookInvalid
from failover.runbook.parse import parse
from failover.runbook.variables import variables_of

GOOD = """\
name: good
description: All that a playbook can say.
vars:
  who: {type: text, required: true}
  wait: {type: duration, default: 1m30s}
  tags: {type: list, default: [a, b]}
  off: no
steps:
  - id: first
    title: First
    why: Because.
    uses: command
    with:
      run: [echo, "{{ who }} {{ tags }}"]
      env: {WAIT: "{{ wait }}", OFF: "{{ off }}"}
    timeout: 90s
    retry: {times: 2, wait: 5s}
    undo: {uses: command, with: {run: [echo, "{{ steps.first.output }}"]}}
  - id: second
    title: Second
    uses: manual
    with: {instructions: "Look at {{ steps.first.output }}", typed: on}
    when: {value: "{{ steps.first.exit_code }}", equals: 0}
    confirm: {text: "Sure, {{ who }}?", typed: "{{ who }}"}
    on_failure: stop
    undo: keep
    final: true
"""


def test_a_good_one_says_what_is_written():
    playbook = parse(GOOD, "good.yaml")
    first, second = playbook.steps
    assert [(each.name, each.type, each.default) for each in playbook.variables] == [
        ("who", "text", None),
        ("wait", "duration", 90.0),
        ("tags", "list", ["a", "b"]),
        ("off", "text", "no"),  # YAML 1.2: no flag
    ]
    assert (first.timeout, first.retry and (first.retry.times, first.retry.wait), first.line) == (90.0, (2, 5.0), 9)
    assert first.undo is not None
    assert (second.keep, second.final, second.on_failure) == (True, True, "stop")
    assert second.action.parameters["typed"] == "on"
    assert second.when is not None
    assert second.when.equals == 0


# What is written in place of what, on which line it is found, and what is said.
MISTAKES = [
    ("name: good\n", "", 1, "name is missing"),
    ("name: good", "name: Good One", 1, "lower-case"),
    ("description: All that a playbook can say.\n", "", 1, "description is missing"),
    ("description: All", "descriptoin: All", 2, "did you mean 'description'?"),
    ("type: text, required: true", "type: word, required: true", 4, "type has to be one of"),
    ("required: true", "required: true, default: x", 4, "a required variable has no default"),
    ("{type: text, required: true}", "{type: text}", 4, "needs a default, or required: true"),
    ("default: 1m30s", "default: soon", 5, "has to be a duration"),
    ("  who: {", "  w-ho: {", 4, "is no name of a variable"),
    ("  - id: first\n    title: First\n", "  - title: First\n", 9, "id is missing"),
    ("id: second", "id: first", 19, "two steps are called 'first'"),
    ("id: second", "id: Second Step", 19, "lower-case letters"),
    ("    title: Second\n", "", 19, "title is missing"),
    ("    title: Second\n", "    tittle: Second\n", 20, "did you mean 'title'?"),
    ("uses: command\n    with:", "uses: comand\n    with:", 12, "did you mean 'command'?"),
    ("      run: [echo", "      runs: [echo", 14, "did you mean 'run'?"),
    ('run: [echo, "{{ who }} {{ tags }}"]', "run: 5", 14, "run: `array`"),
    ("{instructions: ", "{instruction: ", 22, "did you mean 'instructions'?"),
    ("{{ who }} {{ tags }}", "{{ whom }} {{ tags }}", 14, "there is no variable 'whom'; did you mean 'who'?"),
    ("{{ who }} {{ tags }}", "{{ steps.second.by }}", 14, "no earlier step is called 'second'"),
    ("Look at {{ steps.first.output }}", "Look at {{ steps.first.out }}", 22, "gives no 'out'"),
    ("{{ who }} {{ tags }}", "{{ who + 1 }}", 14, "is no reference"),
    ("timeout: 90s", "timeout: never", 16, "timeout has to be a duration"),
    ("retry: {times: 2, wait: 5s}", "retry: often", 17, "retry has to be a number"),
    ("retry: {times: 2, wait: 5s}", "retry: {times: 2, waits: 5s}", 17, "a retry has no 'waits'"),
    ("undo: keep", "undo: never", 26, "undo has to be keep"),
    ("on_failure: stop", "on_failure: panic", 25, "on_failure has to be one of"),
    ("final: true", "final: perhaps", 27, "final has to be true or false"),
    ("equals: 0", "is: 0", 23, "a condition has value"),
    ("when: {value:", "when: {worth:", 23, "a condition has value"),
    ('typed: "{{ who }}"}', "}", 24, "typed is missing"),
    ("uses: manual", "uses: manual\n    uses: manual", 22, "is written twice"),
    ("    uses: manual\n", "", 19, "uses is missing"),
    ("{{ who }} {{ tags }}", "{{ who }}", 6, "variable tags is never used"),
]


@pytest.mark.parametrize(("was", "put", "line", "said"), MISTAKES, ids=[each[3][:30] for each in MISTAKES])
def test_mistakes_are_named_with_their_line(was, put, line, said):
    assert was in GOOD
    with pytest.raises(PlaybookInvalid) as caught:
        parse(GOOD.replace(was, put, 1), "good.yaml")
    assert any(
        found.startswith(f"good.yaml:{line}: ") and said in found for found in caught.value.message.splitlines()
    ), caught.value.message


@pytest.mark.parametrize("text", ["", "- a list\n", "just a text\n", "name: a\n---\nname: b\n", "name: a\nsteps: []\n"])
def test_what_is_no_playbook_at_all(text):
    with pytest.raises(PlaybookInvalid):
        parse(text, "x.yaml")


def test_all_mistakes_are_told_at_once():
    with pytest.raises(PlaybookInvalid) as caught:
        parse(GOOD.replace("timeout: 90s", "timeout: x").replace("final: true", "final: 3"), "good.yaml")
    assert len(caught.value.message.splitlines()) == 2
    assert "2 to mend" in caught.value.hint


def test_variables_are_made_of_what_was_typed():
    playbook = parse(GOOD, "good.yaml")
    assert variables_of(playbook, {"who": "x", "wait": "2m", "tags": "c, d"}) == {
        "who": "x",
        "wait": 120.0,
        "tags": ["c", "d"],
        "off": "no",
    }
    with pytest.raises(PlaybookInvalid) as caught:
        variables_of(playbook, {"wait": "x", "whom": "y"})
    lines = caught.value.message.splitlines()
    assert lines[0] == "good has no variable 'whom'; did you mean 'who'?"
    assert lines[1:] == ["variable who is needed", "variable wait has to be a duration such as 90s, 5m or 2h"]
