"""What earlier runs say, on the screen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from failover.report.inert import inert_line
from failover.report.table import labelled, table
from failover.report.values import count, duration, moment, things
from failover.runbook.history import Drill, Forecast, History

_SHOWN = 10
_MEASURES = {
    "rto_seconds": "time until groups stand",
    "missing_records": "records missing",
    "missing_seconds": "age of the oldest missing one",
    "ready": "groups ready",
}


def history_blocks(history: History, *, width: int = 100) -> list[str]:
    """Tells the forecast of the next run and how drills went; nothing where there was no run."""
    blocks = [forecast_text(history.forecast, width=width)] if history.forecast is not None else []
    if history.drills:
        blocks.append(drills_text(history.drills, width=width))
        blocks += [line] if (line := trend_text(history.trend, width=width)) else []
    return blocks


def forecast_text(found: Forecast, *, width: int = 100) -> str:
    """Says how long a run takes, going by earlier ones."""
    took = f"Takes about {duration(found.seconds)} by {things(found.runs, 'earlier run')}"
    if found.runs > 1:
        took += f" ({duration(found.shortest)} to {duration(found.longest)})"
    failed = f"; {things(found.failed, 'more run')} did not come to the end" if found.failed else ""
    slow = max(found.steps.items(), key=lambda step: step[1], default=None)
    longest = f"; longest step {inert_line(slow[0])}, {duration(slow[1])}" if slow and slow[1] >= 1 else ""
    return _wrapped(f"{took}{longest}{failed}.", width)


def drills_text(drills: Sequence[Drill], *, width: int = 100) -> str:
    """Lists drills, a line each, newest first."""
    rows = [
        (
            each.run,
            moment(each.started)[:16],
            each.outcome,
            _seconds(each.rto_seconds),
            count(each.missing_records) if each.missing_records is not None else "",
            _seconds(each.missing_seconds),
            "" if each.ready is None else f"{each.ready} of {each.ready + (each.refused or 0)}",
            count(each.compared) if each.compared is not None else "",
        )
        for each in drills[:_SHOWN]
    ]
    return table(("DRILL", "STARTED", "OUTCOME", "RTO", "MISSING", "OLDEST", "READY", "COMPARED"), rows, width=width)


def trend_text(trend: Mapping[str, str], *, width: int = 100) -> str:
    """Says what became better or worse with the newest drill, "" where there is nothing to compare."""
    by: dict[str, list[str]] = {}
    for name, change in trend.items():
        by.setdefault(change, []).append(_MEASURES[name])
    said = [f"{change}: {', '.join(by[change])}" for change in ("worse", "better", "the same") if change in by]
    return _wrapped(f"The newest beside those before: {'; '.join(said)}.", width) if said else ""


def _wrapped(text: str, width: int) -> str:
    return "\n".join(labelled("", text, width=width, indent=0))


def _seconds(found: float | None) -> str:
    return "" if found is None else duration(found)
