from __future__ import annotations

import struct
from itertools import accumulate

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from failover.kafka.wire.batches import UnreadableBatch, decode, split
from failover.model.names import TopicPartition
from failover.replication.batches import Kind, Limits, next_sequence, prepare, stamp
from tests.unit.replication.source_log import (
    CODECS,
    CONTROL,
    DELETE_HORIZON,
    LOG_APPEND_TIME,
    NOW,
    TRANSACTIONAL,
    Data,
    Datum,
    Marker,
    SourceLog,
    logs,
)

TP = TopicPartition("orders", 3)
LIMITS = [Limits(), Limits(small_bytes=0), Limits(batch_bytes=400), Limits(batch_records=3), Limits(small_bytes=120)]


def run(log, position=None, *, aborted=None, limits=None, stop=None, data=None):
    data = bytearray(log.data if data is None else data)[:stop]
    start = log.base if position is None else position
    return prepare(TP, memoryview(data), start, now_ms=NOW, aborted=aborted, limits=limits)


def stamped(prepared, producer=77, epoch=3, sequence=0):
    """Stamps as a sender does and reads back what a broker would check and a consumer would get."""
    received = []
    for outgoing in prepared.outgoing:
        stamp(outgoing.data, producer, epoch, sequence)
        data = bytes(outgoing.data)
        base, length, leader_epoch, magic, crc, flags, last, _, newest, *mark, count = struct.unpack_from(
            ">qiibIhiqqqhii", data
        )
        assert (base, length, leader_epoch, magic) == (0, len(data) - 12, -1, 2)
        assert crc == crc32c(data[21:])
        assert not flags & (LOG_APPEND_TIME | TRANSACTIONAL | CONTROL | DELETE_HORIZON)
        assert mark == [producer, epoch, sequence]
        assert (last + 1, count) == (outgoing.records, outgoing.records)
        [batch] = split(memoryview(data))
        records = decode(batch)
        assert [record.offset for record in records] == list(range(count))
        assert outgoing.newest_timestamp == newest == max(record.timestamp for record in records)
        sequence = next_sequence(sequence, count)
        received.append([Datum(*record[1:]) for record in records])
    return received


def outline(prepared):
    return [(each.kind, each.first_source_offset, each.records, each.next_source_offset) for each in prepared.outgoing]


def data(count, *, size=10, timestamp=1000, **options):
    records = tuple(Datum(timestamp + at, b"k%d" % at, b"v" * size) for at in range(count))
    options.setdefault("kept", (True,) * count)
    return Data(records, **options)


@given(logs, st.data())
def test_the_target_gets_what_mirrormaker_delivers(log, draw):
    position = draw.draw(st.integers(log.base, log.end))
    committed = draw.draw(st.booleans())
    limits = draw.draw(st.sampled_from(LIMITS))
    # a fetch begins with the batch its position lies in
    ends = [base for base, _ in log.batches[1:]] + [log.end]
    whole = [(each, end) for (_, each), end in zip(log.batches, ends, strict=False) if end > position]
    fetched = b"".join(each for each, _ in whole)
    cut = len(fetched) * draw.draw(st.integers(0, 1000)) // 1000
    aborted = log.aborted(position) if committed else None
    prepared = run(log, position, aborted=aborted, limits=limits, data=fetched, stop=cut)
    assert prepared.damage is None

    if not any(each[16] < 2 for each, _ in whole):  # of old messages each is a batch of its own
        sizes = accumulate(len(each) for each, _ in whole)
        reached = [end for size, (_, end) in zip(sizes, whole, strict=True) if size <= cut]
        assert prepared.next_offset == max(reached, default=position)
    expected = log.delivered(position, read_committed=committed, stop=prepared.next_offset)
    received = stamped(prepared)
    assert [datum for batch in received for datum in batch] == [datum for _, datum in expected]

    # the arithmetic of positions: each batch says where its records were
    offsets = iter([offset for offset, _ in expected])
    previous = position
    for outgoing in prepared.outgoing:
        own = [next(offsets) for _ in range(outgoing.records)]
        assert (outgoing.first_source_offset, outgoing.last_source_offset) == (own[0], own[-1])
        assert previous <= own[0] <= own[-1] < outgoing.next_source_offset <= prepared.next_offset
        previous = outgoing.next_source_offset
        if outgoing.kind is not Kind.PASSED and outgoing.records > 1:
            assert outgoing.records <= limits.batch_records
            assert len(outgoing.data) <= limits.batch_bytes + 40  # what no codec can make smaller grows a little


