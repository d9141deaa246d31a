"""Any value as JSON or YAML, safe to print: no raw control or format character comes out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from failover.report.inert import inert_json

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./>-]*(?: [A-Za-z0-9_./>-]+)*")
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def to_json(value: object) -> str:
    """Writes a value as indented JSON with a final newline; times are RFC 3339 in UTC."""
    return inert_json(msgspec.json.format(msgspec.json.encode(value), indent=2).decode()) + "\n"


def to_json_line(value: object) -> str:
    """Writes a value as one line of JSON, for streams."""
    return inert_json(msgspec.json.encode(value).decode()) + "\n"


def to_yaml(value: object) -> str:
    """Writes a value as YAML that versions 1.1 and 1.2 read alike.

    Every string that is no plain word is quoted: ``1e3``, ``0o14``, ``on`` and dates mean other
    things to one version or the other. Written here rather than by PyYAML, which takes seconds
    for a plan of a thousand groups.
    """
    # Through JSON, so that both formats name and write everything alike.
    return "\n".join(_block(msgspec.json.decode(msgspec.json.encode(value)), "")) + "\n"


def _block(value: Any, indent: str) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _item(f"{indent}{_scalar(key)}:", item, indent)
    elif isinstance(value, list) and value:
        for item in value:
            if isinstance(item, (dict, list)) and item:
                first, *rest = _block(item, indent + "  ")
                yield f"{indent}- {first.lstrip(' ')}"
                yield from rest
            else:
                yield f"{indent}- {_scalar(item)}"
    else:
        yield indent + _scalar(value)


def _item(start: str, item: Any, indent: str) -> Iterator[str]:
    if isinstance(item, (dict, list)) and item:
        yield start
        yield from _block(item, indent + "  ")
    else:
        yield f"{start} {_scalar(item)}"


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
            return value
        return '"' + "".join(map(_quoted, value)) + '"'
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (dict, list)):
        return "{}" if isinstance(value, dict) else "[]"
    # YAML 1.1 takes a number with an exponent for a float only where it has a point and a sign.
    text = repr(value)
    if "e" in text and "." not in text:
        text = text.replace("e", ".0e")
    return text


def _quoted(char: str) -> str:
    if char in _SHORT:
        return _SHORT[char]
    if char.isprintable():
        return char
    return f"\\U{ord(char):08x}" if ord(char) > 0xFFFF else f"\\u{ord(char):04x}"
