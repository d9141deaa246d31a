"""Whether values fit the parameters of steps: before a run for what variables say, at a step for all of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import msgspec

from failover.errors import PlaybookInvalid, StepFailed
from failover.runbook.engine import holds
from failover.runbook.kinds import Kind, kind
from failover.runbook.playbook import Action, Playbook, Step, Value
from failover.runbook.references import Unresolved, references, resolve
from failover.runbook.variables import convert, misfit


def given(one: Kind[Any], parameters: Mapping[str, Any]) -> Any:
    """Makes a kind's parameters of resolved values. Raises ``StepFailed`` naming the one that does not fit."""
    types = _types(one)
    found = {}
    for name, value in parameters.items():
        field, type_ = types[name]
        try:
            found[field] = convert(value, type_)
        except msgspec.ValidationError as error:
            raise StepFailed(f"parameter {name}: {misfit(error, type_)}") from error
    return one.parameters(**found)


def require_fitting(playbook: Playbook, variables: Mapping[str, Value]) -> None:
    """Raises ``PlaybookInvalid`` where a variable's value does not fit a parameter of a step that may come.

    What refers to an earlier step's result is seen when that is there.
    """
    wrong: dict[str, str] = {}
    never: set[str] = set()
    for step in playbook.steps:
        if not may_come(step, variables, never):
            never.add(step.id)
            continue
        for text in _misfits(step, variables):
            wrong.setdefault(text, step.id)
    if wrong:
        said = "\n".join(f"{text} (step {where})" for text, where in wrong.items())
        raise PlaybookInvalid(said, hint=f"--var NAME=VALUE; failover playbook show {playbook.name}")


def may_come(step: Step, variables: Mapping[str, Value], never: Collection[str]) -> bool:
    """Says whether a step's turn may come; ``never``: earlier steps that are passed over and so have no result."""
    if step.when is None:
        return True
    if any(reference.step in never for reference in references([step.when.value, step.when.equals])):
        return False  # the engine passes over what asks for a result that is not there
    try:
        return holds(step.when, variables, {})
    except Unresolved:
        return True  # an earlier step decides


def _misfits(step: Step, variables: Mapping[str, Value]) -> Iterator[str]:
    actions: list[Action] = [action for action in (step.action, step.undo) if action is not None]
    for action in actions:
        types = _types(kind(action.uses))
        for name, written in action.parameters.items():
            try:
                convert(resolve(written, variables, {}), types[name][1])
            except Unresolved:
                continue
            except msgspec.ValidationError as error:
                yield f"{name} is {written}: {misfit(error, types[name][1])}"


def _types(one: Kind[Any]) -> dict[str, tuple[str, Any]]:
    """Gives each parameter's field and type, by the name it is written under."""
    return {field.encode_name: (field.name, field.type) for field in msgspec.structs.fields(one.parameters)}
