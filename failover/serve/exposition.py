"""Prometheus' text format (0.0.4), written for many series: label texts are made once and kept. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["counter", "gauge"]
Sample: TypeAlias = tuple[str, float]
"""Is a label text (see ``labels``) and a value."""

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
_SURROGATE = re.compile("[\ud800-\udfff]")


class Page:
    """Collects samples; those of one name stay together, however they come."""

    def __init__(self) -> None:
        self._families: dict[str, tuple[Kind, str, list[str]]] = {}

    def add(self, name: str, kind: Kind, text: str, samples: Iterable[Sample]) -> None:
        """Adds samples of a metric; ``text`` says what it is."""
        lines = self._families.setdefault(name, (kind, text, []))[2]
        lines.extend([f"{name}{where} {_number(value)}" for where, value in samples])

    def render(self) -> str:
        """Gives the page; metrics without a sample do not appear."""
        parts = []
        for name, (kind, text, lines) in self._families.items():
            if lines:
                parts.append(f"# HELP {name} {text}\n# TYPE {name} {kind}")
                parts.extend(lines)
        parts.append("")
        return "\n".join(parts)


def labels(pairs: Mapping[str, object]) -> str:
    """Gives the label text of a sample; values may hold anything."""
    return "{" + ",".join(f'{key}="{_escaped(str(value))}"' for key, value in pairs.items()) + "}" if pairs else ""


def _escaped(text: str) -> str:
    # What is no UTF-8 (such group names exist) would cost the whole page.
    return _SURROGATE.sub(lambda found: f"\\u{ord(found.group()):04x}", text).translate(_ESCAPES)


def _number(value: float) -> str:
    if isinstance(value, int):
        return str(int(value))
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(value)
