"""A source partition's log, as bytes and as what MirrorMaker 2 would deliver of it."""

from __future__ import annotations

import struct
from typing import NamedTuple

from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder
from crc32c import crc32c
from hypothesis import strategies as st

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
NOW = 1_800_000_000_000
APPENDED = 1_750_000_000_000
LOG_APPEND_TIME, TRANSACTIONAL, CONTROL, DELETE_HORIZON = 0x08, 0x10, 0x20, 0x40


class Datum(NamedTuple):
    """A record without its offset. ``timestamp`` -1: none."""

    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class Data(NamedTuple):
    """A data batch. ``kept``: per record, whether compaction left it. ``tail``: offsets that were taken at its end."""

    records: tuple[Datum, ...]
    kept: tuple[bool, ...]
    codec: str = "none"
    producer: int = -1
    transactional: bool = False
    appended: bool = False
    horizon: bool = False
    magic: int = 2


class Marker(NamedTuple):
    """The end of a producer's transaction."""

    producer: int
    commit: bool


class Placed(NamedTuple):
    offset: int
    datum: Datum
    aborted: bool


class SourceLog:
    """``batches``: (base offset, bytes) of each. ``placed``: every data record."""

    def __init__(self, entries: list[Data | Marker], base: int = 0) -> None:
        self.batches: list[tuple[int, bytes]] = []
        self.placed: list[Placed] = []
        self._aborted: list[tuple[int, int, int]] = []
        self.base = self.end = base
        began: dict[int, tuple[int, int]] = {}
        for entry in entries:
            if isinstance(entry, Marker):
                self._end_transaction(entry, began)
                continue
            if entry.transactional:
                began.setdefault(entry.producer, (self.end, len(self.placed)))
            self._append(entry)

    @property
    def data(self) -> bytes:
        return b"".join(data for _, data in self.batches)

    def aborted(self, position: int) -> list[tuple[int, int]]:
        """Lists the aborted transactions that reach behind a position, as a fetch from there does."""
        return [(producer, first) for producer, first, marker in self._aborted if marker >= position]

    def delivered(self, position: int, *, read_committed: bool, stop: int | None = None) -> list[tuple[int, Datum]]:
        """Gives (source offset, record as delivered) of everything from a position on."""
        return [
            (offset, datum if datum.timestamp != -1 else datum._replace(timestamp=NOW))
            for offset, datum, aborted in self.placed
            if offset >= position and (stop is None or offset < stop) and not (read_committed and aborted)
        ]

    def _append(self, entry: Data) -> None:
        length = len(entry.records)
        survivors = [
            (at, datum) for at, (datum, kept) in enumerate(zip(entry.records, entry.kept, strict=True)) if kept
        ]
        if entry.magic < 2:
            old = LegacyRecordBatchBuilder(entry.magic, CODECS[entry.codec], 1 << 24)
            for at, datum in survivors:
                relative = at if entry.magic == 1 and entry.codec != "none" else self.end + at
                old.append(relative, datum.timestamp, datum.key, datum.value)
                timestamp = -1 if entry.magic == 0 else datum.timestamp
                self.placed.append(Placed(self.end + at, Datum(timestamp, datum.key, datum.value), aborted=False))
            data = bytearray(old.build())
            if entry.codec != "none":
                # the set carries the offset of its last message
                struct.pack_into(">q", data, 0, self.end + survivors[-1][0])
            self.batches.append((self.end, bytes(data)))
            self.end += survivors[-1][0] + 1
            return
        builder = DefaultRecordBatchBuilder(2, CODECS[entry.codec], 0, entry.producer, 0, 0, 1 << 24)
        for at, datum in survivors:
            builder.append(at, datum.timestamp, datum.key, datum.value, list(datum.headers))
            delivered = datum._replace(timestamp=APPENDED) if entry.appended else datum
            self.placed.append(Placed(self.end + at, delivered, aborted=False))
        flags = LOG_APPEND_TIME * entry.appended | TRANSACTIONAL * entry.transactional | DELETE_HORIZON * entry.horizon
        newest = {35: APPENDED} if entry.appended else {}
        self._seal(bytearray(builder.build()), flags, length, newest)

    def _seal(self, data: bytearray, flags: int, length: int, times: dict[int, int]) -> None:
        struct.pack_into(">qi", data, 0, self.end, len(data) - 12)
        struct.pack_into(">i", data, 12, 5)
        (attributes,) = struct.unpack_from(">h", data, 21)
        struct.pack_into(">hi", data, 21, attributes | flags, length - 1)
        for at, value in times.items():
            struct.pack_into(">q", data, at, value)
        struct.pack_into(">I", data, 17, crc32c(data[21:]))
        self.batches.append((self.end, bytes(data)))
        self.end += length

    def _end_transaction(self, marker: Marker, began: dict[int, tuple[int, int]]) -> None:
        builder = DefaultRecordBatchBuilder(2, 0, 0, marker.producer, 0, -1, 1 << 10)
        builder.append(0, NOW, struct.pack(">hh", 0, 1 if marker.commit else 0), struct.pack(">hi", 0, 0), [])
        start = began.pop(marker.producer, None)
        if start is not None and not marker.commit:
            offset, _ = start
            self._aborted.append((marker.producer, offset, self.end))
            self._abort(marker.producer, offset)
        self._seal(bytearray(builder.build()), TRANSACTIONAL | CONTROL, 1, {})

    def _abort(self, producer: int, since: int) -> None:
        """Marks what a producer wrote in its transaction, found by the batches' own headers."""
        ranges = []
        for base, data in self.batches:
            if data[16] < 2 or base < since:
                continue
            (flags, last), (owner,) = struct.unpack_from(">hi", data, 21), struct.unpack_from(">q", data, 43)
            if owner == producer and flags & TRANSACTIONAL and not flags & CONTROL:
                ranges.append(range(base, base + last + 1))
        self.placed = [
            each._replace(aborted=True) if any(each.offset in covered for covered in ranges) else each
            for each in self.placed
        ]


