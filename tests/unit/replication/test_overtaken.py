from __future__ import annotations

import asyncio

import pytest

from failover.errors import ClusterUnreachable
from failover.replication import overtaken as module
from failover.replication.shards import Slice


class Positions:
    """Names the successor at the last of so many looks; an error is raised."""

    def __init__(self, *answers):
        self.answers = list(answers)

    async def other_writer(self, since_ms, *, shard=None):
        assert since_ms == 5
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.mark.parametrize(
    ("answers", "named"),
    [
        (["", "", "dr-2 (process 7)"], "taken over, dr-2 (process 7) (shard 3"),
        ([""] * 5, "taken over (shard 3"),
        ([ClusterUnreachable("cluster b is gone", alias="b")], "taken over (shard 3"),
    ],
)
def test_the_successor_is_named_where_it_can_be(monkeypatch, answers, named):
    monkeypatch.setattr(module, "_PAUSE_SECONDS", 0)
    positions = Positions(*answers)
    error = asyncio.run(module.overtaken("a->b", "shard 3: fenced", positions, 5))
    assert f"flow a->b: another worker has {named}: fenced)" == error.message
    assert error.exit_code == 3
    assert positions.answers == []


def test_of_workers_with_fixed_parts_the_rule_is_told(monkeypatch):
    monkeypatch.setattr(module, "_PAUSE_SECONDS", 0)
    positions = Positions("dr-2 (process 7, shard 2/2)")
    error = asyncio.run(module.overtaken("a->b", "shard 5: fenced", positions, 5, part=Slice(2, 3), shard=5))
    assert error.message == (
        "flow a->b, --shard 2/3: another worker has taken part of it, dr-2 (process 7, shard 2/2) (shard 5: fenced)"
    )
    assert "--shard I/3" in error.hint
