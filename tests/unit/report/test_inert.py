"""Hostile text comes out inert in each format."""

from __future__ import annotations

import csv
import io
import json
import unicodedata

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from failover.report.encode import to_json, to_yaml
from failover.report.inert import inert_csv, inert_json, inert_line, inert_markdown, markdown_code
from failover.report.plan_csv import COLUMNS, plan_csv
from failover.report.plan_markdown import plan_markdown
from failover.report.plan_text import before_after, plan_text
from tests.unit.report import plans

HOSTILE = [
    "\x1b[31m",
    "\x1b]0;t\x07",
    "\n",
    "\r",
    "\x00",
    "\x7f",
    "\x9b2J",
    "\u202e",
    "\u2066",
    "\u200b",
    "\u2028",
    "\ufeff",
]
BAD = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def raw(text: str, allowed: str = "\n") -> list[str]:
    return [c for c in text if unicodedata.category(c) in BAD and c not in allowed]


@pytest.mark.parametrize("text", HOSTILE)
def test_unprintable_text_is_shown_as_escapes(text):
    shown = inert_line(f"a{text}b")
    assert not raw(shown, "")
    assert shown.startswith("a\\")
    assert shown.endswith("b")


@given(st.text())
def test_any_text_is_one_printable_line(text):
    assert inert_line(text).isprintable()
    assert inert_line(inert_line(text)) == inert_line(text)


@pytest.mark.parametrize("text", ["payments", "größe-日本", "a b", "😀"])
def test_ordinary_names_stay(text):
    assert inert_line(text) == text == inert_csv(text)


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1", "  =1", "＝1"])
def test_formulas_are_text_to_a_spreadsheet(text):
    assert inert_csv(text).startswith("'")


@given(st.text())
def test_markdown_has_no_markup_left(text):
    shown = inert_markdown(text)
    for char in "|<>`":
        assert char not in shown
    code = markdown_code(text)
    assert "|" not in code
    assert "\n" not in code
    fence = code[: len(code) - len(code.lstrip("`"))]
    assert fence
    assert code.endswith(fence)
    assert fence not in code[len(fence) : -len(fence)]


def test_json_and_yaml_mean_the_same_and_print_nothing_raw():
    value = {
        "names": ["\x1b[31m", "\u202e\U000e0041", "\x7f\x9b", "on", "1e3", "0o14", "2026-01-01", "=x", "~", "null", ""]
    }
    for text in (to_json(value), to_yaml(value)):
        assert not raw(text)
    assert json.loads(to_json(value)) == value
    assert yaml.safe_load(to_yaml(value)) == value


SCALARS = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e30, 1e30) | st.text()


@given(st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12))
def test_json_and_yaml_round_trip(value):
    assert json.loads(to_json(value)) == value
    assert yaml.safe_load(to_yaml(value)) == value
    assert not raw(to_json(value) + to_yaml(value))


def test_json_escapes_keep_the_document_valid():
    assert json.loads(inert_json('{"a": "\u202e\U000e0041\x7f"}')) == {"a": "\u202e\U000e0041\x7f"}


def test_hostile_names_in_every_rendering_of_a_plan():
    plan = plans.hostile()
    for text in (
        plan_text(plan),
        plan_text(plan, verbosity=2, evidence=True),
        plan_markdown(plan),
        plan_csv(plan),
        to_json(plan),
        to_yaml(plan),
        before_after(plan, [group.group for group in plan.groups]),
    ):
        assert not raw(text)
    markdown = plan_markdown(plan)
    assert "<b>" not in markdown.replace("<b>`x`", "", 1)  # once, inside its code span
    for line in markdown.splitlines():
        if line.startswith("| `` evil"):
            assert line.count(" | ") == 8
    rows = list(csv.reader(io.StringIO(plan_csv(plan))))
    assert tuple(rows[0]) == COLUMNS
    assert {len(row) for row in rows} == {len(COLUMNS)}
