"""An execution's page says what became of every partition, with its plan and without it."""

from __future__ import annotations

import msgspec
import pytest

from failover.model.execution import Outcome, Status
from failover.report.execution_markdown import execution_markdown
from failover.report.html import execution_html
from failover.report.html.execution_page import execution_verdict
from tests.unit.report import plans
from tests.unit.report.executions import against_mm2, altered, executed, verified
from tests.unit.report.pages import Page
from tests.unit.report.test_screens import check


def test_done_is_one_sentence():
    execution = executed(plans.all_ready(), Outcome.DONE)
    assert execution_verdict(execution).sentence == (
        "Everything planned is in place on standby: 3 offsets of 1 group committed, each read back and found right."
    )


def test_partly_done_says_what_was_left():
    verdict = execution_verdict(executed(plans.source_down()))
    assert (verdict.tone, verdict.word) == ("warn", "Partly done")
    assert verdict.sentence == (
        "48 of 49 groups stand on standby where the plan put them (573 offsets committed, each read back and found "
        "right); the rest was left untouched: 1 group refused in whole or in part, 3 partitions left as they stood, "
        "as planned."
    )


def test_refused_wrote_nothing():
    verdict = execution_verdict(executed(plans.all_refused(), Outcome.REFUSED))
    assert (verdict.tone, verdict.word) == ("bad", "Refused")
    assert verdict.sentence.startswith("Nothing was written to standby: ")


@pytest.mark.parametrize(
    ("status", "outcome", "said"),
    [
        (Status.FAILED, Outcome.FAILED, "For 1 partition standby does not hold what was written"),
        (Status.UNKNOWN, Outcome.UNKNOWN, "For 1 partition nobody can tell whether the offset arrived on standby"),
    ],
)
def test_what_went_wrong_comes_first(status, outcome, said):
    execution = altered(executed(plans.source_down(), outcome), "group-0007", 3, status=status, error="read back 17")
    verdict = execution_verdict(execution)
    assert verdict.tone == "bad"
    assert verdict.sentence.startswith(said)
    tables = Page(execution_html(execution)).tables()
    assert tables["groups"][0][0] == tables["partitions"][0][0] == "group-0007"
    assert ["group-0007", "primary.orders-3", str(status)] == tables["partitions"][3][:3]
    assert tables["partitions"][3][-1] == "read back 17"


def test_an_execution_cut_short_names_what_it_did_not_reach():
    execution = executed(plans.source_down(), finished=None)
    groups = tuple(
        msgspec.structs.replace(
            group,
            finished=None,
            partitions=tuple(
                msgspec.structs.replace(p, status=Status.SKIPPED, reason="not-reached", written=None)
                for p in group.partitions
            ),
        )
        if group.group == "group-0007"
        else group
        for group in execution.groups
    )
    page = Page(execution_html(msgspec.structs.replace(execution, groups=groups, stopped="interrupted by SIGTERM")))
    assert "12 partitions not reached" in page.text
    assert "its end is not on record" in page.text
    assert "STOPPED interrupted by SIGTERM" in page.text


def test_with_its_plan_it_tells_losses_costs_and_what_to_subscribe_to():
    plan = against_mm2()
    page = Page(execution_html(executed(plan), plan))
    assert "What the plan said" in page.text
    assert "LOSS at least" in page.text
    assert "Read again by group: MM2's offsets against this plan" in page.text
    assert "When each group was committed" in page.text
    assert "Consumers must subscribe to primary.orders AND orders (49 groups)" in page.text
    assert set(page.tables()) == {"groups", "partitions", "topics", "lost", "left-out"}


def test_without_its_plan_it_tells_what_was_done():
    page = Page(execution_html(executed(plans.source_down())))
    assert "What the plan said" not in page.text
    assert set(page.tables()) == {"groups", "partitions"}
    rows = page.tables()["partitions"]
    assert len(rows) == 49 * 12
    fraud = [row for row in rows if row[0] == "fraud" and row[1] == "primary.orders-7"]
    assert fraud[0][:7] == ["fraud", "primary.orders-7", "skipped", "6995", "-", "-", "-"]


def test_commands_to_copy_are_set_apart():
    document = execution_html(executed(plans.source_down()), plans.source_down())
    assert '<code class="command">failover verify e-84a7e6 --for 5m</code>' in document
    assert '<code class="command">failover execute --wait 5m --group ledger</code>' in document


def test_forecast_stands_against_fact():
    execution = verified(executed(against_mm2()))
    page = Page(execution_html(execution, against_mm2()))
    first, *rest = page.tables()["verified"]
    assert (first[0], first[3], first[-1]) == ("search", "no", "not back")
    assert {row[3] for row in rest} == {"yes"}
    assert rest[0][4:7] == ["88", "40", "3"]
    assert "VERIFIED NOT ALL BACK" in page.text
    assert page.tables()["partitions"][-1][-2] == "held"


def test_a_roll_back_says_what_it_undoes():
    execution = executed(plans.all_ready(), Outcome.DONE, id="r-1", undoes="e-1")
    page = Page(execution_html(execution))
    assert "Roll back r-1" in page.text
    assert "Roll back of e-1" in page.text
    assert "3 offsets of 1 group put back" in page.text
    assert "About this roll back" in page.text


@pytest.mark.parametrize("story", ["source-down", "hostile"])
def test_ticket(story):
    plan = {"source-down": plans.source_down, "hostile": plans.hostile}[story]()
    execution = altered(executed(plan), "group-0007", 3, status=Status.FAILED, error="read back 17 instead of 1995")
    execution = msgspec.structs.replace(execution, warnings=("lock-unavailable: topic <b>x</b> cannot be created",))
    check(f"ticket-execution-{story}.md", execution_markdown(execution, plan))
