"""Users that brokers know by SCRAM."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from failover.config.clients import ClientSettings
from failover.kafka.wire.cluster import WireCluster
from failover.kafka.wire.primitives import Reader, Writer
from failover.kafka.wire.scram_users import DESCRIBE_SCRAM_USERS, scram_users
from failover.model.names import Fault
from failover.model.rights import ScramUser
from tests.unit.wire.fake_broker import FakeBroker
from tests.unit.wire.test_cluster import metadata

METADATA = 3


class Users:
    """Is a broker with two users, and one whose credentials it does not tell."""

    def __init__(self, *, error: int = 0, offered: bool = True) -> None:
        self.error = error
        self.asked = 0
        versions = {METADATA: (0, 12)} | ({DESCRIBE_SCRAM_USERS: (0, 0)} if offered else {})
        script = {METADATA: lambda _: metadata({1: self.broker.port}), DESCRIBE_SCRAM_USERS: self._describe}
        self.broker: FakeBroker = FakeBroker(script, versions, flexible={METADATA: 9, DESCRIBE_SCRAM_USERS: 0})

    def ask(self) -> Any:
        async def inside() -> Any:
            async with self.broker:
                settings = ClientSettings((("127.0.0.1", self.broker.port),))
                async with WireCluster(settings, alias="b", silence=5) as cluster:
                    return await scram_users(cluster)

        return asyncio.run(inside())

    def _describe(self, asked: Any) -> bytes:
        self.asked += 1
        reader = Reader(memoryview(asked.body), flexible=True)
        assert reader.array() <= 0  # null: every user
        reader.tags()
        assert reader.at == len(asked.body)
        out = Writer(flexible=True)
        out.int32(0)
        out.int16(self.error)
        out.string("said so" if self.error else None)
        told = [("zoë", 0, [(2, 8192), (1, 4096)]), ("app", 0, [(9, 5)]), ("broken", 58, [])] if not self.error else []
        out.array(len(told))
        for name, fault, credentials in told:
            out.string(name)
            out.int16(fault)
            out.string(None)
            out.array(len(credentials))
            for mechanism, iterations in credentials:
                out.int8(mechanism)
                out.int32(iterations)
                out.tags()
            out.tags()
        out.tags()
        return bytes(out.data)


def test_users_come_in_order_with_their_mechanisms() -> None:
    broker = Users()
    assert broker.ask() == (
        ScramUser("app", (("mechanism 9", 5),)),
        ScramUser("zoë", (("SCRAM-SHA-256", 4096), ("SCRAM-SHA-512", 8192))),
    )
    assert broker.asked == 1


@pytest.mark.parametrize(("error", "offered", "number"), [(31, True, 31), (0, False, 35)])
def test_why_they_are_not_told(error: int, offered: bool, number: int) -> None:
    answer = Users(error=error, offered=offered).ask()
    assert isinstance(answer, Fault)
    assert answer.number == number
