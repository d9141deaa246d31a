"""Topics by their plain names on the target, and where groups begin on them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from failover.errors import UsageError
from failover.model.cluster import LogRange, TopicInfo
from failover.model.groups import Commit, GroupInfo, GroupType
from failover.model.names import TopicPartition
from failover.model.plan import Finding, Plan, PlannedPartition, PlanOptions, Severity
from failover.model.snapshot import Snapshot
from failover.report.html import plan_html
from failover.report.plan_text import plan_text
from tests.unit.planning.worlds import MEMBER, exact, only_group, plan, world

EARLIEST = PlanOptions(local_topics="earliest")


def scene(
    partitions: int | None = 2, *, start: int = 40, standing: dict[int, int] | None = None, **more: Any
) -> Snapshot:
    """Gives a group on ``primary.orders``, and ``orders`` on the target with so many partitions."""
    snapshot = world(source_commits={0: 500}, translations={0: exact(500, 490)}, plain=True, **more)
    if partitions is not None:
        snapshot.target.topics["orders"] = TopicInfo("orders", partitions, "local-id")
        for number in range(partitions):
            snapshot.target.logs[TopicPartition("orders", number)] = LogRange(start, start + 100)
    for number, at in (standing or {}).items():
        snapshot.target.commits["payments"][TopicPartition("orders", number)] = Commit(at)
    return snapshot


def said(made: Plan, code: str) -> Finding | None:
    return next((finding for finding in made.findings if finding.code == code), None)


def on_local(snapshot: Snapshot, options: PlanOptions = EARLIEST) -> list[PlannedPartition]:
    return [p for p in only_group(snapshot, options).partitions if p.topic == "orders"]


def test_a_missing_local_topic_comes_with_the_command_that_creates_it() -> None:
    snapshot = world(partitions=12, source_commits={0: 500}, translations={0: exact(500, 490)})
    finding = said(plan(snapshot), "local-topic-missing")
    assert finding is not None
    assert finding.severity is Severity.WARNING
    assert finding.remedy == "kafka-topics.sh --bootstrap-server HOST:PORT --create --topic orders --partitions 12"
    snapshot.target.settings.update({"auto.create.topics.enable": "true", "num.partitions": "1"})
    finding = said(plan(snapshot), "local-topic-missing")
    assert finding is not None
    assert "brokers would create it with 1 partition at the first write" in finding.message
    assert said(plan(scene()), "local-topic-missing") is None


def test_a_topic_that_may_not_be_seen_is_not_called_missing() -> None:
    snapshot = scene(None)
    hidden = msgspec.structs.replace(snapshot.target, hidden=frozenset({"orders"}))
    assert said(plan(msgspec.structs.replace(snapshot, target=hidden)), "local-topic-missing") is None


def test_a_group_without_a_commit_on_the_local_topic_is_told() -> None:
    finding = said(plan(scene()), "local-topic-uncovered")
    assert finding is not None
    assert "--local-topics earliest" in finding.remedy
    assert said(plan(scene(standing={0: 50})), "local-topic-uncovered") is None
    assert said(plan(scene(None)), "local-topic-uncovered") is None
    assert said(plan(scene(), EARLIEST), "local-topic-uncovered") is None


def test_the_log_start_of_every_partition_is_committed() -> None:
    decided = on_local(scene())
    assert [(p.partition, p.action, p.reason, p.offset, p.proof) for p in decided] == [
        (0, "commit", "local-topic", 40, "log-start"),
        (1, "commit", "local-topic", 40, "log-start"),
    ]
    assert {(p.precision, p.reread, p.reread_max, p.skipped, p.lag_after) for p in decided} == {("exact", 0, 0, 0, 100)}
    made = plan(scene(), EARLIEST)
    assert made.groups[0].verdict == "ready"
    assert made.topic_ids == {"orders": "local-id", "primary.orders": "id-1"}
    assert made.fingerprint != plan(scene()).fingerprint
    assert on_local(scene(), PlanOptions()) == []


def test_a_position_that_is_there_stays() -> None:
    first, second = on_local(scene(standing={0: 60}))
    assert (first.action, first.reason, first.position_after.offset, first.skipped) == ("skip", "already-there", 60, 0)
    assert (second.action, second.offset) == ("commit", 40)


def test_one_out_of_the_log_counts_as_none() -> None:
    """Kafka: auto.offset.reset decides there."""
    assert on_local(scene(standing={0: 3}))[0].offset == 40


def test_a_group_with_members_is_left_alone_there_too_and_decided_for_when_it_is_free() -> None:
    active = GroupInfo("payments", True, GroupType.CLASSIC, "Stable", (MEMBER,))
    group = only_group(scene(info=active), EARLIEST)
    assert {(p.action, p.reason) for p in group.partitions} == {("refuse", "group-active")}
    assert [p.offset for p in group.when_free if p.topic == "orders"] == [40, 40]


def test_what_may_not_be_written_there_is_refused_by_itself() -> None:
    snapshot = scene()
    snapshot.target.topics["orders"] = TopicInfo("orders", 2, "local-id", operations=frozenset({"DESCRIBE"}))
    group = only_group(snapshot, EARLIEST)
    assert group.verdict == "partial"
    assert [(p.topic, p.reason) for p in group.partitions if p.action == "refuse"] == [("orders", "not-authorized")] * 2


def test_where_names_stay_there_is_no_local_topic() -> None:
    snapshot = msgspec.structs.replace(scene(None), mirrored={"primary.orders": "primary.orders"})
    made = plan(snapshot, EARLIEST)
    assert made.groups[0].local_topics == ()
    assert not [f for f in made.findings if f.code.startswith("local-topic")]


def test_a_plan_that_was_not_looked_for_says_so() -> None:
    snapshot = msgspec.structs.replace(scene(), plain=False)
    with pytest.raises(UsageError, match="were not looked at for this plan"):
        plan(snapshot, EARLIEST)
    with pytest.raises(UsageError, match="no such policy"):
        plan(scene(), PlanOptions(local_topics="latest"))


def test_screens_name_local_topics_by_their_own_name() -> None:
    snapshot = scene(1)
    snapshot.target.topics["orders"] = TopicInfo("orders", 1, "local-id", operations=frozenset({"DESCRIBE"}))
    made = plan(snapshot, EARLIEST)
    assert "orders-0: " in plan_text(made)
    html = plan_html(plan(scene(), EARLIEST))
    assert "local-topic" in html
    assert ">-0<" not in html
