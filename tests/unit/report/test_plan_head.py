"""The first lines of a plan's screen beyond the golden ones."""

from __future__ import annotations

import msgspec

from failover.model.plan import Plan, PlanOptions, Verdict
from failover.report.plan_head import asked_for, head
from failover.report.plan_markdown import plan_markdown
from failover.report.plan_rows import rows
from failover.report.plan_text import plan_text
from tests.unit.report import plans


def line(plan: Plan, label: str) -> str:
    return dict(head(plan, rows(plan)))[label]


def refused(plan: Plan, *reasons: str) -> Plan:
    """Has the first groups refused for these reasons."""
    groups = tuple(
        msgspec.structs.replace(group, verdict=Verdict.REFUSED, reasons=(reason,))
        for group, reason in zip(plan.groups, reasons, strict=False)
    )
    counts = msgspec.structs.replace(plan.summary.groups, ready=0, partial=0, refused=len(groups))
    return msgspec.structs.replace(plan, groups=groups, summary=msgspec.structs.replace(plan.summary, groups=counts))


def test_why_groups_are_refused() -> None:
    plan = plans.build(plans.big(9, 2))
    assert line(refused(plan, "locked", "locked"), "GROUPS") == "2 refused (another execution holds the lock)"
    many = refused(plan, "group-active", "locked", "group-active", "two-sources", "group-active", "locked")
    assert line(many, "GROUPS") == "6 refused (3: has members; 2: another execution holds the lock; others)"


def test_what_was_asked_for_is_told_as_it_is_typed() -> None:
    assert asked_for(PlanOptions(groups=("g",), group_pattern="x", exclude_groups=("h",))) == []
    options = PlanOptions(
        topics=("orders", "fees\x1b[0m"),
        missing="ago=1h",
        rewind_by=300.0,
        precision="bounded",
        content=False,
        all_or_nothing=True,
        allow_skip=True,
        allow_rewind=True,
    )
    said = ", ".join(asked_for(options))
    assert "\x1b" not in said
    assert said.startswith("--topic orders, --topic fees")
    assert said.endswith(
        "--rewind-by 300s, --missing ago=1h, --precision bounded, --no-content, --all-or-nothing, --allow-rewind, "
        "--allow-skip"
    )
    asked = msgspec.structs.replace(plans.all_ready(), options=PlanOptions(allow_skip=True))
    assert "ASKED    --allow-skip" in plan_text(asked).splitlines()
    assert "ASKED" not in plan_text(plans.all_ready())


def test_groups_that_are_only_withheld_do_not_hide_what_holds_them_back() -> None:
    plan = plans.build(plans.big(60, 3), PlanOptions(all_or_nothing=True))
    text = plan_text(plan)
    table = text.partition("GROUP ")[2]
    assert [row.split()[0] for row in table.splitlines()[1:4]] == ["fraud", "ledger", "search"]
    assert "57 more groups withheld by --all-or-nothing until that is settled (-v lists them)" in text
    assert "search  absent  refused       0     2        1        -          -  2 partitions: no checkpoint" in text
    assert "57 more groups withheld by --all-or-nothing." in plan_markdown(plan)
    assert text.splitlines()[-1].endswith("then failover plan")
