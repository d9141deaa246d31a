"""A playbook's YAML, read strictly: every mistake is found before anything runs, each with its line."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple, cast

import msgspec

from failover.config.duration import parse_duration
from failover.config.yaml_core import LinedDict, load_yaml
from failover.errors import ConfigError, PlaybookInvalid
from failover.runbook.kinds import KINDS, kind
from failover.runbook.playbook import (
    Action,
    Confirm,
    OnFailure,
    Playbook,
    Retry,
    Step,
    Value,
    Variable,
    VariableType,
    When,
)
from failover.runbook.references import BadReference, references
from failover.runbook.variables import convert, misfit, near, value_of

_TOP = ("name", "description", "vars", "steps")
_VARIABLE = ("type", "required", "default", "description")
_STEP = (
    "id",
    "title",
    "why",
    "uses",
    "with",
    "when",
    "timeout",
    "retry",
    "confirm",
    "on_failure",
    "undo",
    "final",
)
_TYPES = ("text", "number", "flag", "duration", "list")
_ON_FAILURE = ("stop", "continue", "undo")
_STEP_ID = re.compile(r"[a-z][a-z0-9-]{0,39}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Problem(NamedTuple):
    """Is one mistake; ``line`` counts from 1."""

    line: int
    text: str


class _Reading:
    """Goes through one playbook and gathers what is wrong with it."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.variables: dict[str, Variable] = {}
        self.results: dict[str, Collection[str]] = {}
        self.used: set[str] = set()

    def wrong(self, line: int, text: str) -> None:
        self.problems.append(Problem(line, text))

    def keys(self, found: LinedDict, known: Iterable[str], of: str) -> None:
        for key in found:
            if key not in known:
                self.wrong(found.lines[key], f"{of} has no {key!r}{near(key, known)}")

    def text(self, found: LinedDict, key: str, *, needed: bool = False) -> str:
        value = found.get(key)
        if value is None:
            if needed:
                self.wrong(_first_line(found), f"{key} is missing")
            return ""
        if isinstance(value, (bool, list, dict)):
            self.wrong(found.lines[key], f"{key} has to be a text")
            return ""
        return str(value).strip()

    def flag(self, found: LinedDict, key: str) -> bool:
        value = found.get(key, False)
        if not isinstance(value, bool):
            self.wrong(found.lines[key], f"{key} has to be true or false")
            return False
        return value

    def seconds(self, found: LinedDict, key: str, default: float) -> float:
        if found.get(key) is None:
            return default
        seconds = parse_duration(str(found[key]))
        if seconds is None or seconds <= 0:
            self.wrong(found.lines[key], f"{key} has to be a duration such as 90s, 5m or 2h")
            return default
        return seconds

    def references(self, value: Any, line: int) -> None:
        """Checks that what is referred to is declared, or comes from an earlier step."""
        try:
            for reference in references(value):
                if not reference.step:
                    self.used.add(reference.name)
                    if reference.name not in self.variables:
                        self.wrong(
                            line, f"there is no variable {reference.name!r}{near(reference.name, self.variables)}"
                        )
                elif reference.step not in self.results:
                    self.wrong(
                        line, f"no earlier step is called {reference.step!r}{near(reference.step, self.results)}"
                    )
                elif reference.name not in self.results[reference.step]:
                    fields = ", ".join(self.results[reference.step]) or "none"
                    self.wrong(line, f"step {reference.step} gives no {reference.name!r}; it gives: {fields}")
        except BadReference as error:
            self.wrong(line, str(error))


def parse(text: str, where: str) -> Playbook:
    """Reads a playbook. ``where``: its path, for messages.

    Raises ``PlaybookInvalid`` with every mistake and its line.
    """
    try:
        documents = list(load_yaml(text, where))
    except ConfigError as error:
        raise PlaybookInvalid(error.message, hint=error.hint) from None
    reading = _Reading()
    if len(documents) != 1 or not isinstance(documents[0], LinedDict):
        raise PlaybookInvalid(
            f"{where}: a playbook is one YAML mapping with {', '.join(_TOP)}",
            hint="failover playbook list names those that come along; failover playbook show NAME prints one",
        )
    playbook = _playbook(reading, documents[0], where, hashlib.sha256(text.encode()).hexdigest())
    if reading.problems:
        lines = [f"{where}:{line}: {what}" for line, what in sorted(reading.problems)]
        raise PlaybookInvalid("\n".join(lines), hint=f"{len(lines)} to mend; failover playbook validate {where}")
    return playbook