@given(logs.filter(lambda log: log.batches), st.data())
def test_a_damaged_batch_is_named_and_never_sent(log, draw):
    at = draw.draw(st.integers(0, len(log.batches) - 1))
    base, victim = log.batches[at]
    before = b"".join(each for _, each in log.batches[:at])
    inside = draw.draw(st.integers(21 if victim[16] == 2 else 18, len(victim) - 1))
    bad = bytearray(log.data)
    bad[len(before) + inside] ^= 1 << draw.draw(st.integers(0, 7))
    limits = draw.draw(st.sampled_from(LIMITS))
    prepared = run(log, data=bad, limits=limits)
    # a damaged length inside a set of old messages cuts the answer off there; nothing else passes silently
    if victim[16] == 2 or prepared.damage is not None:
        assert isinstance(prepared.damage, UnreadableBatch)
        assert str(prepared.damage).startswith("partition orders-3: ")
        if victim[16] == 2:
            assert f"offset {base} fails its CRC check" in str(prepared.damage)
            assert prepared.next_offset <= base
    received = [datum for batch in stamped(prepared) for datum in batch]
    expected = log.delivered(log.base, read_committed=False, stop=prepared.next_offset)
    assert received == [datum for _, datum in expected]


@given(
    st.binary(max_size=3000),
    st.integers(-1, 1 << 62),
    st.integers(0, (1 << 15) - 1),
    st.integers(0, (1 << 31) - 1),
    st.integers(0, 3000),
)
def test_a_stamp_carries_the_crc_over(value, producer, epoch, sequence, at):
    log = SourceLog([Data((Datum(5, None, value),), (True,), producer=4, transactional=True)])
    [outgoing] = run(log).outgoing
    for mark in [(1, 2, 3), (producer, epoch, sequence)]:  # a later owner's stamp replaces an earlier one
        stamp(outgoing.data, *mark)
        assert struct.unpack_from(">I", outgoing.data, 17)[0] == crc32c(bytes(outgoing.data[21:]))
        assert struct.unpack_from(">qhi", outgoing.data, 43) == mark
    # what is damaged after it was checked fails at the target too
    if 61 + at < len(outgoing.data):
        outgoing.data[61 + at] ^= 4
        stamp(outgoing.data, 9, 9, 9)
        assert struct.unpack_from(">I", outgoing.data, 17)[0] != crc32c(bytes(outgoing.data[21:]))


@pytest.mark.parametrize("codec", CODECS)
def test_a_large_batch_passes_in_place(codec):
    log = SourceLog([data(3000, codec=codec, size=9)])
    source = memoryview(bytearray(log.data))
    [outgoing] = prepare(TP, source, 0, now_ms=NOW, limits=Limits(small_bytes=100)).outgoing
    assert (outgoing.kind, outgoing.records, outgoing.next_source_offset) == (Kind.PASSED, 3000, 3000)
    assert isinstance(outgoing.data, memoryview)
    assert outgoing.data.obj is source.obj
    stamp(outgoing.data, 1, 0, 0)
    assert outgoing.data[61:] == log.data[61:]


def test_read_only_bytes_are_copied_and_left_alone():
    log = SourceLog([data(2, producer=5, transactional=True)])
    source = log.data
    [outgoing] = prepare(TP, memoryview(source), 0, now_ms=NOW).outgoing
    stamp(outgoing.data, 1, 0, 0)
    assert source == log.data
    assert bytes(outgoing.data) != source


@pytest.mark.parametrize(
    ("entry", "kind"),
    [
        (data(3), Kind.PASSED),
        (data(3, producer=4, transactional=True), Kind.PASSED),
        (data(3, horizon=True), Kind.PASSED),
        (data(3, timestamp=0), Kind.PASSED),
        (data(3, kept=(True, False, True)), Kind.RECODED),
        (data(3, kept=(True, True, False)), Kind.RECODED),
        (data(3, appended=True), Kind.RECODED),
        (data(1, timestamp=-1), Kind.RECODED),
        (data(3, magic=1, codec="gzip"), Kind.RECODED),
        (data(1, magic=0), Kind.RECODED),
    ],
)
def test_what_is_passed_and_what_is_recoded(entry, kind):
    assert [each.kind for each in run(SourceLog([entry])).outgoing] == [kind]


def test_batches_without_a_record_only_move_the_position():
    log = SourceLog([data(3, kept=(False,) * 3), Marker(4, commit=True), data(2), Marker(4, commit=False)])
    prepared = run(log, limits=Limits(small_bytes=0))
    assert outline(prepared) == [(Kind.PASSED, 4, 2, 6)]
    assert prepared.next_offset == 7
    assert run(SourceLog([Marker(4, commit=True)])).next_offset == 1


