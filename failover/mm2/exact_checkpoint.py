"""The records of the exact checkpoints topic: MirrorMaker 2's checkpoints, and beside each how it is known.

Key and value are MM2's Checkpoint, byte for byte, so whatever reads those reads these. What MM2 has no place for
stands in one record header, ``failover``, as JSON with a version; of a record with another version, or without the
header, nothing is believed. Two kinds of records belong to no consumer group: they carry the tracker's own group.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

import msgspec

from failover.mm2.checkpoint import Checkpoint
from failover.mm2.fields import DecodeError
from failover.model.names import TopicPartition
from failover.model.records import Record

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

    ``sync``: its newest offset sync, None where there is none. The record's offsets are the end and, for people, the
    place behind the sync on the target.
    """

    v: int = 0
    end: int
    at: int
    sync: tuple[int, int] | None = None


class Beat(msgspec.Struct, frozen=True, kw_only=True, tag="beat", tag_field="kind", omit_defaults=True):
    """Says that at ``at`` (epoch ms) all the other records held.

    ``older``: groups of which less is on record than they had committed then, or which could not be asked; ``whole``
    False: there are more of these than are named. ``ends_older``: likewise partitions, by the target's names.
    """

    v: int = 0
    at: int
    older: tuple[str, ...] = ()
    ends_older: tuple[tuple[str, int], ...] = ()
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


class Position(msgspec.Struct, frozen=True):
    """Is where a group's committed source offset ``upstream`` lies on the target, and how that is known."""

    upstream: int
    downstream: int
    metadata: bytes
    known: Known

    def checkpoint(self, group: str, place: TopicPartition) -> Checkpoint:
        """Gives the record of this position; ``place``: the target's partition."""
        return Checkpoint(group, *place, self.upstream, self.downstream, self.metadata)


def end_record(own_group: str, place: TopicPartition, end: SourceEnd) -> Checkpoint:
    """Makes the record under which the end of a source partition is kept; ``place``: the target's partition."""
    return Checkpoint(own_group, *place, end.end, 0 if end.sync is None else end.sync[1] + 1)


def beat_record(own_group: str, exact_topic: str, groups: int, positions: int) -> Checkpoint:
    """Makes the record that says when all was looked at; its offsets count groups and their positions, for people."""
    return Checkpoint(own_group, exact_topic, 0, groups, positions)


class ExactRecords:
    """Collects the records of an exact checkpoints topic; of each key the newest counts.

    Memory goes with the number of keys: what is taken stays bytes until ``decoded``.
    """

    def __init__(self) -> None:
        self._newest: dict[bytes, Record] = {}

    def take(self, records: Iterable[Record]) -> None:
        """Takes the next records in log order."""
        for record in records:
            if record.key is None:
                continue
            if record.value is None:
                self._newest.pop(record.key, None)
            else:
                self._newest[record.key] = record

    def decoded(self) -> Exact:
        """Gives what the records say; those that cannot be read are left out."""
        found = Exact({}, {}, None)
        for key, record in self._newest.items():
            note = decode_note(record.headers)
            try:
                checkpoint = Checkpoint.decode(key, record.value)
            except DecodeError:
                continue
            if checkpoint is None or note is None:
                continue
            place = TopicPartition(checkpoint.topic, checkpoint.partition)
            if isinstance(note, Known):
                position = Position(checkpoint.upstream, checkpoint.downstream, checkpoint.metadata, note)
                found.positions.setdefault(checkpoint.group, {})[place] = position
            elif isinstance(note, SourceEnd):
                found.ends[place] = note
            elif found.beat is None or note.at > found.beat.at:
                found = msgspec.structs.replace(found, beat=note)
        return found


class Exact(msgspec.Struct, frozen=True):
    """Is what an exact checkpoints topic says.

    ``positions``: by group and target partition. ``ends``: by target partition. ``beat``: when all of it held last.
    """

    positions: dict[str, dict[TopicPartition, Position]]
    ends: dict[TopicPartition, SourceEnd]
    beat: Beat | None

    def as_of(self, group: str, position: Position) -> int:
        """Gives until when the group is known to have stood at a position (epoch ms)."""
        beat = self.beat
        if beat is None or not beat.whole or group in beat.older:
            return position.known.end_at
        return max(beat.at, position.known.end_at)
