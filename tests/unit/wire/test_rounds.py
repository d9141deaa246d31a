from __future__ import annotations

import asyncio
import gc

import pytest

from failover.errors import BrokerError, ClusterUnreachable, CredentialsRefused
from failover.kafka.faults import fault
from failover.kafka.wire.connection import ConnectionLost
from failover.kafka.wire.rounds import first_answer, scatter, settle
from failover.model.names import Fault


def lost(*, silent: bool = False) -> ConnectionLost:
    return ConnectionLost("gone", alias="a", silent=silent)


def test_only_what_may_pass_is_asked_again():
    rounds = []

    async def ask(items, again):
        rounds.append((list(items), again))
        return {
            item: fault(16) if item == "moving" and len(rounds) < 3 else fault(30) if item == "denied" else 7
            for item in items
        }

    answers = asyncio.run(settle(["fine", "moving", "denied", "fine"], ask, budget=5))
    assert answers == {"fine": 7, "moving": 7, "denied": fault(30)}
    assert rounds == [(["fine", "moving", "denied"], False), (["moving"], True), (["moving"], True)]


def test_a_fault_that_outlives_the_budget_is_the_answer():
    async def ask(items, again):
        return dict.fromkeys(items, fault(14))

    assert asyncio.run(settle(["g"], ask, budget=0.1)) == {"g": fault(14)}


def test_one_brokers_loss_is_its_own_items_fault():
    async def send(node, items):
        if node == 2:
            raise lost(silent=True)
        if node == 3:
            raise lost()
        return dict.fromkeys(items, node)

    routes: dict[str, int | Fault] = {"a": 1, "b": 2, "c": 3, "d": fault(15), "e": 1}
    answers = asyncio.run(scatter(routes, send))
    assert (answers["a"], answers["e"], answers["d"]) == (1, 1, fault(15))
    silent, dropped = answers["b"], answers["c"]
    assert isinstance(silent, Fault)
    assert isinstance(dropped, Fault)
    assert (silent.number < -1, silent.retriable) == (True, False)
    assert (dropped.number < -1, dropped.retriable) == (True, True)


def test_refused_credentials_and_bugs_are_never_a_fault():
    async def refused(node, items):
        raise CredentialsRefused("no", alias="a")

    async def broken(node, items):
        raise BrokerError("old", number=35, name="UNSUPPORTED_VERSION")

    with pytest.raises(CredentialsRefused):
        asyncio.run(scatter({"a": 1}, refused))
    with pytest.raises(BrokerError):
        asyncio.run(scatter({"a": 1}, broken))


def test_whoever_answers_first_wins_and_the_silent_are_dropped():
    dropped = []

    async def silent():
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            dropped.append("silent")
            raise

    async def failing():
        raise lost()

    async def answering():
        return "answer"

    assert asyncio.run(first_answer([silent, failing, answering], stagger=0.01)) == "answer"
    assert dropped == ["silent"]


def test_when_nobody_answers_a_refusal_counts_more_than_silence():
    async def failing():
        raise lost()

    async def refused():
        raise CredentialsRefused("no", alias="a")

    with pytest.raises(CredentialsRefused):
        asyncio.run(first_answer([failing, refused, failing], stagger=0))
    with pytest.raises(ClusterUnreachable):
        asyncio.run(first_answer([failing, failing], stagger=0))


def test_a_failure_beside_the_first_answer_is_not_left_for_asyncio_to_complain_of():
    complaints = []

    async def both():
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        ready = asyncio.Event()

        async def answering():
            await ready.wait()
            return "answer"

        async def failing():
            await ready.wait()
            raise lost()

        asyncio.get_running_loop().call_later(0.02, ready.set)
        # several of each, so that whichever is looked at first, some failure stands beside the answer
        return await first_answer([failing, answering, failing, failing], stagger=0.001)

    assert asyncio.run(both()) == "answer"
    gc.collect()
    assert complaints == []
