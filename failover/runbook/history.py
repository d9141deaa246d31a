"""What earlier runs say: how long the next one will take, and how drills went from week to week."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from statistics import median

import msgspec

from failover.errors import FailoverError
from failover.runbook.engine import Status
from failover.runbook.playbook import Playbook, Value
from failover.runbook.record import RunRecord, StepRecord, read_run, record_of
from failover.state.folder import StateFolder
from failover.state.playbook_runs import JOURNAL, RECORD, all_playbook_runs

_LOOKED_AT = 300
_COUNTED = 30
"""Newest runs of one playbook that count."""


class Drill(msgspec.Struct, frozen=True, kw_only=True):
    """Is one run with a step that tried a plan out.

    ``rto_seconds``: the look at both clusters, the commits and the first records, without moving applications.
    ``missing_records``, ``missing_seconds``: what the target lacked (RPO). None where the run did not come so far.
    """

    run: str
    started: datetime
    outcome: str
    rto_seconds: float | None = None
    missing_records: int | None = None
    missing_seconds: float | None = None
    ready: int | None = None
    refused: int | None = None
    compared: int | None = None


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """Says how long a playbook took, in seconds, waiting for people included; ``steps``: the median of each.

    ``runs``: how many came to their end. ``failed``: how many did not, of as many newest ones.
    """

    runs: int
    failed: int
    seconds: float
    shortest: float
    longest: float
    steps: Mapping[str, float]


class History(msgspec.Struct, frozen=True):
    """Is what earlier runs of one playbook say, drills newest first. ``forecast``: None without a run that ended."""

    forecast: Forecast | None
    drills: Sequence[Drill]
    trend: Mapping[str, str]


def earlier_runs(state: StateFolder, warn: Callable[[str], None], name: str) -> list[RunRecord]:
    """Reads the newest runs of a playbook, newest first; ``warn`` hears of unreadable ones."""
    found: list[RunRecord] = []
    for number, folder in enumerate(all_playbook_runs(state)):
        if number >= _LOOKED_AT or len(found) >= _COUNTED:
            break
        try:
            record = _record(folder)
        except FailoverError as error:
            warn(f"{folder.name} is passed over: {error.message}")
            continue
        if record.playbook == name:
            found.append(record)
    return found


def _record(folder: Path) -> RunRecord:
    """Reads a run's record, made anew where its journal went on after it was written."""
    written = folder / RECORD
    try:
        if written.stat().st_mtime_ns >= (folder / JOURNAL).stat().st_mtime_ns:
            return msgspec.json.decode(written.read_bytes(), type=RunRecord)
    except (OSError, msgspec.DecodeError):
        pass  # of another version, or not closed: the journal tells
    return record_of(*read_run(folder))


def durations(records: Iterable[RunRecord]) -> dict[str, list[float]]:
    """Gathers how long each step of earlier runs took that were done, oldest first."""
    found: dict[str, list[float]] = {}
    for record in sorted(records, key=lambda each: each.started):
        for step in record.steps:
            if step.status == Status.DONE.value and step.seconds is not None:
                found.setdefault(step.id, []).append(step.seconds)
    return found


def history_of(playbook: Playbook, records: Sequence[RunRecord]) -> History:
    """Sums up earlier runs of a playbook, given newest first."""
    found = drills(records)
    return History(forecast(playbook, records), found, trend(found))


def forecast(playbook: Playbook, records: Sequence[RunRecord]) -> Forecast | None:
    """Says how long the next run will take by those that came to their end; None where there is none."""
    ended = [record for record in records if record.outcome in ("done", "partly")]
    if not ended:
        return None
    took = durations(ended)
    sums = [sum(step.seconds for step in record.steps if step.seconds is not None) for record in ended]
    return Forecast(
        runs=len(ended),
        failed=len(records) - len(ended),
        seconds=round(median(sums), 1),
        shortest=round(min(sums), 1),
        longest=round(max(sums), 1),
        steps={step.id: round(median(took[step.id]), 1) for step in playbook.steps if step.id in took},
    )


def drills(records: Iterable[RunRecord]) -> list[Drill]:
    """Finds the runs that tried a plan out, in the given order."""
    return [drill for record in records if (drill := _drill(record)) is not None]


def _drill(record: RunRecord) -> Drill | None:
    shadow = next((step for step in record.steps if step.uses == "group-shadow"), None)
    if shadow is None:
        return None
    before = record.steps[: record.steps.index(shadow)]
    plan = next((step for step in reversed(before) if step.uses == "plan" and _done(step)), None)
    planned: Mapping[str, Value] = plan.result if plan is not None else {}
    found: Mapping[str, Value] = shadow.result if _done(shadow) else {}
    ready = _number(found, "ready_seconds")
    looked = plan.seconds if plan is not None else None
    return Drill(
        run=record.id,
        started=record.started,
        outcome=record.outcome,
        rto_seconds=round(looked + ready, 1) if looked is not None and ready is not None else None,
        missing_records=_whole(found, "missing_records"),
        missing_seconds=_number(found, "missing_seconds"),
        ready=_whole(planned, "ready"),
        refused=_whole(planned, "refused"),
        compared=_whole(found, "compared"),
    )


def _done(step: StepRecord) -> bool:
    return step.status == Status.DONE.value


def _number(found: Mapping[str, Value], name: str) -> float | None:
    value = found.get(name)
    return float(value) if isinstance(value, (int, float)) else None


def _whole(found: Mapping[str, Value], name: str) -> int | None:
    value = found.get(name)
    return value if isinstance(value, int) else None


def trend(found: Sequence[Drill]) -> dict[str, str]:
    """Compares the newest drill with the median of those before: better, worse or the same, by measure.

    A fifth more or less, and more than one second, record or group, counts as a change.
    """
    if not found:
        return {}
    told: dict[str, str] = {}
    for name, less_is_better in (("rto_seconds", True), ("missing_records", True), ("missing_seconds", True),
                                 ("ready", False)):  # fmt: skip
        now = getattr(found[0], name)
        before = [value for each in found[1:] if (value := getattr(each, name)) is not None]
        if now is None or not before:
            continue
        usual = median(before)
        if abs(now - usual) <= max(1.0, usual / 5):
            told[name] = "the same"
        else:
            told[name] = "better" if (now < usual) is less_is_better else "worse"
    return told
