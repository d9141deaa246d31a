from __future__ import annotations

from collections import Counter

import pytest
from aiokafka.partitioner import murmur2
from hypothesis import given
from hypothesis import strategies as st

from failover.model.names import TopicPartition
from failover.replication.shards import SHARDS, shard_of, transactional_id


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
