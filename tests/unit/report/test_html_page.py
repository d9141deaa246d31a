"""Every page: complete in itself, inert whatever it quotes, and the same data as what it reports."""

from __future__ import annotations

import base64
import hashlib

import msgspec
import pytest

from failover.model.execution import Outcome
from failover.report.html import execution_html, plan_html
from failover.report.html.page import island
from failover.report.html.tables import Cell, Column, Table, number, place, text
from tests.unit.report import plans
from tests.unit.report.executions import against_mm2, executed, verified
from tests.unit.report.pages import Page, outside, policy, unpacked

NASTY = "</script><img src=x onerror=alert(1)><!--\x1b]0;x\x07\u202e\u2028'\"&amp;`${1}"


def nasty_plan():
    """A plan whose every outside text tries to break out of the page."""
    plan = plans.hostile()
    (group,) = plan.groups
    (member,) = group.members
    member = msgspec.structs.replace(member, client_id=NASTY, host=NASTY)
    group = msgspec.structs.replace(group, group=NASTY, members=(member,), subscribe=(NASTY,))
    group = msgspec.structs.replace(
        group,
        partitions=tuple(
            msgspec.structs.replace(p, topic=NASTY, source_topic=NASTY, proof=NASTY) for p in group.partitions
        ),
    )
    findings = tuple(
        msgspec.structs.replace(f, code=NASTY, message=NASTY, remedy=NASTY, subject=NASTY) for f in plan.findings
    )
    return msgspec.structs.replace(
        plan,
        id=NASTY,
        reason=NASTY,
        operator=NASTY,
        tool_version=NASTY,
        fingerprint=NASTY,
        source=msgspec.structs.replace(plan.source, alias=NASTY, detail=NASTY, cluster_id=NASTY),
        target=msgspec.structs.replace(plan.target, alias=NASTY, state=NASTY),
        options=msgspec.structs.replace(plan.options, groups=(NASTY,), group_pattern=NASTY),
        groups=(group, msgspec.structs.replace(group, group=f"{NASTY}2")),
        findings=findings,
    )


def nasty_execution():
    execution = executed(nasty_plan(), Outcome.REFUSED)
    group, other = execution.groups
    group = msgspec.structs.replace(group, message=NASTY, notes=(NASTY,), reasons=(NASTY,), state=NASTY)
    group = msgspec.structs.replace(
        group, partitions=tuple(msgspec.structs.replace(p, error=NASTY, reason=NASTY) for p in group.partitions)
    )
    return msgspec.structs.replace(
        execution, id=NASTY, groups=(group, other), warnings=(NASTY, f"code: {NASTY}"), stopped=NASTY, undoes=NASTY
    )


PAGES = {
    "source-down": lambda: plan_html(plans.source_down()),
    "all-ready": lambda: plan_html(plans.all_ready()),
    "all-refused": lambda: plan_html(plans.all_refused()),
    "conservative": lambda: plan_html(plans.conservative()),
    "nothing": lambda: plan_html(plans.nothing()),
    "against-mm2": lambda: plan_html(against_mm2()),
    "nasty": lambda: plan_html(nasty_plan()),
    "executed": lambda: execution_html(executed(plans.source_down()), plans.source_down()),
    "executed-elsewhere": lambda: execution_html(executed(plans.source_down())),
    "verified": lambda: execution_html(verified(executed(plans.source_down())), plans.source_down()),
    "nasty-execution": lambda: execution_html(nasty_execution(), nasty_plan()),
}


@pytest.fixture(params=PAGES)
def document(request):
    return PAGES[request.param]()


