"""From the record bytes of a fetch answer to batches for the target."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from itertools import chain
from struct import Struct
from typing import Any, NamedTuple

import msgspec

from failover.kafka.wire.aborted import AbortedTransactions, is_abort
from failover.kafka.wire.batches import (
    CONTROL,
    TRANSACTIONAL,
    Batch,
    UnreadableBatch,
    check,
    decode,
    decoding_errors,
    records_of,
    split,
)
from failover.kafka.wire.encode import walk
from failover.mm2.provenance import provenance
from failover.model.names import TopicPartition
from failover.replication.batches.assembly import Assembly, Limits
from failover.replication.batches.outgoing import Kind, Outgoing

_CODEC = 0x07
_PLACE = Struct(">qiib")  # base offset, length, leader epoch, magic
_BEFORE_LENGTH = 12
_LENGTH_V2, _LENGTH_OLD = 49, 14  # of a header that nothing follows
_SMALLEST = _BEFORE_LENGTH + _LENGTH_OLD
_REST = Struct(">qqq6xi")  # base timestamp, newest timestamp, producer id, number of records behind epoch and sequence
_REST_AT = 27
_LAST_DELTA = Struct(">i")
_LAST_DELTA_AT = 23
_TINY = 256  # what is so small holds few records, or such as compress to nothing
_NO_TIMESTAMP = -1
_NONE = -1


class Prepared(msgspec.Struct, frozen=True):
    """Is what one fetch answer brings for one partition.

    ``outgoing``: in log order; together they hold every data record in [position, ``next_offset``). ``next_offset``:
    where to fetch on, behind whatever is not for the target. ``damage``: why the batch at ``next_offset`` and those
    behind it are left out; what comes before them can be sent. ``leader_epoch``: under which the last batch before
    ``next_offset`` was written on the source, -1 where the answer holds none or that is of an old format.
    """

    outgoing: tuple[Outgoing, ...]
    next_offset: int
    damage: UnreadableBatch | None = None
    leader_epoch: int = _NONE


class _Record(NamedTuple):
    """Is a record of magic 0 or 1, or one with further headers, in the shape of the others."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


def prepare(
    tp: TopicPartition,
    records: memoryview,
    position: int,
    *,
    now_ms: int,
    aborted: Iterable[tuple[int, int]] | None = None,
    limits: Limits | None = None,
    mark: bool = False,
) -> Prepared:
    """Makes batches for the target of the bytes a fetch answered for ``tp`` from ``position`` on.

    - *Passed*, its records not even looked at: a batch of version 2 without holes that carries its producer's
      timestamps. It stays where it is in ``records``, so those must be writable and nobody else's (a copy is made if
      they are read-only).
    - *Coalesced*: neighbours that are small and of one codec become one batch.
    - *Recoded*: what a broker would refuse (holes left by compaction), what would arrive otherwise than MM2 delivers
      it (the broker's append time, no timestamp), formats before version 2, a batch that begins before ``position``.
    - *Left out*: transaction markers, batches compaction emptied, aborted transactions where ``aborted`` is given.

    Each batch's CRC is checked before anything is made of it. ``aborted``: the answer's aborted transactions under
    read_committed, None under read_uncommitted. ``now_ms``: stands for a missing timestamp. ``mark``: every record is
    recoded and gets headers that say where it came from (see ``failover.mm2.provenance``).
    """
    work = _Preparation(records, position, now_ms, limits or Limits(), aborted, origin=tp if mark else None)
    damage = None
    try:
        work.run()
    except UnreadableBatch as error:
        damage = UnreadableBatch(f"partition {tp}: {error}")
    return Prepared(tuple(work.finished), work.position, damage, work.leader_epoch)


