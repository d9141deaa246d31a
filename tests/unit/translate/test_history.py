from __future__ import annotations

from failover.model import TopicPartition
from failover.translate.history import SyncHistory


def test_partitions_are_kept_apart_in_arrival_order() -> None:
    syncs = SyncHistory()
    for up in range(3):
        syncs.append("a", 0, up, up + 10)
        syncs.append("a", 1, up, up + 20)
    syncs.append("b", 0, 7, 7)
    assert len(syncs) == 7
    frozen = syncs.freeze()
    assert set(frozen) == {TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)}
    assert list(frozen[TopicPartition("a", 1)].downs) == [20, 21, 22]
    assert len(syncs) == 0


def test_the_fake_sync_of_old_releases_is_left_out() -> None:
    syncs = SyncHistory()
    syncs.append("a", 0, -1, -1)
    assert syncs.freeze() == {}


def test_a_rewind_upstream_starts_a_history_and_a_gap_does_not() -> None:
    syncs = SyncHistory()
    syncs.extend("a", 0, [(0, 0), (500, 20), (100, 30), (600, 40), (600, 50)])
    frozen = syncs.freeze()[TopicPartition("a", 0)]
    assert list(frozen.starts) == [0, 2, 4]
    assert [frozen.history_of(index) for index in range(5)] == [0, 0, 1, 1, 2]
    assert frozen.below(599, 4) == 2
    assert frozen.below(599, 1) == 1
    assert frozen.below(99, 4) == 0


def test_records_mirrored_are_counted_by_downstream_steps_beyond_the_frontier() -> None:
    syncs = SyncHistory()
    syncs.extend("a", 0, [(0, 0), (100, 50), (40, 60), (300, 160)])
    frozen = syncs.freeze()[TopicPartition("a", 0)]
    assert list(frozen.breaks.after) == [1]
    assert frozen.data_between(0, 101) == 51
    assert frozen.data_between(100, 301) == 1 + 40
    assert frozen.usable_to() == 3
