"""MirrorMaker 2's records and Connect's offsets, byte for byte."""

from __future__ import annotations

import contextlib
import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failover.mm2.checkpoint import Checkpoint, checkpoint_key
from failover.mm2.connect_offsets import (
    CheckpointOffsetKey,
    HeartbeatOffsetKey,
    SourceOffsetKey,
    decode_offset,
    decode_offset_key,
    encode_offset,
    murmur2,
    offset_partition,
)
from failover.mm2.fields import DecodeError, UnknownVersion, Unreadable
from failover.mm2.heartbeat import Heartbeat
from failover.mm2.offset_sync import OffsetSync, offset_sync_key, offset_sync_value

GOLDEN = [
    (
        OffsetSync("orders", 3, 1000, 950),
        "0006 6f7264657273 00000003",
        "00000000000003e8 00000000000003b6",
    ),
    (
        Checkpoint("g1", "A.orders", 3, 1234, 951),
        "0002 6731 0008 412e6f7264657273 00000003",
        "0000 00000000000004d2 00000000000003b7 0000",
    ),
    (Heartbeat("B", "A", 1_700_000_000_000), "0001 42 0001 41", "0000 0000018bcfe56800"),
]


@pytest.mark.parametrize(("record", "key", "value"), GOLDEN)
def test_golden_bytes(record, key, value):
    key, value = bytes.fromhex(key), bytes.fromhex(value)
    assert record.encode_key() == key
    assert record.encode_value() == value
    assert type(record).decode(key, value) == record
    # Java's readers leave what follows the last field alone.
    assert type(record).decode(key + b"\x00more", value + b"\xff") == record


@pytest.mark.parametrize(("record", "key", "value"), GOLDEN)
def test_every_shorter_record_is_refused_and_tombstones_are_told_apart(record, key, value):
    key, value = bytes.fromhex(key), bytes.fromhex(value)
    decode = type(record).decode
    assert decode(key, None) is None
    for short in range(len(key)):
        with pytest.raises(DecodeError) as caught:
            decode(key[:short], value)
        assert caught.value.why is Unreadable.TRUNCATED
    for short in range(len(value)):
        with pytest.raises(DecodeError) as caught:
            decode(key, value[:short])
        assert caught.value.why is Unreadable.TRUNCATED
    with pytest.raises(DecodeError) as caught:
        decode(None, value)
    assert caught.value.why is Unreadable.NO_KEY
    with pytest.raises(DecodeError) as caught:
        decode(b"\xff\xff" + key[2:], value)
    assert caught.value.why is Unreadable.NEGATIVE_LENGTH


@pytest.mark.parametrize(("record", "key", "value"), GOLDEN[1:])
def test_an_unknown_version_is_its_own_error(record, key, value):
    with pytest.raises(UnknownVersion) as caught:
        type(record).decode(bytes.fromhex(key), b"\x00\x01" + bytes.fromhex(value)[2:])
    assert caught.value.version == 1
    assert caught.value.why is Unreadable.UNKNOWN_VERSION


def test_negative_lengths_behind_the_first_field():
    checkpoint = Checkpoint("g", "t", 0, 1, 1, b"abc")
    key = struct.pack(">h1sh1si", 1, b"g", -1, b"t", 0)
    for padding in (b"", bytes(100_000)):
        with pytest.raises(DecodeError) as caught:
            checkpoint_key(key + padding)
        assert caught.value.why is Unreadable.NEGATIVE_LENGTH
    value = checkpoint.encode_value()[:18] + b"\xff\xfe"
    with pytest.raises(DecodeError) as caught:
        Checkpoint.decode(checkpoint.encode_key(), value)
    assert caught.value.why is Unreadable.NEGATIVE_LENGTH


def test_metadata_pass_byte_for_byte_and_show_as_text():
    record = Checkpoint("g", "t", 0, 1, 1, b"\xff\x00caf\xc3\xa9")
    decoded = Checkpoint.decode(record.encode_key(), record.encode_value())
    assert decoded is not None
    assert decoded.metadata == b"\xff\x00caf\xc3\xa9"
    assert decoded.metadata_text == "\ufffd\x00café"
    assert decoded.encode_value() == record.encode_value()


