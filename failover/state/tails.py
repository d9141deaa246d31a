"""A file with the records that one cluster alone has: a line of head, one line a record, a line of foot.

The foot names every partition that was looked at, with the offsets between which its tail lies, also where that holds
nothing: whoever deletes or passes over records can see there that they are kept. The file appears whole or not at all.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import IO, Literal

import msgspec

from failover.errors import StateError, UsageError
from failover.model.names import TopicPartition
from failover.model.records import Record
from failover.state.folder import sync_folder

_BUFFER = 1 << 20


class TailHead(msgspec.Struct, frozen=True, kw_only=True):
    """Opens the file. ``cluster``: the alias of the one that has the records, ``lacking`` of the one that does not."""

    kind: Literal["failover.tail"] = "failover.tail"
    version: int = 1
    created: datetime
    run: str
    cluster: str
    cluster_id: str | None
    lacking: str


class TailRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Is one record. ``timestamp``: epoch milliseconds; keys, values and values of headers are base64, or null."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class TailPartition(msgspec.Struct, frozen=True, kw_only=True):
    """Is one partition's tail, from ``first`` to before ``end``.

    ``exact``: it is known that everything before ``first`` was mirrored, and nothing after; else some of what is kept
    may have been mirrored too. ``records``: how many are kept, without those of aborted transactions.
    """

    topic: str
    partition: int
    first: int
    end: int
    exact: bool
    records: int = 0


class TailFoot(msgspec.Struct, frozen=True, kw_only=True):
    """Closes the file."""

    kind: Literal["failover.tail-end"] = "failover.tail-end"
    records: int
    partitions: tuple[TailPartition, ...]


class TailWriter:
    """Writes one such file beside its place and moves it there when it is whole; begun again, it begins anew."""

    def __init__(self, path: Path, head: TailHead) -> None:
        self.path = path
        self._part = path.with_name(f".{path.name}.part")
        self._encoder = msgspec.json.Encoder()
        self._partitions: list[TailPartition] = []
        try:
            descriptor = os.open(self._part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            self._file = os.fdopen(descriptor, "wb", _BUFFER)
            self._file.write(self._encoder.encode(head) + b"\n")
        except OSError as error:
            raise _unwritable(path, error) from error

    def add(self, partition: TailPartition, records: Iterable[Record]) -> TailPartition:
        """Writes a partition's records; gives it with their number. Raises ``StateError``."""
        count = 0
        try:
            for record in records:
                line = TailRecord(
                    topic=partition.topic,
                    partition=partition.partition,
                    offset=record.offset,
                    timestamp=record.timestamp,
                    key=record.key,
                    value=record.value,
                    headers=record.headers,
                )
                self._file.write(self._encoder.encode(line) + b"\n")
                count += 1
        except OSError as error:
            raise _unwritable(self.path, error) from error
        counted = msgspec.structs.replace(partition, records=count)
        self._partitions.append(counted)
        return counted

    def finish(self) -> TailFoot:
        """Writes the foot and puts the file in its place, durable on return. Raises ``StateError``."""
        found = TailFoot(records=sum(one.records for one in self._partitions), partitions=tuple(self._partitions))
        try:
            self._file.write(self._encoder.encode(found) + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._part.replace(self.path)
            sync_folder(self.path.parent)
        except OSError as error:
            raise _unwritable(self.path, error) from error
        return found

    def discard(self) -> None:
        """Takes away what was written so far; does nothing once it is finished."""
        if not self._file.closed:
            self._file.close()
            self._part.unlink(missing_ok=True)


def tail_records(path: Path) -> Iterator[TailRecord]:
    """Yields a file's records. Raises ``StateError``."""
    decoder = msgspec.json.Decoder(TailRecord)
    try:
        with path.open("rb") as file:
            before = b""
            for number, line in enumerate(file):
                if number > 1:
                    yield decoder.decode(before)
                before = line
    except OSError as error:
        raise StateError(f"cannot read {path}: {error.strerror}") from error
    except msgspec.DecodeError as error:
        raise StateError(f"{path} holds a line that is no record: {error}") from error


def tail_foot(path: Path) -> tuple[TailHead, dict[TopicPartition, TailPartition]]:
    """Gives a file's head, and the partitions its foot names. Raises ``StateError`` for one that is not whole."""
    try:
        with path.open("rb") as file:
            head = msgspec.json.decode(file.readline(), type=TailHead)
            foot = msgspec.json.decode(_last_line(file), type=TailFoot)
    except OSError as error:
        raise StateError(f"cannot read {path}: {error.strerror}", hint="where is the exported tail?") from error
    except msgspec.DecodeError as error:
        raise StateError(f"{path} is no exported tail: {error}") from error
    return head, {TopicPartition(one.topic, one.partition): one for one in foot.partitions}


def exported_tails(file: str, alias: str) -> dict[TopicPartition, TailPartition]:
    """Reads what an exported tail of a cluster covers; {} without a file. Raises ``StateError``, ``UsageError``."""
    if not file:
        return {}
    path = Path(file).expanduser()
    if not path.is_file():
        raise UsageError(f"there is no exported tail {file}", hint="a playbook's step tail writes one, and tells where")
    head, partitions = tail_foot(path)
    if head.cluster != alias:
        raise UsageError(
            f"{file} holds what {head.cluster} alone had, not {alias}", hint="the file of a step tail for this flow"
        )
    return partitions


def _last_line(file: IO[bytes]) -> bytes:
    end = file.seek(0, os.SEEK_END)
    size = 1 << 16
    while True:
        start = max(0, end - size)
        file.seek(start)
        lines = file.read(end - start).splitlines()
        if len(lines) > 1 or start == 0:
            return lines[-1] if lines else b""
        size *= 8


def _unwritable(path: Path, error: OSError) -> StateError:
    return StateError(
        f"cannot write {path}: {error.strerror}", hint="free some space, or name another file: with: {file: …}"
    )
