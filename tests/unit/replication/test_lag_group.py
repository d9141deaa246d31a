from __future__ import annotations

import asyncio
import logging
from typing import Any, NamedTuple

import pytest

from failover.kafka.faults import fault
from failover.model.groups import Commit
from failover.model.names import TopicPartition
from failover.replication import lag_group as module
from failover.replication.lag_group import LagGroup

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
GROUP = "mirrormaker2-cluster-b"


class Lane(NamedTuple):
    upstream: int


class Copied(NamedTuple):
    lane: Lane
    generation: int = 1


class Source:
    alias = "a"

    def __init__(self, monkeypatch):
        self.commits: dict[TopicPartition, int] = {}
        self.asked: list[dict[TopicPartition, int]] = []
        self.answer: Any = None
        self.copied: dict[TopicPartition, Copied] = {}
        self.group = LagGroup(self, GROUP, lambda: self.copied)  # type: ignore[arg-type]
        monkeypatch.setattr(module, "commit_offsets", self.commit_offsets)

    async def commit_offsets(self, cluster, commits, *, lanes):
        assert cluster is self
        ((group, wanted),) = commits.items()
        assert group == GROUP
        assert all(isinstance(commit, Commit) and commit.metadata == b"" for commit in wanted.values())
        self.asked.append({tp: commit.offset for tp, commit in wanted.items()})
        return {group: self.answer if self.answer is not None else dict.fromkeys(wanted)}

    def round(self, **upstreams):
        self.copied |= {TopicPartition(name[0], int(name[1])): Copied(Lane(at)) for name, at in upstreams.items()}
        asyncio.run(self.group.commit())
        return self.asked[-1] if self.asked else None


@pytest.fixture
def source(monkeypatch):
    return Source(monkeypatch)


def test_what_has_moved_is_committed_and_nothing_else(source):
    assert source.round(t0=5, t1=7) == {T0: 5, T1: 7}
    assert source.round(t0=6) == {T0: 6}
    source.round()
    assert len(source.asked) == 2


def test_what_is_not_located_yet_has_no_position(source):
    source.copied[T0] = Copied(Lane(0), generation=0)
    source.round()
    assert source.asked == []
    assert source.round(t1=3) == {T1: 3}


def test_a_topic_made_anew_goes_back(source):
    source.round(t0=500)
    assert source.round(t0=0) == {T0: 0}


def test_what_stands_is_committed_again_before_it_can_expire(source):
    source.round(t0=5)
    for _ in range(2 * 720):
        source.round()
    assert source.asked == [{T0: 5}] * 3


@pytest.mark.parametrize(
    ("number", "hint"),
    [(30, "grant READ on the group"), (29, "grant READ on the topics"), (25, "the group has members")],
)
def test_a_refusal_is_said_once_and_tried_again(source, caplog, number, hint):
    caplog.set_level(logging.INFO)
    source.answer = {T0: fault(number)}
    for _ in range(3):
        source.round(t0=5)
    (line,) = [record.getMessage() for record in caplog.records]
    assert GROUP in line
    assert "t-0" in line
    assert hint in line
    source.answer = None
    assert source.round() == {T0: 5}
    assert caplog.records[-1].getMessage() == f"group {GROUP} of a: positions are committed again"


def test_a_fault_of_the_whole_group(source, caplog):
    source.answer = fault(15)
    source.round(t0=5, t1=6)
    assert "2 positions" in caplog.text
    source.answer = None
    assert source.round() == {T0: 5, T1: 6}
