"""Commits that cannot be all there is are asked for again, of coordinators found anew."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine
from typing import Any

import pytest

from failover.config.clients import ClientSettings
from failover.kafka.admin import KafkaCluster
from failover.kafka.port import AGAIN
from failover.model.groups import Commit
from failover.model.names import Fault, TopicPartition

T0 = TopicPartition("orders", 0)
SOME: dict[TopicPartition, Commit] = {T0: Commit(5)}
NONE: dict[TopicPartition, Commit] = {}
UNAVAILABLE = Fault(15, "COORDINATOR_NOT_AVAILABLE")


class Wire:
    """Answers each question with the next of a list, the last one for ever; notes who was looked for anew."""

    def __init__(self, answers: list[dict[str, Any]]) -> None:
        self.answers = answers
        self.asked: list[list[str]] = []
        self.anew: list[list[str]] = []

    async def coordinators(self, groups: Collection[str], *, refresh: bool) -> None:
        assert refresh
        self.anew.append(list(groups))

    async def committed(self, wire: Wire, groups: Collection[str]) -> dict[str, Any]:
        assert wire is self
        self.asked.append(list(groups))
        found = self.answers[min(len(self.asked), len(self.answers)) - 1]
        return {group: found[group] for group in groups}


Ask = Callable[..., tuple[dict[str, Any], Wire, list[float]]]


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> Ask:
    def questions(answers: list[dict[str, Any]], **more: Any) -> tuple[dict[str, Any], Wire, list[float]]:
        wire = Wire(answers)
        slept: list[float] = []

        def raw(_: KafkaCluster, work: Callable[[Any], Coroutine[Any, Any, Any]]) -> Any:
            return asyncio.run(work(wire))

        monkeypatch.setattr(KafkaCluster, "facts", lambda _: None)
        monkeypatch.setattr(KafkaCluster, "_raw", raw)
        monkeypatch.setattr("failover.kafka.wire.offsets.committed_offsets", wire.committed)
        monkeypatch.setattr("failover.kafka.admin.time.sleep", slept.append)
        cluster = KafkaCluster("b", ClientSettings((("127.0.0.1", 1),)), timeout=1)
        return cluster.committed(list(answers[0]), **more), wire, slept

    return questions


def test_what_is_credible_is_asked_once(ask: Ask) -> None:
    found, wire, slept = ask([{"g": SOME, "h": NONE}], credible=lambda group, found: bool(found) or group == "h")
    assert (found, wire.asked, wire.anew, slept) == ({"g": SOME, "h": NONE}, [["g", "h"]], [], [])


def test_only_what_is_not_is_asked_again_until_it_is(ask: Ask) -> None:
    answers = [{"g": NONE, "h": SOME}, {"g": NONE}, {"g": SOME}]
    found, wire, slept = ask(answers, credible=lambda _, found: bool(found))
    assert found == {"g": SOME, "h": SOME}
    assert wire.asked == [["g", "h"], ["g"], ["g"]]
    assert wire.anew == [["g"], ["g"]]
    assert slept == list(AGAIN[:2])


@pytest.mark.parametrize("last", [NONE, UNAVAILABLE])
def test_the_last_answer_counts(ask: Ask, last: Any) -> None:
    found, wire, _ = ask([{"g": NONE}, {"g": last}], credible=lambda _, found: bool(found))
    assert found == {"g": last}
    assert len(wire.asked) == (1 + len(AGAIN) if last == NONE else 2)


def test_without_a_doubt_to_go_by_nothing_is_asked_again(ask: Ask) -> None:
    assert len(ask([{"g": NONE}])[1].asked) == 1
