"""The values of variables and of steps' parameters: what was written or typed, made into their types."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Literal, get_args, get_origin

import msgspec

from failover.config.duration import parse_duration
from failover.errors import PlaybookInvalid
from failover.runbook.playbook import Playbook, Value, VariableType


def value_of(value: Any, type_: VariableType) -> Value:
    """Makes a variable's value of what was written or typed. Raises ``ValueError``, its text without a subject."""
    match type_:
        case "text":
            if isinstance(value, (str, int)) and not isinstance(value, bool):
                return str(value)
            raise ValueError("has to be a text")
        case "number":
            try:
                number = float(str(value))
            except ValueError:
                raise ValueError("has to be a number") from None
            return int(number) if number == int(number) else number
        case "flag":
            if isinstance(value, bool):
                return value
            if value in ("true", "false"):
                return bool(value == "true")
            raise ValueError("has to be true or false")
        case "duration":
            seconds = parse_duration(str(value))
            if seconds is None:
                raise ValueError("has to be a duration such as 90s, 5m or 2h")
            return seconds
        case "list":
            if isinstance(value, str):
                return [part.strip() for part in value.split(",") if part.strip()]
            if isinstance(value, list) and all(isinstance(part, (str, int)) for part in value):
                return [str(part) for part in value]
            raise ValueError("has to be a list of texts")


def convert(value: Any, type_: Any) -> Any:
    """Makes a parameter of what was written: durations and numbers may be texts. Raises ``msgspec.ValidationError``."""
    if type_ is float:
        seconds = parse_duration(str(value))
        if seconds is None:
            raise msgspec.ValidationError("has to be a duration such as 90s, 5m or 2h")
        return seconds
    return msgspec.convert(value, type_, strict=False)


def misfit(error: msgspec.ValidationError, type_: Any) -> str:
    """Says why ``convert`` took no value of this type, with the nearest of the words it knows."""
    words = re.match(r"Invalid enum value '(.*?)'", str(error))
    if words is not None:
        choices = (get_args(each) for each in (type_, *get_args(type_)) if get_origin(each) is Literal)
        return f"there is no {words[1]!r}{near(words[1], next(choices, ()))}"
    return str(error).removeprefix("Expected ").split(" - at ")[0]


def variables_of(playbook: Playbook, given: Mapping[str, str]) -> dict[str, Value]:
    """Makes the values a run starts with of what ``--var`` said and the defaults.

    Raises ``PlaybookInvalid`` naming what is unknown, missing or no value of its type.
    """
    known = {variable.name: variable for variable in playbook.variables}
    wrong = [f"{playbook.name} has no variable {name!r}{near(name, known)}" for name in given if name not in known]
    found: dict[str, Value] = {}
    for variable in playbook.variables:
        if variable.name in given:
            try:
                found[variable.name] = value_of(given[variable.name], variable.type)
            except ValueError as error:
                wrong.append(f"variable {variable.name} {error}")
        elif variable.required:
            said = f" ({variable.description})" if variable.description else ""
            wrong.append(f"variable {variable.name} is needed{said}")
        else:
            found[variable.name] = variable.default
    if wrong:
        raise PlaybookInvalid("\n".join(wrong), hint=f"--var NAME=VALUE; failover playbook show {playbook.name}")
    return found


def near(name: str, known: Iterable[str]) -> str:
    """Offers the nearest of the known names, else all of them; to be put behind a message."""
    found = get_close_matches(name, known, 1)
    return f"; did you mean {found[0]!r}?" if found else f"; known are: {', '.join(known)}" if known else ""
