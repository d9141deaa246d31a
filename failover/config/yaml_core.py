"""YAML as version 1.2 reads it: its core types only, so that ``on``, ``no`` and ``1:30`` stay texts.

PyYAML follows version 1.1, where a group called ``no`` would be false and a duration ``1:30`` the number 90.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import yaml

from failover.errors import ConfigError

_TAG = "tag:yaml.org,2002:"
# YAML 1.2, section 10.3.2.
_CORE: Final = (
    (f"{_TAG}bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), "tTfF"),
    (f"{_TAG}null", re.compile(r"^(?:~|null|Null|NULL|)$"), "~nN"),
    (f"{_TAG}int", re.compile(r"^(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)$"), "-+0123456789"),
    (
        f"{_TAG}float",
        re.compile(
            r"^(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
        ),
        "-+0123456789.",
    ),
    (f"{_TAG}merge", re.compile(r"^<<$"), "<"),
)


class LinedDict(dict[str, Any]):
    """Is a mapping that knows on which line each of its keys stands, counted from 1."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: dict[str, int] = {}


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - PyYAML's own form


for _tag, _pattern, _first in _CORE:
    for _char in _first:
        _Loader.yaml_implicit_resolvers.setdefault(_char, []).append((_tag, _pattern))
_Loader.yaml_implicit_resolvers[""] = [(f"{_TAG}null", _CORE[1][1])]


def _number(loader: _Loader, node: yaml.ScalarNode) -> Any:
    text = str(loader.construct_scalar(node))
    if text.startswith(("0o", "0x")):
        return int(text, 0)
    # As a Kafka setting a number stays as it is written: 010 and +1 are texts to some of Kafka's parsers.
    return int(text) if str(int(text)) == text else text


def _float(loader: _Loader, node: yaml.ScalarNode) -> str:
    # Kafka's settings are texts, and 1.10 is a version to somebody: what was written is kept.
    return str(loader.construct_scalar(node))


def _mapping(loader: _Loader, node: yaml.MappingNode) -> LinedDict:
    loader.flatten_mapping(node)
    found = LinedDict()
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        key = str(key).lower() if isinstance(key, bool) else str(key)
        if key in found:
            raise yaml.constructor.ConstructorError(None, None, f"{key} is written twice", key_node.start_mark)
        found.lines[key] = key_node.start_mark.line + 1
        found[key] = loader.construct_object(value_node, deep=True)
    return found


_Loader.add_constructor(f"{_TAG}int", _number)
_Loader.add_constructor(f"{_TAG}float", _float)
_Loader.add_constructor(f"{_TAG}map", _mapping)


def load_yaml(text: str, where: str) -> Iterator[Any]:
    """Yields the documents of a YAML text; mappings are ``LinedDict``, floats stay the texts they are.

    Raises ConfigError with the line, without quoting the text, which may hold secrets.
    """
    try:
        yield from yaml.load_all(text, _Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{where}:{mark.line + 1}" if mark is not None else where
        raise ConfigError(
            f"{place}: is no YAML: {getattr(error, 'problem', None) or 'it cannot be parsed'}",
            hint="a tab may not indent, and a text with ': ' or ' #' in it wants quotes",
        ) from None
