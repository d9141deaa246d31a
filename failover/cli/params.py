"""Types of command line values."""

from __future__ import annotations

import re
from typing import Any

import click

_UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|)")


class Duration(click.ParamType[float]):
    """Is a length of time: ``90``, ``90s``, ``5m``, ``2h``, ``1h30m``; converted to seconds."""

    name = "duration"

    def __init__(self, *, above_zero: bool = False) -> None:
        self._above_zero = above_zero

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Reads a duration; fails with what is accepted."""
        if isinstance(value, (int, float)):
            return float(value)
        text = str(value).strip().lower()
        parts = _PART.findall(text)
        units = [unit for _, unit in parts]
        if "".join(number + unit for number, unit in parts) != text or (units != [""] and "" in units) or not units:
            self.fail(f"{value!r} is no duration; write 90, 90s, 5m or 2h", param, ctx)
        seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
        if self._above_zero and seconds <= 0:
            self.fail(f"{value!r} is no time at all; write 90, 90s, 5m or 2h", param, ctx)
        return seconds


DURATION = Duration()
SOME_TIME = Duration(above_zero=True)
