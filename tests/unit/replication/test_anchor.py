from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failover.kafka.wire.metadata import NO_TOPIC_ID
from failover.mm2.fields import DecodeError
from failover.mm2.worker_name import HEADER
from failover.model.names import TopicPartition
from failover.replication.anchor import (
    Anchor,
    anchor_key,
    anchored_partition,
    decode_anchor,
    encode_anchor,
)

MM2, ORDERS = "MirrorSourceConnector", TopicPartition("orders", 3)
SOURCE_ID, TARGET_ID = bytes(range(16)), bytes(range(240, 256))
FULL = Anchor(42, 950, SOURCE_ID, TARGET_ID, 7)
FULL_HEADER = b'{"v":1,"d":950,"s":"AAECAwQFBgcICQoLDA0ODw","t":"8PHy8_T19vf4-fr7_P3-_w","e":7}'


def test_golden_bytes():
    assert anchor_key(MM2, "A", ORDERS) == b'["MirrorSourceConnector",{"cluster":"A","partition":3,"topic":"orders"}]'
    assert encode_anchor(FULL) == (b'{"offset":41}', ((HEADER, FULL_HEADER),))
    assert decode_anchor(b'{"offset":41}', ((HEADER, FULL_HEADER),)) == FULL


def test_what_is_not_known_takes_no_room():
    assert encode_anchor(Anchor(42, 0)) == (b'{"offset":41}', ((HEADER, b'{"v":1,"d":0}'),))
    assert decode_anchor(*encode_anchor(Anchor(42, 0))) == Anchor(42, 0)


def test_a_record_of_mirror_maker_has_no_target_offset():
    assert decode_anchor(b'{"offset":41}') == Anchor(42)
    assert encode_anchor(Anchor(42)) == (b'{"offset":41}', ())


def test_source_offset_zero_is_no_position_to_mirror_maker_and_one_to_us():
    value, headers = encode_anchor(Anchor(0, 1000, SOURCE_ID))
    assert value == b'{"offset":-1}'
    assert decode_anchor(value, headers) == Anchor(0, 1000, SOURCE_ID)
    assert decode_anchor(value) is None
    assert decode_anchor(b'{"offset":-2}', headers) is None


def test_a_chosen_position_says_so_and_what_comes_after_names_where_it_began():
    chosen = Anchor(42, chosen=True)
    assert encode_anchor(chosen) == (b'{"offset":41}', ((HEADER, b'{"v":1,"set":true}'),))
    assert decode_anchor(*encode_anchor(chosen, "dr-1 (process 7)")) == chosen
    new = Anchor(0, chosen=True)
    assert encode_anchor(new)[0] == b'{"offset":-1}'
    assert decode_anchor(*encode_anchor(new)) == new
    later = Anchor(45, 953, SOURCE_ID, TARGET_ID, 7, since=950)
    assert decode_anchor(*encode_anchor(later)) == later
    assert b'"b":950' in (encode_anchor(later)[1][0][1] or b"")


@pytest.mark.parametrize("value", [None, b'{"offset":null}', b"null"])
def test_a_tombstone_is_no_position_whatever_its_header(value):
    assert decode_anchor(value, ((HEADER, FULL_HEADER),)) is None


@pytest.mark.parametrize(
    "content",
    [
        None,
        b"",
        b"\xff\xfe",
        b"{}",
        b"[]",
        b"950",
        FULL_HEADER[:-1],
        FULL_HEADER.replace(b'"v":1', b'"v":2'),
        FULL_HEADER.replace(b'"d":950', b'"d":-1'),
        FULL_HEADER.replace(b'"d":950', b'"d":"950"'),
        FULL_HEADER.replace(b'"d":950', b'"d":9223372036854775808'),
        FULL_HEADER.replace(b'"e":7', b'"e":-2'),
        FULL_HEADER.replace(b'"e":7', b'"e":2147483648'),
        FULL_HEADER.replace(b"AAEC", b"AA"),
        FULL_HEADER.replace(b"AAEC", b"A*EC"),
        FULL_HEADER.replace(b"AAEC", "größe".encode()),
    ],
)
def test_a_header_we_did_not_write_leaves_a_record_as_mirror_makers(content):
    assert decode_anchor(b'{"offset":41}', ((HEADER, content),)) == Anchor(42)


def test_fields_of_later_versions_and_other_headers_are_left_alone():
    later = FULL_HEADER.replace(b'"e":7', b'"e":7,"x":{"y":1}')
    headers = ((HEADER, b"old"), ("other", b"1"), (HEADER, later), ("trace", None))
    assert decode_anchor(b'{"offset":41}', headers) == FULL


@pytest.mark.parametrize(
    "value", [b"{", b"{}", b"\xff", b'{"offset":"41"}', b'{"offset":41.5}', b'{"offset":9223372036854775807}']
)
def test_a_value_connect_could_make_nothing_of_is_told_apart(value):
    with pytest.raises(DecodeError):
        decode_anchor(value, ((HEADER, FULL_HEADER),))


@pytest.mark.parametrize(
    "key",
    [
        None,
        b"{",
        b'["files",{"filename":"/x"}]',
        b'["MirrorSourceConnector",{"cluster":"B","partition":3,"topic":"orders"}]',
        b'["other",{"cluster":"A","partition":3,"topic":"orders"}]',
        b'["MirrorCheckpointConnector",{"partition":3,"topic":"A.orders","group":"g"}]',
        b'["MirrorHeartbeatConnector",{"sourceClusterAlias":"A","targetClusterAlias":"B"}]',
        # the same fields, spelled so that Connect would not find them
        b'["MirrorSourceConnector",{"topic":"orders","partition":3,"cluster":"A"}]',
        b'["MirrorSourceConnector", {"cluster":"A","partition":3,"topic":"orders"}]',
    ],
)
def test_keys_under_which_this_connector_finds_nothing(key):
    assert anchored_partition(key, MM2, "A") is None


names = st.text(st.characters(codec="utf-8"), max_size=30)


@given(names, names, names, st.integers(0, 2**31 - 1))
def test_keys_round_trip(connector, alias, topic, partition):
    tp = TopicPartition(topic, partition)
    key = anchor_key(connector, alias, tp)
    assert json.loads(key) == [connector, {"cluster": alias, "partition": partition, "topic": topic}]
    assert anchored_partition(key, connector, alias) == tp
    assert anchored_partition(key, f"{connector}x", alias) is None


topic_ids = st.one_of(st.just(NO_TOPIC_ID), st.binary(min_size=16, max_size=16))


@given(
    st.builds(
        Anchor, st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1), topic_ids, topic_ids, st.integers(-1, 2**31 - 1)
    )
)
def test_anchors_round_trip(anchor):
    value, headers = encode_anchor(anchor)
    assert json.loads(value) == {"offset": anchor.upstream - 1}
    assert decode_anchor(value, headers) == anchor
    without = decode_anchor(value)
    assert without == (Anchor(anchor.upstream) if anchor.upstream else None)


@given(st.binary(max_size=40), st.binary(max_size=60))
def test_arbitrary_bytes_are_read_or_refused(value, header):
    with contextlib.suppress(DecodeError):
        decode_anchor(value, ((HEADER, header),))
    assert decode_anchor(b'{"offset":41}', ((HEADER, header),)) == Anchor(42)
