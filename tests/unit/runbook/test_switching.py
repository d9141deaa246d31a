"""The steps that stop and resume a flow's connectors, on a Connect cluster in the process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from failover.runbook.engine import Status
from tests.unit.connect.fake_connect import FakeConnect, serving
from tests.unit.runbook.test_steps import Scene, failure, result

NAMES = ["a-b-source", "a-b-checkpoint", "a-b-heartbeat"]
FAIL = "uses: command, with: {run: [no-such-program]}"


@pytest.fixture
def fake() -> Iterator[FakeConnect]:
    with serving(FakeConnect()) as started:
        started.add_flow()
        yield started


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def step(kind: str, fake: FakeConnect) -> str:
    return f"uses: {kind}, timeout: 20s, with: {{url: '{fake.url}'}}"


def test_the_flows_connectors_are_stopped_and_those_that_ran_are_resumed_on_the_way_back(scene, fake):
    fake.connectors["a-b-heartbeat"] |= {"state": "STOPPED", "tasks": []}
    stop = step("stop-replication", fake)
    assert scene.previewed(stop).startswith(f"would stop at {fake.url}: ")
    assert "RUNNING" in fake.states().values()
    runner = scene.run(stop)
    assert set(result(runner)["stopped"]) == {"a-b-source", "a-b-checkpoint"}
    assert set(fake.states().values()) == {"STOPPED"}
    for name in NAMES[:2]:
        fake.connectors[name] |= {"state": "RUNNING", "tasks": ["RUNNING"]}
    runner = scene.run(stop, FAIL)
    assert runner.state.steps["s0"].status is Status.UNDONE
    assert runner.state.steps["s0"].undo_text.startswith("resumed ")
    assert fake.states() == {"a-b-source": "RUNNING", "a-b-checkpoint": "RUNNING", "a-b-heartbeat": "STOPPED"}


def test_they_are_resumed_and_those_that_stood_are_stopped_on_the_way_back(scene, fake):
    for name in NAMES:
        fake.connectors[name] |= {"state": "STOPPED", "tasks": []}
    start = step("start-replication", fake)
    assert set(result(scene.run(start))["started"]) == set(NAMES)
    assert set(fake.states().values()) == {"RUNNING"}
    runner = scene.run(start, FAIL)
    assert runner.state.steps["s0"].undo_text == "nothing had been started"
    assert set(fake.states().values()) == {"RUNNING"}


def test_where_no_connectors_are_known_it_says_what_to_do(scene, fake):
    assert "where the flow's connectors run is not known" in failure(scene.run("uses: stop-replication"))
    assert "has no connector" in failure(scene.run(f"{step('stop-replication', fake)[:-1]}, connectors: [other]}}"))
