"""How far the mirror is: standing still, truncated, made anew, written twice."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from failover.checks.mirror_checks import mirrored_to
from failover.model.cluster import TopicInfo
from failover.model.names import TopicPartition
from failover.model.plan import Finding, Plan, Severity
from failover.model.snapshot import InternalTopicReading, Snapshot, Waiting
from tests.unit.planning.worlds import S0, T0, TAKEN, exact, millis, plan, world

BEHIND: dict[str, Any] = {
    "source_commits": {0: 5},
    "translations": {0: exact(5, 5)},
    "source_log": (0, 100),
    "target_log": (0, 10),
    "newest_syncs": {T0: (8, 8)},
}
"""Mirrored to 10 of 100."""


def found(made: Plan, code: str) -> Finding | None:
    said = [finding for finding in made.findings if finding.code == code]
    assert len(said) <= 1
    return said[0] if said else None


def waiting(seconds: float, size: int = 100) -> dict[TopicPartition, Waiting]:
    return {S0: Waiting(10, millis(seconds), size)}


def earlier(snapshot: Snapshot, seconds: float, **logs: Any) -> Plan:
    """Gives the plan made ``seconds`` before, when the logs were as told."""
    return msgspec.structs.replace(plan(world(**BEHIND | logs)), created=snapshot.taken - timedelta(seconds=seconds))


def test_a_record_that_waits_long_is_told_with_its_place() -> None:
    said = found(plan(world(waiting=waiting(47 * 60), **BEHIND)), "mirror-stalled")
    assert said is not None
    assert said.severity is Severity.WARNING
    assert said.message == "replication of orders-0 stopped at 10: its next record has waited for 47 min"
    assert "/status" in said.remedy


def test_a_record_too_large_for_the_target_is_named_with_both_sizes() -> None:
    snapshot = world(waiting=waiting(600, size=5_242_880), **BEHIND)
    snapshot.target.topic_settings["primary.orders"] = {"max.message.bytes": "1048588"}
    said = found(plan(snapshot), "mirror-stalled")
    assert said is not None
    assert "it has 5,242,880 bytes and primary.orders takes 1,048,588 (max.message.bytes)" in said.message
    assert "standby.producer.max.request.size" in said.remedy
    fits = world(waiting=waiting(600, size=10), **BEHIND)
    fits.target.topic_settings["primary.orders"] = {"max.message.bytes": "1048588"}
    said = found(plan(fits), "mirror-stalled")
    assert said is not None
    assert "max.message.bytes" not in said.message


@pytest.mark.parametrize(
    ("given", "before", "told"),
    [
        ({"waiting": waiting(299)}, None, False),  # may be under way
        ({}, None, False),  # nothing was read
        ({}, {"ago": 90, "source_log": (0, 50)}, True),  # stood at 10 with 50 there, and stands at 10
        ({}, {"ago": 30, "source_log": (0, 50)}, False),  # the plan before is too fresh
        ({}, {"ago": 90, "source_log": (0, 10), "target_log": (0, 10)}, False),  # nothing was missing then
        ({"waiting": waiting(9000)}, {"ago": 90, "target_log": (0, 9)}, False),  # behind, and it moves
        ({"waiting": waiting(9000), "target_log": (0, 100)}, None, False),  # all is there
        ({"caught_up": frozenset({S0})}, {"ago": 90, "source_log": (0, 50)}, False),  # what follows is no record
    ],
)
def test_standing_still(given: dict[str, Any], before: dict[str, Any] | None, told: bool) -> None:
    snapshot = world(**BEHIND | given)
    past = earlier(snapshot, before.pop("ago"), **before) if before else None
    assert (found(plan(snapshot, earlier=past), "mirror-stalled") is not None) is told


def test_other_partitions_that_go_on_are_not_named() -> None:
    """One record too large stops its own partition alone."""
    given = BEHIND | {"partitions": 2, "newest_syncs": {T0: (8, 8), TopicPartition("primary.orders", 1): (98, 8)}}
    said = found(plan(world(waiting=waiting(600), **given)), "mirror-stalled")
    assert said is not None
    assert said.subject == "orders-0"


def test_a_topic_of_which_nothing_was_ever_copied_stopped_at_its_start() -> None:
    given = BEHIND | {"newest_syncs": {}, "target_log": (0, 0)}
    said = found(plan(world(waiting=waiting(600), **given)), "mirror-stalled")
    assert said is not None
    assert "stopped at 0" in said.message


def test_the_oldest_missing_record_dates_the_loss() -> None:
    made = plan(world(waiting=waiting(90), **BEHIND))
    assert made.unreplicated is not None
    assert [(row.records, row.seconds) for row in made.unreplicated] == [(90, 90.0)]


def test_records_deleted_before_they_were_copied() -> None:
    gone = BEHIND | {"source_log": (5000, 6000), "newest_syncs": {T0: (998, 8)}}
    said = found(plan(world(**gone)), "source-truncated")
    assert said is not None
    assert said.severity is Severity.ERROR
    assert "up to 4,000 records" in said.message
    assert "mirrored to 1,000 and its log starts at 5,000" in said.message
    for start in (0, 1000):
        assert found(plan(world(**gone | {"source_log": (start, 6000)})), "source-truncated") is None
    unknown = gone | {"newest_syncs": {}}
    assert found(plan(world(**unknown)), "source-truncated") is None


def test_a_source_topic_made_anew_is_told_by_its_id_or_its_end() -> None:
    def on_source(topic_id: str, **more: Any) -> Snapshot:
        snapshot = world(**BEHIND | more)
        snapshot.source.topics["orders"] = TopicInfo("orders", 1, topic_id)
        return snapshot

    before = plan(on_source("old"))
    assert before.source_topic_ids == {"orders": "old"}
    assert found(plan(on_source("old"), earlier=before), "source-recreated") is None
    said = found(plan(on_source("new"), earlier=before), "source-recreated")
    assert said is not None
    assert said.subject == "orders"
    assert found(plan(on_source("new")), "source-recreated") is None
    short = on_source("new", source_log=(0, 20), newest_syncs={T0: (1000, 8)})
    assert found(plan(short), "source-recreated") is not None


def test_two_programs_that_copy_the_same() -> None:
    both = {"primary-mm2": "MirrorMaker 2", "failover.replicate.primary-standby": "failover replicate"}
    said = found(plan(world(writers=both, **BEHIND)), "two-writers")
    assert said is not None
    assert "primary-mm2" in said.subject
    for alone in both.items():
        assert found(plan(world(writers=dict([alone]), **BEHIND)), "two-writers") is None
    beside = {"primary-mm2": "MirrorMaker 2", "failover.checkpoint.primary-standby": "failover checkpoint"}
    assert found(plan(world(writers=beside, **BEHIND)), "two-writers") is None


def test_times_that_have_not_come_yet() -> None:
    ahead = int(TAKEN.timestamp() * 1000) + 40_000
    said = found(plan(world(last_heartbeat=ahead, **BEHIND)), "clock-skew")
    assert said is not None
    assert "40 s ahead of this machine's clock" in said.message
    reading = InternalTopicReading("primary.checkpoints.internal", "standby", True, 9, newest=ahead)
    said = found(plan(world(readings=(reading,), **BEHIND)), "clock-skew")
    assert said is not None
    assert said.subject == "primary.checkpoints.internal on standby"
    for late in (ahead - 36_000, ahead - 90_000):
        assert found(plan(world(last_heartbeat=late, **BEHIND)), "clock-skew") is None


def test_how_far_a_partition_is_mirrored() -> None:
    assert mirrored_to(world(**BEHIND), T0) == 10
    assert mirrored_to(world(**BEHIND | {"newest_syncs": {T0: (8, 11)}}), T0) is None  # the target was cut since
    assert mirrored_to(world(**BEHIND | {"newest_syncs": {}}), T0) is None
    assert mirrored_to(world(**BEHIND), TopicPartition("primary.orders", 5)) is None
