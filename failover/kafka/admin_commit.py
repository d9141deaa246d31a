"""Commits the offsets of many groups: one request a group, as many at a time as there are connections."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from failover.kafka.admin_clients import LANES, Connections
from failover.kafka.admin_convert import fault_of, offsets_to_write
from failover.kafka.port import CommitResults
from failover.model.groups import Commit
from failover.model.names import Fault, TopicPartition

Commits: TypeAlias = Mapping[TopicPartition, Commit]

_PASSING = frozenset({7, 13, 14, 15, 16, 27, 89})
"""Errors of a commit that end by themselves: the coordinator is loading or moving (14, 15, 16), a
rebalance runs (27), the broker is slow (7, 13) or asks for patience (89). Soon after a start 14 and 16
come for single partitions inside an answer that is OK as a whole (measured on Kafka 4.1.1).
UNKNOWN_TOPIC_OR_PARTITION counts as retriable for Kafka's clients; here the topic is known to be missing."""

_TICK = 0.05


class CommitRun:
    """Is one call of ``commit``: workers take groups from one queue, the caller hears of each as it ends.

    Memory beyond the commits themselves is bounded: at most two results a worker wait to be heard.
    """

    def __init__(self, connections: Connections, commits: Mapping[str, Commits]) -> None:
        self._connections = connections
        self._todo: Iterator[tuple[str, Commits]] = iter(commits.items())
        self._workers = min(LANES, max(1, len(commits) // 4))
        self._results: queue.Queue[tuple[str, CommitResults | Fault] | BaseException | None] = queue.Queue(
            2 * self._workers
        )
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._total = len(commits)

    def run(self, done: Callable[[str, CommitResults | Fault], None]) -> None:
        """Commits; raises ``ClusterUnreachable`` when the cluster fell silent before all groups were sent."""
        self._connections.check()
        for lane in range(self._workers):
            threading.Thread(target=self._work, args=(lane,), name=f"failover-commit-{lane}", daemon=True).start()
        running, heard, last_answer = self._workers, 0, time.monotonic()
        try:
            while running:
                try:
                    result = self._results.get(timeout=_TICK)
                except queue.Empty:
                    self._connections.serve()
                    continue
                if result is None:
                    running -= 1
                    continue
                if isinstance(result, BaseException):
                    raise result
                heard += 1
                group, answer = result
                if not _unknown(answer):
                    last_answer = time.monotonic()
                    self._connections.answered()
                else:
                    silence = time.monotonic() - last_answer
                    waited = silence >= self._connections.patience and not self._stop.is_set()
                    if waited and not self._connections.alive():
                        self._stop.set()
                    self._connections.be_brief()
                done(group, answer)
        finally:
            self._stop.set()
        if heard < self._total:
            raise self._connections.silent(time.monotonic() - last_answer)

    def _work(self, lane: int) -> None:
        try:
            while not self._stop.is_set():
                with self._lock:
                    item = next(self._todo, None)
                if item is None:
                    break
                self._tell((item[0], self._commit(lane, *item)))
            self._tell(None)
        except BaseException as error:  # noqa: BLE001 - the caller's thread raises it
            self._tell(error)

    def _tell(self, result: tuple[str, CommitResults | Fault] | BaseException | None) -> None:
        while True:
            try:
                return self._results.put(result, timeout=1.0)
            except queue.Full:
                if self._stop.is_set():  # the caller has left and hears nothing any more
                    return None

    def _commit(self, lane: int, group: str, offsets: Commits) -> CommitResults | Fault:
        """Commits for one group, again and only for the partitions whose error passes by itself."""
        from tenacity import RetryCallState, Retrying, retry_if_result, wait_random_exponential
        from tenacity.stop import stop_after_delay, stop_any, stop_when_event_set

        results: dict[TopicPartition, Fault | None] = {}
        left = dict(offsets)

        def once() -> Fault | None:
            answer = self._send(lane, group, left)
            if isinstance(answer, Fault):
                results.update(dict.fromkeys(left, answer))
                return answer
            results.update(answer)
            passing = next((f for f in answer.values() if f is not None and f.number in _PASSING), None)
            for tp, fault in answer.items():
                if fault is None or fault.number not in _PASSING:
                    left.pop(tp, None)
            return passing

        def give_up(_: RetryCallState) -> None:
            return None

        Retrying(
            retry=retry_if_result(lambda fault: fault is not None and fault.number in _PASSING),
            stop=stop_any(stop_after_delay(self._connections.patience), stop_when_event_set(self._stop)),
            wait=wait_random_exponential(0.05, max=0.5),
            retry_error_callback=give_up,
        )(once)
        faults = set(results.values())
        whole = next(iter(faults)) if len(faults) == 1 else None
        return whole if whole is not None and whole.number < 0 else results

    def _send(self, lane: int, group: str, offsets: Commits) -> CommitResults | Fault:
        from confluent_kafka import KafkaException

        patience = self._connections.patience
        request = [offsets_to_write(group, offsets)]
        # the future is done only while its client lives; Connections keeps it
        future = self._connections.client(lane).alter_consumer_group_offsets(request, request_timeout=patience)[group]
        try:
            answer = future.result(timeout=patience + 1.0)
        except KafkaException as error:
            return fault_of(error.args[0])
        except TimeoutError:
            return Fault(-185, "NO_ANSWER", f"no answer for {patience:g} s")
        return {
            TopicPartition(p.topic, p.partition): None if p.error is None else fault_of(p.error)
            for p in answer.topic_partitions
        }


def _unknown(answer: CommitResults | Fault) -> bool:
    if isinstance(answer, Fault):
        return answer.number < 0
    return any(fault is not None and fault.number < 0 for fault in answer.values())
