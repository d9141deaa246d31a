"""Drives a run: does what the engine says comes next, and notes what came of it before asking again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol, TypeVar

import msgspec

from failover.errors import (
    ApprovalNeeded,
    Declined,
    FailoverError,
    Interrupted,
    NoTerminal,
    StepFailed,
    StepTimeout,
    StepUnknown,
)
from failover.runbook import events as e
from failover.runbook.engine import Ask, Begin, Finish, RunState, Settle, Skip, Undo, decide, fold
from failover.runbook.fitting import given, may_come
from failover.runbook.kinds import kind
from failover.runbook.playbook import Action, Playbook, Step, Value
from failover.runbook.reach import Reach
from failover.runbook.references import Unresolved, resolve

R = TypeVar("R")
_log = logging.getLogger(__name__)


class Log(Protocol):
    """Is where a run notes its events."""

    def note(self, event: e.Event) -> None:
        """Adds an event, durable on return."""


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """Is what a run stands in. ``now``: the time of day; ``clock``: seconds that only grow.

    ``ask``: puts a question (and what has to be typed), gives yes or no, raises ``NoTerminal``. ``stop``: "" or why to
    stop before the next step.
    """

    now: Callable[[], datetime]
    clock: Callable[[], float]
    sleep: Callable[[float], None]
    ask: Callable[[str, str], bool]
    say: Callable[[str], None]
    stop: Callable[[], str]
    operator: str
    reach: Reach
    assumed: bool = False
    self_approve: bool = False


class _Context:
    """Is what one step is given; see ``failover.runbook.kinds.Context``."""

    def __init__(self, runner: Runner, step: Step, seconds: float) -> None:
        around, state = runner.around, runner.state
        self.run_id = runner.run_id
        self.step_id = step.id
        self.operators: Sequence[str] = state.operators or [around.operator]
        self.playbook = runner.playbook.name
        self.assumed, self.self_approve = around.assumed, around.self_approve
        self.source, self.target = runner.aliases
        self.reach = around.reach
        self.notes: Mapping[str, Value] = dict(state.steps[step.id].notes)
        self._runner = runner
        self._around = around
        self._seconds = seconds
        self._end = around.clock() + seconds

    def remaining(self) -> float:
        left = self._end - self._around.clock()
        if left <= 0:
            raise StepTimeout(f"not done within {self._seconds:g} s", hint="raise the step's timeout")
        return left

    def now(self) -> datetime:
        return self._around.now()

    def say(self, text: str) -> None:
        self._around.say(text)

    def pause(self, seconds: float) -> None:
        self._around.sleep(seconds)

    def note(self, **values: Value) -> None:
        self.notes = {**self.notes, **values}
        self._runner.add(e.Noted(self._around.now(), self.step_id, values))

    def wait(self, check: Callable[[], R], *, what: Callable[[], str], every: float = 1.0) -> R:
        while not (found := check()):
            if self._around.clock() + every > self._end:
                raise StepTimeout(f"not within {self._seconds:g} s: {what()}", hint="raise the step's timeout")
            self._around.sleep(every)
        return found

    def ask(self, question: str, typed: str = "") -> bool:
        return self._around.assumed or self._around.ask(question, typed)


class Runner:
    """Runs a playbook from wherever its journal stands. ``events``: what the journal holds already."""

    def __init__(self, playbook: Playbook, events: Iterable[e.Event], log: Log, around: Surroundings) -> None:
        self.playbook = playbook
        self.around = around
        self.events = list(events)
        began = next(event for event in self.events if isinstance(event, e.Started))
        self.run_id, self.aliases = began.run_id, (began.source, began.target)
        self.undoable = undoable(playbook)
        self._log = log

    @property
    def state(self) -> RunState:
        """Is how far the run is."""
        return fold(self.playbook, self.events)

    def add(self, event: e.Event) -> None:
        """Notes an event, durable on return."""
        self._log.note(event)
        self.events.append(event)

    def run(self) -> Finish:
        """Goes on until nothing is left to do; gives how it ended. A run that ended is closed in its journal.

        Raises ``Interrupted`` when it was told to stop between two steps, ``NoTerminal`` when nobody can be asked and
        ``StepUnknown`` when nobody was asked how far a step came: it stays as it is, and is asked about once more.
        """
        now = self.around.now
        while True:
            following = decide(self.playbook, self.state, self.undoable)
            if not isinstance(following, Finish) and (by := self.around.stop()):
                self.add(e.Stopped(now(), by))
                raise Interrupted(
                    f"stopped by {by} before step {following.step}; nothing is under way",
                    signal_number=15 if by == "SIGTERM" else 2,
                    hint=f"failover run --resume {self.run_id} goes on; with --undo it puts back what was done",
                )
            match following:
                case Finish():
                    self.add(e.Finished(now(), following.outcome, following.exit_code))
                    return following
                case Skip(step=name, why=why):
                    self.add(e.Skipped(now(), name, why))
                case Ask(step=name):
                    self._ask(self.playbook.step(name))
                case Begin(step=name, attempt=attempt, wait=wait):
                    self.around.sleep(wait)
                    self._begin(self.playbook.step(name), attempt)
                case Settle(step=name):
                    self._settle(self.playbook.step(name))
                case Undo(step=name):
                    self._undo(self.playbook.step(name))

    def _ask(self, step: Step) -> None:
        assert step.confirm is not None
        question, typed = self._resolved([step.confirm.text, step.confirm.typed])
        if self.around.assumed or self.around.ask(str(question), str(typed)):
            self.add(e.Confirmed(self.around.now(), step.id, self.around.operator))
        else:
            self.add(e.Declined(self.around.now(), step.id, "the question before it was answered with no"))

    def _begin(self, step: Step, attempt: int) -> None:
        self.add(e.Begun(self.around.now(), step.id, attempt))
        self.around.say(f"{self._place(step)} {step.title}" + (f" (try {attempt})" if attempt > 1 else ""))
        context = _Context(self, step, step.timeout)
        try:
            result = kind(step.action.uses).run(self._given(step.action), context)
        except FailoverError as error:
            if isinstance(error, (Interrupted, NoTerminal)):
                raise
            self._failed(step, error)
        except Exception as error:  # noqa: BLE001 - whatever broke, what was done has to be put back
            self._failed(step, _unexpected(error))
        else:
            self.add(e.Succeeded(self.around.now(), step.id, result))

    def _settle(self, step: Step) -> None:
        """Looks how far a step came that was cut short; where nobody can tell, somebody is asked."""
        self.around.say(f"{self._place(step)} {step.title}: it was cut short; looking how far it came")
        try:
            settled = kind(step.action.uses).settle(self._given(step.action), _Context(self, step, step.timeout))
        except FailoverError as error:
            if isinstance(error, (Interrupted, NoTerminal)):
                raise
            self._failed(step, error)
            return
        done = settled.done
        if done is None and not self.around.assumed:
            done = self.around.ask(f"Nobody can tell from here. Was step {step.id} done?", "")
        if done is None:
            # Not a failure, which would put back what may have been done well: the answer is somebody's to give.
            raise StepUnknown(
                f"step {step.id} was cut short, and how far it came cannot be told from here; nothing was changed now",
                hint=f"look, then answer: failover run --resume {self.run_id} without --yes; or put back: --undo",
            )
        if done:
            self.add(e.Succeeded(self.around.now(), step.id, settled.result))
        else:
            self.add(e.NotDone(self.around.now(), step.id))

    def _undo(self, step: Step) -> None:
        self.add(e.UndoBegun(self.around.now(), step.id))
        self.around.say(f"{self._place(step)} putting back: {step.title}")
        context = _Context(self, step, step.timeout)
        try:
            if step.undo is not None:
                one, parameters = kind(step.undo.uses), self._resolved(step.undo.parameters, step)
                one.run(given(one, parameters), context)
                text = one.by_hand(parameters) or f"by {step.undo.uses}"
            else:
                text = kind(step.action.uses).undo(self._given(step.action), context)
        except FailoverError as error:
            if isinstance(error, (Interrupted, NoTerminal)):
                raise
            self._stuck(step, error)
        except Exception as error:  # noqa: BLE001 - the steps before it can be put back still
            self._stuck(step, _unexpected(error))
        else:
            self.add(e.Undone(self.around.now(), step.id, text))

    def _stuck(self, step: Step, error: FailoverError) -> None:
        self.add(e.UndoFailed(self.around.now(), step.id, error.message, error.hint))
        self.around.say(f"{self._place(step)} could not be put back: {error.message}")

    def _failed(self, step: Step, error: FailoverError) -> None:
        if isinstance(error, (Declined, ApprovalNeeded)):
            self.add(e.Declined(self.around.now(), step.id, error.message, error.hint))
        else:
            self.add(e.Failed(self.around.now(), step.id, error.exit_code, error.code, error.message, error.hint))
        self.around.say(f"{self._place(step)} {error.code}: {error.message}")

    def _given(self, action: Action) -> Any:
        """Makes a kind's parameters, with what is known put in. Raises ``StepFailed``."""
        return given(kind(action.uses), self._resolved(action.parameters))

    def _resolved(self, value: Any, after: Step | None = None) -> Any:
        """Puts in what is known. ``after``: the step whose undo it is for. Raises ``StepFailed``."""
        state = self.state
        results = {name: step.result for name, step in state.steps.items() if step.result}
        if after is not None:
            results[after.id] = {**state.steps[after.id].notes, **state.steps[after.id].result}
        try:
            return resolve(value, state.variables, results)
        except Unresolved as error:
            raise StepFailed(f"a parameter refers to what is not there: {error}") from error

    def _place(self, step: Step) -> str:
        return f"[{self.playbook.steps.index(step) + 1}/{len(self.playbook.steps)}]"


