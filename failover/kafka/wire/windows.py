"""Stretches of many partitions at once, one Fetch for each broker and round."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Sequence

from failover.errors import ClusterError, CredentialsRefused
from failover.kafka.faults import corrupt, fault
from failover.kafka.wire.aborted import AbortedTransactions
from failover.kafka.wire.batches import Batch, UnreadableBatch, check, decode, split
from failover.kafka.wire.cluster import Leader, WireCluster
from failover.kafka.wire.fetch import Fetched, FetchPartition, fetch_call
from failover.kafka.wire.logs import log_ranges
from failover.kafka.wire.rounds import FIRST_PAUSE, LONGEST_PAUSE, lost
from failover.model.cluster import LogRange
from failover.model.names import Fault, TopicPartition
from failover.model.records import Record, Window, WindowRequest

FETCH_BYTES = 8 << 20
_OUT_OF_RANGE, _NOT_AVAILABLE = 1, 78
_BYTES_A_RECORD = 512
_SMALLEST, _LARGEST_GUESS = 32 << 10, 1 << 20


class Reading(ABC):
    """Is a stretch [start, stop) of one partition on its way: how far it was read, and how much to ask for next.

    A subclass takes the batches. ``whole``: the log is known to reach to ``stop``, so an earlier end is only one that
    a leader just elected knows. ``committed``: it is read as a read_committed consumer does, to the last stable
    offset and with the aborted transactions listed.
    """

    __slots__ = ("ask", "committed", "fault", "finished", "log_end", "log_start", "position", "start", "stop", "tp")
    whole = False

    def __init__(self, tp: TopicPartition, start: int, stop: int, *, committed: bool = False) -> None:
        self.tp = tp
        self.start = self.position = start
        self.stop = stop
        self.committed = committed
        self.log_start = self.log_end = -1
        self.finished = False
        self.fault: Fault | None = None
        self.ask = min(max((stop - start) * _BYTES_A_RECORD, _SMALLEST), _LARGEST_GUESS)

    def begin(self, fetched: Fetched) -> None:
        """Notes what an answer tells of the log, before its batches are taken."""
        self.log_start = fetched.log_start
        self.log_end = fetched.last_stable if self.committed else fetched.high_watermark

    @abstractmethod
    def take(self, batch: Batch) -> None:
        """Takes a checked batch, the next one that reaches beyond ``position``. Raises ``UnreadableBatch``."""


class _WindowReading(Reading):
    """Keeps the records of a window; ``committed``: without those of aborted transactions."""

    __slots__ = ("aborted", "appended", "records", "request")

    def __init__(self, request: WindowRequest, *, committed: bool) -> None:
        super().__init__(request.tp, request.start, request.stop, committed=committed)
        self.request = request
        self.aborted: AbortedTransactions | None = None
        self.records: list[Record] = []
        self.appended = False

    def begin(self, fetched: Fetched) -> None:
        super().begin(fetched)
        self.aborted = AbortedTransactions(fetched.aborted) if self.committed else None

    def take(self, batch: Batch) -> None:
        hidden = self.aborted is not None and self.aborted.hides(batch)
        if not batch.control and not hidden:
            self.records += decode(batch, self.position, self.stop)
            self.appended = self.appended or batch.log_append_time

    def window(self) -> Window:
        if self.fault is not None:
            return Window((), self.start, self.log_start, self.log_end, fault=self.fault)
        covered = max(min(self.position, self.stop), self.start)
        return Window(tuple(self.records), covered, self.log_start, self.log_end, self.appended)


async def read_windows(
    source: WireCluster, requests: Sequence[WindowRequest], *, max_bytes: int = FETCH_BYTES, committed: bool = False
) -> dict[WindowRequest, Window]:
    """Reads the data records of every window as a read_uncommitted consumer sees them, batches checked by their CRC.

    ``committed``: as a read_committed one does, to the last stable offset. ``max_bytes`` bounds one answer of one
    broker. A window that cannot be read carries its fault (no READ right, an unknown topic, OFFSET_OUT_OF_RANGE with
    the log's range filled in, CORRUPT_MESSAGE); the others are not affected.
    """
    readings = [_WindowReading(request, committed=committed) for request in dict.fromkeys(requests)]
    await read_all(source, readings, max_bytes=max_bytes)
    beyond = [reading for reading in readings if reading.fault is not None and reading.fault.number == _OUT_OF_RANGE]
    if beyond:
        ranges = await log_ranges(source, {reading.tp for reading in beyond})
        for reading in beyond:
            found = ranges[reading.tp]
            if isinstance(found, LogRange):
                reading.log_start, reading.log_end = found
    return {reading.request: reading.window() for reading in readings}


async def read_all(source: WireCluster, readings: Sequence[Reading], *, max_bytes: int = FETCH_BYTES) -> None:
    """Fetches until every stretch is finished or has a fault that will not pass.

    The accepted silence bounds how long retriable faults are waited for; it starts anew with each bit of progress.
    """
    loop = asyncio.get_running_loop()
    end, pause, stale = loop.time() + source.silence, FIRST_PAUSE, False
    open_readings = list(readings)
    while open_readings:
        before = sum(reading.position for reading in open_readings)
        await _round(source, open_readings, max_bytes, refresh=stale)
        stale = any(reading.fault is not None and reading.fault.retriable for reading in open_readings)
        moved = sum(reading.position for reading in open_readings) > before
        open_readings = [
            reading
            for reading in open_readings
            if not reading.finished and (reading.fault is None or reading.fault.retriable)
        ]
        if moved:
            end, pause = loop.time() + source.silence, FIRST_PAUSE
        if stale and open_readings:
            if loop.time() + pause >= end:
                return
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)
        for reading in open_readings:
            reading.fault = None


async def _round(source: WireCluster, readings: list[Reading], max_bytes: int, *, refresh: bool) -> None:
    leaders = await source.leaders({reading.tp for reading in readings}, refresh=refresh)
    fetches: dict[tuple[int, bool, int], list[tuple[Reading, Leader]]] = defaultdict(list)
    taken: dict[object, int] = defaultdict(int)
    for reading in readings:
        leader = leaders[reading.tp]
        if isinstance(leader, Fault):
            reading.fault = leader
            continue
        # A fetch names a partition once: the second window of a partition goes with the broker's second fetch.
        fetches[leader.node, reading.committed, taken[reading.tp]].append((reading, leader))
        taken[reading.tp] += 1
    results = await asyncio.gather(
        *(_fetch(source, node, members, max_bytes) for (node, *_), members in fetches.items()), return_exceptions=True
    )
    for members, result in zip(fetches.values(), results, strict=True):
        if isinstance(result, ClusterError) and not isinstance(result, CredentialsRefused):
            for reading, _ in members:
                reading.fault = lost(result)
        elif result is not None:
            raise result


async def _fetch(source: WireCluster, node: int, members: list[tuple[Reading, Leader]], max_bytes: int) -> None:
    asked = [
        FetchPartition(*reading.tp, reading.position, reading.ask, leader.topic_id, leader.epoch)
        for reading, leader in members
    ]
    committed = members[0][0].committed
    answer = await source.send(node, fetch_call(asked, max_bytes=max_bytes, read_committed=committed), purpose="fetch")
    by_place = {(*reading.tp,): reading for reading, _ in members}
    if answer.error:
        for reading in by_place.values():
            reading.fault = fault(answer.error)
        return
    full = sum(len(fetched.records) for fetched in answer.partitions) >= max_bytes // 2
    for fetched in answer.partitions:
        _take(by_place[fetched.topic, fetched.partition], fetched, full=full, max_bytes=max_bytes)


def _take(reading: Reading, fetched: Fetched, *, full: bool, max_bytes: int) -> None:
    """Adds what one fetch brought; ``full``: the answer's bound, not the partition's, may have cut it."""
    if fetched.error:
        reading.fault = fault(fetched.error)
        return
    stop = reading.stop
    reading.begin(fetched)
    before, largest = reading.position, 0
    try:
        for batch in split(fetched.records):
            largest = max(largest, len(batch.data))
            if batch.magic >= 2 and batch.base_offset >= stop:
                reading.position = stop
                break
            check(batch)
            if batch.next_offset > reading.position:
                reading.take(batch)
                reading.position = batch.next_offset
            if reading.position >= stop:
                break
    except UnreadableBatch as error:
        reading.fault = corrupt(str(error))
        return
    if reading.whole and reading.log_end < stop and reading.position >= reading.log_end:
        reading.fault = fault(_NOT_AVAILABLE)
        return
    reading.finished = reading.position >= min(stop, reading.log_end)
    if not reading.finished and not full:
        grown = reading.ask * 4 if reading.position == before else max(reading.ask, largest * 2)
        reading.ask = min(grown, max_bytes)
