"""Charts as geometry, drawn by the templates: bars on one scale, and steps over time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from failover.report.inert import inert_line
from failover.report.values import count, duration, things

SHOWN = 12
STEPS = 400
"""Points of a curve at most: more than a screen shows."""
_TICKS = (0.001, 0.01, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 21600, 86400)


class Bar(NamedTuple):
    """Is one bar: ``share`` of the longest one in percent."""

    tone: str
    share: float
    text: str


class BarRow(NamedTuple):
    """Is one thing that is measured, with a bar for each series."""

    label: str
    bars: tuple[Bar, ...]


class BarChart(NamedTuple):
    """Is a chart of horizontal bars. ``legend``: (tone, name) of each series; ``note`` says what is not in it."""

    title: str
    text: str
    legend: tuple[tuple[str, str], ...]
    rows: list[BarRow]
    note: str = ""


def bars(
    title: str,
    text: str,
    series: Sequence[tuple[str, str]],
    measured: Iterable[tuple[str, Sequence[int]]],
    *,
    noun: str,
    note: str = "",
) -> BarChart:
    """Draws the largest of what is measured, the rest in words. ``series``: (tone, name), a number each a row."""
    ordered = sorted(measured, key=lambda item: (-max(item[1]), -sum(item[1]), item[0]))
    shown, rest = ordered[:SHOWN], ordered[SHOWN:]
    top = max((number for _, numbers in shown for number in numbers), default=0)
    rows = [
        BarRow(
            inert_line(label),
            tuple(
                Bar(tone, round(100 * number / top, 2) if top else 0.0, count(number))
                for (tone, _), number in zip(series, numbers, strict=True)
            ),
        )
        for label, numbers in shown
    ]
    if rest:
        sums = [sum(numbers[i] for _, numbers in rest) for i in range(len(series))]
        more = ", ".join(
            f"{name}: {count(number)}" if len(series) > 1 else count(number)
            for (_, name), number in zip(series, sums, strict=True)
        )
        folded = f"{len(rest):,} more {noun}{'' if len(rest) == 1 else 's'} together: {more}."
        note = f"{folded} {note}".strip()
    return BarChart(title, text, tuple(series) if len(series) > 1 else (), rows, note)


class Tick(NamedTuple):
    """Is a mark on the time axis, at ``x`` percent of its width."""

    x: float
    text: str


class Timeline(NamedTuple):
    """Is groups done over time.

    ``line`` and ``area``: points in a box of 1000 by 100; ``batches`` and ``troubles``: x in percent.
    """

    title: str
    text: str
    line: str
    area: str
    ticks: list[Tick]
    top: str
    batches: list[float]
    troubles: list[float]


def timeline(
    started: datetime, finished: datetime | None, done: Sequence[datetime], troubled: Sequence[datetime]
) -> Timeline | None:
    """Draws when groups were done and when one was refused, failed or left unknown; None when nothing has a time.

    Where more than half of the time went by before the first of them, the axis begins there: an
    execution first watches that commits stand still.
    """
    seconds = sorted(max(0.0, (moment - started).total_seconds()) for moment in done)
    odd = [max(0.0, (moment - started).total_seconds()) for moment in troubled]
    if not seconds and not odd:
        return None
    first = min([*seconds[:1], *odd])
    end = max([*seconds[-1:], *odd, (finished - started).total_seconds() if finished is not None else 0.0, 0.001])
    begin = first if first > end / 2 else 0.0
    span = max(end - begin, 0.001)
    at = [(moment - begin) / span for moment in seconds]
    points: list[tuple[float, float]] = [(0.0, 100.0)]
    for number, x in enumerate(at, 1):
        last = number == len(at)
        if last or round(at[number] * STEPS) != round(x * STEPS):
            points += [(x * 1000, points[-1][1]), (x * 1000, 100 - 100 * number / len(at))]
    points.append((1000.0, points[-1][1]))
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    took = seconds[-1] - seconds[0] if seconds else 0.0
    together = "all at once" if took < 0.001 else f"all within {_seconds(took)}"
    after = f", the first {_seconds(seconds[0])} after the beginning, {together}" if seconds else ""
    return Timeline(
        title="When each group was committed",
        text=f"{things(len(done), 'group')} done{after}. Each mark below the line is a moment of commits.",
        line=line,
        area=f"0,100 {line} 1000,100",
        ticks=_ticks(begin, span),
        top=count(len(done)),
        batches=_moments(at),
        troubles=_moments((moment - begin) / span for moment in odd),
    )


def _moments(shares: Iterable[float]) -> list[float]:
    return sorted({round(min(1.0, max(0.0, share)) * STEPS) * 100 / STEPS for share in shares})


def _ticks(begin: float, span: float) -> list[Tick]:
    step = next((tick for tick in _TICKS if span / tick <= 5), span / 4)
    marks = [0.0]
    # Not nearer to the end than a label is wide.
    while marks[-1] + step <= span * 0.85:
        marks.append(marks[-1] + step)
    return [Tick(round(100 * mark / span, 2), f"+{_seconds(begin + mark)}") for mark in [*marks, span]]


def _seconds(seconds: float) -> str:
    """Writes a length of time to the millisecond where it is short."""
    if 0 < seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.3f} s" if 0 < seconds < 60 else duration(seconds)
