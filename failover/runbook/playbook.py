"""A playbook as values: what its file says, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

VariableType = Literal["text", "number", "flag", "duration", "list"]
OnFailure = Literal["stop", "continue", "undo"]
Value = str | int | float | bool | list[str] | None
"""What a variable or a result holds; durations are seconds."""


class Variable(msgspec.Struct, frozen=True, kw_only=True):
    """Is one value a playbook is run with: by ``--var``, else its default.

    ``required``: there is no default, so it has to be given.
    """

    name: str
    type: VariableType = "text"
    required: bool = False
    default: Value = None
    description: str = ""


class Confirm(msgspec.Struct, frozen=True):
    """Is a question before a step. ``typed``: what has to be typed to go ahead, "" for a plain yes."""

    text: str
    typed: str = ""


class Retry(msgspec.Struct, frozen=True):
    """Says how often a step that failed is begun again, and after how many seconds."""

    times: int
    wait: float = 10.0


class When(msgspec.Struct, frozen=True):
    """Is the condition of a step: ``value`` is true, or equals ``equals``; ``negated``: is not.

    ``value`` and ``equals`` may hold references.
    """

    value: Any
    equals: Any = True
    negated: bool = False


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """Is what a step does: the kind of step and its parameters, in which references may stand."""

    uses: str
    parameters: Mapping[str, Any] = {}


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """Is one step.

    ``timeout``: seconds it may take, each time it is begun. ``undo``: what puts back what it did, in place of what its
    kind would do; ``keep``: nothing does. ``final``: once it has begun there is no way back: nothing is undone any
    more. ``line``: where it begins in the file.
    """

    id: str
    title: str
    action: Action
    why: str = ""
    when: When | None = None
    timeout: float = 600.0
    retry: Retry | None = None
    confirm: Confirm | None = None
    on_failure: OnFailure = "undo"
    undo: Action | None = None
    keep: bool = False
    final: bool = False
    line: int = 0


class Playbook(msgspec.Struct, frozen=True, kw_only=True):
    """Is a playbook. ``source``: the path it was read from. ``digest``: of its text."""

    name: str
    description: str
    variables: tuple[Variable, ...]
    steps: tuple[Step, ...]
    source: str = ""
    digest: str = ""

    def step(self, step_id: str) -> Step:
        """Gives a step by its id; ``KeyError`` when there is none."""
        for step in self.steps:
            if step.id == step_id:
                return step
        raise KeyError(step_id)
