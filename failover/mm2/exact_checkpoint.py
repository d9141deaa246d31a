"""The records of the exact checkpoints topic: MirrorMaker 2's checkpoints, and beside each how it is known.

Key and value are MM2's Checkpoint, byte for byte, so whatever reads those reads these. What MM2 has no place for
stands in one record header, ``failover``, as JSON with a version; of a record with another version, or without the
header, nothing is believed. Two kinds of records belong to no consumer group: they carry the tracker's own group.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from failover.mm2.checkpoint import Checkpoint

HEADER: Final = "failover"
VERSION: Final = 1

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]


class Known(msgspec.Struct, frozen=True, kw_only=True, tag="position", tag_field="kind", omit_defaults=True):
    """Says how a group's translated position is known.

    ``proof``, ``precision``: see ``failover.model.translation``. ``most``: records that may come again at most, as
    of then. ``end``: the source partition's log end, None where it was not told, at ``end_at``. ``commit_at``: when
    the group's commit was read first. ``target_id``: id of the target's topic, "" where it has none. Times are
    epoch milliseconds.
    """

    v: int = 0
    proof: str
    precision: str
    most: int | None = None
    end: int | None = None
    end_at: int = 0
    commit_at: int = 0
    target_id: str = ""


class SourceEnd(msgspec.Struct, frozen=True, kw_only=True, tag="end", tag_field="kind", omit_defaults=True):
    """Says where a source partition ended at ``at`` (epoch ms).

    ``sync``: its newest offset sync, None where there is none. The record's offsets are both logs' ends.
    """

    v: int = 0
    end: int
    at: int
    sync: tuple[int, int] | None = None


class Beat(msgspec.Struct, frozen=True, kw_only=True, tag="beat", tag_field="kind", omit_defaults=True):
    """Says that at ``at`` (epoch ms) all the other records held.

    ``unread``: groups that could not be asked, so that what is known of them is older; ``whole`` False: there are
    more of these than are named. ``ends_unread``: source partitions without an answer, likewise (topic, partition).
    """

    v: int = 0
    at: int
    unread: tuple[str, ...] = ()
    ends_unread: tuple[tuple[str, int], ...] = ()
    whole: bool = True


Note: TypeAlias = Known | SourceEnd | Beat

_notes = msgspec.json.Decoder(Note)


def encode_note(note: Note) -> Headers:
    """Gives the record headers that carry a note."""
    return ((HEADER, msgspec.json.encode(msgspec.structs.replace(note, v=VERSION))),)


def decode_note(headers: Headers) -> Note | None:
    """Reads the note of a record; None where there is none that this version can read."""
    raw = next((value for name, value in reversed(headers) if name == HEADER), None)
    if raw is None:
        return None
    try:
        note = _notes.decode(raw)
    except msgspec.DecodeError:
        return None
    return note if note.v == VERSION else None


def end_record(own_group: str, topic: str, partition: int, end: int, target_end: int) -> Checkpoint:
    """Makes the record under which the end of a source partition is kept; ``topic``: the target's name."""
    return Checkpoint(own_group, topic, partition, end, target_end)


def beat_record(own_group: str, exact_topic: str, groups: int, positions: int) -> Checkpoint:
    """Makes the record that says when all was looked at; its offsets count groups and their positions, for people."""
    return Checkpoint(own_group, exact_topic, 0, groups, positions)
