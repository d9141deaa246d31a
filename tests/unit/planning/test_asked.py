"""What options ask of a plan: which are refused together, and what is said of those that were not applied."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from failover.errors import UsageError
from failover.model.cluster import LogRange, TopicInfo
from failover.model.names import TopicPartition
from failover.model.plan import Finding, Plan, PlanOptions
from failover.model.snapshot import ByTime, GoneBack, NotPlanned, Snapshot
from failover.planning.build import exit_code
from failover.report.plan_text import plan_text
from tests.unit.planning.worlds import MEMBER, S0, T0, TAKEN, checkpoint, empty, exact, only, only_group, plan, world

AT = "at=2026-11-05T03:00:00Z"


def by_time(offset: int) -> ByTime:
    return ByTime(TAKEN, {T0: offset})


def found(made: Plan, code: str) -> list[Finding]:
    return [finding for finding in made.findings if finding.code == code]


def two_groups(first: dict[str, Any], second: dict[str, Any]) -> Snapshot:
    """Is a snapshot of ``payments`` and ``zeta``, each of its own world."""
    one, two = world(**first), world(group="zeta", **second)

    def both(side: str, field: str) -> Any:
        return getattr(getattr(one, side), field) | getattr(getattr(two, side), field)

    return msgspec.structs.replace(
        one,
        groups=("payments", "zeta"),
        source=msgspec.structs.replace(one.source, commits=both("source", "commits"), groups=both("source", "groups")),
        target=msgspec.structs.replace(one.target, commits=both("target", "commits"), groups=both("target", "groups")),
        checkpoints=one.checkpoints | two.checkpoints,
        translations=one.translations | two.translations,
    )


# -- --missing by time -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("offset", "committed", "decided"),
    [
        # the group stands at the source's end: nothing is unread
        (300, 1000, ("commit", "at-time", 300, "timestamp", 0)),
        (1000, 1000, ("commit", "at-log-end", 1000, "log-end", 0)),
        # nothing lies before it
        (0, 400, ("commit", "at-log-start", 0, "log-start", 0)),
        (0, None, ("commit", "at-log-start", 0, "log-start", 0)),
        # left, unless that is accepted
        (300, 400, ("skip", "no-checkpoint", None, "none", None)),
        (300, 1001, ("skip", "no-checkpoint", None, "none", None)),
        (300, None, ("skip", "source-never-committed", None, "none", None)),
    ],
)
def test_a_time_is_used_where_it_passes_nothing_over(offset, committed, decided):
    snapshot = world(source_commits={0: committed}, by_time=by_time(offset))
    if committed is None:
        # another partition makes it a group of this topic
        snapshot = world(partitions=2, source_commits={1: 1}, by_time=by_time(offset))
    p = only_group(snapshot, PlanOptions(missing=AT)).partitions[0]
    assert (p.action, p.reason, p.offset, p.proof, p.skipped) == decided


@pytest.mark.parametrize(("offset", "committed", "skipped"), [(300, 990, 10), (300, 400, 300), (5, 400, 5)])
def test_what_a_time_passes_over_is_counted_and_makes_the_group_partial(offset, committed, skipped):
    snapshot = world(source_commits={0: committed}, by_time=by_time(offset))
    made = plan(snapshot, PlanOptions(missing=AT, allow_skip=True))
    [group] = made.groups
    [p] = group.partitions
    assert (p.offset, p.skipped, p.reread_max, group.verdict) == (offset, skipped, 1000 - offset, "partial")
    assert made.summary.skipped == skipped
    assert f"SKIP     {skipped} records in 1 group" in plan_text(made)


def test_a_topic_with_records_of_its_own_proves_nothing():
    same: dict[str, Any] = {"mirrored": {"orders": "orders"}}
    snapshot = world(source_commits={0: 1000}, by_time=ByTime(TAKEN, {S0: 300}), **same)
    snapshot.target.topics["orders"] = TopicInfo("orders", 1)
    snapshot.target.logs[S0] = LogRange(0, 1000)
    assert only(snapshot, PlanOptions(missing=AT)).action == "skip"
    assert only(snapshot, PlanOptions(missing=AT, allow_skip=True)).skipped == 300


def test_what_was_left_alone_is_named_with_what_accepts_it():
    [finding] = found(plan(world(source_commits={0: 400}, by_time=by_time(300)), PlanOptions(missing=AT)), NOT_APPLIED)
    assert (finding.severity, finding.subject) == ("warning", "payments")
    assert "1 partition of 1 group left as it is" in finding.message
    assert "--allow-skip" in finding.remedy
    [finding] = found(plan(world(source_commits={0: 400}, by_time=ByTime(TAKEN)), PlanOptions(missing=AT)), NOT_APPLIED)
    assert "standby did not tell" in finding.message
    for options in (PlanOptions(missing=AT, allow_skip=True), PlanOptions(missing="earliest"), PlanOptions()):
        assert not found(plan(world(source_commits={0: 400}, by_time=by_time(300)), options), NOT_APPLIED)


NOT_APPLIED = "option-not-applied"


def test_a_partition_never_committed_misses_nothing():
    snapshot = world(partitions=2, source_commits={0: 500}, translations={0: exact(500, 490)})
    group = only_group(snapshot, PlanOptions(missing="fail"))
    assert [(p.action, p.reason) for p in group.partitions] == [
        ("commit", "translated"),
        ("skip", "source-never-committed"),
    ]
    assert group.verdict == "ready"
    first, second = only_group(snapshot, PlanOptions(missing="earliest")).partitions
    assert (second.reason, second.offset, second.reread, second.reread_max) == ("at-log-start", 0, 0, 0)
    assert (first.offset, first.reread) == (490, 0)


# -- --rewind-by -------------------------------------------------------------------------------------------


def back(*places: tuple[int, int]) -> GoneBack:
    return GoneBack(60.0, {T0: dict(places)})


BACK = PlanOptions(rewind_by=60.0)
PLACED: dict[str, Any] = {"source_commits": {0: 500}, "translations": {0: exact(500, 490)}}


def test_going_back_is_counted_as_read_again():
    p = only(world(gone_back=back((490, 440)), **PLACED), BACK)
    assert (p.action, p.reason, p.offset, p.proof, p.precision) == ("commit", "gone-back", 440, "timestamp", "exact")
    assert (p.reread, p.reread_max, p.skipped, p.lag_after) == (50, 50, 0, 560)
    loose = only(
        world(checkpoints={0: checkpoint(500, 480)}, source_commits={0: 500}, gone_back=back((480, 440))), BACK
    )
    assert (loose.offset, loose.reread_max) == (440, 560)


def test_a_commit_that_stands_moves_back_only_when_that_is_allowed():
    snapshot = world(target_commits={0: 490}, gone_back=back((490, 440)), **PLACED)
    made = plan(snapshot, BACK)
    [p] = made.groups[0].partitions
    assert (p.action, p.reason, p.ahead, p.skipped) == ("skip", "would-rewind", 50, 0)
    [finding] = found(made, NOT_APPLIED)
    assert "--allow-rewind" in finding.remedy
    # further ahead, what counts is how far beyond the position it stands
    ahead = only(world(target_commits={0: 700}, gone_back=back((490, 440)), **PLACED), BACK)
    assert (ahead.reason, ahead.ahead, ahead.skipped) == ("would-rewind", 210, 210)
    allowed = plan(snapshot, msgspec.structs.replace(BACK, allow_rewind=True))
    assert allowed.groups[0].partitions[0].offset == 440
    assert not found(allowed, NOT_APPLIED)


def test_where_nothing_tells_the_time_the_offset_stays_and_that_is_said():
    made = plan(world(gone_back=back(), **PLACED), BACK)
    assert made.groups[0].partitions[0].offset == 490
    assert "no record with a timestamp" in found(made, NOT_APPLIED)[0].message
    # at the log's start there is nothing to go back to
    start = plan(world(source_commits={0: 0}, gone_back=back()), BACK)
    assert (start.groups[0].partitions[0].offset, found(start, NOT_APPLIED)) == (0, [])


def test_what_an_earlier_execution_proved_is_not_gone_back_from_where_nothing_tells_the_time():
    given: dict[str, Any] = {"checkpoints": {0: checkpoint(500, 480)}, "source_commits": {0: 500}}
    written = {"payments": {T0: 485}}
    assert only(world(gone_back=back((480, 440)), **given), BACK, written=written).offset == 440
    assert only(world(gone_back=back((480, 440), (485, 445)), **given), BACK, written=written).offset == 445


# -- which groups and topics -------------------------------------------------------------------------------


def test_groups_by_name_and_by_pattern_add_up():
    snapshot = two_groups(PLACED, PLACED)
    assert [g.group for g in plan(snapshot, PlanOptions(groups=("zeta",), group_pattern="pay.*")).groups] == [
        "payments",
        "zeta",
    ]
    # Java's syntax, as in the flow's own filter
    assert [g.group for g in plan(snapshot, PlanOptions(group_pattern=r"\p{Alpha}{4}")).groups] == ["zeta"]


def test_the_screen_tells_who_left_a_group_out():
    left = (
        NotPlanned("a", "excluded"),
        NotPlanned("b", "excluded"),
        NotPlanned("c", "excluded", ("fees",)),
        NotPlanned("d", "newer-than-checkpoints", ("orders",)),
    )
    made = plan(world(not_planned=left, **PLACED), PlanOptions(exclude_groups=("b",), topics=("orders",)))
    line = next(line for line in plan_text(made, width=300).splitlines() if line.startswith("NOT IN"))
    assert line.split(None, 2)[2] == (
        "1 group newer than the checkpoints, 1 group excluded by the flow's filters, 1 group excluded by "
        "--exclude-group, 1 group on other topics than --topic (-v lists them)"
    )
    assert [finding.subject for finding in found(made, "newer-than-checkpoints")] == ["d"]


# -- --all-or-nothing --------------------------------------------------------------------------------------

AHEAD: dict[str, Any] = {"checkpoints": {0: checkpoint(500, 480)}, "target_commits": {0: 780}}
ALL = PlanOptions(all_or_nothing=True)


def decided(made: Plan) -> dict[str, tuple[str, list[str]]]:
    return {g.group: (g.verdict, [p.reason for p in g.partitions]) for g in made.groups}


def test_one_partition_that_cannot_be_placed_holds_every_group_back():
    snapshot = two_groups(PLACED, {**AHEAD, "source_commits": {0: 500}})
    made = plan(snapshot, ALL)
    assert decided(made) == {"payments": ("refused", ["all-or-nothing"]), "zeta": ("partial", ["would-rewind"])}
    assert (made.summary.partitions.commit, exit_code(made)) == (0, 4)
    assert decided(plan(two_groups(PLACED, PLACED), ALL)) == {
        "payments": ("ready", ["translated"]),
        "zeta": ("ready", ["translated"]),
    }
    assert all(not group.when_free for group in made.groups)


def test_what_holds_once_groups_are_empty_is_kept_for_all_of_them():
    active = {**PLACED, "info": msgspec.structs.replace(empty("zeta"), state="Stable", members=(MEMBER,))}
    made = plan(two_groups(PLACED, active), ALL)
    assert decided(made) == {"payments": ("refused", ["all-or-nothing"]), "zeta": ("refused", ["group-active"])}
    assert [[(p.action, p.offset) for p in group.when_free] for group in made.groups] == [[("commit", 490)]] * 2
    assert exit_code(made) == 3


# -- options that contradict each other --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (PlanOptions(missing=AT), "offsets by time were not looked up"),
        (PlanOptions(missing="newest"), "no such policy"),
        (PlanOptions(missing="latest"), "records they never read"),
        (PlanOptions(precision="vague"), "no such precision"),
        (PlanOptions(rewind_by=60.0), "--rewind-by"),
    ],
)
def test_what_cannot_be_carried_out(options, said):
    with pytest.raises(UsageError, match=said):
        plan(world(**PLACED), options)
    with pytest.raises(UsageError, match="--rewind-by"):
        plan(world(gone_back=back(), **PLACED), PlanOptions(rewind_by=61.0))


def test_another_topic_is_no_part_of_the_plan():
    snapshot = world(**PLACED)
    fees = TopicPartition("primary.fees", 0)
    more = msgspec.structs.replace(snapshot, mirrored={**snapshot.mirrored, "primary.fees": "fees"})
    more.target.topics["primary.fees"] = TopicInfo("primary.fees", 1)
    more.target.logs[fees] = LogRange(0, 9)
    more.checkpoints["payments"][fees] = checkpoint(9, 9)
    made = plan(more, PlanOptions(topics=("orders",)))
    assert {p.topic for p in made.groups[0].partitions} == {"primary.orders"}
    # its consumers must read the other one all the same
    assert made.groups[0].subscribe == ("primary.fees", "fees", "primary.orders", "orders")
    [finding] = found(made, "topics-left-out")
    assert "1 group of this plan also stands on 1 topic that --topic leaves out: fees" in finding.message
    assert not found(plan(more), "topics-left-out")
