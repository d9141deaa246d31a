"""What one cluster alone holds: records that were never mirrored before applications moved to the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from failover.errors import StepFailed
from failover.kafka.port import Cluster
from failover.model.cluster import LogRange
from failover.model.names import Fault, TopicPartition
from failover.model.records import Record, Window, WindowRequest
from failover.runbook.kinds import Context, Kind, Result, Settled
from failover.runbook.steps.flow_topics import is_data_topic
from failover.state.tails import TailHead, TailPartition, TailWriter

if TYPE_CHECKING:
    from failover.library.flows import MirrorFlow

_FEWEST, _MOST = 500, 20_000
_BYTES = 4 << 20
"""Offsets that are read at once, and the bytes after which it is fewer."""
_SHOWN = 5


class Tail(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``on``: which cluster has it, source or target. ``handle``: export it to a file, wait until it is mirrored (and
    export what then is left, which is nothing), or ignore it, which only counts.

    ``file``: where it is written; empty: in the run's folder. ``unknown``: what becomes of partitions of which nobody
    can tell where their tail begins: fail, or whole (they are exported from their start).
    """

    on: Literal["source", "target"] = "target"
    handle: Literal["export", "mirror", "ignore"] = "export"
    file: str = ""
    unknown: Literal["fail", "whole"] = "fail"


class Held(NamedTuple):
    """Is what a cluster holds alone. ``unknown``: partitions of which nobody can tell."""

    holder: Cluster
    lacking: str
    tails: dict[TopicPartition, TailPartition]
    unknown: tuple[TopicPartition, ...]

    @property
    def records(self) -> int:
        """Counts the offsets of what is known, which are as many as the records or more."""
        return sum(one.end - one.first for one in self.tails.values())


class TailKind(Kind[Tail]):
    """Settles what one cluster alone holds, after applications went to the other one.

    Exports it to a file (0600) as JSON lines: a head, one record a line with its topic, partition, offset, timestamp,
    and key, value and headers as base64, and a foot that names every partition that was looked at. Records of aborted
    transactions are left out; one that is open is waited for. Nothing may be written there meanwhile. The file appears
    when it is whole; a step that was cut short writes it anew. It stays on the way back.
    """

    parameters = Tail
    results = {  # noqa: RUF012 - a class's constant
        "records": "records that were exported; with ignore: at most so many are there",
        "partitions": "partitions that have some",
        "file": "where they are; empty with ignore",
        "exact": "whether none of them can have been mirrored",
    }

    def preview(self, given: Tail, context: Context) -> str:
        held = held_alone(given.on, context)
        verb = {"export": "would export", "mirror": "would wait until they are mirrored:", "ignore": "would only tell:"}
        where = f" to {_path(given, held, context)}" if given.handle == "export" else ""
        return f"{verb[given.handle]} {_told(held)}{where}"

    def run(self, given: Tail, context: Context) -> Result:
        held = held_alone(given.on, context)
        if given.handle == "mirror" and (held.records or held.unknown):

            def mirrored() -> bool:
                nonlocal held
                held = held_alone(given.on, context)
                return not any(_has_records(held.holder, tp, one, context) for tp, one in held.tails.items())

            context.wait(mirrored, what=lambda: f"{held.lacking} does not have {_told(held)}", every=2.0)
        known = {tp: one for tp, one in held.tails.items() if one.end > one.first}
        context.say(f"{held.holder.alias} alone has {_told(held)}")
        if given.handle == "ignore":
            exact = all(one.exact for one in known.values()) and not held.unknown
            return {"records": held.records, "partitions": len(known), "file": "", "exact": exact}
        return self._export(given, held, context)

    def settle(self, given: Tail, context: Context) -> Settled:  # noqa: ARG002 - what it writes is whole or not there
        return Settled(done=False)

    def by_hand(self, given: Mapping[str, Any]) -> str:
        return "failover plan --source STANDBY --target PRIMARY   # unmirrored-tail" if given else ""

    def _export(self, given: Tail, held: Held, context: Context) -> Result:
        tails = dict(held.tails)
        if held.unknown and given.unknown == "fail":
            raise StepFailed(
                f"nobody can tell which records of {_names(held.unknown)} {held.lacking} has",
                hint="give unknown: whole, and they are exported from their start",
            )
        tails |= dict(_whole(held.holder, held.unknown))
        path = _path(given, held, context)
        if not given.file:
            context.reach.state.prepare(path.parent)
        writer = TailWriter(
            path,
            TailHead(
                created=context.now(),
                run=context.run_id,
                cluster=held.holder.alias,
                cluster_id=held.holder.facts().cluster_id,
                lacking=held.lacking,
            ),
        )
        try:
            for tp, one in sorted(tails.items()):
                writer.add(one, _records(held.holder, tp, one, context))
            _still(held.holder, tails)
            foot = writer.finish()
        finally:
            writer.discard()
        some = [one for one in foot.partitions if one.records]
        context.say(f"{foot.records} records of {len(some)} partitions are in {path}")
        return {
            "records": foot.records,
            "partitions": len(some),
            "file": str(path),
            "exact": all(one.exact for one in some),
        }