class _Preparation:
    """Goes through one answer; ``position``: the source is read up to here, ``leader_epoch``: of the batch before."""

    def __init__(
        self,
        records: memoryview,
        position: int,
        now_ms: int,
        limits: Limits,
        aborted: Iterable[tuple[int, int]] | None,
        *,
        origin: TopicPartition | None,
    ) -> None:
        self.finished: list[Outgoing] = []
        self.position = position
        self.leader_epoch = _NONE
        self._records = records
        self._now_ms = now_ms
        self._limits = limits
        self._origin = origin
        self._aborted = None if aborted is None else AbortedTransactions(aborted)

    def run(self) -> None:
        """Raises ``UnreadableBatch``; what is finished up to ``position`` stays good."""
        for start, stop, count, epoch in self._pieces():
            if count > 1 and self._coalesced(start, stop, count):
                self.leader_epoch = epoch
            else:
                for batch in split(self._records[start:stop]):
                    self._take(batch)

    def _pieces(self) -> Iterator[tuple[int, int, int, int]]:
        """Cuts the answer into runs of small batches and single other ones.

        Gives (start, stop, number of batches, leader epoch of a run's last one).
        """
        records, small = self._records, self._limits.small_bytes - _BEFORE_LENGTH
        few, delta = self._limits.small_records, _LAST_DELTA.unpack_from
        place, position = _PLACE.unpack_from, self.position  # of a run only the first batch may lie below it
        at = first = count = 0
        run_epoch = _NONE
        end = len(records)
        last, before, least = end - _SMALLEST, _BEFORE_LENGTH, _LENGTH_V2
        while at <= last:
            base, length, epoch, magic = place(records, at)
            stop = at + before + length
            if stop > end:
                break
            if (
                least <= length <= small
                and magic >= 2
                and base >= position
                and (length <= _TINY or delta(records, at + _LAST_DELTA_AT)[0] < few)
            ):
                count += 1
                run_epoch = epoch
            else:
                if count:
                    yield first, at, count, run_epoch
                if length < _LENGTH_OLD:
                    raise UnreadableBatch(f"a batch of {length} bytes at offset {base}")
                yield at, stop, 1, _NONE
                first, count = stop, 0
            at = stop
        if count:
            yield first, at, count, run_epoch

    def _take(self, batch: Batch) -> None:
        mark = len(self.finished)
        try:
            self._take_readable(batch)
        except decoding_errors() as error:
            del self.finished[mark:]
            raise UnreadableBatch(f"the batch at offset {batch.base_offset} cannot be decoded: {error}") from error
        self.leader_epoch = batch.leader_epoch

    def _take_readable(self, batch: Batch) -> None:
        """Passes, recodes or leaves out one batch."""
        if batch.next_offset <= self.position:
            return
        check(batch)
        if batch.magic < 2:
            self._rewrite(batch, [_Record(*record[:4], []) for record in decode(batch, self.position)])
            return
        base_time, newest, producer_id, count = _REST.unpack_from(batch.data, _REST_AT)
        last_offset = batch.next_offset - 1
        if not count or (
            batch.attributes & (CONTROL | TRANSACTIONAL)
            and self._unseen(batch.attributes, producer_id, last_offset, records_of(batch))
        ):
            self.position = batch.next_offset
        elif (
            count == batch.next_offset - batch.base_offset
            and batch.base_offset >= self.position
            and not batch.log_append_time
            and _NO_TIMESTAMP not in (base_time, newest)
            and self._origin is None
        ):
            data = bytearray(batch.data) if batch.data.readonly else batch.data
            self.position = batch.next_offset
            self.finished.append(
                Outgoing(batch.base_offset, last_offset, self.position, count, newest, data, Kind.PASSED)
            )
        else:
            start = self.position
            self._rewrite(batch, (record for record in records_of(batch) if record.offset >= start))

    def _rewrite(self, batch: Batch, records: Iterable[Any]) -> None:
        assembly = self._assembly(batch.attributes & _CODEC, Kind.RECODED)
        assembly.add(self._marked(records))
        assembly.finish(batch.next_offset)
        self.position = batch.next_offset

    def _marked(self, records: Iterable[Any]) -> Iterable[Any]:
        """Adds to each record where it comes from, if that is wanted."""
        origin = self._origin
        if origin is None:
            return records
        return (
            _Record(
                record.offset,
                record.timestamp,
                record.key,
                record.value,
                [*record.headers, *provenance(origin, record.offset, record.timestamp)],
            )
            for record in records
        )

    def _assembly(self, codec: int, kind: Kind) -> Assembly:
        return Assembly(codec, kind, self._limits, self._now_ms, self.finished)

    def _coalesced(self, start: int, stop: int, count: int) -> bool:
        """Writes a run of small batches as one, or as few; False, and nothing done, if one of them is damaged."""
        mark, aborted = len(self.finished), copy(self._aborted)
        assembly, attributes, plain = self._assembly(_NONE, Kind.COALESCED), _NONE, False
        seen: list[Any] = []
        batch: Any = None
        next_batch = walk(bytes(self._records[start:stop])).next_batch
        try:
            for _ in range(count):
                previous, batch = batch, next_batch()
                if not batch.validate_crc():
                    raise ValueError("a CRC check fails")
                if batch.attributes != attributes:
                    attributes = batch.attributes
                    plain = not attributes & (CONTROL | TRANSACTIONAL)
                    if not attributes & CONTROL and attributes & _CODEC != assembly.codec:
                        if previous is not None:
                            assembly.add(self._marked(chain.from_iterable(seen)))
                            assembly.finish(previous.next_offset)
                        assembly, seen = self._assembly(attributes & _CODEC, Kind.COALESCED), []
                if plain or not self._unseen(attributes, batch.producer_id, batch.next_offset - 1, batch):
                    seen.append(batch)
            assembly.add(self._marked(chain.from_iterable(seen)))
            following = batch.next_offset
            assembly.finish(following)
        except decoding_errors():
            # Each is looked at by itself: so the good ones before it are kept, and one that no codec understands
            # may still pass as it is.
            del self.finished[mark:]
            self._aborted = aborted
            return False
        self.position = following
        return True

    def _unseen(self, attributes: int, producer_id: int, last_offset: int, records: Any) -> bool:
        """Says whether the next batch, in log order, holds nothing a consumer sees."""
        if attributes & CONTROL:
            marker = next(iter(records), None)
            if self._aborted is not None and marker is not None and is_abort(marker.key):
                self._aborted.end(producer_id, last_offset)
            return True
        return (
            self._aborted is not None
            and bool(attributes & TRANSACTIONAL)
            and self._aborted.covers(producer_id, last_offset)
        )
