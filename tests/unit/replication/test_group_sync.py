"""Group offset sync: never back, never a group with members, never over what was not read on the target."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import Any

import pytest

from failover.mm2.exact_checkpoint import Known, Position
from failover.model.cluster import LogRange
from failover.model.groups import Commit, GroupInfo, GroupType, Member
from failover.model.names import Fault, TopicPartition
from failover.replication import group_sync as module
from failover.replication.group_sync import GroupSync

PLACE, OTHER = TopicPartition("a.orders", 0), TopicPartition("a.orders", 1)
ACTIVE = Fault(25, "UNKNOWN_MEMBER_ID")
TIMED_OUT = Fault(-2, "NO_ANSWER", "silent")


class Target:
    """Is the target in memory. ``members``: groups that consume; ``faults``: group → why it cannot be described."""

    alias = "b"

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.standing: dict[str, dict[TopicPartition, Commit | Fault]] = {}
        self.logs = {PLACE: LogRange(0, 100), OTHER: LogRange(20, 100)}
        self.members: set[str] = set()
        self.faults: dict[str, Fault] = {}
        self.unreadable: set[str] = set()
        self.joins: set[str] = set()
        self.writes: list[tuple[str, TopicPartition, int, bytes]] = []
        for name in ("describe_groups", "committed_offsets", "log_ranges", "commit_offsets"):
            monkeypatch.setattr(module, name, getattr(self, f"_{name}"))

    async def _describe_groups(self, _: Any, groups: Any) -> dict[str, GroupInfo]:
        return {group: self._info(group) for group in groups}

    def _info(self, group: str) -> GroupInfo:
        if group in self.faults:
            return GroupInfo(group, True, GroupType.UNKNOWN, "Unknown", fault=self.faults[group])
        if group in self.members:
            return GroupInfo(group, True, GroupType.CLASSIC, "Stable", (Member("c", "/h", "m"),))
        exists = group in self.standing
        return GroupInfo(group, exists, GroupType.CLASSIC, "Empty" if exists else "Dead")

    async def _committed_offsets(self, _: Any, groups: Any) -> dict[str, Any]:
        self.members |= self.joins  # between the look and the write
        return {
            group: TIMED_OUT if group in self.unreadable else dict(self.standing.get(group, {})) for group in groups
        }

    async def _log_ranges(self, _: Any, places: Any) -> dict[TopicPartition, Any]:
        return {place: self.logs.get(place, Fault(3, "UNKNOWN_TOPIC_OR_PARTITION")) for place in places}

    async def _commit_offsets(self, _: Any, commits: Any) -> dict[str, Any]:
        answers: dict[str, Any] = {}
        for group, due in commits.items():
            active = group in self.members
            answers[group] = dict.fromkeys(due, ACTIVE if active else None)
            for place, commit in due.items() if not active else ():
                self.writes.append((group, place, commit.offset, commit.metadata))
                self.standing.setdefault(group, {})[place] = commit
        return answers


@pytest.fixture
def target(monkeypatch: pytest.MonkeyPatch) -> Target:
    return Target(monkeypatch)


def tracker(*, age: float = 0, **positions: dict[TopicPartition, int]) -> Any:
    known = Known(proof="content", precision="exact")
    found = {
        group: {place: Position(offset + 7, offset, b"m", known) for place, offset in places.items()}
        for group, places in positions.items()
    }
    looked = dict.fromkeys(found, int((time.time() - age) * 1000))
    return SimpleNamespace(leads=True, terms=1, positions=found, looked=looked, options=SimpleNamespace(interval=5.0))


def sync(target: Target, known: Any, times: int = 1) -> GroupSync:
    syncing = GroupSync(known, target)  # type: ignore[arg-type]
    for _ in range(times):
        asyncio.run(syncing.sync())
    return syncing


def test_idle_and_absent_groups_get_exact_positions_with_their_metadata(target: Target) -> None:
    target.standing = {"old": {PLACE: Commit(5)}}
    sync(target, tracker(old={PLACE: 50}, new={PLACE: 60, OTHER: 70}), times=3)
    assert sorted(target.writes) == [
        ("new", PLACE, 60, b"m"),
        ("new", OTHER, 70, b"m"),
        ("old", PLACE, 50, b"m"),
    ]


@pytest.mark.parametrize("standing", [50, 51, 99])
def test_no_commit_goes_back(target: Target, standing: int) -> None:
    target.standing = {"g": {PLACE: Commit(standing)}}
    sync(target, tracker(g={PLACE: 50}), times=2)
    assert target.writes == []


@pytest.mark.parametrize("why", ["members", "faults", "unreadable", "fault of a partition"])
def test_groups_that_consume_or_cannot_be_looked_at_are_left_alone(target: Target, why: str) -> None:
    target.standing = {"g": {PLACE: Commit(5)}}
    if why == "members":
        target.members = {"g"}
    elif why == "faults":
        target.faults = {"g": TIMED_OUT}
    elif why == "unreadable":
        target.unreadable = {"g"}
    else:
        target.standing["g"][PLACE] = TIMED_OUT
    sync(target, tracker(g={PLACE: 50}), times=2)
    assert target.writes == []


def test_a_group_that_gets_members_just_then_is_refused_and_no_trouble(
    target: Target, caplog: pytest.LogCaptureFixture
) -> None:
    target.standing = {"g": {PLACE: Commit(5)}}
    target.joins = {"g"}
    syncing = sync(target, tracker(g={PLACE: 50}))
    assert (target.writes, caplog.messages) == ([], [])
    # they read on the target and leave: what they committed stays
    target.joins, target.members = set(), set()
    target.standing["g"][PLACE] = Commit(80)
    asyncio.run(syncing.sync())
    assert target.writes == []


def test_what_was_consumed_on_the_target_is_left_to_its_consumers(target: Target) -> None:
    known = tracker(g={PLACE: 50, OTHER: 50})
    syncing = sync(target, known)
    # consumers read a little of one partition and leave; the source's group goes on
    target.standing["g"][PLACE] = Commit(55)
    known.positions = tracker(g={PLACE: 90, OTHER: 90}).positions
    asyncio.run(syncing.sync())
    target.standing["g"][PLACE] = Commit(50)
    asyncio.run(syncing.sync())
    assert target.writes[2:] == [("g", OTHER, 90, b"m")]


def test_what_another_leader_wrote_meanwhile_is_not_taken_for_a_consumers(target: Target) -> None:
    known = tracker(g={PLACE: 50})
    syncing = sync(target, known)
    known.leads = False
    target.standing["g"][PLACE] = Commit(70)
    asyncio.run(syncing.sync())
    known.leads, known.terms = True, 2
    known.positions = tracker(g={PLACE: 90}).positions
    asyncio.run(syncing.sync())
    assert target.writes[1:] == [("g", PLACE, 90, b"m")]


def test_a_group_set_back_on_the_source_keeps_its_commit(target: Target) -> None:
    known = tracker(g={PLACE: 50})
    syncing = sync(target, known)
    known.positions = tracker(g={PLACE: 20}).positions
    asyncio.run(syncing.sync())
    assert target.standing["g"][PLACE].offset == 50  # type: ignore[union-attr]


def test_commits_lie_within_the_targets_logs(target: Target) -> None:
    gone = TopicPartition("a.gone", 0)
    sync(target, tracker(g={PLACE: 101, OTHER: 3, gone: 1}), times=2)
    assert target.writes == [("g", OTHER, 20, b"m")]


def test_with_the_source_silent_nothing_is_written(target: Target) -> None:
    sync(target, tracker(age=40, g={PLACE: 50}))
    waiting = tracker(g={PLACE: 50})
    waiting.leads = False
    sync(target, waiting)
    assert target.writes == []
