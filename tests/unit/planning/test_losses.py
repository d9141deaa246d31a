"""What the target does not have, and how sure that number is."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from failover.model import TopicPartition
from failover.model.cluster import ClusterState
from failover.model.names import Fault
from tests.unit.planning.worlds import S0, T0, TAKEN, checkpoint, exact, plan, world


def rows(snapshot: Any) -> Any:
    found = plan(snapshot).unreplicated
    return None if found is None else [(r.source_topic, r.partition, r.records, r.bound) for r in found]


SYNC: dict[str, Any] = {"newest_syncs": {T0: (900, 890)}, "source_log": (0, 1010)}
EXACT: dict[str, Any] = {"source_commits": {0: 900}, "translations": {0: exact(900, 890)}, "source_log": (0, 1010)}
LOOSE: dict[str, Any] = {"checkpoints": {0: checkpoint(900, 890)}, "source_log": (0, 1010)}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # The sync 900 -> 890 with 100 records behind it on the target: mirrored up to 1000 of 1010.
        (SYNC | {"target_log": (0, 990)}, [("orders", 0, 10, "at-most")]),
        (SYNC | {"target_log": (0, 1000)}, []),
        (EXACT | {"target_log": (0, 990)}, [("orders", 0, 10, "at-most")]),
        (LOOSE | {"target_log": (0, 990)}, [("orders", 0, 10, "at-least")]),
        ({"target_log": (0, 0), "source_log": (40, 100)}, [("orders", 0, 60, "at-most")]),
        ({"target_log": (0, 7), "source_log": (100, 100)}, []),
    ],
)
def test_source_up(given, expected):
    assert rows(world(**given)) == expected


def test_a_pair_beyond_the_log_tells_nothing():
    assert rows(world(newest_syncs={T0: (900, 890)}, target_log=(0, 500), source_log=(0, 1010))) is None


def test_without_any_pair_nobody_can_tell():
    made = plan(world(target_log=(0, 7)))
    assert made.unreplicated is None
    assert made.summary.unreplicated is None
    assert [f.code for f in made.findings if f.code == "position-unknown"] == ["position-unknown"]
    mixed = world(partitions=2, newest_syncs={T0: (900, 900)}, target_log=(0, 990))
    assert rows(mixed) == [("orders", 0, 10, "at-most")]
    assert "orders-1" in [f.subject for f in plan(mixed).findings if f.code == "position-unknown"]


@pytest.mark.parametrize("unknown", [{"hidden": frozenset({T0.topic})}, {"log_faults": {T0: Fault(29, "DENIED")}}])
def test_a_log_that_could_not_be_read_is_no_empty_one(unknown):
    given = world(source_log=(0, 100))
    unread = msgspec.structs.replace(given, target=msgspec.structs.replace(given.target, logs={}, **unknown))
    assert rows(unread) is None
    assert "orders-0" in [f.subject for f in plan(unread).findings if f.code == "position-unknown"]


def test_a_checkpoint_below_the_true_place_cannot_prove_that_nothing_is_missing():
    assert rows(world(checkpoints={0: checkpoint(900, 1)}, target_log=(0, 990), source_log=(0, 1010))) is None


def test_source_down_uses_the_ends_last_known():
    silent = world(source=ClusterState.DOWN, checkpoints={0: checkpoint(5, 5)}, newest_syncs={T0: (900, 890)})
    assert plan(silent).unreplicated is None
    remembered = msgspec.structs.replace(silent, last_source_ends={S0: 1030}, last_source_seen=TAKEN)
    assert rows(remembered) == [("orders", 0, 20, "at-least")]
    assert TopicPartition("orders", 0) == S0