def test_small_neighbours_of_one_codec_become_one_batch():
    log = SourceLog(
        [*[data(1)] * 3, Marker(9, commit=True), data(1, codec="zstd"), data(40, size=200), data(1), data(2), data(1)]
    )
    assert outline(run(log)) == [
        (Kind.COALESCED, 0, 3, 4),
        (Kind.COALESCED, 4, 1, 5),
        (Kind.PASSED, 5, 40, 45),
        (Kind.COALESCED, 45, 4, 49),
    ]


@pytest.mark.parametrize("limits", LIMITS)
def test_the_leader_epoch_is_that_of_the_last_batch_gone_through(limits):
    log = SourceLog(
        [data(1), data(1), data(40, size=200), Marker(4, commit=True), data(1, magic=0), data(2, kept=(False,) * 2)]
    )
    epochs = [3, 4, 6, 7, None, 9]
    batches = [bytearray(each) for _, each in log.batches]
    for batch, epoch in zip(batches, epochs, strict=True):
        if epoch is not None:  # in the same place old messages have their CRC
            struct.pack_into(">i", batch, 12, epoch)
    for whole, expected in enumerate([-1, 3, 4, 6, 7, -1, 9]):
        cut = b"".join(batches[:whole]) + bytes(batches[whole][:-1] if whole < len(batches) else b"")
        assert run(log, data=cut, limits=limits).leader_epoch == expected
    batches[1][-1] ^= 1
    assert run(log, data=b"".join(batches), limits=limits).leader_epoch == 3


def test_a_single_small_batch_passes():
    assert outline(run(SourceLog([data(1), data(40, size=200)]))) == [(Kind.PASSED, 0, 1, 1), (Kind.PASSED, 1, 40, 41)]


def test_what_is_written_anew_keeps_its_codec_and_its_limits():
    for codec, number in CODECS.items():
        log = SourceLog([data(60, size=300, codec=codec, kept=(True, *[False] * 19, *[True] * 40))])
        prepared = run(log, limits=Limits(batch_bytes=4000, small_bytes=0))
        assert sum(each.records for each in prepared.outgoing) == 41
        assert len(prepared.outgoing) > 3
        assert {each.data[22] & 7 for each in prepared.outgoing} == {number}
    huge = SourceLog([data(2, size=9000, kept=(True, True), appended=True)])
    assert outline(run(huge, limits=Limits(batch_bytes=4000))) == [(Kind.RECODED, 0, 1, 1), (Kind.RECODED, 1, 1, 2)]


def test_interleaved_transactions_under_read_committed():
    ten, eleven = {"producer": 10, "transactional": True}, {"producer": 11, "transactional": True}
    log = SourceLog(
        [
            data(1, **ten),  # 0: aborted
            data(1, **eleven),  # 1: committed
            data(1, producer=10),  # 2: the same producer outside any transaction
            Marker(11, commit=True),
            data(1, **eleven),  # 4: aborted
            Marker(10, commit=False),
            data(1, **ten),  # 6: committed, behind the abort
            Marker(11, commit=False),
            Marker(10, commit=True),
        ]
    )
    assert log.aborted(0) == [(10, 0), (11, 4)]
    for limits in LIMITS:
        committed = run(log, aborted=log.aborted(0), limits=limits)
        assert committed.outgoing[0].first_source_offset == 1
        assert sum(each.records for each in committed.outgoing) == 3
        assert committed.next_offset == 9
    assert sum(each.records for each in run(log).outgoing) == 5


def test_a_header_name_that_is_no_text_passes():
    log = SourceLog([Data((Datum(5, b"k", b"v", (("name", b"x"),)),), (True,)), data(1)])
    (_, first), (_, second) = log.batches
    odd = bytearray(first.replace(b"name", b"na\xffe"))
    struct.pack_into(">I", odd, 17, crc32c(odd[21:]))
    prepared = run(log, data=bytes(odd) + second)
    assert prepared.damage is None
    assert [each.kind for each in prepared.outgoing] == [Kind.PASSED, Kind.PASSED]
    assert b"na\xffe" in bytes(prepared.outgoing[0].data)


def test_an_impossible_length_is_damage():
    log = SourceLog([data(2), data(2)])
    for length in (-5, 0, 48):
        bad = bytearray(log.data)
        struct.pack_into(">i", bad, len(log.batches[0][1]) + 8, length)
        prepared = run(log, data=bad)
        assert (prepared.next_offset, len(prepared.outgoing)) == (2, 1)
        assert str(prepared.damage) == f"partition orders-3: a batch of {length} bytes at offset 2"


def test_sequences_wrap_as_kafkas_do():
    assert next_sequence(0, 5) == 5
    assert next_sequence((1 << 31) - 1, 1) == 0
    assert next_sequence((1 << 31) - 2, 5) == 3
