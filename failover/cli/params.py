"""Types of command line values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from datetime import datetime


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


class Moment(click.ParamType["datetime"]):
    """Is a point in time, such as ``2026-11-30T02:00:00Z``; UTC where no offset is given."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Reads a time; fails with what is accepted."""
        from failover.config.moment import parse_moment

        moment = parse_moment(str(value))
        if moment is None:
            self.fail(f"{value!r} is no time; write 2026-11-30T02:00:00Z", param, ctx)
        return moment


class Missing(click.ParamType[str]):
    """Is what ``--missing`` takes: a policy, ``at=TIME`` or ``ago=D``; times are read as UTC and written that way."""

    name = "policy"
    policies = ("leave", "earliest", "latest", "fail")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Reads a policy; fails with what is accepted."""
        kind, equals, text = str(value).partition("=")
        if not equals and kind in self.policies:
            return kind
        if not equals or kind not in ("at", "ago"):
            self.fail(f"{value!r} is none of leave, earliest, latest, at=TIME, ago=DURATION, fail", param, ctx)
        from failover.config.duration import parse_duration
        from failover.config.moment import parse_moment

        if kind == "ago":
            if parse_duration(text) is None:
                self.fail(f"{text!r} is no duration; write ago=90m or ago=2h", param, ctx)
            return f"ago={text.strip()}"
        moment = parse_moment(text)
        if moment is None:
            self.fail(f"{text!r} is no time; write at=2026-11-30T02:00:00Z", param, ctx)
        return f"at={moment.isoformat().replace('+00:00', 'Z')}"


DURATION = Duration()
MOMENT = Moment()
SOME_TIME = Duration(above_zero=True)