def _unexpected(error: Exception) -> FailoverError:
    """Makes a step's failure of what should not happen; -vv tells where it did."""
    _log.debug("a step broke", exc_info=error)
    return FailoverError(f"unexpected: {type(error).__name__}: {error}", hint="run it again with -vv, and report it")


def undoable(playbook: Playbook) -> Collection[str]:
    """Names the steps that something puts back."""
    return {
        step.id for step in playbook.steps if not step.keep and (step.undo is not None or kind(step.action.uses).undoes)
    }


class Preview(msgspec.Struct, frozen=True):
    """Is what one step would do. ``problem``: what would keep it from that now, "" for nothing."""

    step: str
    title: str
    would: str
    problem: str = ""


def preview(playbook: Playbook, variables: Mapping[str, Value], around: Surroundings) -> list[Preview]:
    """Says of every step what it would do, its preconditions looked at; changes nothing.

    What an earlier step would give is not known: a parameter that refers to it is shown as it is written.
    """
    started = e.Started(
        at=around.now(),
        run_id="dry-run",
        playbook=playbook.name,
        digest=playbook.digest,
        variables=variables,
        operator=around.operator,
        host="",
        tool_version="",
    )
    runner = Runner(playbook, [started], _Nowhere(), around)
    found = []
    never: set[str] = set()
    for step in playbook.steps:
        one = kind(step.action.uses)
        if not may_come(step, variables, never):
            never.add(step.id)
            found.append(Preview(step.id, step.title, "would be passed over: its condition does not hold"))
            continue
        try:
            parameters = resolve(step.action.parameters, variables, {})
        except Unresolved as error:
            found.append(Preview(step.id, step.title, f"would use {step.action.uses}; {error} before it ran"))
            continue
        try:
            would = one.preview(given(one, parameters), _Context(runner, step, step.timeout))
        except FailoverError as error:
            found.append(Preview(step.id, step.title, f"would use {step.action.uses}", error.message))
        else:
            found.append(Preview(step.id, step.title, would))
    return found


class _Nowhere:
    def note(self, event: e.Event) -> None:
        raise AssertionError(f"a preview notes nothing: {event}")
