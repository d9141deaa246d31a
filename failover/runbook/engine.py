"""What comes next in a run: a pure state machine over its journal.

``fold`` turns the events of a journal into a ``RunState``; ``decide`` says what is to be done in that state. Whoever
drives it (``failover.runbook.runner``) does that one thing, notes what came of it, and asks again.

Three invariants carry it. *An effect follows its event:* a step acts only after its ``Begun`` is durable, so a run that
was cut short shows at most one step, or one undo, of which nobody knows how far it came; it is never blindly repeated
but looked at (``Settle``), and an undo, which may be repeated, is begun once more. *Order:* a step begins only when all
before it are done, were passed over, or failed where the playbook says to go on. *No way back after a final step:* once
a step marked ``final`` has begun nothing is undone any more; until then a failure (or somebody's wish) puts back every
step that was done or may be half done, in reverse order, the failed one first.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from failover.errors import Declined as DeclinedError
from failover.runbook import events as e
from failover.runbook.playbook import Playbook, Step, Value, When
from failover.runbook.references import Unresolved, resolve


class Status(enum.Enum):
    """Is how far a step is."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"
    UNDOING = "undoing"
    UNDONE = "undone"
    STUCK = "stuck"


class StepState:
    """Is what the journal says of one step. ``attempts``: since the run was started or resumed."""

    __slots__ = ("attempts", "confirmed", "failure", "hint", "notes", "result", "status", "undo_text", "why")

    def __init__(self) -> None:
        self.status = Status.WAITING
        self.attempts = 0
        self.confirmed = False
        self.result: Mapping[str, Value] = {}
        self.notes: dict[str, Value] = {}
        self.failure: e.Failed | None = None
        self.why = self.hint = ""
        self.undo_text = ""


class RunState:
    """Is what a journal says of a run. ``turned_back``: somebody wants everything put back."""

    def __init__(self, playbook: Playbook) -> None:
        self.started: e.Started | None = None
        self.steps = {step.id: StepState() for step in playbook.steps}
        self.declined = ""
        self.turned_back = False
        self.final_begun = ""
        self.finished: e.Finished | None = None
        self.operators: list[str] = []

    @property
    def variables(self) -> Mapping[str, Value]:
        """Is what the run was started with."""
        return self.started.variables if self.started is not None else {}

    @property
    def results(self) -> dict[str, Mapping[str, Value]]:
        """Is what came of the steps that are done."""
        return {name: step.result for name, step in self.steps.items() if step.status is Status.DONE}


class Ask(NamedTuple):
    """Says to ask the question before a step."""

    step: str


class Begin(NamedTuple):
    """Says to begin a step, ``wait`` seconds from now."""

    step: str
    attempt: int
    wait: float


class Skip(NamedTuple):
    """Says to pass over a step."""

    step: str
    why: str


class Settle(NamedTuple):
    """Says to look how far a step came that was cut short."""

    step: str


class Undo(NamedTuple):
    """Says to put back what a step did, or may have done."""

    step: str


class Finish(NamedTuple):
    """Says that nothing is left to do. ``step``: the one it ended with, where it ended early."""

    outcome: str
    exit_code: int
    step: str = ""


Next = Ask | Begin | Skip | Settle | Undo | Finish

_TOUCHED = (Status.RUNNING, Status.DONE, Status.FAILED, Status.UNDOING)
"""Steps that did something, or may have."""


def fold(playbook: Playbook, events: Iterable[e.Event]) -> RunState:
    """Derives the state of a run from its journal."""
    state = RunState(playbook)
    finals = {step.id for step in playbook.steps if step.final}
    for event in events:
        _apply(state, event, finals)
    return state


def _apply(state: RunState, event: e.Event, finals: Collection[str]) -> None:
    match event:
        case e.Started():
            state.started = event
            state.operators.append(event.operator)
        case e.Resumed():
            state.operators.append(event.operator)
            state.declined = ""
            state.finished = None
            _forget_failures(state)
        case e.TurnedBack():
            state.turned_back = not state.final_begun
        case e.Stopped():
            pass
        case e.Finished():
            state.finished = event
        case e.Declined():
            state.declined = event.step
            known = state.steps[event.step]
            known.status, known.attempts = Status.WAITING, 0
            known.why, known.hint = event.message, event.hint
        case _:
            _apply_to_step(state.steps[event.step], event)
            if isinstance(event, e.Begun) and event.step in finals:
                state.final_begun = event.step


