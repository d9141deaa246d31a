from __future__ import annotations

import math
from pathlib import Path

import pytest

from failover.errors import ConfigError
from failover.replication.batches import Limits
from failover.replication.options import ReplicateOptions, read_options
from failover.replication.reader import ReadSettings
from failover.replication.writer import WriteSettings
from tests.unit.config.build import PAIR, load


def options(tmp_path: Path, text: str = "") -> ReplicateOptions:
    config = load(tmp_path, PAIR + text)
    [flow] = config.enabled_flows
    return read_options(config, flow)


def test_what_holds_without_a_setting(tmp_path):
    assert options(tmp_path) == ReplicateOptions(
        buffer_bytes=256 << 20,
        rate_bytes=0,
        restart="backoff",
        restart_min=1.0,
        restart_max=60.0,
        exactly_once="preferred",
        refresh_seconds=600.0,
        start="earliest",
        read=ReadSettings(
            fetch_max_bytes=8 << 20,
            max_partition_fetch_bytes=1 << 20,
            fetch_max_wait_ms=500,
            fetch_min_bytes=1,
            read_committed=False,
            lane_bytes=4 << 20,
            limits=Limits(batch_bytes=512 << 10),
        ),
        write=WriteSettings(request_bytes=4 << 20),
    )


def test_this_tools_own_settings(tmp_path):
    found = options(
        tmp_path,
        """
        failover.replicator.buffer.memory = 64m
        failover.replicator.rate.limit.bytes = 10 MB
        failover.replicator.restart = never
        failover.replicator.restart.min = 500ms
        failover.replicator.session.timeout = 30s
        failover.replicator.restart.max = 2m
        failover.replicator.exactly.once = REQUIRED
        """,
    )
    assert (found.buffer_bytes, found.rate_bytes) == (64 << 20, 10 << 20)
    assert (found.restart, found.restart_min, found.restart_max) == ("never", 0.5, 120.0)
    assert found.session == 30
    assert found.exactly_once == "required"


@pytest.mark.parametrize(
    ("text", "size"), [("0", 0), ("1000", 1_000), ("2k", 2_048), ("2KiB", 2_048), ("3mb", 3 << 20), ("1 g", 1 << 30)]
)
def test_sizes(tmp_path, text, size):
    assert options(tmp_path, f"failover.replicator.rate.limit.bytes = {text}\n").rate_bytes == size


@pytest.mark.parametrize(("text", "seconds"), [("2", 2.0), ("1.5s", 1.5), ("250ms", 0.25), ("1 h", 3600.0)])
def test_durations(tmp_path, text, seconds):
    assert options(tmp_path, f"failover.replicator.restart.max = {text}\n").restart_max == seconds


@pytest.mark.parametrize("prefix", ["A->B.source.consumer.", "A.consumer.", "source.consumer."])
def test_the_settings_of_the_mirrors_consumer(tmp_path, prefix):
    found = options(
        tmp_path,
        f"""
        {prefix}isolation.level = read_committed
        {prefix}max.partition.fetch.bytes = 3000000
        {prefix}fetch.max.bytes = 5000000
        {prefix}fetch.max.wait.ms = 100
        {prefix}fetch.min.bytes = 7
        {prefix}auto.offset.reset = latest
        """,
    )
    if prefix.startswith("source"):
        # MM2 (MirrorMakerConfig): a client's prefix counts below a cluster or a flow only
        assert found == options(tmp_path)
        return
    assert found.read.read_committed
    assert found.read.max_partition_fetch_bytes == 3_000_000
    assert found.read.lane_bytes == 12_000_000
    assert (found.read.fetch_max_bytes, found.read.fetch_max_wait_ms, found.read.fetch_min_bytes) == (5_000_000, 100, 7)
    assert found.start == "latest"


def test_the_settings_of_the_mirrors_producer(tmp_path):
    found = options(tmp_path, "A->B.target.producer.max.request.size = 100000\n")
    assert (found.write.request_bytes, found.read.limits.batch_bytes) == (100_000, 100_000)


@pytest.mark.parametrize(
    ("value", "start"),
    [
        ("EARLIEST", "earliest"),
        ("by_duration:PT1H", 3600.0),
        ("by_duration:P1DT2H3M4.5S", 93784.5),
        ("by_duration:p7d", 604800.0),
        ("by_duration:PT0S", 0.0),
    ],
)
def test_where_a_new_partition_begins(tmp_path, value, start):
    assert options(tmp_path, f"A.consumer.auto.offset.reset = {value}\n").start == start


def test_looks_at_topics_may_be_switched_off(tmp_path):
    assert options(tmp_path, "refresh.topics.interval.seconds = 7\n").refresh_seconds == 7.0
    assert math.isinf(options(tmp_path, "refresh.topics.enabled = false\n").refresh_seconds)
    # MM2 (Scheduler): what has a negative interval is never done
    assert math.isinf(options(tmp_path, "refresh.topics.interval.seconds = -1\n").refresh_seconds)


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("failover.replicator.buffer.memory = much", "k, m or g"),
        ("failover.replicator.buffer.memory = 0k", "more than 0"),
        ("failover.replicator.rate.limit.bytes = -1", "k, m or g"),
        ("failover.replicator.restart.min = soon", "30s"),
        ("failover.replicator.session.timeout = 0s", "6s or more"),
        ("failover.replicator.restart = always", "backoff or never"),
        ("failover.replicator.exactly.once = no", "preferred or required"),
        ("A.consumer.isolation.level = read", "read_committed or read_uncommitted"),
        ("A.consumer.auto.offset.reset = none", "earliest, latest or by_duration:PT24H"),
        ("A.consumer.auto.offset.reset = by_duration:1h", "earliest, latest or by_duration:PT24H"),
        ("A.consumer.auto.offset.reset = by_duration:P", "earliest, latest or by_duration:PT24H"),
        ("A.consumer.auto.offset.reset = by_duration:P1DT", "earliest, latest or by_duration:PT24H"),
        ("A.consumer.auto.offset.reset = by_duration:PT-1H", "earliest, latest or by_duration:PT24H"),
        ("A.consumer.fetch.max.bytes = -1", "not negative"),
        ("A.consumer.fetch.max.bytes = many", ""),
    ],
)
def test_what_cannot_be_used_is_named_with_its_place(tmp_path, line, hint):
    with pytest.raises(ConfigError) as caught:
        options(tmp_path, line + "\n")
    key, value = line.split(" = ")
    assert key.removeprefix("A.consumer.") in caught.value.message
    assert value in caught.value.message
    assert "mm2.properties" in caught.value.message
    assert hint in caught.value.hint
