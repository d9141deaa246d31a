"""Values as JSON and back: plans and executions as the commands write them, snapshots, translated offsets."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar, overload

import msgspec

from failover.errors import UsageError
from failover.model.execution import Execution
from failover.model.names import TopicPartition
from failover.model.plan import Plan
from failover.model.snapshot import Snapshot
from failover.report.encode import to_json as written

T = TypeVar("T", bound=msgspec.Struct)

SNAPSHOT = "failover.snapshot"
_KINDS: Mapping[str, type[msgspec.Struct]] = {
    "failover.plan": Plan,
    "failover.execution": Execution,
    SNAPSHOT: Snapshot,
}


def to_json(value: msgspec.Struct) -> str:
    """Writes a value as JSON: a plan or an execution as the commands do, a snapshot, any other of this package.

    Where partitions are keys they are written as ``topic-3``.
    """
    if isinstance(value, Plan | Execution):
        return written(value)
    plain = _plain(value)
    return written({"kind": SNAPSHOT, **plain} if isinstance(value, Snapshot) else plain)


@overload
def from_json(text: str | bytes) -> Plan | Execution | Snapshot: ...
@overload
def from_json(text: str | bytes, type_: type[T]) -> T: ...
def from_json(text: str | bytes, type_: type[msgspec.Struct] | None = None) -> msgspec.Struct:
    """Reads what ``to_json`` wrote; unknown fields are ignored.

    ``type_``: None: the JSON itself says whether it is a plan, an execution or a snapshot. A plan that was edited is
    refused (its fingerprint no longer fits). Raises ``UsageError``, ``PlanInvalid`` for what is none of them.
    """
    try:
        data = msgspec.json.decode(text)
        wanted = type_ or _KINDS[data["kind"]]
        if wanted is Plan:
            from failover.planning.plan_file import decode_plan

            return decode_plan(text.encode() if isinstance(text, str) else text)
        found: msgspec.Struct = _typed(wanted, data)
    except (msgspec.MsgspecError, KeyError, TypeError, AttributeError, ValueError) as error:
        kinds = ", ".join(_KINDS)
        raise UsageError(f"this is no JSON of this package: {error}", hint=f"wanted: {kinds}") from error
    return found


def _plain(value: Any) -> Any:
    """Turns a value into what JSON can hold; only mappings with partitions as keys need help."""
    if isinstance(value, msgspec.Struct):
        config = value.__struct_config__
        tag = {} if config.tag is None else {config.tag_field: config.tag}
        fields = msgspec.structs.fields(type(value))
        return {**tag, **{field.encode_name: _plain(getattr(value, field.name)) for field in fields}}
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, frozenset | set):
        return sorted(_plain(item) for item in value)
    return msgspec.to_builtins(value)


def _typed(wanted: Any, data: Any) -> Any:
    """Makes a value of a type from what ``_plain`` made of it."""
    if isinstance(wanted, type) and issubclass(wanted, msgspec.Struct):
        fields = {
            field.name: _typed(field.type, data[field.encode_name])
            for field in msgspec.structs.fields(wanted)
            if field.encode_name in data
        }
        return wanted(**fields)
    origin, arguments = typing.get_origin(wanted), typing.get_args(wanted)
    if origin in (typing.Union, types.UnionType):
        return _alternative(arguments, data)
    if origin is dict:
        key, item = arguments
        return {_key(key, name): _typed(item, found) for name, found in data.items()}
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        return tuple(_typed(arguments[0], found) for found in data)
    return msgspec.convert(data, wanted)


def _alternative(arguments: tuple[Any, ...], data: Any) -> Any:
    if data is None and type(None) in arguments:
        return None
    rest = [one for one in arguments if one is not type(None)]
    return _typed(rest[0], data) if len(rest) == 1 else msgspec.convert(data, typing.Union[tuple(rest)])  # noqa: UP007


def _key(kind: Any, name: str) -> Any:
    if kind is TopicPartition:
        topic, _, number = name.rpartition("-")
        return TopicPartition(topic, int(number))
    return name if kind is str else msgspec.convert(name, kind, strict=False)
