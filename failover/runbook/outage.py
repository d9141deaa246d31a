"""How long applications were without service in a run: from the step that shut them out to that they were back by."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

import msgspec

from failover.runbook import events as e
from failover.runbook.playbook import Playbook, Step

Match = Callable[[Step], bool]


class Outage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Is a time in which producers or consumers (``what``) stood still.

    ``out``: the step that began it, ``back``: the step they were back by, "" while they are not. A run that turned back
    ends it with the putting back of ``out``. ``seconds``: None while they are not back.
    """

    what: str
    out: str
    begun: datetime
    back: str = ""
    ended: datetime | None = None

    @property
    def seconds(self) -> float | None:
        """Is how long it took."""
        return (self.ended - self.begun).total_seconds() if self.ended is not None else None


def outages(playbook: Playbook, events: Iterable[e.Event]) -> list[Outage]:
    """Finds them in a run's journal.

    Producers are out from the first step of the run that fences or stops them until a step has started them; consumers
    from the step that stops them until they were seen back, or were started where nobody looks for them. Where no step
    stops them, because their cluster is gone, that was before the run: it counts from the run's beginning.
    """
    events = list(events)
    begun, ended, undone = _moments(events)
    started = next(event.at for event in events if isinstance(event, e.Started))
    found = []
    for what, out, back in _RULES:
        starting = [number for number, step in enumerate(playbook.steps) if _moves(step, "start", what)]
        if not starting:
            continue
        # what is shut after they were started is the cluster they left
        leaving = [step.id for step in playbook.steps[: starting[-1]] if out(step) and step.id in begun]
        returning = [step.id for step in playbook.steps if back(step)] or [playbook.steps[starting[-1]].id]
        over = [step for step in returning if step in ended]
        if not leaving:
            if over:  # nothing put them out in this run
                found.append(Outage(what=what, out="", begun=started, back=over[-1], ended=ended[over[-1]]))
            continue
        first = min(leaving, key=begun.__getitem__)
        if over:
            found.append(Outage(what=what, out=first, begun=begun[first], back=over[-1], ended=ended[over[-1]]))
        elif all(step in undone for step in leaving):
            last = max(leaving, key=undone.__getitem__)
            found.append(Outage(what=what, out=first, begun=begun[first], back=last, ended=undone[last]))
        else:
            found.append(Outage(what=what, out=first, begun=begun[first]))
    return found


def _moves(step: Step, action: str, what: str) -> bool:
    given = step.action.parameters
    return step.action.uses == "move-applications" and (given.get("action"), given.get("what")) == (action, what)


def _seen_back(step: Step) -> bool:
    return step.action.uses == "verify" and bool(step.action.parameters.get("all_back"))


_RULES: tuple[tuple[str, Match, Match], ...] = (
    (
        "producers",
        lambda step: step.action.uses == "fence" or _moves(step, "stop", "producers"),
        lambda step: _moves(step, "start", "producers"),
    ),
    ("consumers", lambda step: _moves(step, "stop", "consumers"), _seen_back),
)


def _moments(events: Iterable[e.Event]) -> tuple[dict[str, datetime], dict[str, datetime], dict[str, datetime]]:
    """Gives when each step was first begun, last done, and put back."""
    begun: dict[str, datetime] = {}
    ended: dict[str, datetime] = {}
    undone: dict[str, datetime] = {}
    for event in events:
        match event:
            case e.Begun():
                begun.setdefault(event.step, event.at)
            case e.Succeeded():
                ended[event.step] = event.at
            case e.Undone():
                ended.pop(event.step, None)
                undone[event.step] = event.at
            case _:
                pass
    return begun, ended, undone