def test_malformed_utf8_in_names_reads_as_in_java():
    assert checkpoint_key(b"\x00\x01\xff\x00\x01t\x00\x00\x00\x02") == ("\ufffd", "t", 2)


def test_strings_beyond_a_16_bit_length_are_refused():
    assert Checkpoint("g" * 32767, "t", 0, 1, 1).encode_key()[:2] == b"\x7f\xff"
    with pytest.raises(ValueError, match="32767 is the most"):
        Checkpoint("é" * 16384, "t", 0, 1, 1).encode_key()
    with pytest.raises(ValueError, match="32767 is the most"):
        Checkpoint("g", "t", 0, 1, 1, bytes(32768)).encode_value()


text = st.text(st.characters(codec="utf-8"), max_size=50)
int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)


@given(st.builds(OffsetSync, text, int32, int64, int64))
def test_offset_syncs_round_trip(record):
    key, value = record.encode_key(), record.encode_value()
    assert OffsetSync.decode(key, value) == record
    assert offset_sync_key(key) == (record.topic, record.partition)
    assert offset_sync_value(value) == (record.upstream, record.downstream)


@given(st.builds(Checkpoint, text, text, int32, int64, int64, st.binary(max_size=50)))
def test_checkpoints_round_trip(record):
    key = record.encode_key()
    assert Checkpoint.decode(key, record.encode_value()) == record
    assert checkpoint_key(key) == (record.group, record.topic, record.partition)


@given(st.builds(Heartbeat, text, text, int64))
def test_heartbeats_round_trip(record):
    assert Heartbeat.decode(record.encode_key(), record.encode_value()) == record


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_arbitrary_bytes_are_read_or_refused(key, value):
    for kind in (OffsetSync, Checkpoint, Heartbeat):
        record = None
        with contextlib.suppress(DecodeError):
            record = kind.decode(key, value)
        # What was read can be written again; any other exception than DecodeError fails the test.
        assert record is None or kind.decode(record.encode_key(), record.encode_value()) == record
    with contextlib.suppress(DecodeError):
        decoded = decode_offset_key(key)
        assert decoded is None or decode_offset_key(decoded.encode()) == decoded
    with contextlib.suppress(DecodeError):
        assert decode_offset(value) is None or isinstance(decode_offset(value), int)


# -- Connect's source offsets ----------------------------------------------------------------------


def test_golden_connect_offsets():
    source = SourceOffsetKey("MirrorSourceConnector", "A", "orders", 0)
    assert source.encode() == b'["MirrorSourceConnector",{"cluster":"A","partition":0,"topic":"orders"}]'
    checkpoint = CheckpointOffsetKey("MirrorCheckpointConnector", "g1", "A.orders", 3)
    assert checkpoint.encode() == b'["MirrorCheckpointConnector",{"partition":3,"topic":"A.orders","group":"g1"}]'
    heartbeat = HeartbeatOffsetKey("MirrorHeartbeatConnector", "A", "B")
    assert heartbeat.encode() == b'["MirrorHeartbeatConnector",{"sourceClusterAlias":"A","targetClusterAlias":"B"}]'
    for key in (source, checkpoint, heartbeat):
        assert decode_offset_key(key.encode()) == key
    assert encode_offset(41) == b'{"offset":41}'
    assert decode_offset(b'{"offset":41}') == 41
    assert decode_offset(None) is None
    assert decode_offset(b'{"offset":null}') is None


def java_hash_map_order(names):
    """Gives the order in which a HashMap of the default capacity yields its keys."""

    def bucket(name):
        h = 0
        for char in name:
            h = (31 * h + ord(char)) & 0xFFFFFFFF
        return (h ^ h >> 16) & 15

    return sorted(names, key=bucket)


@pytest.mark.parametrize(
    ("key", "put"),
    [
        (SourceOffsetKey("c", "A", "t", 0), ["topic", "partition", "cluster"]),
        (CheckpointOffsetKey("c", "g", "t", 0), ["group", "topic", "partition"]),
        (HeartbeatOffsetKey("c", "A", "B"), ["sourceClusterAlias", "targetClusterAlias"]),
    ],
)
def test_fields_stand_in_the_order_of_a_java_hash_map(key, put):
    assert list(json.loads(key.encode())[1]) == java_hash_map_order(put)


