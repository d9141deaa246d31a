"""Commits the offsets of many groups: one request a group, as many at a time as there are connections."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from typing import Any, TypeAlias

from failover.kafka.admin_clients import LANES, Connections, outcome
from failover.kafka.admin_convert import fault_of, offsets_to_write
from failover.kafka.faults import NO_ANSWER, fault
from failover.kafka.port import CommitResults
from failover.model.groups import Commit
from failover.model.names import Fault, TopicPartition

Commits: TypeAlias = Mapping[TopicPartition, Commit]
Done: TypeAlias = Callable[[str, CommitResults | Fault], None]

_PASSING = frozenset({7, 13, 14, 15, 16, 27, 89})
"""Errors of a commit that end by themselves: the coordinator is loading or moving (14, 15, 16), a
rebalance runs (27), the broker is slow (7, 13) or asks for patience (89). Soon after a start 14 and 16
come for single partitions inside an answer that is OK as a whole (measured on Kafka 4.1.1).
UNKNOWN_TOPIC_OR_PARTITION counts as retriable for Kafka's clients; here it is the answer."""

_TICK = 0.05
_GRACE = 2.0


def commit_all(connections: Connections, commits: Mapping[str, Commits], done: Done) -> None:
    """Commits for every group and tells ``done`` of each as it ends, from the calling thread.

    Partitions whose error passes by itself are sent again, within the accepted silence, after
    the other groups. Raises ``ClusterUnreachable`` when the cluster fell silent: groups ``done``
    was not told of were then not sent, or sent before and refused with an error that passes.
    """
    from tenacity import RetryCallState, Retrying, retry_if_result, stop_after_delay, wait_random_exponential

    left = commits
    settled: dict[str, dict[TopicPartition, Fault | None]] = {}
    refused: dict[str, CommitResults] = {}

    def once() -> bool:
        nonlocal left, refused
        again: dict[str, Commits] = {}
        refused = {}
        for group, answer in _Window(connections, left).answers():
            results = dict.fromkeys(left[group], answer) if isinstance(answer, Fault) else dict(answer)
            passing = {tp: left[group][tp] for tp, found in results.items() if found and found.number in _PASSING}
            total = settled.pop(group, {}) | results
            if passing:
                again[group], settled[group], refused[group] = passing, total, total
            else:
                done(group, _whole(total))
        left = again
        return bool(again)

    def give_up(_: RetryCallState) -> bool:
        return False

    Retrying(
        retry=retry_if_result(bool),
        stop=stop_after_delay(connections.patience),
        wait=wait_random_exponential(0.05, max=0.5),
        retry_error_callback=give_up,
    )(once)
    for group, results in refused.items():
        done(group, results)


class _Window:
    """Is one pass over groups: each connection has one request under way, and the next group when it is answered.

    What is under way is bounded, so memory does not grow with the number of groups.
    """

    def __init__(self, connections: Connections, commits: Mapping[str, Commits]) -> None:
        self._connections = connections
        self._todo = iter(commits.items())
        self._lanes = min(LANES, max(1, len(commits) // 4))
        self._ended: queue.SimpleQueue[tuple[int, str, Future[Any]]] = queue.SimpleQueue()
        self._under_way: dict[int, str] = {}
        self._silent = False
        self._last_answer = time.monotonic()

    def answers(self) -> Iterator[tuple[str, CommitResults | Fault]]:
        """Yields each group's answer; raises ``ClusterUnreachable`` after the last one when groups were left unsent."""
        self._connections.check()
        for lane in range(self._lanes):
            self._send(lane)
        last_end = time.monotonic()
        while self._under_way:
            try:
                lane, group, future = self._ended.get(timeout=_TICK)
            except queue.Empty:
                self._connections.serve()
                # librdkafka ends each request at its own time limit; this is for one that never would
                if time.monotonic() - last_end > self._connections.timeout + _GRACE:
                    self._silent = True
                    lost = fault(NO_ANSWER, f"no answer for {self._connections.timeout:g} s")
                    yield from ((group, lost) for group in self._under_way.values())
                    break
                continue
            last_end = time.monotonic()
            del self._under_way[lane]
            answer = _answer(future)
            self._judge(answer)
            self._send(lane)
            yield group, answer
        if self._silent and next(self._todo, None) is not None:
            raise self._connections.silent(time.monotonic() - self._last_answer)

    def _send(self, lane: int) -> None:
        item = None if self._silent else next(self._todo, None)
        if item is None:
            return
        group, offsets = item
        request = [offsets_to_write(group, offsets)]
        # the future is done only while its client lives; Connections keeps it
        client = self._connections.client(lane)
        future = client.alter_consumer_group_offsets(request, request_timeout=self._connections.patience)[group]
        self._under_way[lane] = group
        future.add_done_callback(lambda future: self._ended.put((lane, group, future)))

    def _judge(self, answer: CommitResults | Fault) -> None:
        """Decides after an unanswered request whether one coordinator is silent or the whole cluster."""
        if not isinstance(answer, Fault) or answer.number >= 0:
            self._last_answer = time.monotonic()
            self._connections.answered()
            return
        waited = time.monotonic() - self._last_answer
        if not self._silent and waited >= self._connections.patience and not self._connections.alive():
            self._silent = True
        self._connections.be_brief()


def _answer(future: Future[Any]) -> CommitResults | Fault:
    found = outcome(future)
    if isinstance(found, Fault):
        return found
    return {
        TopicPartition(each.topic, each.partition): None if each.error is None else fault_of(each.error)
        for each in found.topic_partitions
    }


def _whole(results: CommitResults) -> CommitResults | Fault:
    """Gives one fault for the group where the same lost answer stands for every partition."""
    first = next(iter(results.values()), None)
    lost = first is not None and first.number < 0 and all(each == first for each in results.values())
    return first if lost and first is not None else results
