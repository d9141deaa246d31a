"""A JSON Schema of playbooks, for editors; ``failover.runbook.parse`` is what decides."""

from __future__ import annotations

from typing import Any

import msgspec

from failover.runbook.kinds import KINDS, kind

_DURATION = {"type": ["string", "integer"], "description": "90s, 5m, 2h"}
_REFERENCE = {"type": "string", "pattern": r"\{\{.*\}\}"}


def playbook_schema() -> dict[str, Any]:
    """Builds the schema; a kind's parameters come from the types it is given with."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A failover playbook",
        "type": "object",
        "additionalProperties": False,
        "required": ["name", "description", "steps"],
        "properties": {
            "name": {"type": "string", "pattern": "^[a-z][a-z0-9-]*$"},
            "description": {"type": "string"},
            "vars": {"type": "object", "additionalProperties": {"anyOf": [_variable(), {"type": _PLAIN}]}},
            "steps": {"type": "array", "minItems": 1, "items": _step()},
        },
    }


_PLAIN = ["string", "number", "boolean", "array", "null"]


def _variable() -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "type": {"enum": ["text", "number", "flag", "duration", "list"]},
            "required": {"type": "boolean"},
            "default": {"type": _PLAIN},
            "description": {"type": "string"},
        },
    }


def _step() -> dict[str, Any]:
    question = {
        "type": "object",
        "additionalProperties": False,
        "required": ["text", "typed"],
        "properties": {"text": {"type": "string"}, "typed": {"type": "string"}},
    }
    condition = {
        "type": "object",
        "additionalProperties": False,
        "required": ["value"],
        "properties": {"value": {}, "equals": {}, "differs": {}},
    }
    tries = {
        "type": "object",
        "additionalProperties": False,
        "required": ["times"],
        "properties": {"times": {"type": "integer", "minimum": 1, "maximum": 100}, "wait": _DURATION},
    }
    undo = {
        "type": "object",
        "additionalProperties": False,
        "required": ["uses"],
        "properties": {"uses": {"enum": list(KINDS)}, "with": {"type": "object"}},
    }
    return {
        "type": "object",
        "additionalProperties": False,
        "required": ["id", "title", "uses"],
        "properties": {
            "id": {"type": "string", "pattern": "^[a-z][a-z0-9-]{0,39}$"},
            "title": {"type": "string"},
            "why": {"type": "string"},
            "uses": {"enum": list(KINDS)},
            "with": {"type": "object"},
            "when": {"anyOf": [{"type": "boolean"}, _REFERENCE, condition]},
            "timeout": _DURATION,
            "retry": {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 100}, tries]},
            "confirm": {"anyOf": [{"type": "string"}, question]},
            "on_failure": {"enum": ["stop", "continue", "undo"]},
            "undo": {"anyOf": [{"const": "keep"}, undo]},
            "final": {"type": "boolean"},
        },
        "allOf": [
            {"if": {"properties": {"uses": {"const": name}}}, "then": {"properties": {"with": _parameters(name)}}}
            for name in KINDS
        ],
    }


def _parameters(name: str) -> dict[str, Any]:
    fields = msgspec.structs.fields(kind(name).parameters)
    return {
        "type": "object",
        "additionalProperties": False,
        "required": [field.encode_name for field in fields if field.required],
        "properties": {
            field.encode_name: {"anyOf": [_DURATION if field.type is float else _type(field.type), _REFERENCE]}
            for field in fields
        },
    }


def _type(type_: Any) -> dict[str, Any]:
    return {} if type_ is Any else msgspec.json.schema(type_)