_blob = st.one_of(st.none(), st.binary(max_size=12), st.sampled_from([b"", b"x" * 300, bytes(range(256))]))
_headers = st.lists(st.tuples(st.sampled_from(["", "h", "trace-id", "ключ"]), _blob), max_size=3).map(tuple)
_timestamps = st.one_of(st.integers(0, 2_000_000_000_000), st.just(1_700_000_000_000))
_datum = st.builds(Datum, _timestamps, _blob, _blob, _headers)


@st.composite
def _data(draw: st.DrawFn) -> Data:
    records = tuple(draw(st.lists(_datum, min_size=1, max_size=8)))
    if draw(st.integers(0, 9)) == 0:
        records = tuple(datum._replace(timestamp=-1) for datum in records)
    holes = draw(st.integers(0, 3)) == 0
    kept = tuple(draw(st.booleans()) if holes else True for _ in records)
    codec = draw(st.sampled_from(list(CODECS)))
    if draw(st.integers(0, 9)) == 0:
        magic = draw(st.sampled_from([0, 1]))
        return Data(
            tuple(Datum(max(datum.timestamp, 0), datum.key, datum.value) for datum in records),
            (True,) * len(records),
            draw(st.sampled_from(["none", "gzip"])),
            magic=magic,
        )
    producer = draw(st.sampled_from([-1, 10, 11, 12]))
    return Data(
        records,
        kept,
        codec,
        producer=producer,
        transactional=producer >= 0 and draw(st.booleans()),
        appended=draw(st.integers(0, 5)) == 0,
        horizon=draw(st.integers(0, 5)) == 0,
    )


_marker = st.builds(Marker, st.sampled_from([10, 11, 12]), st.booleans())
logs = st.builds(
    SourceLog, st.lists(st.one_of(_data(), _data(), _data(), _marker), max_size=12), st.sampled_from([0, 7, 1 << 40])
)
