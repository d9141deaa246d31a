from __future__ import annotations

from collections import Counter

import pytest
from aiokafka.partitioner import murmur2
from hypothesis import given
from hypothesis import strategies as st

from failover.errors import UsageError
from failover.model.names import TopicPartition
from failover.replication.shards import EVERY, SHARDS, Slice, moves, parse_slice, shard_of, transactional_id


@pytest.mark.parametrize(
    ("topic", "partition", "shard"),
    [
        ("orders", 0, 32),
        ("orders", 1, 4),
        ("orders", 2, 43),
        ("t", 0, 56),
        ("a.b_c-d", 11, 60),
        ("heartbeats", 0, 20),
        ("x" * 249, 4095, 59),
    ],
)
def test_the_numbers_are_those_of_every_release(topic, partition, shard):
    """Two workers of different releases that cut a flow otherwise would not fence each other."""
    assert shard_of(TopicPartition(topic, partition)) == shard


@given(st.text("abcXYZ019._-", min_size=1, max_size=249), st.integers(0, 100_000))
def test_it_is_kafkas_hash(topic, partition):
    assert shard_of(TopicPartition(topic, partition)) == murmur2(f"{topic}-{partition}".encode()) % 64 + 1


def test_all_are_used_alike():
    counts = Counter(shard_of(TopicPartition(f"topic-{at}", part)) for at in range(100) for part in range(20))
    assert sorted(counts) == list(range(1, SHARDS + 1))
    assert max(counts.values()) < 2 * 2_000 / SHARDS


def test_names():
    assert transactional_id("A", "B", 64) == "failover|A->B|64"
    assert transactional_id("A", "B") == "failover|A->B|"


@given(st.integers(1, SHARDS))
def test_slices_have_each_shard_once(workers):
    parts = [Slice(number, workers).shards for number in range(1, workers + 1)]
    assert all(parts)
    assert frozenset().union(*parts) == EVERY
    assert sum(map(len, parts)) == SHARDS
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@given(st.integers(1, SHARDS).flatmap(lambda n: st.tuples(st.integers(1, n), st.just(n))))
def test_a_slice_is_read_as_it_is_written(part):
    assert parse_slice(str(Slice(*part))) == Slice(*part)


@pytest.mark.parametrize(
    "text", ["", "1", "/", "1/", "/3", "0/3", "4/3", "1/65", "-1/3", "1/3/5", "a/b", "1/0003", "²/3"]
)
def test_another_slice_is_refused(text):
    with pytest.raises(UsageError) as caught:
        parse_slice(text)
    assert "1/3" in caught.value.hint


HELD = st.dictionaries(st.integers(0, SHARDS), st.integers(1, 4))


@given(HELD, HELD)
def test_moves_lead_from_what_was_had_to_what_is_held(had, holds):
    gone, fresh = moves(had, holds)
    kept = {token: by for token, by in had.items() if token not in gone}
    assert kept | {token: holds[token] for token in fresh} == holds
    assert all(holds[token] == by for token, by in kept.items())
    assert not fresh & kept.keys()


@given(st.lists(HELD, max_size=6))
def test_a_token_that_came_by_another_assignment_is_let_go_first(history):
    had: dict[int, int] = {}
    for holds in history:
        gone, fresh = moves(had, holds)
        assert {token for token in fresh if token in had} <= gone
        had = holds
