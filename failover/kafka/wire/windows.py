"""Stretches of many partitions at once, one Fetch for each broker and round."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence

from failover.errors import ClusterError, CredentialsRefused
from failover.kafka.faults import corrupt, fault
from failover.kafka.wire.batches import UnreadableBatch, check, decode, split
from failover.kafka.wire.cluster import Leader, WireCluster
from failover.kafka.wire.fetch import Fetched, FetchPartition, fetch_call
from failover.kafka.wire.logs import log_ranges
from failover.kafka.wire.rounds import FIRST_PAUSE, LONGEST_PAUSE, lost
from failover.model.cluster import LogRange
from failover.model.names import Fault
from failover.model.records import Record, Window, WindowRequest

FETCH_BYTES = 8 << 20
_OUT_OF_RANGE = 1
_BYTES_A_RECORD = 512
_SMALLEST, _LARGEST_GUESS = 32 << 10, 1 << 20


class _Reading:
    """Is a window on its way: how far it was read, and how much to ask for next."""

    __slots__ = ("appended", "ask", "fault", "finished", "log_end", "log_start", "position", "records", "request")

    def __init__(self, request: WindowRequest) -> None:
        self.request = request
        self.position = request.start
        self.records: list[Record] = []
        self.log_start = self.log_end = -1
        self.appended = False
        self.finished = False
        self.fault: Fault | None = None
        wanted = (request.stop - request.start) * _BYTES_A_RECORD
        self.ask = min(max(wanted, _SMALLEST), _LARGEST_GUESS)

    def window(self) -> Window:
        if self.fault is not None:
            return Window((), self.request.start, self.log_start, self.log_end, fault=self.fault)
        covered = max(min(self.position, self.request.stop), self.request.start)
        return Window(tuple(self.records), covered, self.log_start, self.log_end, self.appended)


async def read_windows(
    source: WireCluster, requests: Sequence[WindowRequest], *, max_bytes: int = FETCH_BYTES
) -> dict[WindowRequest, Window]:
    """Reads the data records of every window as a read_uncommitted consumer sees them, batches checked by their CRC.

    ``max_bytes`` bounds one answer of one broker. A window that cannot be read carries its fault (no READ right, an
    unknown topic, OFFSET_OUT_OF_RANGE with the log's range filled in, CORRUPT_MESSAGE); the others are not
    affected.
    """
    readings = [_Reading(request) for request in dict.fromkeys(requests)]
    await _read_all(source, readings, max_bytes)
    beyond = [reading for reading in readings if reading.fault is not None and reading.fault.number == _OUT_OF_RANGE]
    if beyond:
        ranges = await log_ranges(source, {reading.request.tp for reading in beyond})
        for reading in beyond:
            found = ranges[reading.request.tp]
            if isinstance(found, LogRange):
                reading.log_start, reading.log_end = found
    return {reading.request: reading.window() for reading in readings}


async def _read_all(source: WireCluster, readings: list[_Reading], max_bytes: int) -> None:
    """Fetches until every window is finished or has a fault that will not pass.

    The accepted silence bounds how long retriable faults are waited for; it starts anew with each bit of progress.
    """
    loop = asyncio.get_running_loop()
    end, pause, stale = loop.time() + source.silence, FIRST_PAUSE, False
    open_readings = readings
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


async def _round(source: WireCluster, readings: list[_Reading], max_bytes: int, *, refresh: bool) -> None:
    leaders = await source.leaders({reading.request.tp for reading in readings}, refresh=refresh)
    fetches: dict[tuple[int, int], list[tuple[_Reading, Leader]]] = defaultdict(list)
    taken: dict[object, int] = defaultdict(int)
    for reading in readings:
        leader = leaders[reading.request.tp]
        if isinstance(leader, Fault):
            reading.fault = leader
            continue
        # A fetch names a partition once: the second window of a partition goes with the broker's second fetch.
        fetches[leader.node, taken[reading.request.tp]].append((reading, leader))
        taken[reading.request.tp] += 1
    results = await asyncio.gather(
        *(_fetch(source, node, members, max_bytes) for (node, _), members in fetches.items()), return_exceptions=True
    )
    for members, result in zip(fetches.values(), results, strict=True):
        if isinstance(result, ClusterError) and not isinstance(result, CredentialsRefused):
            for reading, _ in members:
                reading.fault = lost(result)
        elif result is not None:
            raise result


async def _fetch(source: WireCluster, node: int, members: list[tuple[_Reading, Leader]], max_bytes: int) -> None:
    asked = [
        FetchPartition(*reading.request.tp, reading.position, reading.ask, leader.topic_id, leader.epoch)
        for reading, leader in members
    ]
    answer = await source.send(node, fetch_call(asked, max_bytes=max_bytes), purpose="fetch")
    by_place = {(*reading.request.tp,): reading for reading, _ in members}
    if answer.error:
        for reading in by_place.values():
            reading.fault = fault(answer.error)
        return
    full = sum(len(fetched.records) for fetched in answer.partitions) >= max_bytes // 2
    for fetched in answer.partitions:
        _take(by_place[fetched.topic, fetched.partition], fetched, full=full, max_bytes=max_bytes)


def _take(reading: _Reading, fetched: Fetched, *, full: bool, max_bytes: int) -> None:
    """Adds what one fetch brought; ``full``: the answer's bound, not the partition's, may have cut it."""
    if fetched.error:
        reading.fault = fault(fetched.error)
        return
    stop = reading.request.stop
    reading.log_start, reading.log_end = fetched.log_start, fetched.high_watermark
    before, largest = reading.position, 0
    try:
        for batch in split(fetched.records):
            largest = max(largest, len(batch.data))
            if batch.magic >= 2 and batch.base_offset >= stop:
                reading.position = stop
                break
            check(batch)
            if batch.next_offset > reading.position:
                if not batch.control:
                    reading.records += decode(batch, reading.position, stop)
                    reading.appended = reading.appended or batch.log_append_time
                reading.position = batch.next_offset
            if reading.position >= stop:
                break
    except UnreadableBatch as error:
        reading.fault = corrupt(str(error))
        return
    reading.finished = reading.position >= min(stop, reading.log_end)
    if not reading.finished and not full:
        grown = reading.ask * 4 if reading.position == before else max(reading.ask, largest * 2)
        reading.ask = min(grown, max_bytes)
