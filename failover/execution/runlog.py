"""The topic on the target that holds claims and a copy of every execution's journal.

It makes the lock, single use of a plan and the history hold across machines. Whatever goes wrong
with it never holds up an execution: it is told once, and the journal on disk counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from failover.errors import FailoverError
from failover.execution.claims import Claim
from failover.kafka.port import Cluster
from failover.model.cluster import LogRange, TopicInfo
from failover.model.names import TopicPartition
from failover.model.records import Record, WindowRequest
from failover.state.journal import Event, Finished, Journal, Started, decode_events, encode_event

SETTINGS = {
    "cleanup.policy": "delete",
    "message.timestamp.type": "LogAppendTime",
    "min.insync.replicas": "1",
    "retention.ms": str(90 * 86_400_000),
    "segment.bytes": str(64 << 20),
}
"""Append times make claims comparable; one replica must do, since an emergency may leave no more."""

CHUNK_BYTES = 400_000
"""Below what a topic takes by default (1 MB), whatever compression makes of it."""
_CLAIM = b"claim"
_RUN = b"run:"
_claims = msgspec.json.Decoder(Claim)


class SharedRun:
    """Is one execution's journal as the topic has it, taken apart only as far as is asked: it may be long."""

    def __init__(self, started: Started, lines: list[bytes]) -> None:
        self.started = started
        self._lines = lines

    def events(self) -> list[Event]:
        """Reads every event; raises ``msgspec.DecodeError`` for a line of a newer version."""
        return decode_events(b"".join(self._lines))

    def closed(self) -> Finished | None:
        """Reads the last event, None where the execution is under way or was cut off."""
        try:
            last = decode_events(self._lines[-1].rstrip(b"\n").rsplit(b"\n", 1)[-1])[-1]
        except msgspec.DecodeError:
            return None
        return last if isinstance(last, Finished) else None


class Shared(msgspec.Struct, frozen=True):
    """Is what the topic holds: claims in log order with their append times, and executions by id."""

    claims: tuple[tuple[int, Claim], ...] = ()
    runs: dict[str, SharedRun] = {}


class RunLog:
    """Reads and appends to the topic of one flow.

    Raises what the port raises; ``prepare`` says why the topic cannot be used.
    """

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self.cluster = cluster
        self.partition = TopicPartition(topic, 0)

    def exists(self) -> bool:
        """Says whether the topic is there and visible."""
        return isinstance(self.cluster.describe_topics([self.partition.topic])[self.partition.topic], TopicInfo)

    def prepare(self) -> str:
        """Makes the topic when it is not there; gives why it cannot be used, "" when it can."""
        if self.exists():
            return ""
        fault = self.cluster.create_topic(self.partition.topic, 1, SETTINGS)
        return "" if fault is None else f"topic {self.partition.topic} cannot be created: {fault}"

    def append_claim(self, claim: Claim) -> int:
        """Appends a claim and gives its offset."""
        return self.cluster.append_records(self.partition, [(_CLAIM, msgspec.json.encode(claim))])

    def append_events(self, run_id: str, events: Sequence[Event]) -> None:
        """Appends events of an execution's journal, a few hundred kilobytes a record."""
        chunks: list[bytes] = []
        chunk = bytearray()
        for event in events:
            line = encode_event(event)
            if chunk and len(chunk) + len(line) > CHUNK_BYTES:
                chunks.append(bytes(chunk))
                chunk.clear()
            chunk += line
        if chunk:
            chunks.append(bytes(chunk))
        if chunks:
            key = _RUN + run_id.encode()
            self.cluster.append_records(self.partition, [(key, value) for value in chunks])

    def read(self, *, upto: int | None = None) -> Shared:
        """Reads all of it, or up to an offset. Records nobody here can read are passed over."""
        claims: list[tuple[int, Claim]] = []
        found: dict[str, list[bytes]] = {}
        for records in self.cluster.read(self.partition):
            for record in records:
                if upto is not None and record.offset > upto:
                    continue
                claims += _claim(record)
                if record.key is not None and record.value is not None and record.key.startswith(_RUN):
                    found.setdefault(record.key[len(_RUN) :].decode(errors="replace"), []).append(record.value)
        runs = {name: SharedRun(started, lines) for name, lines in found.items() if (started := _start(lines[0]))}
        return Shared(tuple(claims), runs)

    def claims_since(self, at: int) -> list[tuple[int, Claim]]:
        """Reads the claims appended at or after a time (epoch ms), and nothing older."""
        start = self.cluster.offsets_at({self.partition: at})[self.partition]
        log = self.cluster.log_ranges([self.partition])[self.partition]
        if not isinstance(start, int) or not isinstance(log, LogRange):
            return []
        request = WindowRequest("target", self.partition, start, log.end)
        return [claim for record in self.cluster.windows([request])[request].records for claim in _claim(record)]


def _claim(record: Record) -> list[tuple[int, Claim]]:
    if record.key != _CLAIM or record.value is None:
        return []
    try:
        return [(record.timestamp, _claims.decode(record.value))]
    except msgspec.DecodeError:
        return []  # of a newer version, or somebody else's: no claim to this one


def _start(chunk: bytes) -> Started | None:
    """Reads the first event of an execution; None where it is none (retention took it, or a newer version wrote it)."""
    try:
        first = decode_events(chunk.split(b"\n", 1)[0])
    except msgspec.DecodeError:
        return None
    return first[0] if first and isinstance(first[0], Started) else None


class SharedJournal:
    """Is a journal whose events also go to the topic, right after they are durable here.

    ``warn`` is told once when the topic cannot be written; the journal alone goes on.
    """

    def __init__(self, journal: Journal, log: RunLog | None, run_id: str, warn: Callable[[str], None]) -> None:
        self._journal = journal
        self._log = log
        self._run_id = run_id
        self._warn = warn
        self._pending: list[Event] = []

    def append(self, event: Event) -> None:
        """Adds an event; it is not durable before ``sync``."""
        self._journal.append(event)
        if self._log is not None:
            self._pending.append(event)

    def sync(self) -> None:
        """Makes everything appended so far durable here, and appends it to the topic."""
        self._journal.sync()
        if self._log is None or not self._pending:
            return
        events, self._pending = self._pending, []
        try:
            self._log.append_events(self._run_id, events)
        except FailoverError as error:
            self._log = None
            self._warn(f"other machines do not see this execution: {error.message}")
