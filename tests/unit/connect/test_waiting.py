"""Waiting, watching that it lasts, and restarts that come later and later."""

from __future__ import annotations

import pytest

from failover.connect.access import ConnectAccess
from failover.connect.acting import by_rest
from failover.connect.client import ConnectClient
from failover.connect.mirrors import Mirror, mirrors
from failover.connect.values import Task
from failover.connect.waiting import Clock, Restarting, Watching, stays, wait_for
from failover.report.connect_text import status_text
from tests.unit.connect.fake_connect import FakeConnect


class Time:
    def __init__(self) -> None:
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    @property
    def clock(self) -> Clock:
        return Clock(lambda: self.now, self.sleep)


@pytest.fixture
def client(fake: FakeConnect) -> ConnectClient:
    fake.add_flow()
    return ConnectClient(ConnectAccess((fake.url,)), sleep=lambda _: None)


def act(client: ConnectClient, verb, *, recheck: float = 0, wait: float = 5):
    said: list[str] = []
    chosen = mirrors(client.connectors())
    return by_rest(client, chosen, verb, wait=wait, recheck=recheck, say=said.append, clock=Time().clock), said


def test_stop_begins_with_what_writes_to_groups_and_resume_ends_with_it(client: ConnectClient, fake: FakeConnect):
    acted, said = act(client, "stop")
    assert (acted.outcome, acted.exit_code) == ("done", 0)
    assert said == ["stop: a-b-checkpoint", "stop: a-b-source", "stop: a-b-heartbeat"]
    assert set(fake.states().values()) == {"STOPPED"}
    fake.requests = []
    act(client, "stop")
    assert not any(request.startswith("PUT") for request in fake.requests)
    assert act(client, "resume")[1][-1] == "resume: a-b-checkpoint"


def test_an_operator_that_puts_it_back_is_found_and_named(client: ConnectClient, fake: FakeConnect):
    fake.operator = 20
    acted, said = act(client, "stop", recheck=30)
    assert (acted.outcome, acted.exit_code) == ("undone", 6)
    assert set(acted.undone) == {"a-b-source", "a-b-checkpoint", "a-b-heartbeat"}
    assert {one.state for one in acted.connectors} == {"RUNNING"}
    assert any("watching for 30 s" in line for line in said)


def test_what_stays_is_watched_to_the_end(client: ConnectClient):
    time = Time()
    act(client, "pause")
    assert stays(client, ["a-b-source"], "pause", seconds=30, clock=time.clock) == []
    assert time.now == 30


def test_a_wait_ends_with_a_failure_or_with_its_time(client: ConnectClient, fake: FakeConnect):
    time = Time()
    fake.connectors["a-b-source"]["tasks"] = ["UNASSIGNED"]
    [found] = wait_for(client, ["a-b-source"], "resume", seconds=10, clock=time.clock)
    assert (found.condition, time.now) == ("UNASSIGNED", 10)
    fake.fail("a-b-source")
    [found] = wait_for(client, ["a-b-source"], "resume", seconds=10, clock=time.clock)
    assert (found.failed, time.now) == (True, 15)
    acted, _ = act(client, "pause", wait=1)
    assert acted.outcome == "done"


def test_a_wait_ends_where_there_is_nothing_to_copy(
    client: ConnectClient, fake: FakeConnect, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("failover.connect.waiting.IDLE_FOR", 2.0)
    time = Time()
    fake.connectors["a-b-source"]["tasks"] = []
    names = ["a-b-source", "a-b-checkpoint"]
    found = wait_for(client, names, "resume", seconds=5, clock=time.clock)
    assert [one.idle for one in found if one.kind == "source"] == [True]
    assert time.now == 2
    said = status_text("http://c:1", found).splitlines()[-1]
    assert said == "next: failover connect status a-b-source, once a has a topic to copy: it runs and has no task"
    fake.connectors["a-b-checkpoint"]["tasks"] = ["UNASSIGNED"]
    wait_for(client, names, "resume", seconds=3, clock=time.clock)
    assert time.now == 5


@pytest.mark.parametrize(("state", "tasks"), [("STOPPED", []), ("PAUSED", ["PAUSED"])])
def test_a_restart_of_what_is_at_rest_is_not_waited_for(client: ConnectClient, fake: FakeConnect, state, tasks):
    fake.connectors["a-b-source"] |= {"state": state, "tasks": tasks}
    time = Time()
    [found] = wait_for(client, ["a-b-source"], "restart", seconds=1, clock=time.clock)
    assert (found.state, time.now) == (state, 0)
    wait_for(client, ["a-b-source"], "resume", seconds=1, clock=time.clock)
    assert time.now == 1


def test_restarts_wait_twice_as_long_each_time_and_start_over_after_health():
    state = Restarting(least=10, most=60)
    done = [now for now in range(200) if state.see(now, failed=True, healthy=False)]
    assert done == [10, 31, 72, 133, 194]
    for now in range(200, 261):
        assert not state.see(now, failed=False, healthy=True)
    assert state.times == 0


def test_a_short_recovery_does_not_start_over():
    state = Restarting(least=10, most=600)
    at = [now for now in range(60) if state.see(now, failed=True, healthy=False)]
    assert at == [10, 31]
    state.see(61, failed=False, healthy=True)
    state.see(70, failed=False, healthy=True)
    assert state.times == 2


def seen(state: str, *tasks: str) -> list[Mirror]:
    rows = tuple(Task(number, each, trace="java.X: why\n") for number, each in enumerate(tasks))
    return [Mirror(name="c", kind="source", source="a", target="b", state=state, tasks=rows)]


def test_watching_tells_each_change_once():
    watching = Watching(restart=None, least=10, most=60)
    told = [
        [(event.what, event.state, event.detail) for event in watching.see(found, now)]
        for now, found in enumerate(
            [seen("RUNNING", "RUNNING"), seen("RUNNING", "RUNNING"), seen("RUNNING", "FAILED"), []]
        )
    ]
    assert told == [
        [("first seen", "RUNNING", "")],
        [],
        [("was RUNNING", "FAILED (1 of 1 tasks)", "java.X: why")],
        [("gone", "FAILED (1 of 1 tasks)", "")],
    ]


def test_watching_restarts_what_failed_and_says_when():
    restarted: list[str] = []
    watching = Watching(restart=restarted.append, least=10, most=60)
    failed = seen("RUNNING", "FAILED")
    told = [event.what for now in range(35) for event in watching.see(failed, now)]
    assert restarted == ["c", "c"]
    assert told == [
        "first seen",
        "will be restarted in 10 s",
        "restarted (time 1)",
        "will be restarted in 20 s",
        "restarted (time 2)",
        "will be restarted in 40 s",
    ]
