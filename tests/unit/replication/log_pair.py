"""Two logs in memory, one copied to the other, and the answer to where the copying stands."""

from __future__ import annotations

from typing import NamedTuple

from failover.kafka.wire.metadata import NO_TOPIC_ID
from failover.model.cluster import LogRange
from failover.model.records import Record
from failover.replication.anchor import Anchor
from failover.replication.locate_answer import Located, Question, Unknown
from failover.replication.locate_rule import locating
from failover.replication.reading import Stretch, Want

SOURCE_ID, TARGET_ID = b"s" * 16, b"t" * 16


class Datum(NamedTuple):
    value: bytes
    timestamp: int = 1_000
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class MemoryLog:
    """Is a log by offset: a datum, ``None`` for a marker. ``aborted``, ``gone``: offsets of such records."""

    def __init__(self, *, start: int = 0, epoch: int = 3) -> None:
        self.start = start
        self.base = start
        self.places: list[Datum | None] = []
        self.aborted: set[int] = set()
        self.gone: set[int] = set()
        self.epochs: list[int] = []
        self.epoch = epoch
        self.appended = False
        self.asked = 0

    @property
    def end(self) -> int:
        return self.base + len(self.places)

    @property
    def range(self) -> LogRange:
        return LogRange(self.start, self.end)

    def add(self, *data: Datum | None, aborted: bool = False) -> int:
        for datum in data:
            if aborted:
                self.aborted.add(self.end)
            self.places.append(datum)
            self.epochs.append(self.epoch)
        return self.end

    def truncate(self, end: int) -> None:
        del self.places[end - self.base :], self.epochs[end - self.base :]
        self.aborted = {offset for offset in self.aborted if offset < end}
        self.gone = {offset for offset in self.gone if offset < end}

    def seen(self, *, committed: bool) -> list[tuple[int, Datum]]:
        """Lists the data records left, as a consumer sees them."""
        return [
            (offset, datum)
            for offset, datum in enumerate(self.places, self.base)
            if datum is not None
            and offset >= self.start
            and offset not in self.gone
            and not (committed and offset in self.aborted)
        ]

    def stretch(self, want: Want, *, committed: bool) -> Stretch:
        assert self.start <= want.start <= want.stop <= self.end, (want, self.range)
        self.asked += want.stop - want.start
        found = Stretch(want.start, want.stop)
        found.appended = self.appended
        for offset in range(want.start, want.stop):
            datum = self.places[offset - self.base]
            if offset in self.gone:
                found.note_hole(offset, offset + 1)
                continue
            found.note_epoch(offset, offset + 1, self.epochs[offset - self.base])
            if datum is not None and not (committed and offset in self.aborted):
                record = Record(offset, datum.timestamp, datum.key, datum.value, datum.headers)
                found.note_records([record], offset, offset + 1, keep=want.records)
        return found


class Asked(NamedTuple):
    """Is an answer and how many rounds of reading it took."""

    answer: Located | Unknown
    rounds: int


def ask(
    source: MemoryLog,
    target: MemoryLog,
    anchors: list[Anchor],
    *,
    committed: bool = False,
    source_id: bytes = SOURCE_ID,
    target_id: bytes = TARGET_ID,
    start: str | int = "earliest",
    max_records: int = 200_000,
    whole: int | None = None,
) -> Asked:
    question = Question(
        anchors=tuple(anchors),
        source=source.range,
        target=target.range,
        source_topic_id=source_id,
        target_topic_id=target_id,
        start=start if isinstance(start, int) else "latest" if start == "latest" else "earliest",
        max_records=max_records,
        whole=whole,
    )
    search = locating(question)
    rounds = 0
    try:
        wants = next(search)
        while True:
            rounds += 1
            wants = search.send(
                {
                    want: (source if want.side == "source" else target).stretch(
                        want, committed=committed and want.side == "source"
                    )
                    for want in wants
                }
            )
    except StopIteration as stop:
        return Asked(stop.value, rounds)


def ours(upstream: int, downstream: int, *, epoch: int = -1) -> Anchor:
    return Anchor(upstream, downstream, SOURCE_ID, TARGET_ID, epoch)


class Copying:
    """Copies as a worker does and knows where it stands. ``position``: the next source offset."""

    def __init__(self, source: MemoryLog, target: MemoryLog, *, committed: bool = False, position: int = 0) -> None:
        self.source = source
        self.target = target
        self.committed = committed
        self.position = position
        self.syncs: list[Anchor] = []
        self.anchors: list[Anchor] = []

    def copy(self, most: int = 1 << 30, *, synced: bool = True) -> None:
        """Copies records from the position on; ``synced``: the first gets an offset sync, as in MM2's every run."""
        first = True
        for offset, datum in self.source.seen(committed=self.committed):
            if offset < self.position or most <= 0:
                continue
            if first and synced:
                self.syncs.insert(0, Anchor(offset, self.target.end))
            first = False
            self.target.add(datum)
            self.position = offset + 1
            most -= 1

    def sync(self) -> None:
        """Writes an offset sync of the record copied last."""
        self.syncs.insert(0, Anchor(self.position - 1, self.target.end - 1))

    def anchor(self) -> Anchor:
        """Records where the copying stands, as our worker does."""
        self.anchors.insert(0, ours(self.position, self.target.end))
        return self.anchors[0]

    def fence(self) -> None:
        self.target.add(None)

    def stands_at(self, upstream: int) -> bool:
        """Says whether going on from there copies what is left of the source, and that alone."""
        offsets = [offset for offset, _ in self.source.seen(committed=self.committed)]
        low, high = sorted((upstream, self.position))
        return not any(low <= offset < high for offset in offsets)


__all__ = ["NO_TOPIC_ID", "SOURCE_ID", "TARGET_ID", "Asked", "Copying", "Datum", "MemoryLog", "ask", "ours"]
