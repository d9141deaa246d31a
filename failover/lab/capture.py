"""What the real MirrorMaker 2 left in one scenario, in a file small enough to keep beside the tests.

Reading a capture needs no cluster and no client: replaying it is a pure test.
"""

from __future__ import annotations

import itertools
import lzma
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from failover.model import Record, TopicPartition

KIND, VERSION = "failover.capture", 1

ID = "id"
"""The header that holds a record's id where its value does not."""


class Log(msgspec.Struct, frozen=True, array_like=True):
    """Is one partition: log start and end, and of each data record its offset, id and timestamp (columns).

    A record's id is unique in its topic on the source; a copy keeps it. On disk each column holds
    differences.
    """

    start: int
    end: int
    offsets: list[int]
    ids: list[int]
    timestamps: list[int]


class CapturedSync(msgspec.Struct, frozen=True, array_like=True):
    """Is one record of the offset-syncs topic, in arrival order; ``topic`` is the source topic."""

    offset: int
    timestamp: int
    topic: str
    partition: int
    upstream: int
    downstream: int


class CapturedCheckpoint(msgspec.Struct, frozen=True, array_like=True):
    """Is one record of the checkpoints topic, in arrival order; ``topic`` is the topic's name on the target."""

    offset: int
    timestamp: int
    group: str
    topic: str
    partition: int
    upstream: int
    downstream: int
    metadata: str


class Commit(msgspec.Struct, frozen=True, array_like=True):
    """Is a group's committed offset on the source."""

    group: str
    topic: str
    partition: int
    offset: int


class Capture(msgspec.Struct, frozen=True):
    """Is a recorded scenario: both sides' logs by topic and partition, every sync and checkpoint, the commits.

    ``alike``: keys, values and timestamps of all records were the same.
    """

    kind: str
    version: int
    scenario: str
    description: str
    kafka_version: str
    recorded: str
    flow: tuple[str, str]
    source: dict[str, dict[int, Log]]
    target: dict[str, dict[int, Log]]
    syncs: list[CapturedSync]
    checkpoints: list[CapturedCheckpoint]
    commits: list[Commit]
    alike: bool = False

    def log(self, side: Literal["source", "target"], tp: TopicPartition) -> Log:
        """Returns one partition's log; raises KeyError when the capture has none."""
        topics = self.source if side == "source" else self.target
        return topics[tp.topic][tp.partition]

    def records(self, side: Literal["source", "target"], tp: TopicPartition) -> list[Record]:
        """Returns one partition's data records; the key is None, the value the id in digits, or always the same."""
        log = self.log(side, tp)
        return [
            Record(offset, timestamp, None, b"same" if self.alike else b"%d" % number)
            for offset, number, timestamp in zip(log.offsets, log.ids, log.timestamps, strict=True)
        ]

    def remote(self, topic: str) -> str:
        """Returns a source topic's name on the target (DefaultReplicationPolicy)."""
        return f"{self.flow[0]}.{topic}"


def log_of(start: int, end: int, records: Iterable[Record]) -> Log:
    """Returns a partition's log; the id is a header, or the number after the last colon of a value."""
    log = Log(start, end, [], [], [])
    for record in records:
        log.offsets.append(record.offset)
        text = dict(record.headers).get(ID) or (record.value or b"").rstrip(b".").rpartition(b":")[2]
        log.ids.append(int(text))
        log.timestamps.append(record.timestamp)
    return log


def save_capture(path: Path, capture: Capture) -> int:
    """Writes a capture (MessagePack, LZMA) and returns the file's size in bytes."""
    packed = msgspec.structs.replace(capture, source=_each(capture.source, _pack), target=_each(capture.target, _pack))
    path.write_bytes(lzma.compress(msgspec.msgpack.encode(packed), preset=9))
    return path.stat().st_size


def read_capture(path: Path) -> Capture:
    """Reads a capture; raises ValueError when the file holds something else."""
    try:
        found = msgspec.msgpack.decode(lzma.decompress(path.read_bytes()), type=Capture)
    except (lzma.LZMAError, msgspec.DecodeError) as failure:
        raise ValueError(f"{path} holds no capture: {failure}") from failure
    if (found.kind, found.version) != (KIND, VERSION):
        raise ValueError(f"{path} holds {found.kind} version {found.version}")
    return msgspec.structs.replace(found, source=_each(found.source, _unpack), target=_each(found.target, _unpack))


def _each(topics: dict[str, dict[int, Log]], change: Callable[[Log], Log]) -> dict[str, dict[int, Log]]:
    return {topic: {number: change(log) for number, log in logs.items()} for topic, logs in topics.items()}


def _pack(log: Log) -> Log:
    return Log(log.start, log.end, _differences(log.offsets), _differences(log.ids), _differences(log.timestamps))


def _unpack(log: Log) -> Log:
    columns = (list(itertools.accumulate(column)) for column in (log.offsets, log.ids, log.timestamps))
    return Log(log.start, log.end, *columns)


def _differences(values: Sequence[int]) -> list[int]:
    return [value - before for before, value in zip([0, *values], values, strict=False)]
