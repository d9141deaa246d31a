"""The journal of one execution: one JSON object a line, durable before anything relies on it.

The order is the guarantee: an ``Intent`` (with what stood before) is on disk before its commit
is sent. A crash can cut only the last line; a cut line means that what it tells was not yet
relied upon, so readers drop it.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Protocol

import msgspec

from failover.model.execution import CommitRecord
from failover.model.groups import Member
from failover.model.names import TopicPartition
from failover.state.lines import LineFile, read_lines


class IntendedPartition(msgspec.Struct, frozen=True, array_like=True):
    """Is one partition about to be committed: what stands and what will stand (None: nothing)."""

    topic: str
    partition: int
    before: CommitRecord | None
    planned: CommitRecord | None


class Started(msgspec.Struct, frozen=True, tag_field="event", tag="started"):
    """Opens the journal, or begins a resumption. ``selected``: the groups this execution was asked to do.

    ``undoes``: the execution it rolls back. ``continues``: earlier executions of the same plan.
    ``when_free``: groups that the plan refused for their state are done once they are empty. ``host``:
    the machine it ran on.
    """

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
    undoes: str = ""
    continues: tuple[str, ...] = ()
    when_free: bool = False
    host: str = ""


class Left(msgspec.Struct, frozen=True, tag_field="event", tag="left"):
    """Says that nothing is written for a group now, and why; a later event may supersede it.

    ``reason`` is a refusal code; ``stale``: the plan no longer holds for this group. ``refused``:
    (topic, partition, code, text) where its partitions have reasons of their own.
    """

    at: datetime
    group: str
    existed: bool
    state: str
    members: tuple[Member, ...]
    reason: str
    message: str
    stale: bool = False
    refused: tuple[tuple[str, int, str, str], ...] = ()


class Intent(msgspec.Struct, frozen=True, tag_field="event", tag="intent"):
    """Says that a group's commit is about to be sent.

    ``unchanged``: (topic, partition, offset) that are done already: at the planned value, or beyond
    it since an earlier write of the same plan; they are not sent. An intent without ``partitions``
    sends nothing: the group is done as it is. ``removes``: the group itself is deleted.
    ``notes``: what changed since the plan without effect on it.
    """

    at: datetime
    group: str
    existed: bool
    state: str
    partitions: tuple[IntendedPartition, ...]
    unchanged: tuple[tuple[str, int, int | None], ...] = ()
    refused: tuple[tuple[str, int, str, str], ...] = ()
    removes: bool = False
    notes: tuple[str, ...] = ()


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
    ``fault`` is set when it could not be read. ``late``: read by another command or after a crash,
    so that consumers may have come and gone in between.
    """

    at: datetime
    group: str
    found: tuple[tuple[str, int, int], ...] = ()
    members: int = 0
    fault: str | None = None
    late: bool = False


class Seen(msgspec.Struct, frozen=True, tag_field="event", tag="seen"):
    """Says that a later look found members in a group: what lies beyond the written value is theirs."""

    at: datetime
    group: str
    members: int


class Evicting(msgspec.Struct, frozen=True, tag_field="event", tag="evicting"):
    """Says that members are about to be removed from a group."""

    at: datetime
    group: str
    members: tuple[Member, ...]


class Evicted(msgspec.Struct, frozen=True, tag_field="event", tag="evicted"):
    """Is what became of it: (member id, fault) of those not removed, and the members found afterwards."""

    at: datetime
    group: str
    faults: tuple[tuple[str, str], ...]
    left: tuple[Member, ...]
    state: str


class Warned(msgspec.Struct, frozen=True, tag_field="event", tag="warned"):
    """Is a warning of the execution as a whole."""

    at: datetime
    message: str


class Finished(msgspec.Struct, frozen=True, tag_field="event", tag="finished"):
    """Closes the journal of this run of the command; a resumed execution goes on after it.

    ``stopped``: what ended it early, for people. ``groups``, ``committed`` and ``open`` (partitions): sums
    for the history, so that it need not derive every record anew.
    """

    at: datetime
    outcome: str
    stopped: str = ""
    groups: int = 0
    committed: int = 0
    open: int = 0


Event = Started | Left | Intent | Answer | ReadBack | Seen | Evicting | Evicted | Warned | Finished

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Event)


class Notebook(Protocol):
    """Is where an execution notes its events; ``Journal`` is one."""

    def append(self, event: Event) -> None:
        """Adds an event; it is not durable before ``sync``."""

    def sync(self) -> None:
        """Makes everything appended so far durable; only then may anything rely on it."""


class Journal(LineFile):
    """Is an open journal file of an execution."""

    def append(self, event: Event) -> None:
        """Adds an event; it is not durable before ``sync``."""
        self.add(encode_event(event))


def encode_event(event: Event) -> bytes:
    """Writes one line of a journal."""
    return _encoder.encode(event) + b"\n"


def decode_events(data: bytes) -> list[Event]:
    """Reads the lines of a journal; raises ``msgspec.DecodeError`` for a damaged one."""
    return [_decoder.decode(line) for line in data.splitlines()]


def read_journal(path: Path) -> list[Event]:
    """Reads every whole event of a journal, in order.

    Raises ``StateError`` when the file cannot be read or a line other than a cut last one is
    damaged (then nothing after it can be trusted).
    """
    return read_lines(path, _decoder.decode)


def intended(partition: IntendedPartition) -> TopicPartition:
    """Names the partition of an intent."""
    return TopicPartition(partition.topic, partition.partition)
