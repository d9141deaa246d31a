"""A record-level simulation of a source log, MirrorMaker 2 copying it, and the target log: the judge.

Every record has an identity, so true positions, records read again and records skipped are
counted, not computed. MM2's behaviour: a run starts at the flushed position, syncs are queued by
MirrorSourceTask's four rules, at most ``in_flight`` are outstanding, later pairs replace pending
ones, a kill loses what has not landed.
"""

from __future__ import annotations

import base64
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from failover.model import Record, TopicPartition, Translation, Window, WindowRequest
from failover.translate.history import SyncHistory
from failover.translate.segments import Syncs
from failover.translate.sync_rule import LogBounds

SOURCE = TopicPartition("orders", 0)
TARGET = TopicPartition("a.orders", 0)


@dataclass(frozen=True)
class Item:
    """Is one data record: ``life`` counts the source topic's incarnations, ``offset`` is its source offset."""

    life: int
    offset: int
    payload: bytes
    aborted: bool = False
    timestamp: int = 0
    key: bytes | None = None

    def record(self, offset: int) -> Record:
        return Record(offset, self.timestamp, self.key, self.payload, (("h", b"%d" % (self.offset % 7)), ("n", None)))

    def content(self, *, stamped: bool = True) -> Record:
        """Returns what a consumer sees of it, wherever it lies: items of one content stand for each other."""
        record = self.record(0)
        return record if stamped else record._replace(timestamp=0)


