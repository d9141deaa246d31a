"""The gate before a switchover: is everything on the target?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from failover.errors import StepFailed
from failover.runbook.kinds import Context, Kind, Result


class ReplicationLag(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``records``: at most so many may be missing on the target. ``age``: the oldest missing one is at most so old.

    ``at_once``: fail at once where it is more, in place of waiting for the step's time.
    """

    records: int = 0
    age: float = 0.0
    at_once: bool = False


class ReplicationLagKind(Kind[ReplicationLag]):
    """Waits until the mirror is no further behind than is allowed, by records and by age; 0 records: all is there."""

    parameters = ReplicationLag
    results = {"records": "records that are missing", "seconds": "how long it took"}  # noqa: RUF012
    acts = False

    def preview(self, given: ReplicationLag, context: Context) -> str:
        missing = behind(context)
        records, age = _sums(missing)
        return (
            f"would wait until at most {given.records} records are missing; now {records}, the oldest {age:.0f} s old"
        )

    def run(self, given: ReplicationLag, context: Context) -> Result:
        began = context.remaining()
        missing: list[Any] = []

        def near() -> bool:
            missing[:] = behind(context)
            records, age = _sums(missing)
            return records <= given.records and (records == 0 or given.age == 0 or age <= given.age)

        if given.at_once:
            if not near():
                raise StepFailed(f"the mirror is behind: {_told(missing)}", hint="failover status shows where")
        else:
            context.wait(near, what=lambda: f"the mirror is behind: {_told(missing)}", every=2.0)
        return {"records": _sums(missing)[0], "seconds": round(began - context.remaining(), 1)}

    def by_hand(self, given: Mapping[str, Any]) -> str:  # noqa: ARG002 - the same for all
        return "failover status"


def behind(context: Context) -> list[Any]:
    """Gives what the target does not have, partition by partition. Raises ``StepFailed`` where nobody can tell."""
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
        raise StepFailed("how far the mirror is cannot be told", hint="is the source there? failover status")
    for finding in plan.findings:
        if finding.code == "position-unknown":
            raise StepFailed(f"how far the mirror is cannot be told: {finding.message}", hint=finding.remedy)
    return list(plan.unreplicated)


def _sums(missing: list[Any]) -> tuple[int, float]:
    return sum(each.records for each in missing), max((each.seconds or 0.0 for each in missing), default=0.0)


def _told(missing: list[Any]) -> str:
    worst = sorted(missing, key=lambda each: -each.records)[:3]
    where = ", ".join(f"{each.source_topic} {each.partition} by {each.records}" for each in worst)
    return f"{_sums(missing)[0]} records on {len(missing)} partitions, most on {where}"


KIND = ReplicationLagKind()
