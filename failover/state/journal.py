"""The journal of one execution: one JSON object a line, durable before anything relies on it.

The order is the guarantee: an ``Intent`` (with what stood before) is on disk before its commit
is sent. A crash can cut only the last line; a cut line means that what it tells was not yet
relied upon, so readers drop it.
"""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

import msgspec

from failover.errors import StateError
from failover.model.execution import CommitRecord
from failover.model.groups import Member
from failover.model.names import TopicPartition
from failover.state.folder import sync_folder


class IntendedPartition(msgspec.Struct, frozen=True, array_like=True):
    """Is one partition about to be committed: what stands (None: nothing) and what will stand."""

    topic: str
    partition: int
    before: CommitRecord | None
    planned: CommitRecord


class Started(msgspec.Struct, frozen=True, tag_field="event", tag="started"):
    """Opens the journal. ``selected``: the groups this execution was asked to do."""

    at: datetime
    execution_id: str
    plan_id: str
    fingerprint: str
    tool_version: str
    operator: str
    reason: str
    source_alias: str
    target_alias: str
    target_cluster_id: str | None
    selected: tuple[str, ...]
    overrides: tuple[str, ...] = ()


class Left(msgspec.Struct, frozen=True, tag_field="event", tag="left"):
    """Says that nothing is written for a group now, and why; a later event may supersede it.

    ``reason`` is a refusal code; ``stale``: the plan no longer holds for this group.
    """

    at: datetime
    group: str
    existed: bool
    state: str
    members: tuple[Member, ...]
    reason: str
    message: str
    stale: bool = False


class Intent(msgspec.Struct, frozen=True, tag_field="event", tag="intent"):
    """Says that a group's commit is about to be sent.

    ``unchanged``: (topic, partition, offset) that stand at the planned value already; they are
    not sent. An intent without ``partitions`` sends nothing: the group is done as it is.
    """

    at: datetime
    group: str
    existed: bool
    state: str
    partitions: tuple[IntendedPartition, ...]
    unchanged: tuple[tuple[str, int, int], ...] = ()
    refused: tuple[tuple[str, int, str, str], ...] = ()


class Answer(msgspec.Struct, frozen=True, tag_field="event", tag="answer"):
    """Is what the broker said: (topic, partition, fault) of partitions it refused, or one for all.

    ``lost``: the connection broke before the answer, so the outcome is not known from here.
    """

    at: datetime
    group: str
    faults: tuple[tuple[str, int, str], ...] = ()
    fault: str | None = None
    lost: bool = False


class ReadBack(msgspec.Struct, frozen=True, tag_field="event", tag="read-back"):
    """Is what the target holds after the commit; an absent partition has no commit.

    ``members``: how many the group has by then (consumers may have come back and moved on).
    ``fault`` is set when it could not be read.
    """

    at: datetime
    group: str
    found: tuple[tuple[str, int, int], ...] = ()
    members: int = 0
    fault: str | None = None


class Warned(msgspec.Struct, frozen=True, tag_field="event", tag="warned"):
    """Is a warning of the execution as a whole."""

    at: datetime
    message: str


class Finished(msgspec.Struct, frozen=True, tag_field="event", tag="finished"):
    """Closes the journal of this run of the command; a resumed execution goes on after it."""

    at: datetime
    outcome: str


Event = Started | Left | Intent | Answer | ReadBack | Warned | Finished

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Event)


class Journal:
    """Is an open journal file. ``append`` buffers; ``sync`` makes everything appended durable."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._pending: list[bytes] = []
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            kept = _whole_lines(path.read_bytes()) if path.exists() else b""
            self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
            # A cut last line is removed first, so that the next event never continues it.
            os.ftruncate(self._descriptor, len(kept))
            os.lseek(self._descriptor, 0, os.SEEK_END)
            sync_folder(path.parent)
        except OSError as error:
            raise _failed(path, error) from error

    def append(self, event: Event) -> None:
        """Adds an event; it is not durable before ``sync``."""
        self._pending.append(_encoder.encode(event) + b"\n")

    def sync(self) -> None:
        """Writes and flushes everything appended so far to the disk."""
        if not self._pending:
            return
        data = memoryview(b"".join(self._pending))
        self._pending.clear()
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
            os.fsync(self._descriptor)
        except OSError as error:
            raise _failed(self.path, error) from error

    def close(self) -> None:
        """Flushes what is left and closes the file."""
        self.sync()
        os.close(self._descriptor)


def read_journal(path: Path) -> list[Event]:
    """Reads every whole event of a journal, in order.

    Raises ``StateError`` when the file cannot be read or a line other than a cut last one is
    damaged (then nothing after it can be trusted).
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise _failed(path, error) from error
    events: list[Event] = []
    for number, line in enumerate(_whole_lines(data).splitlines(), 1):
        try:
            events.append(_decoder.decode(line))
        except msgspec.DecodeError as error:
            raise StateError(
                f"{path} line {number} is damaged: {error}", hint="restore the file from a copy; it is never rewritten"
            ) from error
    return events


def intended(partition: IntendedPartition) -> TopicPartition:
    """Names the partition of an intent."""
    return TopicPartition(partition.topic, partition.partition)


def _whole_lines(data: bytes) -> bytes:
    return data[: data.rfind(b"\n") + 1]


def _failed(path: Path, error: OSError) -> StateError:
    return StateError(
        f"cannot use the journal {path}: {error.strerror}",
        hint="nothing is written without a journal: free some space, or name another folder: --state-dir DIR",
    )