def test_a_page_loads_nothing_and_runs_its_own_script_alone(document):
    page = Page(document)
    assert page.open == []
    assert outside(page) == []
    assert "img" not in {tag for tag, _ in page.elements}
    rules = policy(page)
    assert rules["default-src"] == "'none'"
    for kind in ("script", "style"):
        (own,) = (text for tag, found, text in page.raw if tag == kind and "type" not in found)
        digest = base64.b64encode(hashlib.sha256(own.encode()).digest()).decode()
        assert rules[f"{kind}-src"] == f"'sha256-{digest}'"
    assert set(rules) == {
        "default-src",
        "script-src",
        "style-src",
        "base-uri",
        "form-action",
        "require-trusted-types-for",
    }


def test_a_page_holds_no_character_that_cannot_be_seen(document):
    assert [char for char in document if not char.isprintable() and char != "\n"] == []


def test_a_page_has_one_title_and_a_heading_for_each_part(document):
    page = Page(document)
    assert page.count("h1") == 1
    sections = [found for tag, found in page.elements if tag == "section"]
    assert page.count("h2") == len(sections) - 1  # the verdict needs none: it is the first thing there is
    assert {f"#{found['id']}" for found in sections if "id" in found} >= {
        found["href"] for tag, found in page.elements if tag == "a" and found["href"] != "#main"
    }
    assert page.count("th")
    assert all(found.get("scope") for tag, found in page.elements if tag == "th")


def test_the_rows_in_the_markup_are_the_first_rows_of_the_data(document):
    page = Page(document)
    for island_ in page.islands():
        assert all(len(column.get("i", [])) in (0, island_["rows"]) for column in island_["columns"])
    shown = [min(50, island_["rows"]) for island_ in page.islands()]
    assert sum(tag == "tbody" for tag, _ in page.elements) == len(shown)
    bars = sum(
        tag == "svg" and "aria-label" in found and "preserveaspectratio" in found for tag, found in page.elements
    )
    curves = sum(found.get("class") == "curve" for _, found in page.elements)
    assert page.count("tr") == len(shown) + sum(shown) + bars - curves


def test_the_same_plan_gives_the_same_page():
    assert plan_html(plans.conservative()) == plan_html(plans.conservative())


def test_what_would_break_out_of_a_page_is_shown_as_text():
    page = Page(plan_html(nasty_plan()))
    assert "</script><img src=x onerror=alert(1)><!--\\x1b]0;x\\x07\\u202e\\u2028'\"&amp;`${1}" in page.text
    assert page.tables()["groups"][0][0].startswith("</script><img src=x onerror=alert(1)>")
    assert "</script><img" not in plan_html(nasty_plan())


def test_an_island_cannot_end_its_script_and_means_the_same():
    import json

    value = ["</script>", "<!--", "]]>", "&lt;", "'", "\u2028\u2029", "\x00", "ü"]
    written = str(island(value))
    assert not set("<>&'") & set(written)
    assert json.loads(written) == value


def test_a_table_is_packed_column_by_column_and_reads_back_the_same():
    columns = (
        Column("GROUP", "name"),
        Column("ACTION", "tag", choice=True),
        Column("SKIP", "number"),
        Column("AFTER", "number"),
    )
    rows = [
        (text(f"g{n}"), Cell("commit", None, "good"), number(1000 * n, "bad"), place(n % 3 or None)) for n in range(60)
    ]
    data = Table("groups", "Groups", columns, rows).data
    assert unpacked(data) == [[cell.text for cell in row] for row in rows]
    name, action, skip, after = data["columns"]
    assert "i" not in name
    assert action["d"] == ["commit"]
    assert action["t"] == ["good"]
    assert skip["d"][:2] == ["0", "1,000"]
    assert skip["k"][:2] == [0, 1000]
    assert skip["t"][:2] == ["", "bad"]
    assert after["d"] == ["-", "1", "2"]
    assert after["k"] == [None, 1, 2]


def test_a_thousand_groups_stay_a_page_of_sane_size():
    document = plan_html(against_mm2(1000, 12))
    assert len(document.encode()) < 1_000_000
    page = Page(document)
    assert len(page.tables()["partitions"]) == 12_000
    assert page.count("tr") < 300
