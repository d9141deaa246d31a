from __future__ import annotations

import pytest

from failover.config.load import load_config
from failover.replication.options import read_options
from failover.replication.unused import CONSUMER_USED, PRODUCER_USED, unused

BASE = "clusters = a, b\na.bootstrap.servers = x:1\nb.bootstrap.servers = y:1\na->b.enabled = true\n"


def loaded(tmp_path, text):
    path = tmp_path / "mm2.properties"
    path.write_text(BASE + text)
    return load_config(str(path))


def named(tmp_path, text):
    return {one.key: one.why for one in unused(loaded(tmp_path, text).enabled_flows)}


def test_a_plain_file_names_nothing(tmp_path):
    text = """
    security.protocol = SSL
    topics = x.*
    groups = y
    replication.factor = 3
    refresh.topics.interval.seconds = 5
    a->b.sync.topic.acls.enabled = false
    b.offset.storage.replication.factor = 1
    a.offset.storage.replication.factor = 1
    emit.heartbeats.enabled = false
    offset.lag.max = 10
    a.consumer.isolation.level = read_committed
    """
    assert named(tmp_path, text) == {}


@pytest.mark.parametrize("key", sorted(CONSUMER_USED))
def test_what_is_read_of_the_consumer_is_used(tmp_path, key):
    assert named(tmp_path, f"a.consumer.{key} = 1") == {}
    assert named(tmp_path, f"a->b.consumer.{key} = 1") == {}


@pytest.mark.parametrize("key", sorted(PRODUCER_USED))
def test_what_is_read_of_the_producer_is_used(tmp_path, key):
    for prefix in ("b.producer.", "a->b.producer.override."):
        text = f"{prefix}{key} = 123456\n"
        assert named(tmp_path, text) == {}
        config = loaded(tmp_path, text)
        assert read_options(config, config.enabled_flows[0]).write.request_bytes == 123456


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("b.producer.batch.size", "neither gathered nor compressed"),
        ("b.producer.linger.ms", "neither gathered nor compressed"),
        ("b.producer.compression.type", "neither gathered nor compressed"),
        ("a->b.producer.override.compression.type", "neither gathered nor compressed"),
        ("b.producer.acks", "acknowledged by all replicas"),
        ("b.producer.max.in.flight.requests.per.connection", "in flight"),
        ("b.producer.buffer.memory", "failover.replicator.buffer.memory"),
        ("a.consumer.max.poll.records", "taken whole"),
        ("a.consumer.session.timeout.ms", "failover.replicator.session.timeout count"),
        ("a.consumer.request.timeout.ms", "--timeout"),
        ("a.admin.request.timeout.ms", "--timeout"),
        ("a.consumer.some.thing", "nothing here answers"),
        ("tasks.max", "one process"),
        ("a->b.tasks.max", "one process"),
        ("b.offset.flush.interval.ms", "every second"),
        ("b.exactly.once.source.support", "exactly once"),
        ("b.scheduled.rebalance.max.delay.ms", "no Connect worker"),
        ("a->b.errors.tolerance", "stand still"),
        ("metric.reporters", "Java"),
    ],
)
def test_what_is_not_used_is_named_with_its_reason(tmp_path, key, reason):
    found = named(tmp_path, f"{key} = 1\n")
    assert list(found) == [key]
    assert reason in found[key]


@pytest.mark.parametrize("key", ["a.consumer.override.isolation.level", "a->b.consumer.override.fetch.min.bytes"])
def test_a_source_connectors_consumer_takes_no_overrides(tmp_path, key):
    # Kafka Connect gives these to sink connectors' consumers; MM2 makes its own
    found = named(tmp_path, f"{key} = read_committed\n")
    assert list(found) == [key]
    assert f"write a.consumer.{key.rpartition('override.')[2]}" in found[key]


@pytest.mark.parametrize("key", ["dedicated.mode.enable.internal.rest", "listeners", "rest.advertised.port"])
def test_what_the_driver_alone_reads_is_named(tmp_path, key):
    config = loaded(tmp_path, f"{key} = true\n")
    assert [(one.key, "--rest" in one.why) for one in unused(config.enabled_flows, config.driver)] == [(key, True)]


def test_what_would_have_changed_records_matters(tmp_path):
    text = "a->b.transforms = mask\na->b.transforms.mask.type = com.acme.Mask\nb.value.converter = com.acme.Json\n"
    found = unused(loaded(tmp_path, text).enabled_flows)
    assert {one.key for one in found if one.matters} == {
        "a->b.transforms",
        "a->b.transforms.mask.type",
        "b.value.converter",
    }


def test_what_one_flow_uses_is_used_and_each_is_named_once(tmp_path):
    text = "b->a.enabled = true\na.consumer.fetch.min.bytes = 9\nb.consumer.fetch.min.bytes = 9\ntasks.max = 4\n"
    assert list(named(tmp_path, text)) == ["tasks.max"]
