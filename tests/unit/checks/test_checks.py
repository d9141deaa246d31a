"""Each finding: when it is told, how severe it is, and when it is not."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from failover.checks import CHECKS, find, worst
from failover.model import Fault, TopicPartition
from failover.model.cluster import ClusterState, ClusterStatus, TopicInfo
from failover.model.groups import Commit, GroupInfo, GroupType
from failover.model.plan import Severity
from failover.model.snapshot import InternalTopicReading, NotPlanned
from tests.unit.planning.worlds import MEMBER, S0, T0, TAKEN, checkpoint, empty, exact, plan, world

DOWN: dict[str, Any] = {"source": ClusterState.DOWN}
QUIET: dict[str, Any] = {"source_commits": {0: 500}, "translations": {0: exact(500, 490)}}


def severities(snapshot: Any, code: str, **more: Any) -> list[Severity]:
    return [finding.severity for finding in plan(snapshot, **more).findings if finding.code == code]


def test_nothing_odd_is_only_information():
    snapshot = world(**QUIET)
    snapshot.target.topics["orders"] = TopicInfo("orders", 1)
    snapshot.target.commits["payments"][TopicPartition("orders", 0)] = Commit(0)
    found = plan(snapshot).findings
    assert {finding.severity for finding in found} <= {Severity.INFO}
    assert worst(found) in (None, Severity.INFO)
    assert worst(()) is None


def test_every_finding_says_what_to_do():
    snapshot = world(
        checkpoints={0: checkpoint(500, 500, ago=4000, earlier_upstream=900)},
        group_offsets_synced=True,
        readings=(InternalTopicReading("primary.checkpoints.internal", "standby", True, 5, 1, "offset 4"),),
        not_planned=(NotPlanned("x", "excluded"),),
        **DOWN,
    )
    found = plan(snapshot).findings
    assert len({finding.code for finding in found}) >= 6
    for finding in found:
        assert finding.subject, finding
        assert finding.message, finding
        assert finding.remedy, finding
    order = [(Severity.ERROR, Severity.WARNING, Severity.INFO).index(finding.severity) for finding in find(snapshot)]
    assert order == sorted(order)
    assert len(CHECKS) == len(set(CHECKS))


@pytest.mark.parametrize(("state", "told"), [(ClusterState.DEGRADED, 1), (ClusterState.UP, 0), (ClusterState.DOWN, 0)])
def test_source_degraded(state, told):
    assert severities(world(**QUIET | {"source": state}), "source-degraded") == [Severity.WARNING] * told


def test_source_incomplete_counts_as_degraded():
    snapshot = world(**QUIET)
    partly = msgspec.structs.replace(snapshot, source=msgspec.structs.replace(snapshot.source, complete=False))
    assert severities(partly, "source-degraded") == [Severity.WARNING]


def test_source_active():
    members = GroupInfo("payments", True, GroupType.CLASSIC, "Stable", (MEMBER,))
    assert severities(world(source_info=members, **QUIET), "source-active") == [Severity.WARNING]
    assert not severities(world(source_info=empty(), **QUIET), "source-active")


def synced(*, ago: float = 600.0, **more: Any) -> Any:
    seen = {0: checkpoint(500, 480, ago=ago)}
    return world(checkpoints=seen, target_commits={0: 480}, info=empty(), **DOWN, **more)


def test_group_sync_by_configuration_is_an_error():
    assert severities(synced(group_offsets_synced=True), "mm2-group-sync") == [Severity.ERROR]


def test_group_sync_seen_moving_is_an_error():
    samples: dict[str, Any] = {"commit_samples": {"payments": {T0: 300}}, "sampled": TAKEN - timedelta(seconds=30)}
    assert severities(synced(**samples), "mm2-group-sync") == [Severity.ERROR]


def test_a_commit_that_follows_the_newest_checkpoint_is_an_error():
    assert severities(synced(ago=60), "mm2-group-sync") == [Severity.ERROR]
    assert not severities(synced(ago=60), "mm2-group-sync", written={"payments": {T0: 480}})


def test_group_sync_suspected_is_a_warning_unless_this_tool_wrote_the_value():
    assert severities(synced(), "mm2-group-sync") == [Severity.WARNING]
    assert not severities(synced(), "mm2-group-sync", written={"payments": {T0: 480}})
    members = GroupInfo("payments", True, GroupType.CLASSIC, "Stable", (MEMBER,))
    there = world(checkpoints={0: checkpoint(500, 480)}, target_commits={0: 480}, info=members, **DOWN)
    assert not severities(there, "mm2-group-sync")
    elsewhere = world(checkpoints={0: checkpoint(500, 480)}, target_commits={0: 300}, **DOWN)
    assert not severities(elsewhere, "mm2-group-sync")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"source_commits": {0: 6000}, "checkpoints": {0: checkpoint(500, 1, ago=10800)}}, [Severity.WARNING]),
        ({"source_commits": {0: 6000}, "checkpoints": {0: checkpoint(500, 1, ago=60)}}, []),
        ({"source_commits": {0: 500}, "checkpoints": {0: checkpoint(500, 1, ago=10800)}}, []),  # a quiet group
        ({"checkpoints": {0: checkpoint(500, 1, ago=10800)}, **DOWN}, [Severity.INFO]),
    ],
)
def test_checkpoint_stale(given, expected):
    assert severities(world(**given), "checkpoint-stale") == expected


def test_checkpoint_stale_tells_by_how_much():
    snapshot = world(source_commits={0: 6000}, checkpoints={0: checkpoint(500, 1, ago=10800)})
    (finding,) = [finding for finding in plan(snapshot).findings if finding.code == "checkpoint-stale"]
    assert "5,500 records" in finding.message
    assert "180 min" in finding.message


def test_pending_offsets():
    snapshot = world(**QUIET)
    snapshot.source.pending["payments"] = (S0,)
    assert severities(snapshot, "offsets-pending") == [Severity.WARNING]


@pytest.mark.parametrize(("minutes", "expected"), [("10080", Severity.INFO), ("1440", Severity.WARNING)])
def test_offsets_expire(minutes, expected):
    snapshot = world(**QUIET)
    snapshot.target.settings["offsets.retention.minutes"] = minutes
    assert severities(snapshot, "offsets-expire") == [expected]


@pytest.mark.parametrize(
    ("replicas", "settings", "expected"),
    [
        (1, {"min.insync.replicas": "2"}, [Severity.WARNING]),
        (1, {"min.insync.replicas": "2", "inter.broker.protocol.version": "3.6-IV2"}, [Severity.ERROR]),
        (1, {"min.insync.replicas": "2", "inter.broker.protocol.version": "3.7-IV4"}, [Severity.WARNING]),
        (3, {"min.insync.replicas": "2"}, []),
        (1, {}, []),
        (0, {"min.insync.replicas": "2"}, []),  # not told
    ],
)
def test_min_isr(replicas, settings, expected):
    snapshot = world(**QUIET)
    snapshot.target.topics["primary.orders"] = TopicInfo("primary.orders", 1, replication_factor=replicas)
    snapshot.target.settings.update(settings)
    assert severities(snapshot, "min-isr-unsatisfiable") == expected


@pytest.mark.parametrize(
    ("reading", "code"),
    [
        (InternalTopicReading("primary.checkpoints.internal", "standby", True, 9, 2, "offset 4"), "unreadable-records"),
        (InternalTopicReading("primary.checkpoints.internal", "standby", False), "internal-topic-missing"),
        (
            InternalTopicReading("x", "standby", True, fault=Fault(29, "TOPIC_AUTHORIZATION_FAILED")),
            "internal-topic-unreadable",
        ),
    ],
)
def test_internal_topics(reading, code):
    assert severities(world(readings=(reading,), **QUIET), code) == [Severity.WARNING]
    fine = InternalTopicReading("primary.checkpoints.internal", "standby", True, 9)
    assert not severities(world(readings=(fine,), **QUIET), code)


def test_raw_copies_are_doubted_only_where_syncs_could_be_read():
    raw = {"checkpoints": {0: checkpoint(48211, 48211)}, "target_log": (0, 60000), **DOWN}
    other = TopicPartition("primary.orders", 7)
    assert severities(world(newest_syncs={other: (5, 5)}, **raw), "checkpoint-unconfirmed") == [Severity.WARNING]
    assert not severities(world(newest_syncs={T0: (48000, 48000)}, **raw), "checkpoint-unconfirmed")
    assert not severities(world(**raw), "checkpoint-unconfirmed")


def test_naming_mismatch_both_ways():
    snapshot = world(checkpoints={0: checkpoint(5, 5)}, **DOWN)
    snapshot.target.topics.clear()
    snapshot.target.topics["orders"] = TopicInfo("orders", 1)
    (finding,) = [finding for finding in plan(snapshot).findings if finding.code == "naming-mismatch"]
    assert finding.severity is Severity.ERROR
    assert "default naming (primary.orders), data uses identity naming (orders)" in finding.message
    snapshot.checkpoints["payments"] = {TopicPartition("fees", 0): checkpoint(5, 5)}
    snapshot.target.topics["primary.fees"] = TopicInfo("primary.fees", 1)
    assert severities(snapshot, "naming-mismatch") == [Severity.ERROR]


def test_uncovered_partitions():
    snapshot = world(partitions=2, checkpoints={0: checkpoint(5, 5)}, **DOWN)
    assert severities(snapshot, "partition-uncovered") == [Severity.WARNING]
    assert not severities(world(**QUIET), "partition-uncovered")


def test_partition_counts():
    snapshot = world(**QUIET)
    snapshot.source.topics["orders"] = TopicInfo("orders", 3)
    assert severities(snapshot, "partition-count-differs") == [Severity.WARNING]


def test_rewound_by_the_source_alone():
    snapshot = world(source_commits={0: 100}, checkpoints={0: checkpoint(500, 480)})
    assert severities(snapshot, "rewound-upstream") == [Severity.WARNING]


def test_subscription_and_exclusion():
    assert severities(world(**QUIET), "subscription-changes") == [Severity.INFO]
    left = (
        NotPlanned("console-consumer-1", "excluded"),
        NotPlanned("jobs", "share"),
        NotPlanned("by-hand", "excluded"),
    )
    snapshot = world(not_planned=left, outside_filters=("console-consumer-1", "payments"), **QUIET)
    named, excluded = [f for f in plan(snapshot).findings if f.code == "group-excluded"]
    assert excluded.message == "1 group is excluded by the flow's groups and groups.exclude"
    assert (named.subject, excluded.subject) == ("payments", "console-consumer-1")
    assert "MM2 writes no checkpoints there" in named.message


def test_find_works_without_a_plan():
    snapshot = world(**QUIET)
    denied = ClusterStatus("primary", None, ClusterState.DENIED, "refused")
    assert find(msgspec.structs.replace(snapshot, source=msgspec.structs.replace(snapshot.source, status=denied))) == ()


def test_commits_that_the_plan_does_not_renew_are_about_to_expire():
    """Brokers do not tell a commit's age; one that equals MM2's checkpoint is as old as that."""

    def told(days: float, standing: int = 480, **more: Any) -> list[str]:
        snapshot = world(
            source_commits={0: 500},
            translations={0: exact(500, 480)},
            checkpoints={0: checkpoint(500, 480, ago=days * 86400)},
            target_commits={0: standing},
            **more,
        )
        snapshot.target.settings["offsets.retention.minutes"] = "10080"
        return [f.message for f in plan(snapshot).findings if (f.code, f.severity) == ("offsets-expire", "warning")]

    [message] = told(6)
    assert message.startswith("commits of 1 group on standby are up to 6 days old and dropped after 7 days")
    assert len(told(8)) == 1
    assert told(5) == []
    assert told(6, standing=100) == []  # the plan commits, and the time begins anew
    assert told(6, info=GroupInfo("payments", True, GroupType.CLASSIC, "Stable", (MEMBER,))) == []


def test_min_isr_by_the_topics_own_setting():
    def told(own: str | None, **settings: str) -> list[Severity]:
        snapshot = world(**QUIET)
        snapshot.target.topics["primary.orders"] = TopicInfo("primary.orders", 1, replication_factor=2)
        snapshot.target.settings.update({key.replace("_", "."): value for key, value in settings.items()})
        if own is not None:
            snapshot.target.topic_settings["primary.orders"] = {"min.insync.replicas": own}
        return severities(snapshot, "min-isr-unsatisfiable")

    assert told("3", min_insync_replicas="1") == [Severity.WARNING]
    assert told("3", inter_broker_protocol_version="3.6-IV2") == [Severity.ERROR]
    assert told("1", min_insync_replicas="3") == []
    assert told(None, min_insync_replicas="3") == [Severity.WARNING]


@pytest.mark.parametrize(
    ("operations", "standing", "told"),
    [
        ({"READ", "DESCRIBE"}, {}, 1),
        ({"READ", "DELETE"}, {}, 0),
        ({"ALL", "READ"}, {}, 0),
        (None, {}, 0),  # the broker does not say
        ({"READ"}, {0: 100}, 0),  # what stood before can be put back
    ],
)
def test_a_rollback_that_could_not_delete(operations, standing, told):
    rights = None if operations is None else frozenset(operations)
    snapshot = world(info=empty(exists=bool(standing), operations=rights), target_commits=standing, **QUIET)
    found = [finding for finding in plan(snapshot).findings if finding.code == "rollback-limited"]
    assert [finding.subject for finding in found] == ["payments"] * told
    assert all("--operation Delete --group payments" in finding.remedy for finding in found)


def test_streams_applications_are_told_by_their_topics():
    def told(*topics: str) -> list[str]:
        snapshot = world(**QUIET)
        for name in topics:
            snapshot.source.topics[name] = TopicInfo(name, 1)
        return [f.message for f in plan(snapshot).findings if f.code == "streams-state"]

    [message] = told("payments-by-day-changelog", "payments-by-user-repartition", "payments-audit", "zebra")
    assert "payments-by-day-changelog, payments-by-user-repartition" in message
    assert told("payments-audit", "payment-x-changelog", "paymentsx-changelog") == []
