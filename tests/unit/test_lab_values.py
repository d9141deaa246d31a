from __future__ import annotations

import struct
from pathlib import Path

import javaproperties
import pytest

from failover.errors import LabUsageError
from failover.lab import Endpoint, MirrorOptions, mm2_properties
from failover.lab.capture import KIND, VERSION, Capture, Log, log_of, read_capture, save_capture
from failover.lab.internal_records import Checkpoint, Heartbeat, Sync, checkpoint_of, heartbeat_of, sync_of
from failover.lab.traffic import Load
from failover.model import Record, TopicPartition

A, B = Endpoint("a", "127.0.0.1:1"), Endpoint("b", "127.0.0.1:2")


def test_a_mirror_configuration_reads_back_as_meant():
    options = MirrorOptions(topics=r"t\..*", groups=r"g\d+", settings={"tasks.max": "7"}, identity=True)
    settings = javaproperties.loads(mm2_properties(A, B, options, added={"a->b.groups": "x"}))
    assert settings["clusters"] == "a, b"
    assert settings["a->b.topics"] == r"t\..*"
    assert settings["a->b.groups"] == "x"
    assert settings["tasks.max"] == "7"
    assert (settings["a->b.enabled"], settings["b->a.enabled"]) == ("true", "false")
    assert settings["replication.policy.class"].endswith("IdentityReplicationPolicy")
    assert not any(key.startswith("b->a.") and key != "b->a.enabled" for key in settings)


def test_both_ways_enables_and_tunes_the_opposite_flow():
    settings = javaproperties.loads(mm2_properties(A, B, MirrorOptions(both_ways=True, checkpoint_seconds=5)))
    assert settings["b->a.enabled"] == "true"
    assert settings["b->a.emit.checkpoints.interval.seconds"] == "5"


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "PLAIN"])
def test_a_user_means_sasl_over_tls(mechanism):
    secure = Endpoint("a", "127.0.0.1:1", "admin", "pass", mechanism, Path("/certs/ca.pem"))
    settings = javaproperties.loads(mm2_properties(secure, B, MirrorOptions()))
    assert settings["a.security.protocol"] == "SASL_SSL"
    assert settings["a.sasl.mechanism"] == mechanism
    assert settings["a.sasl.jaas.config"].endswith('required username="admin" password="pass";')
    assert settings["a.ssl.truststore.location"] == "/certs/ca.pem"
    assert "b.security.protocol" not in settings


def test_internal_records_are_taken_apart():
    # MM2's documented layout, by hand: int16 length and UTF-8, big-endian numbers
    sync = Record(0, 0, bytes.fromhex("00066f726465727300000003"), struct.pack(">qq", 1000, 950))
    assert sync_of(sync) == Sync("orders", 3, 1000, 950)
    key = bytes.fromhex("000267310008412e6f726465727300000003")
    checkpoint = Record(0, 0, key, struct.pack(">hqq", 0, 1234, 951) + "\x00\x06größ".encode())
    assert checkpoint_of(checkpoint) == Checkpoint("g1", "A.orders", 3, 1234, 951, "größ")
    heartbeat = Record(0, 0, bytes.fromhex("000142000141"), struct.pack(">hq", 0, 1_700_000_000_000))
    assert heartbeat_of(heartbeat) == Heartbeat("B", "A", 1_700_000_000_000)
    with pytest.raises(struct.error):
        sync_of(Record(0, 0, b"", b""))


def test_a_capture_comes_back_as_saved(tmp_path):
    records = [Record(4, 1000, None, b"t:0"), Record(7, 1000, b"k", b"t:12...."), Record(8, 990, None, b"t:3")]
    log = log_of(4, 10, records)
    assert log == Log(4, 10, [4, 7, 8], [0, 12, 3], [1000, 1000, 990])
    capture = Capture(
        KIND, VERSION, "s", "d", "4.1.1", "now", ("a", "b"), {"t": {0: log}}, {"a.t": {0: log}}, [], [], []
    )
    assert save_capture(tmp_path / "x.capture", capture) < 1000
    found = read_capture(tmp_path / "x.capture")
    assert found == capture
    assert [record.value for record in found.records("target", TopicPartition(found.remote("t"), 0))] == [
        b"0",
        b"12",
        b"3",
    ]


def test_what_is_no_capture_is_refused(tmp_path):
    (tmp_path / "x").write_bytes(b"nothing")
    with pytest.raises(ValueError, match="holds no capture"):
        read_capture(tmp_path / "x")


def test_traffic_needs_an_end():
    with pytest.raises(LabUsageError, match="without an end"):
        Load(topic="t")
