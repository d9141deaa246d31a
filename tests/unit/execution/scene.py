"""Runs executions against the fake cluster for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from failover.execution.commit import Executor, Timing
from failover.execution.earlier import earlier_writes
from failover.execution.record import build
from failover.model.execution import Execution, Status
from failover.model.groups import Member
from failover.model.names import TopicPartition
from failover.model.plan import Plan
from failover.state.journal import Event, Journal, Started, read_journal
from tests.fake_cluster import FakeCluster
from tests.unit.execution.plans import CREATED

T0, T1, T2 = (TopicPartition("a.orders", n) for n in range(3))
AT_ONCE = Timing(settle=0)
APP = Member("app-1", "/10.0.3.7", "app-1-uuid")


class Clock:
    """Is a clock that only moves when somebody sleeps."""

    def __init__(self) -> None:
        self.now = CREATED
        self.on_sleep: Callable[[], None] = lambda: None

    def __call__(self) -> datetime:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        self.on_sleep()


def target() -> FakeCluster:
    return FakeCluster("b").topic("a.orders", 3, end=1000)


def started(made: Plan, run_id: str = "e-1", **more: Any) -> Started:
    fields: dict[str, Any] = {
        "at": CREATED,
        "execution_id": run_id,
        "plan_id": made.id,
        "fingerprint": made.fingerprint,
        "tool_version": "0",
        "operator": "ann",
        "reason": "",
        "source_alias": "a",
        "target_alias": "b",
        "target_cluster_id": "id-of-b",
        "selected": tuple(g.group for g in made.groups),
    }
    return Started(**(fields | more))


def run(
    made: Plan,
    cluster: FakeCluster,
    path: Path,
    *,
    clock: Clock | None = None,
    timing: Timing = AT_ONCE,
    run_id: str = "e-1",
    before: Sequence[Execution] = (),
    stop: Callable[[], str] | None = None,
    selected: Sequence[str] | None = None,
) -> Execution:
    """Executes; a journal that is there already is resumed. ``before``: other executions of the plan."""
    clock = clock or Clock()
    file = path / run_id
    earlier: list[Event] = read_journal(file) if file.exists() else []
    runs = [*before, *([build(made, earlier)] if earlier else [])]
    journal = Journal(file)
    begin = started(made, run_id, when_free=timing.wait > 0)
    if selected is not None:
        begin = started(made, run_id, selected=tuple(selected))
    try:
        execution = Executor(
            made,
            cluster,
            journal,
            clock=clock,
            sleep=clock.sleep,
            earlier=earlier,
            writes=earlier_writes(runs),
            stop=stop,
        ).run(begin, timing)
    finally:
        journal.close()
    assert build(made, read_journal(file)) == execution
    return execution


def statuses(execution: Execution, name: str = "g") -> list[Status]:
    return [p.status for g in execution.groups if g.group == name for p in g.partitions]
