from __future__ import annotations

import asyncio

import pytest

from failover.errors import ClusterUnreachable, ConfigError, CredentialsRefused, Refused
from failover.replication.flows import FLOW, Flows, Restart, worst

DOWN = ClusterUnreachable("nobody there", alias="b", hint="start it")
SOON = Restart("backoff", 0.001, 0.002)


class Scripted:
    """Is a flow that fails as told, an error a run, and then works until it is stopped."""

    def __init__(self, *failures, fails_at_work=()):
        self.failures = list(failures)
        self.fails_at_work = list(fails_at_work)
        self.runs = 0
        self.named = []
        self.working, self.failed = asyncio.Event(), asyncio.Event()
        self.ended = asyncio.Event()

    def stop(self):
        self.ended.set()

    async def __call__(self, started):
        self.runs += 1
        self.named.append(FLOW.get())
        await asyncio.sleep(0)
        if self.failures:
            self.failed.set()
            raise self.failures.pop(0)
        started(self)
        self.working.set()
        if self.fails_at_work:
            raise self.fails_at_work.pop(0)
        await self.ended.wait()


def run(scenario):
    return asyncio.run(asyncio.wait_for(scenario, 20))


def lines(caplog):
    return [record.getMessage() for record in caplog.records]


def test_one_that_is_wrong_does_not_end_the_other(caplog):
    async def scenario():
        bad, good = Scripted(ConfigError("no such", hint="write it")), Scripted()
        flows = Flows({"a->b": bad, "b->a": good}, SOON)
        running = asyncio.ensure_future(flows.run())
        await good.working.wait()
        await bad.failed.wait()
        assert not running.done()
        flows.stop()
        return await running, bad, good

    failures, bad, good = run(scenario())
    assert {name: str(error) for name, error in failures.items()} == {"a->b": "no such"}
    assert (bad.runs, good.runs) == (1, 1)
    assert (bad.named, good.named) == (["a->b"], ["b->a"])
    assert lines(caplog) == ["flow a->b: no such (write it); it has ended"]


def test_one_that_cannot_be_reached_is_tried_again_and_said_once(caplog):
    async def scenario():
        late, good = Scripted(*[DOWN] * 5), Scripted()
        flows = Flows({"a->b": late, "b->a": good}, SOON)
        running = asyncio.ensure_future(flows.run())
        await late.working.wait()
        flows.stop()
        return await running, late

    failures, late = run(scenario())
    assert (failures, late.runs) == ({}, 6)
    assert lines(caplog) == [
        "flow a->b: nobody there (start it); it is tried again",
        "flow a->b: its clusters answer now",
    ]


@pytest.mark.parametrize("restart", [SOON, Restart("never")])
def test_the_only_one_ends_with_its_error_and_leaves_saying_it_to_others(caplog, restart):
    async def scenario():
        return await Flows({"a->b": Scripted(DOWN)}, restart).run()

    assert run(scenario()) == {"a->b": DOWN}
    assert lines(caplog) == []


def test_when_all_wait_all_end(caplog):
    async def scenario():
        flows = Flows({"a->b": Scripted(*[DOWN] * 99), "b->a": Scripted(*[DOWN] * 99)}, Restart("backoff", 600, 600))
        return await flows.run()

    assert run(scenario()) == {"a->b": DOWN, "b->a": DOWN}
    assert len(lines(caplog)) == 4  # each: tried again; has ended


def test_when_the_last_at_work_ends_those_that_wait_end_too():
    taken = Refused("another worker has taken over")

    async def scenario():
        flows = Flows({"a->b": Scripted(*[DOWN] * 9999), "b->a": Scripted(fails_at_work=[taken])}, SOON)
        return await flows.run()

    assert run(scenario()) == {"a->b": DOWN, "b->a": taken}


def test_never_means_never(caplog):
    async def scenario():
        down, good = Scripted(DOWN), Scripted()
        flows = Flows({"a->b": down, "b->a": good}, Restart("never"))
        running = asyncio.ensure_future(flows.run())
        await down.failed.wait()
        flows.stop()
        return await running, down

    failures, down = run(scenario())
    assert (failures, down.runs) == ({"a->b": DOWN}, 1)


def test_a_defect_of_one_is_its_own(caplog):
    async def scenario():
        broken, good = Scripted(ValueError("oh")), Scripted()
        flows = Flows({"a->b": broken, "b->a": good}, SOON)
        running = asyncio.ensure_future(flows.run())
        await good.working.wait()
        flows.stop()
        return await running

    assert [type(error) for error in run(scenario()).values()] == [ValueError]
    assert "flow a->b: unexpected: ValueError('oh'); it has ended" in lines(caplog)


def test_stopped_while_one_waits_it_counts_as_failed():
    async def scenario():
        down, good = Scripted(*[DOWN] * 99), Scripted()
        flows = Flows({"a->b": down, "b->a": good}, Restart("backoff", 600, 600))
        running = asyncio.ensure_future(flows.run())
        await good.working.wait()
        flows.stop()
        return await running

    assert run(scenario()) == {"a->b": DOWN}


def test_stopped_before_it_began_it_ends_at_once_without_an_error():
    class Slow:
        async def __call__(self, started):
            await asyncio.sleep(3600)

    async def scenario():
        flows = Flows({"a->b": Slow()}, SOON)
        running = asyncio.ensure_future(flows.run())
        await asyncio.sleep(0.01)
        flows.stop()
        return await running

    assert run(scenario()) == {}


def test_a_second_stop_does_not_wait():
    class Stubborn:
        def stop(self):
            pass

        async def __call__(self, started):
            started(self)
            await asyncio.sleep(3600)

    async def scenario():
        flows = Flows({"a->b": Stubborn()}, SOON)
        running = asyncio.ensure_future(flows.run())
        await asyncio.sleep(0.01)
        flows.stop()
        await asyncio.sleep(0.01)
        assert not running.done()
        flows.stop()
        return await running

    assert run(scenario()) == {}


def test_the_worst_code_counts():
    refused = Refused("taken")
    denied = CredentialsRefused("no", alias="b")
    wrong = ConfigError("wrong")
    assert worst({}) is None
    assert worst({"a": wrong, "b": refused}) is refused
    assert worst({"a": wrong, "b": denied, "c": refused}) is denied
    defect = ValueError("oh")
    assert worst({"a": denied, "b": defect}) is defect


def test_one_that_has_failed_begins_again_when_told_if_flows_are_restartable(caplog):
    async def scenario():
        bad, good = Scripted(ConfigError("no such")), Scripted()
        flows = Flows({"a->b": bad, "b->a": good}, SOON, restartable=True)
        running = asyncio.ensure_future(flows.run())
        await good.working.wait()
        await bad.failed.wait()
        while not lines(caplog):  # noqa: ASYNC110 - a line in a log tells nobody
            await asyncio.sleep(0)
        flows.begin_again("a->b")
        await bad.working.wait()
        flows.stop()
        return await running, bad

    failures, bad = run(scenario())
    assert (failures, bad.runs) == ({}, 2)
    assert lines(caplog) == ["flow a->b: no such; it waits to be restarted", "flow a->b: its clusters answer now"]


def test_restartable_flows_end_once_all_have_failed():
    async def scenario():
        bad, worse = Scripted(ConfigError("no such")), Scripted(fails_at_work=[Refused("another has it")])
        return await Flows({"a->b": bad, "b->a": worse}, SOON, restartable=True).run()

    assert {name: str(error) for name, error in run(scenario()).items()} == {
        "a->b": "no such",
        "b->a": "another has it",
    }
