"""Groups waited for until they have consumed all there is on the source."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from failover.errors import StepFailed
from failover.model.names import Fault, TopicPartition
from failover.model.records import WindowRequest
from failover.runbook.kinds import Context, Kind, Result
from failover.runbook.steps.flow_topics import data_topics
from failover.runbook.steps.verify_fence import ranges
from failover.runbook.steps.wait_inactive import chosen, require_seen

_LOOKED_THROUGH = 10_000
"""Offsets at a log's end that are looked through for records; more are taken for records."""


class WaitDrained(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``groups``: literal names; none: those of ``plan``. ``plan``: its id. Only the flow's data topics count.

    ``with_members``: only groups that have members now are waited for: nobody will drain the others.
    """

    groups: list[str] = []
    plan: str = ""
    with_members: bool = True


class Left(msgspec.Struct, frozen=True):
    """Is what a group has not consumed of one partition: offsets ``committed`` to ``end``."""

    group: str
    tp: TopicPartition
    committed: int
    end: int


class WaitDrainedKind(Kind[WaitDrained]):
    """Waits until groups stand at the ends of the source's logs.

    What is left at an end and holds no record (markers of transactions, records that were compacted away or aborted)
    counts as consumed. When time is up the groups are named with what they have left and when they last moved.
    """

    parameters = WaitDrained
    results = {"groups": "groups that have consumed everything", "seconds": "how long it took"}  # noqa: RUF012
    acts = False

    def preview(self, given: WaitDrained, context: Context) -> str:
        names = self._waited_for(given, context)
        left = remainders(context, names)
        records = sum(each.end - each.committed for each in left)
        return f"would wait for {len(names)} groups; they have about {records} records left now"

    def run(self, given: WaitDrained, context: Context) -> Result:
        names = self._waited_for(given, context)
        began = context.remaining()
        left: list[Left] = []
        moved: dict[str, float] = {}

        def drained() -> bool:
            now = remainders(context, names)
            before = {(each.group, each.tp): each.committed for each in left}
            for each in now:
                if before.get((each.group, each.tp), each.committed) != each.committed:
                    moved[each.group] = began - context.remaining()
            left[:] = now
            return not now or not holding_records(context, now)

        context.wait(drained, what=lambda: _told(left, moved), every=0.5)
        return {"groups": len(names), "seconds": round(began - context.remaining(), 1)}

    def _waited_for(self, given: WaitDrained, context: Context) -> list[str]:
        names = chosen(given.groups, given.plan, context)
        if not given.with_members:
            return names
        infos = context.reach.source.describe_groups(names)
        require_seen(infos, "source")
        return [name for name in names if infos[name].members or infos[name].fault is not None]


def remainders(context: Context, groups: list[str]) -> list[Left]:
    """Finds which groups stand before a log's end on the source. Raises ``StepFailed`` where that cannot be seen."""
    source, topics = context.reach.source, set(data_topics(context))
    commits: dict[str, Mapping[TopicPartition, int]] = {}
    for group, found in source.committed(groups).items():
        if isinstance(found, Fault):
            raise StepFailed(f"the offsets of {group} cannot be read on the source: {found}")
        commits[group] = {tp: commit.offset for tp, commit in found.items() if tp.topic in topics}
    logs = ranges(context, {tp for found in commits.values() for tp in found})
    return [
        Left(group, tp, max(offset, logs[tp].start), logs[tp].end)
        for group, found in commits.items()
        for tp, offset in found.items()
        if max(offset, logs[tp].start) < logs[tp].end
    ]


def holding_records(context: Context, left: list[Left]) -> list[Left]:
    """Leaves out what holds no record for a consumer that reads committed ones."""
    short = [each for each in left if each.end - each.committed <= _LOOKED_THROUGH]
    asked = {each: WindowRequest("source", each.tp, each.committed, each.end) for each in short}
    found = context.reach.source.windows(list(dict.fromkeys(asked.values())), committed=True) if asked else {}
    kept = [each for each in left if each not in asked]
    for each, request in asked.items():
        window = found[request]
        if window.fault is not None or window.records or window.covered_to < request.stop:
            kept.append(each)
    return kept


def _told(left: list[Left], moved: Mapping[str, float]) -> str:
    by_group: dict[str, list[Left]] = {}
    for each in left:
        by_group.setdefault(each.group, []).append(each)
    said = []
    for group, rows in list(by_group.items())[:5]:
        most = max(rows, key=lambda row: row.end - row.committed)
        records = sum(row.end - row.committed for row in rows)
        when = f"moved last after {moved[group]:.0f} s" if group in moved else "has not moved"
        said.append(
            f"{group} has {records} left on {len(rows)} partitions, most on {most.tp.topic} {most.tp.partition}, "
            f"and {when}"
        )
    return "; ".join(said) + (f"; and {len(by_group) - 5} groups more" if len(by_group) > 5 else "")


KIND = WaitDrainedKind()
