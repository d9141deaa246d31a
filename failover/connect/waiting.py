"""Waits until connectors are what was asked for, watches that they stay so, and restarts those that fail."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator

import msgspec

from failover.connect.mirrors import Mirror, at_rest, mirrors
from failover.connect.source import Source
from failover.connect.values import FAILED

EVERY = 0.5
"""Seconds between two looks."""

FAILED_FOR = 5.0
"""So long a failure must stand to end a wait: right after a change Connect still tells the state from before."""

IDLE_FOR = 20.0
"""So long connectors run without a task to end a wait: Connect hands tasks out in seconds, where there is any work."""


class Clock(msgspec.Struct, frozen=True):
    """Is the time, for code that waits: ``now`` in seconds, from anywhere; tests give another."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


def wait_for(
    where: Source, names: Collection[str], verb: str, *, seconds: float, clock: Clock | None = None
) -> list[Mirror]:
    """Waits until every connector is as ``verb`` wants it, or failed for good, or ``seconds`` are over.

    Ends as well once those that are not run without any task and so have nothing to copy. Gives the last look.
    """
    clock = clock or Clock()
    deadline = clock.now() + seconds
    ends: dict[float, Callable[[Mirror], bool]] = {
        FAILED_FOR: (lambda one: one.failed),
        IDLE_FOR: (lambda one: one.idle),
    }
    since: dict[float, float] = {}
    while True:
        found = look(where, names)
        now = clock.now()
        whole = len(found) == len(names)
        resting = [at_rest(one, verb=verb) for one in found]
        if now >= deadline or (whole and all(resting)):
            return found
        for lasting, is_so in ends.items():
            if not (whole and all(rests or is_so(one) for rests, one in zip(resting, found, strict=True))):
                since.pop(lasting, None)
            elif now - since.setdefault(lasting, now) >= lasting:
                return found
        clock.sleep(EVERY)


def stays(
    where: Source, names: Collection[str], verb: str, *, seconds: float, clock: Clock | None = None
) -> list[Mirror]:
    """Watches for so many seconds that connectors stay as ``verb`` left them; gives those that did not, at once."""
    clock = clock or Clock()
    deadline = clock.now() + seconds
    while (now := clock.now()) < deadline:
        clock.sleep(min(EVERY, deadline - now))
        undone = [one for one in look(where, names) if not at_rest(one, verb=verb)]
        if undone:
            return undone
    return []


def look(where: Source, names: Collection[str]) -> list[Mirror]:
    """Gives the connectors of these names that there are."""
    return [one for one in mirrors(where.connectors()) if one.name in names]


class Restarting(msgspec.Struct):
    """Is when a connector that failed is restarted: after ``least`` seconds, then twice as long each time, to ``most``.

    Once it has run for as long as its last wait, the count starts over.
    """

    least: float
    most: float
    times: int = 0
    due: float | None = None
    healthy_since: float | None = None

    @property
    def delay(self) -> float:
        """Gives the seconds to wait before the next restart."""
        return float(min(self.most, self.least * 2 ** min(self.times, 30)))

    def see(self, now: float, *, failed: bool, healthy: bool) -> bool:
        """Takes a look's result; says whether to restart now."""
        if not failed:
            self.due = None
            if not healthy:
                self.healthy_since = None
            elif self.healthy_since is None:
                self.healthy_since = now
            elif now - self.healthy_since >= self.delay:
                self.times = 0
            return False
        self.healthy_since = None
        if self.due is None:
            self.due = now + self.delay
        if now < self.due:
            return False
        self.times += 1
        self.due = None
        return True


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """Is something ``connect watch`` tells: a state seen first or changed, a restart that is due or done."""

    connector: str
    flow: str
    what: str
    state: str
    detail: str = ""


class Watching:
    """Turns looks at connectors into events, and restarts what fails if ``restart`` is given."""

    def __init__(self, *, restart: Callable[[str], None] | None, least: float, most: float) -> None:
        self.states: dict[str, Mirror] = {}
        self._restart = restart
        self._least, self._most = least, most
        self._restarting: dict[str, Restarting] = {}

    def see(self, found: Collection[Mirror], now: float) -> Iterator[Event]:
        """Yields what is new since the last look."""
        for one in found:
            before = self.states.get(one.name)
            if before is None or _face(before) != _face(one):
                yield _event(one, "first seen" if before is None else f"was {before.condition}", one.problem)
            self.states[one.name] = one
            if self._restart is not None:
                yield from self._mend(one, now, self._restart)
        for name in self.states.keys() - {one.name for one in found}:
            yield _event(self.states.pop(name), "gone")
            self._restarting.pop(name, None)

    def _mend(self, one: Mirror, now: float, restart: Callable[[str], None]) -> Iterator[Event]:
        state = self._restarting.setdefault(one.name, Restarting(self._least, self._most))
        planned = state.due
        if state.see(now, failed=one.failed, healthy=one.healthy):
            restart(one.name)
            yield _event(one, f"restarted (time {state.times})", f"the next after {state.delay:g} s")
        elif planned is None and state.due is not None:
            yield _event(one, f"will be restarted in {state.due - now:g} s")


def _face(one: Mirror) -> tuple[object, ...]:
    return (one.state, one.problem, tuple((task.id, task.state) for task in one.tasks))


def _event(one: Mirror, what: str, detail: str = "") -> Event:
    failed = sum(task.state == FAILED for task in one.tasks)
    state = f"{one.condition} ({failed} of {len(one.tasks)} tasks)" if failed else one.condition
    return Event(connector=one.name, flow=one.flow, what=what, state=state, detail=detail)