def _forget_failures(state: RunState) -> None:
    """A resumed run tries again what failed, unless it is on its way back: then only what could not be put back."""
    going_back = any(step.status in (Status.UNDOING, Status.UNDONE, Status.STUCK) for step in state.steps.values())
    for step in state.steps.values():
        if step.status is Status.STUCK:
            step.status = Status.UNDOING
        elif step.status is Status.FAILED and not going_back:
            step.status, step.attempts = Status.WAITING, 0


def _apply_to_step(step: StepState, event: e.Event) -> None:
    match event:
        case e.Confirmed():
            step.confirmed = True
        case e.Begun():
            step.status, step.attempts = Status.RUNNING, event.attempt
        case e.Noted():
            step.notes.update(event.notes)
        case e.Succeeded():
            step.status, step.result, step.failure = Status.DONE, event.result, None
        case e.Failed():
            step.status, step.failure = Status.FAILED, event
        case e.Skipped():
            step.status, step.why = Status.SKIPPED, event.why
        case e.NotDone():
            step.status, step.attempts = Status.WAITING, 0
        case e.UndoBegun():
            step.status = Status.UNDOING
        case e.Undone():
            step.status, step.undo_text = Status.UNDONE, event.text
        case e.UndoFailed():
            step.status, step.undo_text = Status.STUCK, event.message
        case _:
            raise AssertionError(f"{event} names a step and is not known here")


def decide(playbook: Playbook, state: RunState, undoable: Collection[str]) -> Next:
    """Says what comes next. ``undoable``: ids of the steps that something puts back."""
    back = _turning_back(playbook, state)
    if back is not None:
        return _back(playbook, state, undoable, back)
    begun = not (state.started is not None and state.started.begins_at)
    failed = ""
    for step in playbook.steps:
        known = state.steps[step.id]
        begun = begun or step.id == (state.started.begins_at if state.started is not None else "")
        if known.status in (Status.DONE, Status.SKIPPED):
            continue
        if known.status is Status.RUNNING:
            return Settle(step.id)
        if known.status is Status.FAILED:
            times = 1 + (step.retry.times if step.retry is not None else 0)
            if known.attempts < times:
                return Begin(step.id, known.attempts + 1, step.retry.wait if step.retry is not None else 0.0)
            if step.on_failure == "continue":
                failed = step.id
                continue
            return Finish("failed", known.failure.exit_code if known.failure is not None else 1, step.id)
        if not begun:
            return Skip(step.id, "begun later, by --from")
        if (why := _passed_over(step, state)) is not None:
            return Skip(step.id, why)
        if state.declined == step.id:
            return Finish("declined", DeclinedError.exit_code, step.id)
        if step.confirm is not None and not known.confirmed:
            return Ask(step.id)
        return Begin(step.id, 1, 0.0)
    return Finish("partly", 4, failed) if failed else Finish("done", 0)


def _turning_back(playbook: Playbook, state: RunState) -> str | None:
    """Names the step whose failure has everything put back, "" for somebody's wish; None: the run goes forward."""
    if state.final_begun:
        return None
    if state.turned_back:
        return ""
    for step in playbook.steps:
        known = state.steps[step.id]
        times = 1 + (step.retry.times if step.retry is not None else 0)
        if known.failure is not None and known.status in (Status.UNDOING, Status.UNDONE, Status.STUCK):
            return step.id
        if known.status is Status.FAILED and step.on_failure == "undo" and known.attempts >= times:
            return step.id
    return None


def _back(playbook: Playbook, state: RunState, undoable: Collection[str], failed: str) -> Next:
    for step in reversed(playbook.steps):
        if state.steps[step.id].status in _TOUCHED and step.id in undoable:
            return Undo(step.id)
    stuck = [step.id for step in playbook.steps if state.steps[step.id].status is Status.STUCK]
    failure = state.steps[failed].failure if failed else None
    if stuck:
        return Finish("stuck", failure.exit_code if failure is not None else 1, stuck[-1])
    if failure is not None and not any(step.status is Status.UNDONE for step in state.steps.values()):
        return Finish("failed", failure.exit_code, failed)  # nothing had been done that wanted putting back
    return Finish("undone", 4, failed)


def _passed_over(step: Step, state: RunState) -> str | None:
    """Says why a step is passed over; None when it is its turn."""
    if step.when is None:
        return None
    try:
        return None if holds(step.when, state.variables, state.results) else "its condition does not hold"
    except Unresolved as error:
        return f"it depends on a step that has no result: {error}"


def holds(when: When, variables: Mapping[str, Value], results: Mapping[str, Mapping[str, Value]]) -> bool:
    """Says whether a condition holds. Raises ``Unresolved``."""
    equal = resolve(when.value, variables, results) == resolve(when.equals, variables, results)
    return equal is not when.negated
