"""The recorded captures and golden bytes hold what their names say, by their own columns alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from failover.lab.capture import Capture, read_capture
from failover.lab.internal_records import checkpoint_of, heartbeat_of, sync_of
from failover.model import Record

FOLDER = Path(__file__).parent
READERS: dict[str, Callable[[Record], Any]] = {
    "offset_syncs": sync_of,
    "checkpoints": checkpoint_of,
    "heartbeats": heartbeat_of,
}


def load(name: str) -> Capture:
    return read_capture(FOLDER / "captures" / f"{name}.capture")


@pytest.mark.parametrize("name", ["lagging", "transactional", "restarted", "compacted"])
def test_every_source_record_is_on_the_target_and_ids_are_unique_on_the_source(name):
    capture = load(name)
    for topic, logs in capture.source.items():
        for partition, log in logs.items():
            copy = capture.target[capture.remote(topic)][partition]
            assert len(set(log.ids)) == len(log.ids) > 0
            assert set(log.ids) <= set(copy.ids)
            assert log.offsets == sorted(log.offsets)
            assert log.start <= log.offsets[0] <= log.offsets[-1] < log.end


@pytest.mark.parametrize("name", ["lagging", "transactional", "restarted", "compacted"])
def test_no_sync_names_a_target_record_other_than_the_copy_of_its_source_record(name):
    capture = load(name)
    checked = 0
    for sync in capture.syncs:
        if sync.topic in capture.source:
            source = capture.source[sync.topic][sync.partition]
            target = capture.target[capture.remote(sync.topic)][sync.partition]
            if sync.upstream in source.offsets and sync.downstream in target.offsets:
                original = source.ids[source.offsets.index(sync.upstream)]
                assert target.ids[target.offsets.index(sync.downstream)] == original
                checked += 1
    assert checked > 10


def test_transactions_leave_gaps_on_the_source_only():
    capture = load("transactional")
    for partition, log in capture.source["cap.transactional"].items():
        assert log.end - log.start > len(log.offsets)
        copy = capture.target[capture.remote("cap.transactional")][partition]
        assert copy.end - copy.start == len(copy.offsets)


def test_restarts_copied_stretches_more_than_once():
    capture = load("restarted")
    copies = [log for logs in capture.target.values() for log in logs.values()]
    assert sum(len(log.ids) - len(set(log.ids)) for log in copies) > 1000


def test_compaction_left_holes_on_the_source():
    [log] = load("compacted").source["cap.compacted"].values()
    holes = [after - before for before, after in zip(log.offsets, log.offsets[1:], strict=False) if after - before > 1]
    assert len(holes) > 100


@pytest.mark.parametrize("kind", READERS)
def test_golden_bytes_mean_what_kafkas_formatter_printed(kind):
    rows = json.loads((FOLDER / "mm2-golden.json").read_text())[kind]
    assert rows
    for row in rows:
        fields = READERS[kind](Record(0, 0, bytes.fromhex(row["key"]), bytes.fromhex(row["value"])))._asdict()
        assert fields == row["fields"]
        for value in fields.values():
            assert str(value) in row["java"]
