"""References in a playbook's values: ``{{ name }}`` and ``{{ steps.ID.FIELD }}``; nothing else is evaluated."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from failover.runbook.playbook import Value

_BRACES = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESULT = re.compile(r"steps\.([a-z][a-z0-9-]*)\.([a-z_][a-z0-9_]*)")


class Reference(NamedTuple):
    """Is one reference: to a variable (``step`` is "") or to a field of an earlier step's result."""

    name: str
    step: str = ""

    def __str__(self) -> str:
        return f"steps.{self.step}.{self.name}" if self.step else self.name


class BadReference(ValueError):
    """Says that what stands between the braces is no reference."""


class Unresolved(LookupError):
    """Says that nothing is known under a reference, because its step was skipped or failed."""


def references(value: Any) -> Iterator[Reference]:
    """Yields the references in a value, lists and mappings included. Raises ``BadReference``."""
    if isinstance(value, str):
        for match in _BRACES.finditer(value):
            yield _reference(match[1])
    elif isinstance(value, Mapping):
        for entry in value.values():
            yield from references(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from references(entry)


def resolve(value: Any, variables: Mapping[str, Value], results: Mapping[str, Mapping[str, Value]]) -> Any:
    """Puts what references stand for in their place. Raises ``Unresolved``.

    A text that is one reference and nothing else becomes the value itself, with its type; within a text it is written
    out: lists with commas, flags as ``true`` and ``false``.
    """
    if isinstance(value, str):
        whole = _BRACES.fullmatch(value.strip())
        if whole is not None:
            return _look_up(_reference(whole[1]), variables, results)
        return _BRACES.sub(lambda match: _text(_look_up(_reference(match[1]), variables, results)), value)
    if isinstance(value, Mapping):
        return {key: resolve(entry, variables, results) for key, entry in value.items()}
    if isinstance(value, list):
        return [resolve(entry, variables, results) for entry in value]
    return value


def _reference(text: str) -> Reference:
    text = text.strip()
    if (found := _RESULT.fullmatch(text)) is not None:
        return Reference(found[2], found[1])
    if _VARIABLE.fullmatch(text):
        return Reference(text)
    raise BadReference(f"{{{{ {text} }}}} is no reference: write {{{{ variable }}}} or {{{{ steps.ID.FIELD }}}}")


def _look_up(reference: Reference, variables: Mapping[str, Value], results: Mapping[str, Mapping[str, Value]]) -> Value:
    try:
        return results[reference.step][reference.name] if reference.step else variables[reference.name]
    except KeyError:
        raise Unresolved(f"nothing is known of {reference}") from None


def _text(value: Value) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ",".join(value)
    return "" if value is None else str(value)
