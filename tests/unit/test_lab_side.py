"""What a lab's cluster is made to do, where others get in between."""

from __future__ import annotations

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from failover.errors import LabError
from failover.lab.side import Side


class Admin:
    """Is a cluster on which a mirror's consumer makes the topic ``before`` each of the first creations."""

    def __init__(self, others: int) -> None:
        self.others = others
        self.topics = {"orders": 3}
        self.deleted = 0

    def delete_topics(self, names: list[str], **_: Any) -> dict[str, Future[None]]:
        del self.topics[names[0]]
        self.deleted += 1
        return {names[0]: done()}

    def create_topics(self, wanted: list[Any], **_: Any) -> dict[str, Future[None]]:
        name = wanted[0].topic
        if self.deleted <= self.others:
            self.topics[name] = 1
            return {name: done(KafkaException(KafkaError(KafkaError.TOPIC_ALREADY_EXISTS)))}
        self.topics[name] = wanted[0].num_partitions
        return {name: done()}

    def list_topics(self, **_: Any) -> Any:
        def partitions(count: int) -> Any:
            return SimpleNamespace(partitions={number: SimpleNamespace(leader=1) for number in range(count)})

        return SimpleNamespace(topics={name: partitions(count) for name, count in self.topics.items()})


def done(error: Exception | None = None) -> Future[None]:
    future: Future[None] = Future()
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)
    return future


@pytest.fixture
def side(monkeypatch: pytest.MonkeyPatch) -> Side:
    made = Side("primary", {"bootstrap.servers": "127.0.0.1:1"})
    monkeypatch.setattr(made, "topic_config", lambda _: {})
    return made


@pytest.mark.parametrize("others", [0, 2])
def test_a_topic_that_others_make_in_between_is_made_again(side: Side, others: int) -> None:
    side._admin = admin = Admin(others)  # type: ignore[assignment]
    side.recreate_topic("orders")
    assert (admin.topics, admin.deleted) == ({"orders": 3}, others + 1)


def test_who_never_gets_in_between_says_so(side: Side) -> None:
    side._admin = Admin(1000)  # type: ignore[assignment]
    with pytest.raises(LabError, match="orders is made anew by somebody"):
        side.recreate_topic("orders")
