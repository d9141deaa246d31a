"""What changed between two plans: nothing lost, nothing made up, worst first."""

from __future__ import annotations

import json
from datetime import timedelta

import msgspec

from failover.model.groups import GroupInfo, GroupType
from failover.model.plan import PlanOptions, Verdict
from failover.report.diff_text import diff_text
from failover.report.encode import to_json
from failover.report.plan_diff import plan_diff
from tests.unit.report import plans
from tests.unit.report.test_html_page import NASTY
from tests.unit.report.test_screens import check, fits


def later(plan, **changes):
    return msgspec.structs.replace(plan, **{"id": "9b0c2d", "created": plan.created + timedelta(minutes=5)} | changes)


def after():
    """Five minutes on: ledger is empty, search's checkpoints came, group-0007 has members, one group is new."""
    snapshot = plans.big(50)
    snapshot.target.groups["ledger"] = GroupInfo("ledger", True, GroupType.CLASSIC, "Empty")
    snapshot.target.groups["group-0007"] = plans.big().target.groups["ledger"]
    tps = list(snapshot.checkpoints["ledger"])
    for tp in tps[:2]:
        snapshot.checkpoints["search"][tp] = snapshot.checkpoints["ledger"][tp]
        snapshot.translations["search"][tp] = snapshot.translations["ledger"][tp]
    moved = snapshot.translations["group-0001"][tps[4]]
    snapshot.translations["group-0001"][tps[4]] = msgspec.structs.replace(moved, offset=1999)
    return later(plans.build(snapshot, PlanOptions(allow_rewind=True)))


def test_a_plan_and_itself_say_the_same():
    diff = plan_diff(plans.source_down(), later(plans.source_down()))
    assert (diff.summary, diff.options, diff.groups, diff.findings_new, diff.findings_gone) == ((), (), (), (), ())
    assert diff.same == 49
    text = diff_text(diff)
    assert "5 min later" in text
    assert text.endswith("The plans say the same.\n")


def test_every_change_is_found_worst_first():
    diff = plan_diff(plans.source_down(), after())
    assert [(g.group, g.kind, g.old, g.new) for g in diff.groups] == [
        ("group-0007", "changed", Verdict.READY, Verdict.REFUSED),
        ("fraud", "changed", Verdict.PARTIAL, Verdict.READY),
        ("group-0046", "added", None, Verdict.READY),
        ("ledger", "changed", Verdict.REFUSED, Verdict.READY),
        ("search", "changed", Verdict.PARTIAL, Verdict.READY),
        ("group-0001", "changed", Verdict.READY, Verdict.READY),
    ]
    assert diff.same == 44
    (one,) = diff.groups[-1].partitions
    assert {change.what: (change.old, change.new) for change in one.changes} == {
        "offset": (1995, 1999),
        "reread_max": (8, 4),
        "lag_after": (8, 4),
        "position_after": (1995, 1999),
    }
    assert [(c.what, c.old, c.new) for c in diff.options] == [("allow_rewind", False, True)]
    sums = {change.what: (change.old, change.new) for change in diff.summary}
    assert sums["groups ready"] == (46, 49)
    assert sums["skipped"] == (5000, 0)
    assert {f.code for f in diff.findings_gone} >= {"partition-uncovered"}


def test_the_screen():
    diff = plan_diff(plans.source_down(), after())
    text = diff_text(diff)
    fits(text)
    check("diff.txt", text)
    everything = diff_text(diff, verbosity=1)
    fits(everything)
    check("diff-v.txt", everything)


def test_the_other_way_round_is_said():
    old = plans.source_down()
    diff = plan_diff(later(old), old)
    assert "5 min EARLIER" in diff_text(diff)


def test_a_group_that_is_gone_says_why():
    old, new = after(), later(plans.source_down(), id="aaaaaa")
    left_out = msgspec.structs.replace(new.not_planned[0], group="group-0046", why="excluded")
    new = msgspec.structs.replace(new, not_planned=(*new.not_planned, left_out))
    (gone,) = [group for group in plan_diff(old, new).groups if group.kind == "gone"]
    assert (gone.group, gone.old, gone.new, gone.why) == ("group-0046", Verdict.READY, None, "excluded")
    assert "not in the new plan: excluded" in diff_text(plan_diff(old, new))


def test_partitions_that_came_and_went():
    old, new = plans.build(plans.big(5, 7)), later(plans.build(plans.big(5, 8)))
    (group,) = [group for group in plan_diff(old, new).groups if group.group == "group-0000"]
    assert [(p.topic, p.partition) for p in group.partitions if p.kind == "added"] == [("primary.orders", 7)]
    (group,) = [group for group in plan_diff(new, old).groups if group.group == "group-0000"]
    assert [(p.topic, p.partition) for p in group.partitions if p.kind == "gone"] == [("primary.orders", 7)]
    assert "added" in diff_text(plan_diff(old, new), verbosity=1)


def test_a_screen_of_many_changes_stays_bounded():
    text = diff_text(plan_diff(plans.build(plans.big(1000, 4)), later(plans.build(plans.big(1000, 5)))))
    assert len(text.splitlines()) < 120
    assert "more groups changed (-v lists them)" in text
    fits(text)


def test_text_from_outside_is_inert():
    old = plans.source_down()
    groups = (msgspec.structs.replace(old.groups[0], group=NASTY), *old.groups[1:])
    findings = tuple(msgspec.structs.replace(f, message=NASTY, code=NASTY) for f in old.findings)
    text = diff_text(plan_diff(old, later(old, groups=groups, findings=findings, operator=NASTY)), verbosity=1)
    assert [char for char in text if not char.isprintable() and char != "\n"] == []


def test_json_has_it_all():
    found = json.loads(to_json(plan_diff(plans.source_down(), after())))
    assert (found["kind"], found["version"], found["same"]) == ("failover.plan-diff", 1, 44)
    assert [found["old"]["id"], found["new"]["id"]] == ["7f3a1c", "9b0c2d"]
    assert len(found["groups"]) == 6
