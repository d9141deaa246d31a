"""Records of exact checkpoints: MirrorMaker 2's bytes, and the note beside them."""

from __future__ import annotations

import json

import pytest

from failover.mm2.checkpoint import Checkpoint
from failover.mm2.exact_checkpoint import (
    Beat,
    Exact,
    ExactRecords,
    Known,
    Position,
    SourceEnd,
    beat_record,
    decode_note,
    encode_note,
    end_record,
)
from failover.model.names import TopicPartition
from failover.model.records import Record

PLACE = TopicPartition("A.orders", 3)
KNOWN = Known(
    proof="content",
    precision="exact",
    most=0,
    end=1300,
    end_at=1_000,
    commit_at=900,
    target_id="kVxv3PzQRbW0x9yGm3nX0A",
)
OWN = "failover.checkpoint.A-B"


def record(checkpoint: Checkpoint, note, offset: int = 0) -> Record:
    headers = encode_note(note) if note is not None else ()
    return Record(offset, 5, checkpoint.encode_key(), checkpoint.encode_value(), headers)


def decoded(*records: Record) -> Exact:
    collected = ExactRecords()
    collected.take(records)
    return collected.decoded()


def test_key_and_value_are_mirror_makers() -> None:
    checkpoint = Position(1234, 951, b"", KNOWN).checkpoint("g1", PLACE)
    assert checkpoint.encode_key().hex() == "000267310008412e6f726465727300000003"
    assert checkpoint.encode_value().hex() == "000000000000000004d200000000000003b70000"


@pytest.mark.parametrize(
    "note",
    [
        KNOWN,
        Known(proof="sync-below", precision="bounded"),
        SourceEnd(end=7, at=3, sync=(6, 9)),
        SourceEnd(end=0, at=3),
        Beat(at=12),
        Beat(at=12, older=("g", "h"), ends_older=(("A.orders", 3),), whole=False),
    ],
)
def test_notes_come_back_as_they_were(note) -> None:
    [(name, raw)] = encode_note(note)
    assert (name, json.loads(raw or b"")["v"]) == ("failover", 1)
    found = decode_note(((name, b"of somebody before"), (name, raw)))
    assert found is not None
    assert encode_note(found) == encode_note(note)


@pytest.mark.parametrize(
    "headers",
    [
        (),
        (("failover", None),),
        (("failover", b"{"),),
        (("failover", b'{"kind":"beat","v":2,"at":1}'),),
        (("failover", b'{"kind":"beat","at":1}'),),
        (("failover", b'{"kind":"other","v":1}'),),
        (("other", b'{"kind":"beat","v":1,"at":1}'),),
    ],
)
def test_of_what_cannot_be_read_nothing_is_believed(headers) -> None:
    assert decode_note(headers) is None


def test_fields_of_a_later_writer_are_ignored() -> None:
    assert decode_note((("failover", b'{"kind":"beat","v":1,"at":1,"mood":"good"}'),)) == Beat(v=1, at=1)


def test_the_newest_record_of_a_key_counts() -> None:
    older, newer = Position(10, 5, b"", KNOWN), Position(20, 15, b"\xff", KNOWN)
    found = decoded(
        record(older.checkpoint("g", PLACE), KNOWN),
        record(newer.checkpoint("g", PLACE), KNOWN),
        record(older.checkpoint("g", TopicPartition("A.orders", 0)), None),
        record(end_record(OWN, PLACE, SourceEnd(end=30, at=2, sync=(8, 9))), SourceEnd(end=30, at=2, sync=(8, 9))),
        record(beat_record(OWN, "mm2-exact-checkpoints.A.internal", 1, 1), Beat(at=99)),
        Record(9, 5, None, b"x"),
        Record(9, 5, b"\x00", b"x", encode_note(KNOWN)),
    )
    [(place, position)] = found.positions["g"].items()
    assert (place, position.upstream, position.downstream, position.metadata) == (PLACE, 20, 15, b"\xff")
    assert position.known.target_id == KNOWN.target_id
    assert {place: (end.end, end.sync) for place, end in found.ends.items()} == {PLACE: (30, (8, 9))}
    assert found.beat is not None
    assert found.beat.at == 99
    assert found.positions.keys() == {"g"}


def test_a_tombstone_takes_a_record_away() -> None:
    one = record(Position(10, 5, b"", KNOWN).checkpoint("g", PLACE), KNOWN)
    assert decoded(one, Record(1, 5, one.key, None)).positions == {}


@pytest.mark.parametrize(
    ("beat", "until"),
    [
        (None, 1_000),
        (Beat(at=5_000), 5_000),
        (Beat(at=500), 1_000),
        (Beat(at=5_000, older=("g",)), 1_000),
        (Beat(at=5_000, older=("h",)), 5_000),
        (Beat(at=5_000, whole=False), 1_000),
    ],
)
def test_a_position_holds_as_long_as_a_beat_says(beat, until) -> None:
    assert Exact({}, {}, beat).as_of("g", Position(10, 5, b"", KNOWN)) == until
