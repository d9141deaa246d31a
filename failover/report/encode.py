"""Any value as JSON or YAML, safe to print: no raw control or format character comes out."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from failover.report.inert import inert_json

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./>-]*(?: [A-Za-z0-9_./>-]+)*")
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


def to_json(value: object) -> str:
    """Writes a value as indented JSON with a final newline; times are RFC 3339 in UTC."""
    return inert_json(msgspec.json.format(msgspec.json.encode(value), indent=2).decode()) + "\n"


def to_yaml(value: object) -> str:
    """Writes a value as YAML that versions 1.1 and 1.2 read alike.

    Every string that is no plain word is quoted: ``1e3``, ``0o14``, ``on`` and dates mean other
    things to one version or the other.
    """
    import yaml

    base = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

    class Dumper(base):  # type: ignore[misc, valid-type]
        """Keeps the string representer below from every other user of PyYAML in the process."""

    def string(dumper: Any, text: str) -> Any:
        plain = _PLAIN.fullmatch(text) is not None and text.lower() not in _WORDS
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else '"')

    Dumper.add_representer(str, string)
    # Through JSON, so that both formats name and write everything alike.
    plain = msgspec.json.decode(msgspec.json.encode(value))
    document: str = yaml.dump(plain, Dumper=Dumper, sort_keys=False, allow_unicode=False, width=10**9)
    return document