def test_strings_are_escaped_as_jackson_does():
    key = CheckpointOffsetKey('c"\\', "gé/\x1f\x7f\t\n", "t", 0)
    expected = '["c\\"\\\\",{"partition":0,"topic":"t","group":"gé/\\u001F\x7f\\t\\n"}]'
    assert key.encode() == expected.encode()
    assert decode_offset_key(key.encode()) == key


def test_what_lies_beyond_the_first_plane_is_escaped_as_its_surrogates():
    """The bytes are those a MirrorCheckpointConnector of Kafka 4.1.1 wrote for a group of this name."""
    key = CheckpointOffsetKey("MirrorCheckpointConnector", "größe 組 🐘", "t", 0)
    seen = b'{"partition":0,"topic":"t","group":"gr\xc3\xb6\xc3\x9fe \xe7\xb5\x84 \\uD83D\\uDC18"}]'
    assert key.encode() == b'["MirrorCheckpointConnector",' + seen
    assert decode_offset_key(key.encode()) == key
    raw = b'["MirrorCheckpointConnector",' + seen.replace(b"\\uD83D\\uDC18", "🐘".encode())
    assert decode_offset_key(raw) == key, "read, though Connect does not look there"


@pytest.mark.parametrize(
    ("character", "written"),
    [
        ("\x00", b"\\u0000"),
        ("\x1b", b"\\u001B"),
        ("\b", b"\\b"),
        ("\f", b"\\f"),
        ("\r", b"\\r"),
        ('"', b'\\"'),
        ("\\", b"\\\\"),
        ("/", b"/"),
        ("'", b"'"),
        ("<", b"<"),
        ("\x7f", b"\x7f"),
        ("\x80", b"\xc2\x80"),
        ("\u2028", b"\xe2\x80\xa8"),
        ("\ufeff", b"\xef\xbb\xbf"),
        ("\uffff", b"\xef\xbf\xbf"),
        ("\U00010000", b"\\uD800\\uDC00"),
        ("\U0010ffff", b"\\uDBFF\\uDFFF"),
        ("\ud83d", b"\\uD83D"),
    ],
)
def test_each_kind_of_character_as_jackson_writes_it(character, written):
    assert HeartbeatOffsetKey("c", f"a{character}z", "é").encode() == (
        b'["c",{"sourceClusterAlias":"a' + written + b'z","targetClusterAlias":"\xc3\xa9"}]'
    )


@given(text, text, text, st.integers(0, 2**31 - 1))
def test_connect_keys_round_trip(connector, cluster, topic, partition):
    key = SourceOffsetKey(connector, cluster, topic, partition)
    assert json.loads(key.encode()) == [connector, {"cluster": cluster, "partition": partition, "topic": topic}]
    assert decode_offset_key(key.encode()) == key


def test_other_connectors_and_malformed_keys():
    assert decode_offset_key(b'["files",{"filename":"/x"}]') is None
    assert decode_offset_key(b'["sink",{"kafka_topic":"t","nested":{"a":[1]}}]') is None
    # Another order of fields is read, and is seen not to be what Connect looks for.
    other = b'["c",{"topic":"t","partition":0,"cluster":"A"}]'
    decoded = decode_offset_key(other)
    assert decoded == SourceOffsetKey("c", "A", "t", 0)
    assert decoded.encode() != other
    for key, why in ((b"{", Unreadable.NOT_JSON), (b"\xff", Unreadable.NOT_JSON), (None, Unreadable.NO_KEY)):
        with pytest.raises(DecodeError) as caught:
            decode_offset_key(key)
        assert caught.value.why is why
    for value, why in (
        (b"{", Unreadable.NOT_JSON),
        (b'{"offset":"41"}', Unreadable.NOT_AN_OFFSET),
        (b'{"offset":true}', Unreadable.NOT_AN_OFFSET),
        (b"{}", Unreadable.NOT_AN_OFFSET),
    ):
        with pytest.raises(DecodeError) as caught:
            decode_offset(value)
        assert caught.value.why is why


@pytest.mark.parametrize(
    ("data", "signed"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_is_java_s(data, signed):
    assert murmur2(data) == signed & 0xFFFFFFFF
    assert offset_partition(data) == (signed & 0x7FFFFFFF) % 25
