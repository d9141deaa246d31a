"""Types of command line values."""

from __future__ import annotations

from typing import Any

import click


class Duration(click.ParamType[float]):
    """Is a length of time: ``90``, ``90s``, ``5m``, ``2h``, ``1h30m``; converted to seconds."""

    name = "duration"

    def __init__(self, *, above_zero: bool = False) -> None:
        self._above_zero = above_zero

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Reads a duration; fails with what is accepted."""
        if isinstance(value, (int, float)):
            return float(value)
        from failover.config.duration import parse_duration

        seconds = parse_duration(str(value))
        if seconds is None:
            self.fail(f"{value!r} is no duration; write 90, 90s, 5m or 2h", param, ctx)
        if self._above_zero and seconds <= 0:
            self.fail(f"{value!r} is no time at all; write 90, 90s, 5m or 2h", param, ctx)
        return seconds


DURATION = Duration()
SOME_TIME = Duration(above_zero=True)
