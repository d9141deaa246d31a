"""A plan's page says what the plan says: the verdict in words, the sums, every group, partition and topic."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from failover.report.html import plan_html
from failover.report.html.charts import bars, timeline
from failover.report.html.plan_page import plan_verdict
from failover.report.html.plan_parts import charts
from failover.report.plan_rows import rows
from tests.unit.planning.worlds import TAKEN
from tests.unit.report import plans
from tests.unit.report.executions import against_mm2
from tests.unit.report.pages import Page


@pytest.mark.parametrize(
    ("story", "tone", "sentence"),
    [
        (
            plans.source_down,
            "warn",
            "46 of 49 groups can continue on standby, 2 only in part and 1 not yet: 5,000 unread records would be "
            "skipped in 1 group, for 2 partitions nobody can tell where consumers start and at most 335,448 records "
            "are read again.",
        ),
        (
            plans.all_ready,
            "good",
            "The group can continue on standby: no unread record is skipped and none is read again.",
        ),
        (
            plans.all_refused,
            "bad",
            "None of the 6 groups can continue on standby yet: as it stands, this plan would write nothing.",
        ),
        (plans.nothing, "", "No group of this plan has an offset to move."),
    ],
)
def test_the_verdict_is_one_sentence(story, tone, sentence):
    plan = story()
    verdict = plan_verdict(plan, rows(plan))
    assert (verdict.tone, verdict.sentence) == (tone, sentence)
    assert sentence in Page(plan_html(plan)).text


def test_the_first_questions_are_answered_in_the_words_of_the_screen():
    text = Page(plan_html(plans.source_down())).text
    for answer in (
        "Is the source up? SOURCE DOWN, no answer for 10 s. Last known state 03:11:49 UTC (2 min 18 s ago)",
        "What is lost? LOSS at least 1,204 records in 3 partitions (orders-2: 1,190)",
        "What is skipped? SKIP 5,000 records in 1 group",
        "What is unknown? UNKNOWN 2 partitions",
        "What is not in this plan? NOT IN 14 groups excluded by the flow's filters, 1 share group",
    ):
        assert answer.replace("1,204", f"{plans.source_down().summary.unreplicated:,}") in text
    assert "(-v" not in text


def test_every_group_and_partition_is_there_worst_first():
    plan = plans.source_down()
    tables = Page(plan_html(plan)).tables()
    assert [row[0] for row in tables["groups"]][:3] == ["fraud", "ledger", "search"]
    assert len(tables["groups"]) == 49
    fraud, ledger, search = tables["groups"][:3]
    assert (fraud[2], fraud[7], fraud[9]) == ("partial", "5,000", "orders-7 stands 5,000 AHEAD")
    assert (ledger[2], ledger[6], ledger[7]) == ("refused", "-", "-")
    assert (search[2], search[7]) == ("partial", "unknown")
    assert len(tables["partitions"]) == sum(len(group.partitions) for group in plan.groups)
    (ahead,) = [row for row in tables["partitions"] if "AHEAD" in row[-1]]
    assert ahead[:5] == ["fraud", "primary.orders-7", "skip", "6995", "6995"]
    assert [row[0] for row in tables["lost"]] == ["orders-2", "orders-1", "orders-3"]
    assert len(tables["left-out"]) == 15


def test_topics_are_summed_up():
    (orders,) = Page(plan_html(plans.source_down())).tables()["topics"]
    summary = plans.source_down().summary
    assert orders[:4] == ["orders", "primary.orders", "12", "49"]
    assert orders[4:8] == [
        f"{summary.partitions.commit:,}",
        f"{summary.partitions.skip:,}",
        f"{summary.partitions.refuse:,}",
        f"{summary.unreplicated:,}",
    ]


def test_a_loss_that_is_not_known_is_not_none():
    page = Page(plan_html(msgspec.structs.replace(plans.source_down(), unreplicated=None)))
    assert page.tables()["topics"][0][7] == "unknown"
    assert "lost" not in page.tables()
    assert "LOSS unknown" in page.text


def test_findings_come_with_their_remedies_worst_first():
    plan = plans.source_down()
    text = Page(plan_html(plan)).text
    places = [text.index(f"{f.severity} {f.message}") for f in plan.findings if f.severity == "error"]
    assert places
    assert max(places) < min(text.index(f.message) for f in plan.findings if f.severity == "info")
    assert all(f"To do: {finding.remedy}" in text for finding in plan.findings)


def test_words_that_occur_are_explained():
    text = Page(plan_html(plans.source_down())).text
    assert "would-rewind the target's commit stands AHEAD of the translated offset." in text
    assert "two-sources" not in text


def test_the_next_command_can_be_copied():
    document = plan_html(plans.source_down())
    assert '<code class="command">failover execute 7f3a1c</code>' in document


def test_mm2_is_held_against_the_plan_where_both_answer():
    plan = against_mm2(5, 4)
    against, missing, lag = charts(plan)
    ours = {row.label: row.bars[1].text for row in against.rows}
    theirs = {row.label: row.bars[0].text for row in against.rows}
    for number, name in enumerate(("group-0000", "group-0001")):
        (group,) = (group for group in plan.groups if group.group == name)
        cost = sum(p.reread_max or 0 for p in group.partitions)
        assert (theirs[name], ours[name]) == (f"{cost + 4 * 37 * number:,}", f"{cost:,}")
    assert "at most" in against.text
    assert "ledger" not in ours
    assert missing.rows[0].label == lag.rows[0].label == "orders"


def test_without_mm2s_answers_the_chart_says_so():
    plan = plans.source_down()
    groups = tuple(
        msgspec.structs.replace(g, partitions=tuple(msgspec.structs.replace(p, mm2=None) for p in g.partitions))
        for g in plan.groups
    )
    against, *_ = charts(msgspec.structs.replace(plan, groups=groups))
    assert against.rows == []
    assert against.text == "MM2 gives no offset to compare with."
    assert against.note == "MM2 has no offset for 573 partitions that this plan commits."


def test_bars_share_one_scale_and_the_rest_is_told():
    chart = bars("t", "x", [("plain", "a"), ("main", "b")], [(f"g{n}", (n, 2 * n)) for n in range(20)], noun="group")
    assert len(chart.rows) == 12
    assert (chart.rows[0].label, [bar.share for bar in chart.rows[0].bars]) == ("g19", [50.0, 100.0])
    assert chart.note == "8 more groups together: a: 28, b: 56."


def test_a_chart_of_zeros_draws_nothing():
    (row,) = bars("t", "x", [("main", "a")], [("g", (0,))], noun="group").rows
    assert (row.bars[0].share, row.bars[0].text) == (0.0, "0")


def test_the_timeline_begins_with_the_first_commit_where_most_was_waiting():
    moments = [TAKEN + timedelta(seconds=6 + n * 0.1) for n in range(11)]
    chart = timeline(TAKEN, moments[-1], moments, [moments[5]])
    assert chart is not None
    assert chart.text.startswith("11 groups done, the first 6.000 s after the beginning, all within 1.000 s.")
    assert (chart.ticks[0].text, chart.ticks[-1].text, chart.ticks[-1].x) == ("+6.000 s", "+7.000 s", 100.0)
    assert chart.batches == [float(x) for x in range(0, 101, 10)]
    assert chart.troubles == [50.0]
    assert chart.line.startswith("0.0,100.0 0.0,100.0 0.0,90.9")
    assert chart.line.endswith("1000.0,0.0")


def test_the_timeline_of_many_groups_has_few_points():
    moments = [TAKEN + timedelta(milliseconds=n) for n in range(10_000)]
    chart = timeline(TAKEN, None, moments, [])
    assert chart is not None
    assert len(chart.line.split()) < 1000
    assert chart.top == "10,000"
    assert len(chart.batches) <= 401


def test_without_times_there_is_no_timeline():
    assert timeline(TAKEN, TAKEN, [], []) is None
