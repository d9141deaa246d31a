"""Items without an answer hold up nobody."""

from __future__ import annotations

import asyncio

import pytest

from failover.errors import ClusterUnreachable
from failover.kafka.faults import fault
from failover.model.names import Fault
from failover.replication.aside import Aside

LOST = Fault(-2, "NO_ANSWER", "silent")


class Brokers:
    """``silent`` items get their fault only after ``release``; ``asked``: every call's items."""

    def __init__(self) -> None:
        self.silent: dict[str, Fault] = {}
        self.asked: list[list[str]] = []
        self.release = asyncio.Event()
        self.error: Exception | None = None

    async def ask(self, items):
        self.asked.append(sorted(items))
        if self.error is not None:
            raise self.error
        if self.silent.keys() & set(items):
            await self.release.wait()
        return {item: self.silent.get(item, item.upper()) for item in items}


@pytest.mark.parametrize("reason", [LOST, fault(15)])
def test_who_does_not_answer_is_asked_beside(reason: Fault) -> None:
    async def scene() -> None:
        brokers = Brokers()
        aside = Aside(brokers.ask)
        brokers.silent = {"b": reason}
        brokers.release.set()
        assert await aside(["a", "b"]) == {"a": "A", "b": reason}
        brokers.release.clear()
        await asyncio.sleep(0)
        for _ in range(3):
            assert await asyncio.wait_for(aside(["a", "b"]), 1) == {"a": "A", "b": reason}
        assert brokers.asked == [["a", "b"], ["b"], ["a"], ["a"], ["a"]]
        assert aside.late == {"b"}
        brokers.silent = {}
        brokers.release.set()
        await asyncio.sleep(0.01)
        # what came late is told once, and from then on all are asked together
        await aside(["a", "b"])
        assert await aside(["a", "b"]) == {"a": "A", "b": "B"}
        assert aside.late == frozenset()
        await aside.close()

    asyncio.run(scene())


def test_a_final_fault_is_an_answer() -> None:
    async def scene() -> None:
        brokers = Brokers()
        aside = Aside(brokers.ask)
        brokers.silent = {"b": fault(30)}
        brokers.release.set()
        for _ in range(2):
            assert (await aside(["b"]))["b"] == fault(30)
        assert (brokers.asked, aside.late) == ([["b"], ["b"]], frozenset())

    asyncio.run(scene())


def test_a_cluster_that_is_gone_is_told_and_what_waits_beside_is_given_up() -> None:
    async def scene() -> None:
        brokers = Brokers()
        aside = Aside(brokers.ask)
        brokers.silent = {"b": LOST}
        brokers.release.set()
        await aside(["a", "b"])
        brokers.error = ClusterUnreachable("gone", alias="a")
        await asyncio.sleep(0.01)
        with pytest.raises(ClusterUnreachable):
            await aside(["a", "b"])
        brokers.error, brokers.silent = None, {"b": LOST}
        brokers.release.clear()
        await aside.close()
        assert aside.late == frozenset()

    asyncio.run(scene())
