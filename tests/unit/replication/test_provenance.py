from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from failover.kafka.wire.batches import decode, split
from failover.mm2.provenance import PREFIX, provenance, without_provenance
from failover.model.names import TopicPartition
from failover.model.records import Record
from failover.replication.batches import Kind, Limits, prepare
from failover.replication.reading import Stretch
from failover.translate.digest import LogView
from tests.unit.replication.source_log import NOW, logs

TP = TopicPartition("orders", 3)


def copied(log, limits, *, mark=True, aborted=None):
    prepared = prepare(
        TP, memoryview(bytearray(log.data)), log.base, now_ms=NOW, limits=limits, mark=mark, aborted=aborted
    )
    assert prepared.damage is None
    batches = [decode(next(split(memoryview(bytes(each.data))))) for each in prepared.outgoing]
    return prepared, [record for batch in batches for record in batch]


@given(logs, st.sampled_from([Limits(), Limits(small_bytes=0), Limits(batch_records=3)]), st.booleans())
def test_every_record_says_where_it_came_from_and_nothing_else_differs(log, limits, committed):
    aborted = log.aborted(log.base) if committed else None
    plain, unmarked = copied(log, limits, mark=False, aborted=aborted)
    prepared, marked = copied(log, limits, aborted=aborted)
    assert prepared.next_offset == plain.next_offset
    assert Kind.PASSED not in {each.kind for each in prepared.outgoing}
    assert [without_provenance(record)[1:] for record in marked] == [record[1:] for record in unmarked]
    expected = log.delivered(log.base, read_committed=committed, stop=prepared.next_offset)
    for record, (offset, _) in zip(marked, expected, strict=True):
        *_, topic, partition, at, timestamp = record.headers
        assert topic == (f"{PREFIX}topic", b"orders")
        assert partition == (f"{PREFIX}partition", b"3")
        assert at == (f"{PREFIX}offset", str(offset).encode())
        assert timestamp[0] == f"{PREFIX}timestamp"
        assert int(timestamp[1] or b"") in (record.timestamp, -1)


def test_a_second_copy_adds_to_the_first():
    record = Record(9, 5, b"k", b"v", (("own", b"x"), *provenance(TP, 4, 5), *provenance(TP, 7, 5)))
    assert without_provenance(record) == Record(9, 5, b"k", b"v", (("own", b"x"),))
    plain = Record(9, 5, b"k", b"v", (("own", b"x"),))
    assert without_provenance(plain) is plain


def test_who_compares_does_not_see_them():
    plain = [Record(0, 5, b"k", b"v"), Record(1, 5, b"k", b"w", (("own", b"x"),))]
    marked = [
        record._replace(headers=(*record.headers, *provenance(TP, record.offset, record.timestamp))) for record in plain
    ]
    rows, tokens = [], []
    for records in (plain, marked):
        stretch = Stretch(0, 2)
        stretch.note_records(records, 0, 2, keep=True)
        rows.append(stretch.rows)
        view = LogView(encode=True)
        view.add(0, 2, records)
        tokens.append((view.tokens(view.between(0, 2)), list(view.encoded), view.headers))
    assert rows[0] == rows[1]
    assert tokens[0] == tokens[1]
