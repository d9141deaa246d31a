"""The gate before a switchover: is everything on the target?"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from typing import Any

import msgspec

from failover.errors import StepFailed
from failover.model.names import TopicPartition
from failover.model.plan import Unreplicated
from failover.model.records import WindowRequest
from failover.model.snapshot import Snapshot
from failover.runbook.kinds import Context, Kind, Result

_LOOKED_THROUGH = 100_000
"""Offsets that one look reads for records, of the partitions with the fewest first; more are taken for records."""


class ReplicationLag(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``records``: at most so many may be missing on the target. ``age``: the oldest missing one is at most so old.

    ``at_once``: fail at once where it is more, in place of waiting for the step's time.
    """

    records: int = 0
    age: float = 0.0
    at_once: bool = False


class LagUnknown(StepFailed):
    """Says that nobody can tell how far the mirror is, as while it has copied nothing yet."""


class ReplicationLagKind(Kind[ReplicationLag]):
    """Waits until the mirror is no further behind than is allowed, by records and by age; 0 records: all is there.

    A partition of which the same is missing twice is read on the source: markers of transactions, and aborted records
    where the mirror copies committed ones, are never copied and not missing. While nobody can tell how far the mirror
    is, as when it has just begun, it waits too.
    """

    parameters = ReplicationLag
    results = {"records": "records that are missing", "seconds": "how long it took"}  # noqa: RUF012
    acts = False

    def preview(self, given: ReplicationLag, context: Context) -> str:
        try:
            records, age = _sums(behind(context))
        except LagUnknown as error:
            if given.at_once:
                raise
            # an earlier step may start the mirror
            return f"would wait until at most {given.records} records are missing; now {error.message}"
        return (
            f"would wait until at most {given.records} records are missing; now {records}, the oldest {age:.0f} s old"
        )

    def run(self, given: ReplicationLag, context: Context) -> Result:
        began = context.remaining()
        missing: list[Unreplicated] = []
        before: dict[TopicPartition, int] = {}
        doubt = ""

        def near() -> bool:
            nonlocal doubt
            try:
                snapshot, rows = _look(context)
            except LagUnknown as error:
                if given.at_once:
                    raise
                doubt = error.message
                return False
            doubt = ""
            standing = _few([row for row in rows if before.get(_origin(row)) == row.records])
            before.clear()
            before.update({_origin(row): row.records for row in rows})
            missing[:] = [*(row for row in rows if row not in standing), *_read(context, snapshot, standing)]
            records, age = _sums(missing)
            return records <= given.records and (records == 0 or given.age == 0 or age <= given.age)

        if given.at_once:
            if not near():
                raise StepFailed(f"the mirror is behind: {_told(missing)}", hint="failover status shows where")
        else:
            context.wait(near, what=lambda: doubt or f"the mirror is behind: {_told(missing)}", every=1.0)
        return {"records": _sums(missing)[0], "seconds": round(began - context.remaining(), 1)}

    def by_hand(self, given: Mapping[str, Any]) -> str:  # noqa: ARG002 - the same for all
        return "failover status"


def behind(context: Context) -> list[Unreplicated]:
    """Gives what the target does not have, partition by partition. Raises ``LagUnknown`` where nobody can tell."""
    return _look(context)[1]


def _look(context: Context) -> tuple[Snapshot, list[Unreplicated]]:
    from failover.library.looking import take_snapshot
    from failover.library.planning import make_plan

    reach = context.reach
    snapshot = take_snapshot(
        reach.flow,
        source_down=reach.source_down,
        source_timeout=reach.timeouts[0],
        target_timeout=reach.timeouts[1],
    )
    plan = make_plan(snapshot)
    if plan.unreplicated is None:
        raise LagUnknown("how far the mirror is cannot be told", hint="is the source there? failover status")
    for finding in plan.findings:
        if finding.code == "position-unknown":
            raise LagUnknown(f"how far the mirror is cannot be told: {finding.message}", hint=finding.remedy)
    return snapshot, list(plan.unreplicated)


def _read(context: Context, snapshot: Snapshot, rows: list[Unreplicated]) -> list[Unreplicated]:
    """Reads on the source what is missing and counts the records that the mirror would copy; those without go."""
    from failover.inventory.flow import flow_of

    asked = {}
    for row in rows:
        log = snapshot.source.logs.get(_origin(row))
        if log is not None:
            asked[row] = WindowRequest("source", _origin(row), max(log.start, log.end - row.records), log.end)
    if not asked:
        return rows
    flow = context.reach.flow
    committed = flow_of(flow.config, flow.selected).reads_committed
    found = context.reach.source.windows(list(asked.values()), committed=committed)
    left = []
    for row in rows:
        window = found[asked[row]] if row in asked else None
        if window is None or window.fault is not None or window.covered_to < asked[row].stop:
            left.append(row)
        elif window.records:
            left.append(msgspec.structs.replace(row, records=len(window.records)))
    return left


def _few(rows: list[Unreplicated]) -> list[Unreplicated]:
    rows = sorted(rows, key=lambda row: row.records)
    totals = accumulate(row.records for row in rows)
    return [row for row, total in zip(rows, totals, strict=True) if total <= _LOOKED_THROUGH]


def _origin(row: Unreplicated) -> TopicPartition:
    return TopicPartition(row.source_topic, row.partition)


def _sums(missing: list[Unreplicated]) -> tuple[int, float]:
    return sum(each.records for each in missing), max((each.seconds or 0.0 for each in missing), default=0.0)


def _told(missing: list[Unreplicated]) -> str:
    worst = sorted(missing, key=lambda each: -each.records)[:3]
    where = ", ".join(f"{each.source_topic} {each.partition} by {each.records}" for each in worst)
    return f"{_sums(missing)[0]} records on {len(missing)} partitions, most on {where}"


KIND = ReplicationLagKind()