def _playbook(reading: _Reading, found: LinedDict, where: str, digest: str) -> Playbook:
    reading.keys(found, _TOP, "a playbook")
    name = reading.text(found, "name", needed=True)
    if name and _STEP_ID.fullmatch(name) is None:
        reading.wrong(found.lines["name"], "name has to be lower-case letters, digits and dashes")
    description = reading.text(found, "description", needed=True)
    declared = found.get("vars")
    if isinstance(declared, LinedDict):
        for key, value in declared.items():
            reading.variables[key] = _variable(reading, key, value, declared.lines[key])
    elif declared is not None:
        reading.wrong(found.lines["vars"], "vars has to be a mapping of names")
    listed = found.get("steps")
    steps: list[Step] = []
    if not isinstance(listed, list) or not listed:
        reading.wrong(found.lines.get("steps", 1), "steps has to be a list with at least one step")
        listed = []
    for entry in listed:
        if isinstance(entry, LinedDict) and entry:
            steps.append(_step(reading, entry))
        else:
            reading.wrong(found.lines["steps"], "each step has to be a mapping with id, title and uses")
    if isinstance(declared, LinedDict):
        for unused in sorted(set(reading.variables) - reading.used):
            reading.wrong(declared.lines[unused], f"variable {unused} is never used")
    return Playbook(
        name=name,
        description=description,
        variables=tuple(reading.variables.values()),
        steps=tuple(steps),
        source=where,
        digest=digest,
    )


def _variable(reading: _Reading, name: str, found: Any, line: int) -> Variable:
    if _NAME.fullmatch(name) is None:
        reading.wrong(line, f"{name!r} is no name of a variable: letters, digits and underscores")
    if not isinstance(found, LinedDict):
        # `name: value` is short for a default; its type is the value's own.
        return Variable(name=name, type=_type_of(found), default=found)
    reading.keys(found, _VARIABLE, "a variable")
    type_ = found.get("type", "text")
    if type_ not in _TYPES:
        reading.wrong(found.lines["type"], f"type has to be one of {', '.join(_TYPES)}")
        type_ = "text"
    required = reading.flag(found, "required")
    default: Value = None
    if "default" in found:
        if required:
            reading.wrong(found.lines["default"], "a required variable has no default")
        elif found["default"] is not None:
            try:
                default = value_of(found["default"], cast("VariableType", type_))
            except ValueError as error:
                reading.wrong(found.lines["default"], f"default {error}")
    elif not required:
        reading.wrong(line, f"variable {name} needs a default, or required: true")
    return Variable(
        name=name,
        type=cast("VariableType", type_),
        required=required,
        default=default,
        description=reading.text(found, "description"),
    )


def _type_of(value: Any) -> VariableType:
    if isinstance(value, bool):
        return "flag"
    if isinstance(value, int):
        return "number"
    return "list" if isinstance(value, list) else "text"


def _step(reading: _Reading, found: LinedDict) -> Step:
    line = _first_line(found)
    reading.keys(found, _STEP, "a step")
    step_id = reading.text(found, "id", needed=True)
    if step_id and _STEP_ID.fullmatch(step_id) is None:
        reading.wrong(found.lines["id"], "id has to be lower-case letters, digits and dashes, at most 40")
    if step_id in reading.results:
        reading.wrong(found.lines["id"], f"two steps are called {step_id!r}")
    when = _when(reading, found)
    confirm = _confirm(reading, found)
    action = _action(reading, found, "a step")
    on_failure = found.get("on_failure", "undo")
    if on_failure not in _ON_FAILURE:
        reading.wrong(found.lines["on_failure"], f"on_failure has to be one of {', '.join(_ON_FAILURE)}")
        on_failure = "undo"
    undo, keep = _undo(reading, found, step_id, action.uses)
    step = Step(
        id=step_id,
        title=reading.text(found, "title", needed=True),
        action=action,
        why=reading.text(found, "why"),
        when=when,
        timeout=reading.seconds(found, "timeout", 600.0),
        retry=_retry(reading, found),
        confirm=confirm,
        on_failure=cast("OnFailure", on_failure),
        undo=undo,
        keep=keep,
        final=reading.flag(found, "final"),
        line=line,
    )
    # Only now: a step does not refer to itself.
    reading.results.setdefault(step_id, _results(action.uses))
    return step


