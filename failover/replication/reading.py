"""Stretches of a partition's log as the search for a position needs them: what lies where, and tokens of records."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from struct import Struct
from typing import Literal, NamedTuple

from failover.kafka.wire.aborted import AbortedTransactions
from failover.kafka.wire.batches import Batch, decode
from failover.kafka.wire.cluster import WireCluster
from failover.kafka.wire.fetch import Fetched
from failover.kafka.wire.windows import Reading, read_all
from failover.mm2.provenance import without_provenance
from failover.model.names import Fault, TopicPartition
from failover.model.records import Record
from failover.translate.digest import fingerprint_encoded

_COUNT = Struct(">i")
_COUNT_AT = 57


class Want(NamedTuple):
    """Asks for the stretch [start, stop) of a partition, which its log is known to cover.

    ``records``: with the records themselves; else only where they lie.
    """

    side: Literal["source", "target"]
    start: int
    stop: int
    records: bool = True


class Row(NamedTuple):
    """Is one data record. ``content``: a number for its key, value and headers, ``encoded``: for the same with the
    header values in base64, as Connect's SimpleHeaderConverter writes them. ``timestamp``: epoch ms, -1 for none.
    """

    offset: int
    timestamp: int
    content: int
    encoded: int


class Stretch:
    """Says what lies in [start, stop) of a log.

    ``runs``: (first offset, number) of data records next to each other. ``holes``: (first offset, number) of offsets
    whose records are gone, so that nobody can tell whether they were data. What is in neither are transaction markers
    and, where they are left out, aborted records. ``rows``: the data records, if they were asked for. ``epochs``:
    (first offset, offset behind, leader epoch) of what is there. ``appended``: the broker set a timestamp itself.
    """

    __slots__ = ("appended", "epochs", "holes", "rows", "runs", "start", "stop")

    def __init__(self, start: int, stop: int) -> None:
        self.start = start
        self.stop = stop
        self.runs: list[tuple[int, int]] = []
        self.holes: list[tuple[int, int]] = []
        self.rows: list[Row] = []
        self.epochs: list[tuple[int, int, int]] = []
        self.appended = False

    @property
    def records(self) -> int:
        """Is the number of data records."""
        return sum(count for _, count in self.runs)

    @property
    def missing(self) -> int:
        """Is the number of offsets in holes."""
        return sum(count for _, count in self.holes)

    def part(self, start: int, stop: int) -> Stretch:
        """Gives what lies in [start, stop), which must be inside."""
        found = Stretch(start, stop)
        found.runs = _clipped(self.runs, start, stop)
        found.holes = _clipped(self.holes, start, stop)
        offset = _offset_of
        found.rows = self.rows[bisect_left(self.rows, start, key=offset) : bisect_left(self.rows, stop, key=offset)]
        found.epochs = self.epochs
        found.appended = self.appended
        return found

    def extend(self, following: Stretch) -> None:
        """Adds the stretch that begins where this one ends; where things lie, not the records."""
        self.runs += following.runs
        self.holes += following.holes
        self.stop = following.stop

    def epoch_before(self, offset: int) -> int:
        """Tells the leader epoch of what lies at the offset before, -1 if nothing does that was read."""
        at = bisect_right(self.epochs, offset - 1, key=_offset_of) - 1
        return self.epochs[at][2] if at >= 0 and self.epochs[at][1] >= offset else -1

    def note_run(self, first: int, behind: int) -> None:
        """Adds data records at [first, behind)."""
        _note(self.runs, first, behind)

    def note_hole(self, first: int, behind: int) -> None:
        """Adds offsets [first, behind) whose records are gone."""
        _note(self.holes, first, behind)

    def note_records(self, records: Sequence[Record], first: int, behind: int, *, keep: bool) -> None:
        """Adds [first, behind), of which these records are left; ``keep``: as rows, too."""
        for record in records:
            offset = record.offset
            _note(self.holes, first, offset)
            _note(self.runs, offset, offset + 1)
            first = offset + 1
            if keep:
                plain = without_provenance(record) if record.headers else record
                content = hash(plain[2:])
                encoded = fingerprint_encoded(plain) if plain.headers else content
                self.rows.append(Row(offset, record.timestamp, content, encoded))
        _note(self.holes, first, behind)

    def note_epoch(self, first: int, behind: int, epoch: int) -> None:
        """Adds the leader epoch of a batch."""
        if self.epochs and self.epochs[-1][1:] == (first, epoch):
            self.epochs[-1] = self.epochs[-1][0], behind, epoch
        else:
            self.epochs.append((first, behind, epoch))


def _offset_of(place: tuple[int, ...]) -> int:
    return place[0]


def _note(places: list[tuple[int, int]], first: int, behind: int) -> None:
    if first >= behind:
        return
    if places and places[-1][0] + places[-1][1] == first:
        places[-1] = places[-1][0], places[-1][1] + behind - first
    else:
        places.append((first, behind - first))


def _clipped(places: Sequence[tuple[int, int]], start: int, stop: int) -> list[tuple[int, int]]:
    return [
        (max(first, start), min(first + count, stop) - max(first, start))
        for first, count in places
        if first < stop and first + count > start
    ]


class StretchReading(Reading):
    """Reads one stretch; ``committed`` leaves out aborted transactions.

    A batch of version 2 whose number of records is that of its offsets is counted by its header alone.
    """

    __slots__ = ("_aborted", "_records", "_seen", "_stretch")
    whole = True

    def __init__(self, tp: TopicPartition, want: Want, *, committed: bool) -> None:
        super().__init__(tp, want.start, want.stop, committed=committed)
        self._records = want.records
        self._aborted: AbortedTransactions | None = None
        self._stretch = Stretch(want.start, want.stop)
        self._seen = want.start

    def begin(self, fetched: Fetched) -> None:
        super().begin(fetched)
        self._aborted = AbortedTransactions(fetched.aborted) if self.committed else None

    def take(self, batch: Batch) -> None:
        first = max(batch.base_offset, self._seen)
        if batch.magic < 2:
            first = self._seen  # a compressed set of messages does not say where it begins
        else:
            self._stretch.note_hole(self._seen, first)
            self._stretch.note_epoch(first, batch.next_offset, batch.leader_epoch)
        behind = self._seen = min(batch.next_offset, self.stop)
        count = -1
        if batch.magic >= 2:
            (count,) = _COUNT.unpack_from(batch.data, _COUNT_AT)
            if self._aborted.hides(batch) if self._aborted is not None else batch.control:
                return
        if count == batch.next_offset - batch.base_offset and not self._records:
            self._stretch.note_run(first, behind)
        else:
            records = decode(batch, first, self.stop) if count else []
            self._stretch.note_records(records, first, behind, keep=self._records)
            self._stretch.appended = self._stretch.appended or batch.log_append_time

    def stretch(self) -> Stretch | Fault:
        """Gives the stretch once it is read, or why it cannot be."""
        if self.fault is not None:
            return self.fault
        self._stretch.note_hole(self._seen, self.stop)
        return self._stretch


async def read_stretches(
    cluster: WireCluster, wanted: Sequence[tuple[TopicPartition, Want]], *, committed: bool
) -> list[Stretch | Fault]:
    """Reads stretches of many partitions of one cluster, a few requests a broker; in the order asked.

    ``committed``: as a read_committed consumer sees them. Each may fail by itself (OFFSET_OUT_OF_RANGE where the log
    begins beyond, CORRUPT_MESSAGE, no READ right). Raises ``ClusterUnreachable``, ``CredentialsRefused``.
    """
    readings = [StretchReading(tp, want, committed=committed) for tp, want in wanted]
    if readings:
        await read_all(cluster, [reading for reading in readings if reading.start < reading.stop])
    return [reading.stretch() for reading in readings]