@dataclass(repr=False)
class World:
    """Is one mirrored partition. A log slot is an Item, or None: a marker or a hole."""

    lag_max: int = 4
    in_flight: int = 10
    land_every: int = 1
    read_committed: bool = False
    identical: int = 0
    target_markers: bool = False
    log_append_time: bool = False
    base64_headers: bool = False
    seed: int = 0

    life: int = 0
    source: list[Item | None] = field(default_factory=list)
    source_start: int = 0
    target: list[Item | None] = field(default_factory=list)
    target_start: int = 0
    written: list[Item | None] = field(default_factory=list)
    syncs: list[tuple[int, int]] = field(default_factory=list)
    position: int = 0
    flushed: int = 0
    produced: int = 0

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self._new_run()

    def __repr__(self) -> str:
        source = " ".join("." if i is None else f"{i.offset}{'x' if i.aborted else ''}" for i in self.source)
        target = " ".join("." if i is None else str(i.offset) for i in self.target)
        return (
            f"World(source[{self.source_start}:]=<{source}> target[{self.target_start}:]=<{target}> "
            f"syncs={self.syncs} position={self.position} lag_max={self.lag_max} read_committed={self.read_committed})"
        )

    # -- the source -----------------------------------------------------------------------------

    def _item(self, *, aborted: bool = False) -> Item:
        self.produced += 1
        kind = self.random.randrange(self.identical) if self.identical else self.produced
        stamp = 1_700_000_000_000 + (0 if self.identical else self.produced)
        return Item(self.life, len(self.source), b"v%d" % kind, aborted, stamp, None if self.identical else b"k")

    def produce(self, count: int) -> None:
        for _ in range(count):
            self.source.append(self._item())

    def transaction(self, count: int, *, abort: bool) -> None:
        for _ in range(count):
            self.source.append(self._item(aborted=abort))
        self.source.append(None)

    def compact_source(self, percent: int) -> None:
        self._compact(self.source, self.source_start, percent)

    def retain_source(self, count: int) -> None:
        self.source_start = min(len(self.source), self.source_start + count)

    def recreate_source(self, count: int) -> None:
        self.life += 1  # the old life's records stay on the target
        self.source, self.source_start = [], 0
        self.produce(count)

    # -- the mirror -----------------------------------------------------------------------------

    def _new_run(self) -> None:
        self._previous_up = self._previous_down = self._last_sync_down = -1
        self._pending: tuple[int, int] | None = None
        self._delayed: tuple[int, int] | None = None
        self._outstanding: list[tuple[int, int]] = []
        self._since_land = 0

    def copy(self, count: int) -> None:
        if self.position > len(self.source):
            self.position = self.source_start
        self.position = max(self.position, self.source_start)
        while count and self.position < len(self.source):
            item = self.source[self.position]
            self.position += 1
            if item is None or (item.aborted and self.read_committed):
                continue
            self._write(item)
            self._acknowledged(item.offset, len(self.target) - 1)
            count -= 1
        if self.target_markers:
            self._write(None)

    def _acknowledged(self, up: int, down: int) -> None:
        due = (
            self._last_sync_down == -1
            or down - (self._last_sync_down + 1) >= self.lag_max
            or up - self._previous_up != 1
            or down < self._previous_down
        )
        self._previous_up, self._previous_down = up, down
        if due:
            self._last_sync_down = down
            self._pending, self._delayed = (up, down), None
        else:
            self._delayed = (up, down)
        self._fire()
        self._since_land += 1
        if self._since_land >= self.land_every:
            self.land()

    def _fire(self) -> None:
        if self._pending is not None and len(self._outstanding) < self.in_flight:
            self._outstanding.append(self._pending)
            self._pending = None

    def land(self) -> None:
        self._since_land = 0
        self.syncs.extend(self._outstanding)
        self._outstanding = []
        self._fire()

    def flush(self) -> None:
        self.flushed = self.position
        if self._delayed is not None:
            self._pending, self._delayed = self._delayed, None
        self._fire()

    def kill(self, landed: int = 0) -> None:
        self.syncs.extend(self._outstanding[:landed])
        self.position = self.flushed
        self._new_run()

    def retry(self, count: int) -> None:
        """Appends the newest records once more, as a retried produce without idempotence does."""
        newest = [item for item in self.target[-count:] if item is not None]
        for item in newest:
            self._write(item)

    def _write(self, item: Item | None) -> None:
        self.target.append(item)
        self.written.append(item)

    # -- the target -----------------------------------------------------------------------------

    def retain_target(self, count: int) -> None:
        self.target_start = min(len(self.target), self.target_start + count)

    def compact_target(self, percent: int) -> None:
        self._compact(self.target, self.target_start, percent)

    def truncate_target(self, count: int) -> None:
        del self.target[max(self.target_start, len(self.target) - count) :]
        del self.written[len(self.target) :]

    def recreate_target(self) -> None:
        self.target, self.written, self.target_start = [], [], 0

    def _compact(self, log: list[Item | None], start: int, percent: int) -> None:
        """Empties slots as the cleaner does: never the newest of a key, so never a second copy before a first.

        Nor is a record taken while one like it, and so of its key, stays before it.
        """
        gone = {item for item in log[start:-1] if item is not None and self.random.randrange(100) < percent}
        staying: set[Record] = set()
        for item in log:
            if item is not None and item.content() in staying:
                gone.discard(item)
            elif item is not None and item not in gone:
                staying.add(item.content())
        for at in range(start, len(log) - 1):
            if log[at] in gone:
                log[at] = None

    # -- what a translation sees ----------------------------------------------------------------

    def history(self) -> Syncs | None:
        history = SyncHistory()
        history.extend(SOURCE.topic, SOURCE.partition, self.syncs)
        return history.freeze().get(SOURCE)

    def bounds(self, *, source: bool = True) -> LogBounds:
        if not source:
            return LogBounds(target_start=self.target_start, target_end=len(self.target))
        return LogBounds(
            target_start=self.target_start,
            target_end=len(self.target),
            source_start=self.source_start,
            source_end=len(self.source),
        )

    def read(self, requests: Sequence[WindowRequest]) -> Mapping[WindowRequest, Window]:
        return {request: self._window(request) for request in requests}

    def _window(self, request: WindowRequest) -> Window:
        target = request.side == "target"
        log, start = (self.target, self.target_start) if target else (self.source, self.source_start)
        stop = min(request.stop, len(log))
        records = []
        for offset in range(max(request.start, start), stop):
            item = log[offset]
            if item is not None:
                record = item.record(offset)
                records.append(self._as_mirrored(record) if target else record)
        return Window(tuple(records), stop, start, len(log), log_append_time=target and self.log_append_time)

    def _as_mirrored(self, record: Record) -> Record:
        if self.log_append_time:
            record = record._replace(timestamp=1_800_000_000_000 + record.offset)
        if self.base64_headers:
            headers = tuple((k, None if v is None else base64.b64encode(v)) for k, v in record.headers)
            record = record._replace(headers=headers)
        return record

    # -- the truth ------------------------------------------------------------------------------

    def _unread(self, item: Item, upstream: int) -> bool:
        """Says whether a group at ``upstream`` still wants the record.

        A record compacted away on the source is superseded: its key's newer value comes later, and
        a consumer of the source would not see it either.
        """
        if item.life != self.life or item.offset < upstream:
            return False
        return item.offset < self.source_start or self.source[item.offset] is not None

    def _consumed(self, item: Item, upstream: int) -> bool:
        return item.life == self.life and item.offset < upstream

    def true_position(self, upstream: int) -> int:
        last: dict[tuple[int, int], int] = {}
        for offset in range(self.target_start, len(self.target)):
            item = self.target[offset]
            if item is not None and self._unread(item, upstream):
                last[item.life, item.offset] = offset
        return min(last.values(), default=len(self.target))

    def skipped(self, offset: int, upstream: int) -> int:
        """How many unread records lie on the target only below ``offset``."""
        before = {item for item in self.target[self.target_start : offset] if item and self._unread(item, upstream)}
        return len(before - set(self.target[offset:]))

    def skipped_alike(self, offset: int, upstream: int) -> int:
        """How many unread records are missing at or beyond ``offset`` when identical records stand for each other."""
        unread = {item for item in self.target[self.target_start :] if item and self._unread(item, upstream)}
        missing = self._contents(unread)
        missing.subtract(self._contents(item for item in self.target[offset:] if item))
        return sum(count for count in missing.values() if count > 0)

    def reread_alike(self, offset: int, upstream: int) -> int:
        """How many consumed records lie at or beyond ``offset``, less those that stand for an unread one below it."""
        beyond = {item for item in self.target[offset:] if item is not None}
        unread = {item for item in self.target[self.target_start :] if item and self._unread(item, upstream)}
        again = self._contents(item for item in self.target[offset:] if item and self._consumed(item, upstream))
        return (again - self._contents(unread - beyond)).total()

    def _contents(self, items: Iterable[Item]) -> Counter[Record]:
        return Counter(item.content(stamped=not self.log_append_time) for item in items)

    def reread(self, offset: int, upstream: int) -> int:
        """How many target records at or beyond ``offset`` were consumed before."""
        return sum(1 for item in self.target[offset:] if item is not None and self._consumed(item, upstream))

    def masked(self) -> bool:
        """Whether the syncs alone cannot show what happened: the condition ``sync_rule`` states.

        A stretch up to a sync both lacks source offsets and holds extra target offsets, the stretch
        beyond the newest sync holds extra ones at all, the one before the first sync holds
        records from beyond it, or a sync is not true any more.
        """
        syncs = self.history()
        if syncs is None:
            return False
        pairs = list(zip(syncs.ups, syncs.downs, strict=True))
        if any(down < len(self.written) and not self._true(up, down) for up, down in pairs):
            return True
        lead = self.written[: pairs[0][1]]
        if any(item is not None and item.life == self.life and item.offset > pairs[0][0] for item in lead):
            return True
        copied: set[Item] = set()
        low = 0
        for edge in [*syncs.downs, len(self.written) - 1]:
            extra = gap = False
            for at in range(low, min(edge + 1, len(self.written))):
                item = self.written[at]
                extra |= item is None or item in copied
                before = self.written[at - 1] if at else None
                if item is not None and before is not None:
                    gap |= item.offset - before.offset > 1
                    extra |= item.offset <= before.offset
                if item is not None:
                    copied.add(item)
            if extra and (gap or edge == len(self.written) - 1 != syncs.downs[-1]):
                return True
            low = max(low, edge + 1)
        return False

    def _true(self, up: int, down: int) -> bool:
        item = self.written[down]
        return item is not None and item.offset == up and item.life == self.life


def check(world: World, answer: Translation, *, bound: bool = True, alike: bool = False) -> None:
    """Asserts that an answer passes nothing unread and keeps its promise; ``alike``: identical records are the same."""
    if answer.offset is None:
        assert answer.failure
        return
    count = world.skipped_alike if alike else world.skipped
    skipped = count(answer.offset, answer.upstream)
    assert skipped == 0, f"{answer} skips {skipped}, true position {world.true_position(answer.upstream)}"
    assert world.target_start <= answer.offset <= len(world.target)
    if bound:
        assert answer.reread_max is not None
        again = world.reread_alike if alike else world.reread
        reread = again(answer.offset, answer.upstream)
        assert reread <= answer.reread_max, f"{answer} reads {reread} again"
        assert answer.reread is not None
        assert answer.reread <= answer.reread_max