def _action(reading: _Reading, found: LinedDict, of: str) -> Action:
    uses = reading.text(found, "uses", needed=True)
    given = found.get("with")
    if given is None:
        given = LinedDict()
    if not isinstance(given, LinedDict):
        reading.wrong(found.lines["with"], "with has to be a mapping of parameters")
        given = LinedDict()
    if uses and uses not in KINDS:
        reading.wrong(found.lines["uses"], f"{of} cannot use {uses!r}{near(uses, KINDS)}")
    elif uses:
        _check_parameters(reading, found, uses, given)
    return Action(uses=uses, parameters=dict(given))


def _check_parameters(reading: _Reading, found: LinedDict, uses: str, given: LinedDict) -> None:
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind(uses).parameters)}
    reading.keys(given, fields, uses)
    for name, field in fields.items():
        if name in given:
            line = given.lines[name]
            before = len(reading.problems)
            reading.references(given[name], line)
            if len(reading.problems) == before and not _refers(given[name]):
                try:
                    convert(given[name], field.type)
                except msgspec.ValidationError as error:
                    reading.wrong(line, f"{name}: {misfit(error, field.type)}")
        elif field.required:
            reading.wrong(found.lines["uses"], f"{uses} needs {name!r} under with")


def _refers(value: Any) -> bool:
    return next(references(value), None) is not None


def _undo(reading: _Reading, found: LinedDict, step_id: str, uses: str) -> tuple[Action | None, bool]:
    undo = found.get("undo")
    if undo is None:
        return None, False
    if undo == "keep":
        return None, True
    if not isinstance(undo, LinedDict):
        reading.wrong(found.lines["undo"], "undo has to be keep, or a mapping with uses and with")
        return None, False
    reading.keys(undo, ("uses", "with"), "an undo")
    kept = reading.results.get(step_id)
    reading.results[step_id] = _results(uses)  # what the step gave may be needed to put it back
    action = _action(reading, undo, "an undo")
    if kept is None:
        del reading.results[step_id]
    else:
        reading.results[step_id] = kept
    return action, False


def _when(reading: _Reading, found: LinedDict) -> When | None:
    when = found.get("when")
    if when is None:
        return None
    line = found.lines["when"]
    if not isinstance(when, LinedDict):
        if not isinstance(when, bool) and not _refers_safely(when):
            reading.wrong(line, "when has to be {{ a reference }}, or a mapping with value and equals or differs")
            return None
        reading.references(when, line)
        return When(when)
    reading.keys(when, ("value", "equals", "differs"), "a condition")
    if "value" not in when or ("equals" in when) == ("differs" in when):
        reading.wrong(line, "a condition has value, and either equals or differs")
        return None
    for key, value in when.items():
        reading.references(value, when.lines[key])
    return When(when["value"], when.get("equals", when.get("differs")), "differs" in when)


def _refers_safely(value: Any) -> bool:
    try:
        return isinstance(value, str) and _refers(value)
    except BadReference:
        return True  # told with its line by whoever checks references


def _confirm(reading: _Reading, found: LinedDict) -> Confirm | None:
    confirm = found.get("confirm")
    if confirm is None:
        return None
    line = found.lines["confirm"]
    if isinstance(confirm, str):
        reading.references(confirm, line)
        return Confirm(confirm.strip())
    if not isinstance(confirm, LinedDict):
        reading.wrong(line, "confirm has to be a question, or a mapping with text and typed")
        return None
    reading.keys(confirm, ("text", "typed"), "a confirmation")
    for key, value in confirm.items():
        reading.references(value, confirm.lines[key])
    return Confirm(reading.text(confirm, "text", needed=True), reading.text(confirm, "typed", needed=True))


def _retry(reading: _Reading, found: LinedDict) -> Retry | None:
    retry = found.get("retry")
    if retry is None:
        return None
    line = found.lines["retry"]
    if isinstance(retry, LinedDict):
        reading.keys(retry, ("times", "wait"), "a retry")
        times, wait = retry.get("times"), reading.seconds(retry, "wait", 10.0)
    else:
        times, wait = retry, 10.0
    if not isinstance(times, int) or isinstance(times, bool) or not 1 <= times <= 100:
        reading.wrong(line, "retry has to be a number from 1 to 100, or a mapping with times and wait")
        return None
    return Retry(times, wait)


def _results(uses: str) -> Collection[str]:
    return kind(uses).results if uses in KINDS else ()


def _first_line(found: LinedDict) -> int:
    return min(found.lines.values(), default=1)
