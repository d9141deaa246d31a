from __future__ import annotations

import pytest

from failover.kafka.wire.batches import CONTROL, LOG_APPEND_TIME, UnreadableBatch, check, decode, decode_columns, split
from tests.unit.wire.batch_bytes import CODECS, batch, key_of, old_batch, value_of


@pytest.mark.parametrize("codec", CODECS)
def test_records_come_out_as_they_went_in(codec):
    [found] = split(memoryview(batch(100, range(50), codec=codec)))
    check(found)
    records = decode(found)
    assert [(r.offset, r.timestamp, r.key, r.value) for r in records] == [
        (offset, 1000 + offset, key_of(offset), value_of(offset)) for offset in range(100, 150)
    ]
    assert records[1].headers == (("h", b"101"), ("n", None))
    assert decode_columns(found) == [record[:4] for record in records]
    assert decode(found, 110, 112) == records[10:12]
    assert (found.base_offset, found.next_offset, found.control, found.log_append_time) == (100, 150, False, False)


def test_a_cut_batch_at_the_end_is_left_out():
    first, second = batch(0, range(5)), batch(5, range(5))
    whole = first + second
    for length in range(len(whole) + 1):
        found = list(split(memoryview(whole)[:length]))
        assert [each.base_offset for each in found] == [0, 5][: (length >= len(first)) + (length >= len(whole))]


def test_the_next_offset_counts_records_that_compaction_took():
    [found] = split(memoryview(batch(10, [1, 4], last=9)))
    assert found.next_offset == 20
    assert [record.offset for record in decode(found)] == [11, 14]


def test_flags_are_told():
    [marker] = split(memoryview(batch(0, [0], attributes=CONTROL)))
    [appended] = split(memoryview(batch(0, [0], attributes=LOG_APPEND_TIME)))
    assert marker.control
    assert appended.log_append_time
    assert not appended.control


@pytest.mark.parametrize("at", [17, 21, 60, 70, -1])
def test_damage_is_found(at):
    data = bytearray(batch(7, range(9)))
    data[at] ^= 1
    [found] = split(memoryview(data))
    with pytest.raises(UnreadableBatch, match="offset 7 fails its CRC check"):
        check(found)


def test_bytes_that_no_codec_understands_are_unreadable():
    data = batch(7, range(9), attributes=CODECS["zstd"])  # says zstd, is not
    [found] = split(memoryview(data))
    check(found)
    for decoder in (decode, decode_columns):
        with pytest.raises(UnreadableBatch, match="offset 7 cannot be decoded"):
            decoder(found)


def test_an_impossible_length_is_unreadable():
    with pytest.raises(UnreadableBatch):
        list(split(memoryview(bytes(61))))


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_messages_of_old_brokers(magic, codec):
    found = list(split(memoryview(old_batch(magic, [0, 1, 2], codec=codec))))
    for each in found:
        check(each)
    records = [record for each in found for record in decode(each)]
    assert [(r.offset, r.key, r.value) for r in records] == [(o, key_of(o), value_of(o)) for o in range(3)]
    assert [record.timestamp for record in records] == ([-1] * 3 if magic == 0 else [1000, 1001, 1002])
    assert found[-1].next_offset == 3
    damaged = bytearray(found[0].data)
    damaged[-1] ^= 1
    with pytest.raises(UnreadableBatch):
        check(next(split(memoryview(damaged))))