def held_alone(on: Literal["source", "target"], context: Context) -> Held:
    """Finds what the source or the target holds alone. Raises ``StepFailed`` where the other does not answer."""
    from failover.inventory.flow import flow_of
    from failover.library.looking import take_snapshot

    reach = context.reach
    holder, other = (reach.source, reach.target) if on == "source" else (reach.target, reach.source)
    back = _towards(holder.alias, other.alias, context)
    silences = reach.timeouts if on == "target" else (reach.timeouts[1], reach.timeouts[0])
    snapshot = take_snapshot(back, source_timeout=silences[0], target_timeout=silences[1])
    status = snapshot.source.status
    if not status.answers:
        raise StepFailed(f"{other.alias} does not answer: {status.detail or status.state}")
    there = flow_of(back.config, back.selected).opposite
    assert there is not None
    topics = {name: info for name, info in sorted(holder.topics().items()) if is_data_topic(there, name)}
    copies = other.topics()
    partitions = [TopicPartition(name, number) for name, info in topics.items() for number in range(info.partitions)]
    logs = _logs(holder, partitions)
    found: dict[TopicPartition, TailPartition] = {}
    unknown: list[TopicPartition] = []
    for tp, log in logs.items():
        end = snapshot.unmirrored.get(tp)
        copy = copies.get(there.target_topic(tp.topic))
        if end is not None:
            first, exact = max(end.first, log.start), end.exact
        elif copy is None or tp.partition >= copy.partitions:
            first, exact = log.start, True  # nothing of it was ever mirrored
        elif log.start == log.end:
            first, exact = log.end, True
        else:
            unknown.append(tp)
            continue
        found[tp] = TailPartition(
            topic=tp.topic, partition=tp.partition, first=min(first, log.end), end=log.end, exact=exact
        )
    return Held(holder, other.alias, found, tuple(unknown))


def tail_text(tails: Mapping[TopicPartition, TailPartition]) -> str:
    """Names where the most records are held alone."""
    most = sorted(tails.items(), key=lambda item: item[1].first - item[1].end)[:_SHOWN]
    return ", ".join(f"{tp.topic} {tp.partition} from {one.first} on ({one.end - one.first})" for tp, one in most)


def _towards(target: str, source: str, context: Context) -> MirrorFlow:
    """Gives the flow towards the cluster that holds the tail: seen so, what it holds alone is told."""
    from failover.config.load import select_flow
    from failover.library.flows import MirrorFlow

    flow = context.reach.flow
    if (flow.source, flow.target) == (source, target):
        return flow
    return MirrorFlow(flow.config, select_flow(flow.config, source, target, allow_reverse=True))


def _logs(holder: Cluster, partitions: list[TopicPartition]) -> dict[TopicPartition, LogRange]:
    found: dict[TopicPartition, LogRange] = {}
    for tp, log in holder.log_ranges(partitions).items():
        if isinstance(log, Fault):
            raise StepFailed(f"the end of {tp.topic} {tp.partition} cannot be read on {holder.alias}: {log}")
        found[tp] = log
    return found


def _whole(holder: Cluster, partitions: tuple[TopicPartition, ...]) -> Iterator[tuple[TopicPartition, TailPartition]]:
    for tp, log in _logs(holder, list(partitions)).items():
        yield (
            tp,
            TailPartition(topic=tp.topic, partition=tp.partition, first=log.start, end=log.end, exact=False),
        )


def _still(holder: Cluster, tails: Mapping[TopicPartition, TailPartition]) -> None:
    """Raises ``StepFailed`` where something was written since the tails were measured."""
    moved = [tp for tp, log in _logs(holder, list(tails)).items() if log.end != tails[tp].end]
    if moved:
        raise StepFailed(
            f"written meanwhile on {holder.alias}: {_names(tuple(moved))}",
            hint="keep producers away from there, then failover run --resume RUN",
        )


def _records(holder: Cluster, tp: TopicPartition, tail: TailPartition, context: Context) -> Iterator[Record]:
    """Yields the records of a tail, without those of aborted transactions; an open one is waited for."""
    at, size = tail.first, _FEWEST
    while at < tail.end:
        reads = partial(_window, holder, tp, at, min(tail.end, at + size))
        what = f"a transaction is open at offset {at} of {tp.topic} {tp.partition} on {holder.alias}"
        window = context.wait(reads, what=partial(str, what))
        assert window is not None
        yield from window.records
        at = window.covered_to
        weight = sum(len(record.key or b"") + len(record.value or b"") for record in window.records)
        size = max(_FEWEST // 10, size // 2) if weight > _BYTES else min(_MOST, size * 2)


def _window(holder: Cluster, tp: TopicPartition, start: int, stop: int) -> Window | None:
    request = WindowRequest("target", tp, start, stop)
    window = holder.windows([request], committed=True)[request]
    if window.fault is not None:
        raise StepFailed(f"{tp.topic} {tp.partition} cannot be read on {holder.alias}: {window.fault}")
    return window if window.covered_to > start else None


def _has_records(holder: Cluster, tp: TopicPartition, tail: TailPartition, context: Context) -> bool:
    return next(_records(holder, tp, tail, context), None) is not None


def _path(given: Tail, held: Held, context: Context) -> Path:
    from failover.state.playbook_runs import runs_folder

    if given.file:
        return Path(given.file).expanduser().absolute()
    return runs_folder(context.reach.state) / context.run_id / f"tail-{held.holder.alias}.ndjson"


def _told(held: Held) -> str:
    known = {tp: one for tp, one in held.tails.items() if one.end > one.first}
    said = f"at most {held.records} records on {len(known)} partitions"
    if known:
        said += f": {tail_text(known)}"
    return said + (f"; nobody can tell of {_names(held.unknown)}" if held.unknown else "")


def _names(partitions: tuple[TopicPartition, ...]) -> str:
    more = f" and {len(partitions) - _SHOWN} more" if len(partitions) > _SHOWN else ""
    return ", ".join(f"{tp.topic} {tp.partition}" for tp in partitions[:_SHOWN]) + more


KIND = TailKind()
