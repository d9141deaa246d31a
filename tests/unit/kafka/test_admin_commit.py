"""The committing of many groups against clients that answer from a script."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from failover.config.clients import ClientSettings
from failover.errors import ClusterUnreachable
from failover.kafka.admin_clients import LANES, Connections
from failover.kafka.admin_commit import commit_all
from failover.kafka.port import CommitResults
from failover.model.groups import Commit
from failover.model.names import Fault, TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
Script = Callable[[str, Sequence[Any]], Any]
"""Gives an answer for (group, partitions): {partition: error code}, a KafkaException, or None for none at all."""


class Scripted(Connections):
    """Gives clients that answer from a script at once, each from a thread of its own like librdkafka's."""

    def __init__(self, script: Script, *, timeout: float = 2.0, alive: bool = True) -> None:
        super().__init__("b", ClientSettings(bootstrap=(("127.0.0.1", 1),)), timeout=timeout)
        self.script = script
        self.sent: list[str] = []
        self.lanes: set[int] = set()
        self.under_way = self.most = 0
        self.lock = threading.Lock()
        self.is_alive = alive

    def alive(self) -> bool:
        return self.is_alive

    def client(self, lane: int = 0) -> Any:
        self.lanes.add(lane)
        return SimpleNamespace(alter_consumer_group_offsets=self.alter)

    def alter(self, requests: Sequence[Any], request_timeout: float) -> dict[str, Future[Any]]:
        [request] = requests
        future: Future[Any] = Future()
        with self.lock:
            self.sent.append(request.group_id)
            self.under_way += 1
            self.most = max(self.most, self.under_way)
        answer = self.script(request.group_id, request.topic_partitions)

        def end() -> None:
            with self.lock:
                self.under_way -= 1
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                for each in request.topic_partitions:
                    code = answer.get(each.partition, 0)
                    found = SimpleNamespace(topic=each.topic, partition=each.partition, error=error(code))
                    answers.append(found)
                future.set_result(SimpleNamespace(topic_partitions=answers))

        answers: list[Any] = []
        if answer is None:
            threading.Timer(request_timeout, lambda: future.set_exception(no_answer())).start()
        else:
            threading.Thread(target=end).start()
        return {request.group_id: future}


def error(code: int) -> KafkaError | None:
    return KafkaError(code) if code else None


def no_answer() -> KafkaException:
    return KafkaException(KafkaError(KafkaError._TIMED_OUT))


def numbers(results: CommitResults) -> dict[int, int]:
    return {tp.partition: fault.number for tp, fault in results.items() if fault is not None}


def run(connections: Connections, groups: Sequence[str], partitions: int = 2) -> dict[str, CommitResults | Fault]:
    heard: dict[str, CommitResults | Fault] = {}

    def done(group: str, answer: CommitResults | Fault) -> None:
        assert group not in heard
        assert threading.current_thread() is threading.main_thread()
        heard[group] = answer

    offsets = {TopicPartition("t", number): Commit(7) for number in range(partitions)}
    commit_all(connections, dict.fromkeys(groups, offsets), done)
    return heard


def test_one_bad_partition_inside_an_answer_that_is_ok_is_told_and_the_others_stand() -> None:
    heard = run(Scripted(lambda group, _: {1: 3} if group == "bad" else {}), ["bad", "good"])
    assert heard["good"] == {T0: None, T1: None}
    results = heard["bad"]
    assert not isinstance(results, Fault)
    assert results[T0] is None
    assert numbers(results) == {1: 3}


def test_an_active_group_is_refused_at_once() -> None:
    connections = Scripted(lambda *_: {0: 25, 1: 25})
    results = run(connections, ["g"])["g"]
    assert not isinstance(results, Fault)
    assert {fault.number for fault in results.values() if fault} == {25}
    assert connections.sent == ["g"]


@pytest.mark.parametrize("code", [14, 15, 16, 27])
def test_what_passes_by_itself_is_sent_again_for_those_partitions_alone(code: int) -> None:
    asked: list[list[int]] = []

    def script(_: str, partitions: Sequence[Any]) -> dict[int, int]:
        asked.append([each.partition for each in partitions])
        return {1: code} if len(asked) == 1 else {}

    assert run(Scripted(script), ["g"]) == {"g": {T0: None, T1: None}}
    assert asked == [[0, 1], [1]]


def test_what_does_not_pass_within_the_accepted_silence_is_the_answer() -> None:
    results = run(Scripted(lambda *_: {0: 16}, timeout=0.3), ["g"])["g"]
    assert not isinstance(results, Fault)
    assert results[T1] is None
    assert numbers(results) == {0: 16}


def test_a_lost_answer_leaves_the_outcome_unknown_and_the_other_groups_stand() -> None:
    heard = run(Scripted(lambda group, _: no_answer() if group == "lost" else {}), ["a", "lost", "z"])
    lost = heard["lost"]
    assert isinstance(lost, Fault)
    assert lost.number < 0
    assert heard["a"] == heard["z"] == {T0: None, T1: None}


def test_a_group_level_error_is_told_for_every_partition() -> None:
    refused = KafkaException(KafkaError(30))
    results = run(Scripted(lambda *_: refused), ["g"])["g"]
    assert not isinstance(results, Fault)
    assert [fault.name for fault in results.values() if fault] == ["GROUP_AUTHORIZATION_FAILED"] * 2


def test_a_cluster_that_falls_silent_gets_no_further_group() -> None:
    connections = Scripted(lambda *_: None, timeout=0.2, alive=False)
    heard: dict[str, CommitResults | Fault] = {}
    commits = {f"g{number}": {T0: Commit(1)} for number in range(1000)}
    with pytest.raises(ClusterUnreachable, match="cluster b gave no answer"):
        commit_all(connections, commits, heard.__setitem__)
    assert set(heard) == set(connections.sent), "who was sent was told, and nobody else"
    assert all(isinstance(answer, Fault) and answer.number < 0 for answer in heard.values())
    assert len(connections.sent) <= 2 * LANES


def test_ten_thousand_groups_have_a_bounded_number_under_way() -> None:
    connections = Scripted(lambda *_: {})
    assert len(run(connections, [f"g{number}" for number in range(10_000)], 1)) == 10_000
    assert connections.most <= LANES
    assert connections.lanes == set(range(LANES))


def test_a_few_groups_open_few_connections() -> None:
    connections = Scripted(lambda *_: {})
    run(connections, ["a", "b", "c"])
    assert connections.lanes == {0}


def test_a_caller_that_stops_sends_nothing_more() -> None:
    connections = Scripted(lambda *_: {})

    def done(group: str, _: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        commit_all(connections, {f"g{number}": {T0: Commit(1)} for number in range(500)}, done)
    assert len(connections.sent) <= LANES + 1
