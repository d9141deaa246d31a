"""Commits the offsets of many groups: one request a group, as many at a time as there are connections.

Raw requests, although librdkafka could send them too. A commit to a broker that freezes and wakes
up again must end as "unknown"; librdkafka's own time limit ends it so, but when the answer comes
after all an assertion there aborts the whole process (measured with 2.16.1). It also adds a NUL byte
to commit metadata and cannot say whether a request had been sent at all.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import CancelledError
from typing import Any, Protocol, TypeAlias, TypeVar

from failover.kafka.admin_clients import Connections
from failover.kafka.faults import NO_ANSWER, fault
from failover.kafka.port import CommitResults
from failover.kafka.wire.cluster import WireCluster
from failover.kafka.wire.offsets import commit_offsets
from failover.model.groups import Commit
from failover.model.names import Fault, TopicPartition

V = TypeVar("V")
Commits: TypeAlias = Mapping[str, Mapping[TopicPartition, Commit]]
Done: TypeAlias = Callable[[str, CommitResults | Fault], None]

LANES = 32
"""Connections for each coordinator: a broker works through one connection's requests one by one
and a commit waits about 5 ms, so 1,000 groups took 0.87 s on 8, 0.55 s on 16 and 0.43 s on 32
connections (measured on Kafka 4.1.1)."""

_TICK = 0.05
_NEVER_SENT = 15  # Kafka: COORDINATOR_NOT_AVAILABLE


class Raw(Protocol):
    """Runs raw requests to their end, retried while nothing at all could be reached."""

    def __call__(self, work: Callable[[WireCluster], Coroutine[Any, Any, V]]) -> V: ...


def commit_all(raw: Raw, connections: Connections, commits: Commits, done: Done) -> None:
    """Commits for every group and tells ``done`` of each as it ends, from the calling thread.

    Raises ``ClusterUnreachable`` when the cluster fell silent before every group was sent; groups
    ``done`` was not told of were then never sent. When ``done`` raises, nothing more is sent and
    what is under way is given up.
    """
    if commits:
        _Run(connections, commits).run(raw, done)


class _Run:
    """Is one call: the background loop sends, the caller's thread hears and decides when to stop."""

    def __init__(self, connections: Connections, commits: Commits) -> None:
        self._connections = connections
        self._commits = commits
        self._heard: queue.SimpleQueue[tuple[str, CommitResults | Fault] | BaseException | None] = queue.SimpleQueue()
        self._taken = _Taken(commits)
        self._task: asyncio.Task[Any] | None = None
        self._wire: WireCluster | None = None
        self._stop = threading.Event()
        self._last_answer = time.monotonic()

    def run(self, raw: Raw, done: Done) -> None:
        threading.Thread(target=self._send, args=(raw,), name="failover-commit", daemon=True).start()
        told: set[str] = set()
        try:
            while (heard := self._next()) is not None:
                if isinstance(heard, BaseException):
                    if isinstance(heard, CancelledError):
                        break  # by _judge: what is under way stays unknown
                    raise heard
                told.add(heard[0])
                done(*heard)
        finally:
            self._end()
        patience = self._connections.patience
        for group in self._taken.names:
            if group not in told:
                done(group, fault(NO_ANSWER, f"no answer for {patience:g} s"))
        if len(self._taken.names) < len(self._commits):
            raise self._connections.silent(time.monotonic() - self._last_answer)

    def _send(self, raw: Raw) -> None:
        async def work(wire: WireCluster) -> None:
            self._task, self._wire = asyncio.current_task(), wire
            if not self._stop.is_set():
                await commit_offsets(wire, self._taken, lambda *heard: self._heard.put(heard), lanes=LANES)

        try:
            raw(work)
        except BaseException as error:  # noqa: BLE001 - raised in the caller's thread
            self._heard.put(error)
        else:
            self._heard.put(None)

    def _next(self) -> tuple[str, CommitResults | Fault] | BaseException | None:
        """Waits for what comes next; ends the sending when not even one answer came for too long."""
        while True:
            try:
                heard = self._heard.get(timeout=_TICK)
            except queue.Empty:
                silence = time.monotonic() - self._last_answer
                # half a second more than a connection has, so that it speaks first
                if silence > self._connections.patience + 0.5 and not self._stop.is_set():
                    self._judge()
                continue
            if isinstance(heard, tuple) and not _lost(heard[1]):
                self._last_answer = time.monotonic()
            return heard

    def _judge(self) -> None:
        """Decides whether one coordinator is silent or the whole cluster."""
        self._connections.be_brief()
        if not self._connections.alive():
            self._end()
            return
        self._last_answer = time.monotonic()
        if self._wire is not None:
            self._wire.silence = self._connections.patience

    def _end(self) -> None:
        self._stop.set()
        if self._task is not None and not self._task.done():
            self._task.get_loop().call_soon_threadsafe(self._task.cancel)


class _Taken(Mapping[str, Mapping[TopicPartition, Commit]]):
    """Is the commits, remembering which groups a sender has taken up so far."""

    def __init__(self, commits: Commits) -> None:
        self._commits = commits
        self.names: dict[str, None] = {}

    def __getitem__(self, group: str) -> Mapping[TopicPartition, Commit]:
        self.names.setdefault(group)
        return self._commits[group]

    def __iter__(self) -> Iterator[str]:
        return iter(self._commits)

    def __len__(self) -> int:
        return len(self._commits)


def _lost(answer: CommitResults | Fault) -> bool:
    """Says whether nothing was heard of the coordinator: no answer, or nothing could be sent."""
    faults = [answer] if isinstance(answer, Fault) else list(answer.values())
    return all(each is not None and (each.number < 0 or each.number == _NEVER_SENT) for each in faults)
