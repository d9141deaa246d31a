"""How the committing of many groups is heard of, judged and ended; a single request is the raw requests' matter."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from typing import Any, TypeVar

import pytest

from failover.config.clients import ClientSettings
from failover.errors import BrokerError, ClusterUnreachable
from failover.kafka import admin_commit
from failover.kafka.admin_clients import Connections
from failover.kafka.admin_commit import LANES, commit_all
from failover.kafka.faults import fault
from failover.kafka.port import CommitResults
from failover.kafka.wire.cluster import WireCluster
from failover.kafka.wire.thread import WireThread
from failover.model.groups import Commit
from failover.model.names import Fault, TopicPartition

T0 = TopicPartition("t", 0)
OK: CommitResults = {T0: None}
V = TypeVar("V")
Answer = Callable[[str], Awaitable[CommitResults | Fault]]


class Judged(Connections):
    """Is connections whose cluster lives or not, as the test says."""

    def __init__(self, *, alive: bool, timeout: float = 0.3) -> None:
        super().__init__("b", ClientSettings(bootstrap=(("127.0.0.1", 1),)), timeout=timeout)
        self.is_alive = alive

    def alive(self) -> bool:
        return self.is_alive


class Sender:
    """Stands for the raw requests: ``lanes`` groups are under way at a time, each is answered by ``answer``."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.sent: list[str] = []
        self.under_way = self.most = 0
        self.cancelled = threading.Event()

    async def __call__(
        self,
        wire: object,
        commits: Mapping[str, Mapping[TopicPartition, Commit]],
        done: Callable[[str, CommitResults | Fault], None],
        *,
        lanes: int,
    ) -> None:
        waiting = iter(commits)

        async def worker() -> None:
            for group in waiting:
                assert commits[group]
                self.sent.append(group)
                self.under_way += 1
                self.most = max(self.most, self.under_way)
                result = await self.answer(group)
                self.under_way -= 1
                done(group, result)

        try:
            await asyncio.gather(*(worker() for _ in range(min(lanes, len(commits)))))
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


@pytest.fixture
def raw() -> Iterator[Any]:
    with WireThread() as thread:
        wire = WireCluster(ClientSettings(bootstrap=(("127.0.0.1", 1),)), alias="b")

        def run(work: Callable[[WireCluster], Coroutine[Any, Any, V]]) -> V:
            return thread.run(work(wire))

        yield run


def sending(monkeypatch: pytest.MonkeyPatch, answer: Answer) -> Sender:
    sender = Sender(answer)
    monkeypatch.setattr(admin_commit, "commit_offsets", sender)
    return sender


def names(count: int) -> dict[str, dict[TopicPartition, Commit]]:
    return {f"g{number}": {T0: Commit(1)} for number in range(count)}


async def at_once(_: str) -> CommitResults:
    await asyncio.sleep(0)
    return OK


async def never(_: str) -> CommitResults:
    await asyncio.sleep(1000)
    return OK


def test_every_group_is_told_once_and_from_the_calling_thread(raw: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sender = sending(monkeypatch, at_once)
    heard: list[tuple[str, threading.Thread]] = []
    commit_all(raw, Judged(alive=True), names(2000), lambda group, _: heard.append((group, threading.current_thread())))
    assert sorted(group for group, _ in heard) == sorted(names(2000))
    assert {thread for _, thread in heard} == {threading.current_thread()}
    assert sender.most <= LANES


def test_no_groups_ask_nobody() -> None:
    commit_all(None, Judged(alive=False), {}, lambda *_: None)  # type: ignore[arg-type]


def test_what_one_group_was_answered_is_handed_on_unchanged(raw: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    answers: dict[str, CommitResults | Fault] = {"g0": {T0: fault(25)}, "g1": fault(-185), "g2": OK}

    async def answer(group: str) -> CommitResults | Fault:
        return answers[group]

    sending(monkeypatch, answer)
    heard: dict[str, CommitResults | Fault] = {}
    commit_all(raw, Judged(alive=True), names(3), heard.__setitem__)
    assert heard == answers


def test_a_cluster_that_falls_silent_gets_no_further_group_and_those_under_way_are_unknown(
    raw: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sender = sending(monkeypatch, never)
    heard: dict[str, CommitResults | Fault] = {}
    with pytest.raises(ClusterUnreachable, match="cluster b gave no answer"):
        commit_all(raw, Judged(alive=False), names(1000), heard.__setitem__)
    assert set(heard) == set(sender.sent), "who was sent was told, and nobody else"
    assert len(heard) == LANES
    assert all(isinstance(answer, Fault) and answer.number < 0 for answer in heard.values())
    assert sender.cancelled.wait(10)


def test_a_silent_coordinator_of_a_living_cluster_is_waited_for_by_its_connection(
    raw: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def slow(group: str) -> CommitResults | Fault:
        await asyncio.sleep(1.5 if group == "g0" else 0)
        return fault(-185) if group == "g0" else OK

    sending(monkeypatch, slow)
    heard: dict[str, CommitResults | Fault] = {}
    connections = Judged(alive=True)
    commit_all(raw, connections, names(50), heard.__setitem__)
    assert [group for group, answer in heard.items() if isinstance(answer, Fault)] == ["g0"]
    assert len(heard) == 50


def test_a_caller_that_stops_sends_nothing_more(raw: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def answer(group: str) -> CommitResults:
        await asyncio.sleep(0 if group == "g0" else 1000)
        return OK

    sender = sending(monkeypatch, answer)

    def done(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        commit_all(raw, Judged(alive=True), names(500), done)
    assert sender.cancelled.wait(10)
    assert len(sender.sent) <= LANES + 1


def test_an_error_of_the_whole_run_is_raised_in_the_calling_thread(raw: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def answer(_: str) -> CommitResults:
        raise BrokerError("speaks no such version", number=35, name="UNSUPPORTED_VERSION")

    sending(monkeypatch, answer)
    with pytest.raises(BrokerError):
        commit_all(raw, Judged(alive=True), names(1), lambda *_: None)
