"""A flow held and let go on."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from failover.model.names import TopicPartition
from failover.replication.hold import Hold
from failover.replication.lane import State


class Engine:
    """Has one lane; writes down what is done to it."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.lane = SimpleNamespace(pending=0, state=State.OPEN)
        shard = SimpleNamespace(add=lambda routes: self.done.append(f"add {len(list(routes))}"))
        self.routes: Any = {TopicPartition("t", 0): SimpleNamespace(lane=self.lane, shard=shard)}

    def close(self, route: Any) -> None:
        assert route.lane is self.lane
        self.done.append("close")

    def look_soon(self) -> None:
        self.done.append("look")

    async def on_record(self) -> None:
        self.done.append("record")


def test_paused_all_stays_open():
    engine = Engine()
    hold = Hold(engine)
    hold.resume()
    assert (hold.gate.is_set(), engine.done) == (True, [])
    hold.pause()
    assert not hold.gate.is_set()
    hold.resume()
    assert (hold.gate.is_set(), engine.done) == (True, ["look"])


def test_halted_what_was_read_is_written_first():
    async def scene() -> list[str]:
        engine = Engine()
        hold = Hold(engine)
        engine.lane.pending = 2
        task = asyncio.ensure_future(hold.halt())
        await asyncio.sleep(0.03)
        assert (hold.gate.is_set(), hold.halted, engine.done) == (False, False, [])
        engine.lane.pending = 0
        await task
        assert engine.done == ["close", "record"]
        # a lane that was being started meanwhile is let go, too
        assert hold.let_go(engine.routes.values())
        hold.resume()
        assert not hold.let_go(engine.routes.values())
        return engine.done

    assert asyncio.run(scene()) == ["close", "record", "close", "add 1", "look"]


def test_one_in_trouble_holds_up_nobody():
    async def scene() -> None:
        engine = Engine()
        engine.lane.pending, engine.lane.state = 2, State.DRAINED
        await Hold(engine).halt()
        assert engine.done == ["close", "record"]

    asyncio.run(scene())
