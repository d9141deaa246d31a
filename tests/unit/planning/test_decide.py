"""The decision table, row by row: action, reason, offset, where consumers start and what that costs."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from failover.errors import UsageError
from failover.model import Fault, Precision, Proof, TopicPartition, Translation
from failover.model.cluster import ClusterState, LogRange, TopicInfo
from failover.model.groups import Commit
from failover.model.plan import PlanOptions
from tests.unit.planning.worlds import S0, T0, TAKEN, checkpoint, exact, only, only_group, plan, world

DOWN: dict[str, Any] = {"source": ClusterState.DOWN}


def target_with(snapshot: Any, **changes: Any) -> Any:
    import msgspec

    return msgspec.structs.replace(snapshot, target=msgspec.structs.replace(snapshot.target, **changes))


@pytest.mark.parametrize(
    ("given", "options", "decided", "start", "skipped"),
    [
        # commit
        ({"checkpoints": {0: checkpoint(500, 480)}, **DOWN}, {}, ("commit", "translated", 480), (480, "plan"), 0),
        ({"checkpoints": {0: checkpoint(0, 0)}, **DOWN}, {}, ("commit", "translated", 0), (0, "plan"), 0),
        (
            {"source_commits": {0: 500}, "translations": {0: exact(500, 490)}},
            {},
            ("commit", "translated", 490),
            (490, "plan"),
            0,
        ),
        # Offset 0 is an offset: nothing was consumed, syncs or not.
        ({"source_commits": {0: 0}, "target_log": (0, 5000)}, {}, ("commit", "translated", 0), (0, "plan"), 0),
        (
            {"checkpoints": {0: checkpoint(500, 480)}, "target_log": (600, 1000), **DOWN},
            {},
            ("commit", "raised-to-log-start", 600),
            (600, "plan"),
            0,
        ),
        # Nothing left on the source, nothing ever on the target.
        (
            {"source_commits": {0: 500}, "source_log": (500, 500), "target_log": (0, 0)},
            {},
            ("commit", "at-log-end", 0),
            (0, "plan"),
            0,
        ),
        # skip, a standing commit serves
        (
            {"checkpoints": {0: checkpoint(500, 480)}, "target_commits": {0: 480}, **DOWN},
            {},
            ("skip", "already-there", None),
            (480, "standing-commit"),
            0,
        ),
        (
            {"checkpoints": {0: checkpoint(500, 480)}, "target_commits": {0: 780}, **DOWN},
            {},
            ("skip", "would-rewind", None),
            (780, "standing-commit"),
            300,
        ),
        (
            {"checkpoints": {0: checkpoint(500, 480)}, "target_commits": {0: 780}, **DOWN},
            {"allow_rewind": True},
            ("commit", "translated", 480),
            (480, "plan"),
            0,
        ),
        # The standing commit lies beyond the log: no consumer can start there.
        (
            {"checkpoints": {0: checkpoint(500, 480)}, "target_commits": {0: 5000}, **DOWN},
            {},
            ("skip", "would-rewind", None),
            (None, "auto.offset.reset"),
            None,
        ),
        # skip, no position known
        (
            {"source_commits": {}, "checkpoints": {}, "target_commits": {0: 7}},
            {},
            ("skip", "source-never-committed", None),
            (7, "standing-commit"),
            0,
        ),
        (
            {"checkpoints": {0: checkpoint(500, 480)}, "source_commits": {}},
            {},
            ("skip", "source-offset-expired", None),
            (None, "auto.offset.reset"),
            None,
        ),
        (
            {"source_commits": {0: 500}, "target_log": (0, 0)},
            {},
            ("skip", "not-mirrored", None),
            (None, "auto.offset.reset"),
            None,
        ),
        ({"source_commits": {0: 500}}, {}, ("skip", "no-checkpoint", None), (None, "auto.offset.reset"), None),
        ({"target_commits": {0: 700}, **DOWN}, {}, ("skip", "no-checkpoint", None), (700, "standing-commit"), None),
        # An old checkpoint of a group that was rewound since would skip: it is not used.
        (
            {"source_commits": {0: 100}, "checkpoints": {0: checkpoint(500, 480)}},
            {},
            ("skip", "no-checkpoint", None),
            (None, "auto.offset.reset"),
            None,
        ),
        # a policy for what has no position
        ({"source_commits": {0: 500}}, {"missing": "earliest"}, ("commit", "at-log-start", 0), (0, "plan"), 0),
        (
            {"target_log": (40, 1000), "target_commits": {0: 2000}, **DOWN},
            {"missing": "latest", "allow_skip": True, "allow_rewind": True},
            ("commit", "at-log-end", 1000),
            (1000, "plan"),
            960,
        ),
        # the source tells how many are unread
        (
            {"source_commits": {0: 700}, "target_log": (40, 1000)},
            {"missing": "latest", "allow_skip": True},
            ("commit", "at-log-end", 1000),
            (1000, "plan"),
            300,
        ),
        (
            {"source_commits": {0: 1000}, "target_log": (40, 1000)},
            {"missing": "latest", "allow_skip": True},
            ("commit", "at-log-end", 1000),
            (1000, "plan"),
            0,
        ),
        (
            {"source_commits": {0: 500}},
            {"missing": "fail"},
            ("refuse", "no-checkpoint", None),
            (None, "auto.offset.reset"),
            None,
        ),
        (
            {"target_commits": {0: 700}, **DOWN},
            {"missing": "earliest", "allow_rewind": True},
            ("skip", "no-checkpoint", None),
            (700, "standing-commit"),
            None,
        ),
        # refuse
        (
            {"checkpoints": {0: checkpoint(48211, 48211)}, "target_log": (0, 0), **DOWN},
            {},
            ("refuse", "beyond-log-end", None),
            (None, "auto.offset.reset"),
            None,
        ),
        (
            {"checkpoints": {0: checkpoint(48211, 48211)}, "target_log": (0, 20), **DOWN},
            {"allow_unverified": True},
            ("commit", "at-log-end", 20),
            (20, "plan"),
            None,
        ),
        # a position is known, and nothing tells where it lies: the end, and what is unread on the source is passed over
        (
            {"source_commits": {0: 500}},
            {"allow_unverified": True},
            ("commit", "at-log-end", 1000),
            (1000, "plan"),
            500,
        ),
        (
            {"source_commits": {0: 500}},
            {"allow_unverified": True, "missing": "earliest"},
            ("commit", "at-log-start", 0),
            (0, "plan"),
            0,
        ),
        (
            {"source_commits": {0: 500}},
            {"allow_unverified": True, "missing": "fail"},
            ("refuse", "no-checkpoint", None),
            (None, "auto.offset.reset"),
            None,
        ),
        (
            {"source_commits": {0: 500}, "target_commits": {0: 300}},
            {"allow_unverified": True},
            ("skip", "no-checkpoint", None),
            (300, "standing-commit"),
            None,
        ),
        # no position is known: that is for --missing to say
        (
            {"source_commits": {}, "target_commits": {0: 5000}},
            {"allow_unverified": True},
            ("skip", "source-never-committed", None),
            (None, "auto.offset.reset"),
            None,
        ),
        (
            {"checkpoints": {0: checkpoint(500, 480)}, "source_commits": {}},
            {"allow_unverified": True},
            ("skip", "source-offset-expired", None),
            (None, "auto.offset.reset"),
            None,
        ),
        (
            {"target_commits": {0: 5000}, **DOWN},
            {"allow_unverified": True},
            ("skip", "no-checkpoint", None),
            (None, "auto.offset.reset"),
            None,
        ),
        (
            {"checkpoints": {0: checkpoint(500, 480)}, **DOWN},
            {"precision": "exact"},
            ("refuse", "below-precision", None),
            (None, "auto.offset.reset"),
            None,
        ),
        (
            {"checkpoints": {0: checkpoint(500, 480)}, "foreign_owners": {"primary.orders": ("eu",)}, **DOWN},
            {},
            ("refuse", "two-sources", None),
            (None, "auto.offset.reset"),
            None,
        ),
    ],
)
def test_one_partition(given, options, decided, start, skipped):
    found = only(world(**given), PlanOptions(**options))
    assert (found.action, found.reason, found.offset) == decided
    assert (found.position_after.offset, found.position_after.by) == start
    assert found.skipped == skipped


def test_failure_of_the_translation_is_the_reason():
    failed = Translation(500, None, Precision.NONE, Proof.NONE, failure="older-than-first-sync")
    found = only(world(source_commits={0: 500}, translations={0: failed}))
    assert (found.action, found.reason, found.precision) == ("skip", "older-than-first-sync", "none")


def test_translation_that_finds_the_topic_made_anew_refuses():
    failed = Translation(500, None, Precision.NONE, Proof.NONE, failure="target-recreated")
    given: dict[str, Any] = {
        "source_commits": {0: 500},
        "translations": {0: failed},
        "checkpoints": {0: checkpoint(400, 300)},
    }
    for missing in ("leave", "earliest"):
        found = only(world(**given), PlanOptions(missing=missing))
        assert (found.action, found.reason, found.offset) == ("refuse", "target-recreated", None)


@pytest.mark.parametrize(
    ("missing", "decided"),
    [("leave", ("commit", "at-log-end", 1000)), ("earliest", ("commit", "at-log-start", 0)), ("fail", None)],
)
def test_a_topic_made_anew_is_taken_at_its_end_only_where_that_is_allowed(missing, decided):
    failed = Translation(500, None, Precision.NONE, Proof.NONE, failure="target-recreated")
    by_evidence = world(source_commits={0: 500}, translations={0: failed}, checkpoints={0: checkpoint(400, 300)})
    before = plan(world(checkpoints={0: checkpoint(500, 480)}, **DOWN))
    topics = {"primary.orders": TopicInfo("primary.orders", 1, "id-2")}
    by_id = target_with(world(checkpoints={0: checkpoint(500, 480)}, **DOWN), topics=topics)
    for snapshot, earlier in ((by_evidence, None), (by_id, before)):
        refused = only(snapshot, PlanOptions(missing=missing), earlier=earlier)
        assert (refused.action, refused.reason) == ("refuse", "target-recreated")
        taken = only(snapshot, PlanOptions(missing=missing, allow_unverified=True), earlier=earlier)
        assert (taken.action, taken.reason, taken.offset) == (decided or ("refuse", "target-recreated", None))
        assert taken.precision == "none"


def test_translation_of_a_later_position_than_the_commit_is_not_used():
    found = only(world(source_commits={0: 400}, translations={0: exact(500, 490)}))
    assert (found.action, found.reason) == ("skip", "no-checkpoint")


def test_topic_and_partition_missing():
    snapshot = world(partitions=2, checkpoints={0: checkpoint(5, 5), 1: checkpoint(6, 6)}, **DOWN)
    fewer = target_with(snapshot, topics={"primary.orders": TopicInfo("primary.orders", 1, "id-1")})
    assert [p.reason for p in only_group(fewer).partitions] == ["translated", "partition-missing"]
    gone = only_group(target_with(snapshot, topics={}))
    assert [(p.action, p.reason, p.skipped) for p in gone.partitions] == [("skip", "topic-missing", None)] * 2
    assert gone.verdict == "partial"


@pytest.mark.parametrize(
    "changes",
    [
        {"log_faults": {T0: Fault(6, "NOT_LEADER_OR_FOLLOWER")}},
        {"logs": {}},
        {"topics": {"primary.orders": TopicInfo("primary.orders", 1, leaderless=(0,))}},
    ],
)
def test_partition_that_does_not_answer(changes):
    found = only(target_with(world(checkpoints={0: checkpoint(5, 5)}, **DOWN), **changes))
    assert (found.action, found.reason, found.offset) == ("refuse", "target-unavailable", None)


def test_topic_rights_are_asked_for():
    topics = {"primary.orders": TopicInfo("primary.orders", 1, operations=frozenset({"DESCRIBE"}))}
    found = only(target_with(world(checkpoints={0: checkpoint(5, 5)}, **DOWN), topics=topics))
    assert (found.action, found.reason) == ("refuse", "not-authorized")


def test_topic_that_may_not_be_seen_is_no_missing_one():
    unseen = target_with(world(checkpoints={0: checkpoint(5, 5)}, **DOWN), topics={}, hidden=frozenset({T0.topic}))
    found = only(unseen)
    assert (found.action, found.reason) == ("refuse", "not-authorized")


def test_recreated_topic_does_not_use_evidence_from_before():
    before = plan(world(checkpoints={0: checkpoint(500, 480)}, **DOWN))
    topics = {"primary.orders": TopicInfo("primary.orders", 1, "id-2")}
    after = target_with(world(checkpoints={0: checkpoint(500, 480)}, **DOWN), topics=topics)
    assert only(after, earlier=before).reason == "target-recreated"
    newer = target_with(world(checkpoints={0: checkpoint(20, 20, ago=-30)}, **DOWN), topics=topics)
    assert only(newer, earlier=before).reason == "translated"


def test_every_partition_of_a_read_topic_is_listed():
    group = only_group(world(partitions=3, checkpoints={0: checkpoint(5, 5), 1: checkpoint(9, 9)}, **DOWN))
    last = group.partitions[2]
    assert (last.reason, last.position_after.by, last.skipped) == ("no-checkpoint", "auto.offset.reset", None)
    assert group.verdict == "partial"


def test_never_committed_partition_leaves_its_group_ready():
    group = only_group(world(partitions=2, source_commits={0: 500}, translations={0: exact(500, 490)}))
    assert [p.reason for p in group.partitions] == ["translated", "source-never-committed"]
    assert group.partitions[1].skipped is None
    assert group.verdict == "ready"


def test_rewound_group_uses_its_newest_checkpoint():
    rewound = checkpoint(100, 100, earlier_upstream=900)
    assert only(world(checkpoints={0: rewound}, **DOWN)).offset == 100
    snapshot = world(checkpoints={0: rewound}, target_commits={0: 900}, group_offsets_synced=True, **DOWN)
    stands = only(snapshot)
    assert (stands.reason, stands.ahead, stands.ahead_because, stands.skipped) == (
        "would-rewind",
        800,
        "mm2-group-sync",
        800,
    )
    assert "rewound-upstream" in [finding.code for finding in plan(snapshot).findings]


WROTE_780 = {"payments": {T0: 780}}


@pytest.mark.parametrize(
    ("written", "synced", "cause", "ahead", "skipped"),
    [
        (None, False, "unknown", 300, 300),
        (600, False, "consumed-here", 180, 0),
        (600, True, "unknown", 180, 180),
    ],
)
def test_why_a_commit_stands_ahead(written, synced, cause, ahead, skipped):
    snapshot = world(
        checkpoints={0: checkpoint(500, 480)}, target_commits={0: 780}, group_offsets_synced=synced, **DOWN
    )
    memory = {} if written is None else {"payments": {T0: written}}
    found = only(snapshot, written=memory)
    assert (found.ahead, found.ahead_because, found.skipped) == (ahead, cause, skipped)


def test_what_this_tool_wrote_with_better_evidence_stays_known_when_the_source_is_gone():
    stands = only(world(checkpoints={0: checkpoint(500, 480)}, target_commits={0: 780}, **DOWN), written=WROTE_780)
    assert (stands.action, stands.reason, stands.skipped, stands.proof) == ("skip", "already-there", 0, "tracked")
    expired = only(world(checkpoints={0: checkpoint(500, 480)}, **DOWN), written=WROTE_780)
    assert (expired.action, expired.offset, expired.precision) == ("commit", 780, "conservative")
    remade = only(world(checkpoints={0: checkpoint(500, 480)}, target_log=(0, 700), **DOWN), written=WROTE_780)
    assert remade.offset == 480


def test_what_this_tool_wrote_is_no_longer_believed_when_the_group_was_set_back():
    rewound = msgspec.structs.replace(checkpoint(500, 480), earlier_upstream=900)
    found = only(world(checkpoints={0: rewound}, target_commits={0: 780}, **DOWN), written={"payments": {T0: 780}})
    assert (found.ahead_because, found.skipped) == ("this-tool", 300)


def test_re_read_is_what_lies_between_and_the_bound_is_what_the_target_holds():
    # 50 of 100 consumed, the only sync is 0 -> 0: MM2 answers 1.
    found = only(
        world(source_commits={0: 50}, checkpoints={0: checkpoint(50, 1)}, target_log=(0, 100), source_log=(0, 100))
    )
    assert (found.offset, found.reread, found.reread_max, found.lag_after) == (1, 49, 99, 99)


def test_drained_group_counts_as_at_the_target_end():
    # Ten records and a transaction marker on the source: the ends differ, the group is at both.
    found = only(
        world(source_commits={0: 11}, source_log=(0, 11), checkpoints={0: checkpoint(11, 10)}, target_log=(0, 10))
    )
    assert (found.offset, found.reread, found.lag_after, found.skipped) == (10, 0, 0, 0)
    behind = only(
        world(source_commits={0: 11}, source_log=(0, 11), checkpoints={0: checkpoint(5, 4)}, target_log=(0, 10))
    )
    assert (behind.offset, behind.reread, behind.reread_max) == (4, 6, 6)


def test_source_down_knows_no_estimate():
    found = only(world(checkpoints={0: checkpoint(500, 480)}, translations={0: exact(500, 490)}, **DOWN))
    assert (found.offset, found.precision, found.reread, found.reread_max) == (490, "exact", None, 510)


def test_bounds_shrink_with_what_the_offset_was_raised_by():
    loose = Translation(500, 480, Precision.BOUNDED, Proof.SYNC_BELOW, 150, 200)
    raised = only(world(source_commits={0: 500}, translations={0: loose}, target_log=(600, 1000)))
    assert (raised.offset, raised.reread, raised.reread_max) == (600, 30, 80)
    small = only(world(source_commits={0: 500}, translations={0: loose}, target_log=(0, 500)))
    assert (small.reread, small.reread_max) == (20, 20)


def test_mm2_answer_and_its_cost():
    found = only(
        world(
            source_commits={0: 500},
            translations={0: exact(500, 490)},
            checkpoints={0: checkpoint(400, 300)},
            mm2_answers={"payments": {T0: 310}},
        )
    )
    assert found.mm2 is not None
    assert (found.mm2.offset, found.mm2.reread) == (310, 180)


def test_metadata_passes_through_byte_for_byte():
    import base64

    seen = only(world(checkpoints={0: checkpoint(5, 5, metadata=b"\xff\x00x")}, **DOWN))
    assert seen.metadata_base64 is not None
    assert base64.b64decode(seen.metadata_base64) == b"\xff\x00x"
    snapshot = world(source_commits={0: 5}, translations={0: exact(5, 5)})
    snapshot.source.commits["payments"][S0] = Commit(5, "käfka".encode())
    assert (only(snapshot).metadata, only(snapshot).metadata_base64) == ("käfka", None)


def test_checkpoint_age_counts_from_its_record():
    seen = only(world(checkpoints={0: checkpoint(5, 5, ago=138)}, **DOWN)).checkpoint
    assert seen is not None
    assert seen.age_seconds == 138.0
    assert (TAKEN - seen.timestamp).total_seconds() == 138.0


@pytest.mark.parametrize("missing", ["latest", "at=2026-01-01T00:00:00Z", "ago=1h", "newest"])
def test_policies_that_cannot_be_carried_out(missing):
    with pytest.raises(UsageError, match=missing):
        plan(world(source_commits={0: 5}), PlanOptions(missing=missing))


def test_identity_naming_with_a_standing_local_commit():
    snapshot = world(checkpoints={0: checkpoint(5, 5)}, **DOWN)
    orders = TopicPartition("orders", 0)
    with_local = target_with(
        snapshot,
        topics={**snapshot.target.topics, "orders": TopicInfo("orders", 3)},
        commits={"payments": {orders: Commit(3)}},
        logs={**snapshot.target.logs, orders: LogRange(0, 9)},
    )
    group = only_group(with_local)
    assert group.subscribe == ("primary.orders", "orders")
    (local,) = group.local_topics
    assert (local.topic, local.exists, local.partitions, local.expected_partitions, local.committed) == (
        "orders",
        True,
        3,
        1,
        True,
    )
