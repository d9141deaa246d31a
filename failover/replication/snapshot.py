"""A running flow at one moment, as plain values: what metrics, REST and people are told of it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from failover.config.mm2_keys import SOURCE
from failover.model.names import TopicPartition
from failover.replication.checkpointing import Checkpointing
from failover.replication.lane import State
from failover.replication.parts import Parts
from failover.replication.route import Route
from failover.replication.switch import Target
from failover.replication.tally import Spread

_SILENT_SECONDS = 5.0
"""A source that has not answered for longer is silent: fetches wait half a second for records."""


class PartitionNow(NamedTuple):
    """Is one partition's copying.

    ``upstream``: all below it is copied; -1 while it is not known where copying goes on. ``lag``: records of the
    source not copied yet, ``seconds``: how old the oldest of them may be; NaN where that is not known. ``reason``: why
    it stands still, "" while it does not. ``open``: it is being copied. ``age``, ``latency``: milliseconds, see
    ``failover.replication.tally.Tally``.
    """

    source: TopicPartition
    target: TopicPartition
    upstream: int
    lag: float
    seconds: float
    open: bool
    reason: str
    polled: int
    copied: int
    copied_bytes: int
    age: Spread
    latency: Spread


class CheckpointsNow(msgspec.Struct, frozen=True, kw_only=True):
    """Is a flow's exact checkpoints.

    ``leader``: this process keeps them; False where another one does. ``cycled``: when it last looked (epoch ms), 0
    before. ``exact_at``: by group, as of when all of its positions were on record exactly (epoch ms), 0 where they
    never were. ``ready``: groups of which all positions are exact now. ``precisions``: positions on record, by
    precision. ``interval``: seconds between two looks. ``latency``: of MM2's own checkpoints, milliseconds.
    """

    leader: bool
    cycled: int
    exact_at: Mapping[str, int]
    ready: int
    precisions: Mapping[str, int]
    interval: float
    latency: Spread


class ShareNow(NamedTuple):
    """Is the part of a flow that this process has.

    ``worker``: its name, as it stands in the positions it writes. ``group``: by which the flow is shared, "" where it
    is by none. ``shards``: those owned now. ``leader``: it does what only one worker does.
    """

    worker: str
    group: str
    shards: tuple[int, ...]
    leader: bool


class FlowNow(msgspec.Struct, frozen=True, kw_only=True):
    """Is one flow. Times are epoch seconds unless said otherwise.

    ``share``: which part of it this process has; all else is of that part. ``halted``: its partitions were let go,
    because somebody wanted that. ``polled``, ``polled_bytes``: read from the source; ``records``, ``bytes``:
    acknowledged by the target; ``pending``: records between the two. ``left_out``: offsets of the source that are no
    records of the target's. ``batches``: by what was done to them, ``sizes``: records of one. ``faults``: by side and
    Kafka's code. ``heard``: when each side answered last. ``commits``: rounds of positions written and refused, and
    milliseconds a round. ``heartbeat``: the last one written (epoch ms), None also where another worker writes them;
    ``copied_heartbeat``: the newest of the source's that is copied (epoch ms), None before. ``checkpoints``: None where
    they are switched off.
    """

    source: str
    target: str
    at: float
    partitions: tuple[PartitionNow, ...]
    halted: bool
    polled: int
    polled_bytes: int
    left_out: int
    pending: int
    records: int
    bytes: int
    batches: Mapping[str, int]
    sizes: Spread
    faults: Mapping[tuple[str, str], int]
    heard: Mapping[str, float]
    buffer_used: int
    buffer_size: int
    commits: tuple[int, int, Spread]
    heartbeat: int | None
    copied_heartbeat: int | None
    checkpoints: CheckpointsNow | None
    share: ShareNow

    @property
    def rpo_records(self) -> float:
        """Gives how many records would be lost with the source, as far as known; NaN where nothing is."""
        known = [each.lag for each in self.partitions if not math.isnan(each.lag)]
        return float(sum(known)) if known or not self.partitions else math.nan

    @property
    def rpo_seconds(self) -> float:
        """Gives how far back what would be lost reaches, as far as known; NaN where nothing is.

        What a source that does not answer has got meanwhile is not known, so its silence counts.
        """
        known = [each.seconds for each in self.partitions if not math.isnan(each.seconds)]
        if known and (silence := self.at - self.heard.get("source", self.at)) > _SILENT_SECONDS:
            known.append(silence)
        return max(known, default=math.nan if self.partitions else 0.0)


def flow_now(parts: Parts, now: float) -> FlowNow:
    """Looks at a flow; a millisecond for a thousand partitions."""
    engine, traffic = parts.engine, parts.engine.traffic
    reading = parts.switches[SOURCE].reached is Target.RUNNING
    tracker = parts.checkpointing.tracker
    partitions = []
    polled, polled_bytes, left_out, pending = *traffic.of_others, 0
    copied_heartbeat = None
    for route in engine.routes.values():
        tally = route.tally
        end = route.source_end
        if tracker is not None and not reading:
            # Nothing is read, so no answer of the source tells how far it has come.
            end = max(end, tracker.source_end(route.lane.target))
        partitions.append(_partition(route, end, now))
        if route.lane.pending:
            pending += route.lane.pending_records
        polled += tally.polled
        polled_bytes += tally.polled_bytes
        left_out += tally.left_out
        if route.lane.source.topic == parts.flow.internal.heartbeats and tally.newest >= 0:
            copied_heartbeat = max(copied_heartbeat or 0, tally.newest)
    heard = dict(traffic.heard)
    if tracker is not None and tracker.cycled:
        heard["source"] = max(heard.get("source", 0.0), tracker.cycled / 1000)
    recorder = engine.recorder
    return FlowNow(
        source=parts.flow.source,
        target=parts.flow.target,
        at=now,
        partitions=tuple(partitions),
        halted=engine.hold.halted,
        polled=polled,
        polled_bytes=polled_bytes,
        left_out=left_out,
        pending=pending,
        records=traffic.records,
        bytes=traffic.bytes,
        batches={kind.value: count for kind, count in traffic.batches.items()},
        sizes=traffic.sizes.read(now),
        faults=dict(traffic.faults),
        heard=heard,
        buffer_used=engine.buffered,
        buffer_size=engine.options.buffer_bytes,
        commits=(recorder.written, recorder.refused, recorder.took.read(now)),
        heartbeat=parts.heartbeats.written if parts.heartbeats is not None and engine.share.leads() else None,
        copied_heartbeat=copied_heartbeat,
        checkpoints=checkpoints_now(parts.checkpointing, now),
        share=ShareNow(engine.worker, engine.share.group, tuple(sorted(engine.share.shards)), engine.share.leads()),
    )


def checkpoints_now(checkpointing: Checkpointing, now: float) -> CheckpointsNow | None:
    """Looks at exact checkpoints; ``None`` where they are switched off."""
    tracker, mm2 = checkpointing.tracker, checkpointing.checkpoints
    if tracker is None:
        return None
    groups = tracker.tracked
    precisions: Counter[str] = Counter()
    for group in groups:
        precisions.update(position.known.precision for position in tracker.positions.get(group, {}).values())
    exact_at = {group: tracker.exact_at.get(group, 0) for group in sorted(groups)}
    open_groups = tracker.open_groups
    return CheckpointsNow(
        leader=checkpointing.leads(),
        cycled=tracker.cycled,
        exact_at=exact_at,
        ready=sum(1 for group, at in exact_at.items() if at and group not in open_groups),
        precisions=dict(precisions),
        interval=tracker.options.interval,
        latency=mm2.latency.read(now) if mm2 is not None else Spread(),
    )


def _partition(route: Route, end: int, now: float) -> PartitionNow:
    lane, tally = route.lane, route.tally
    located = route.generation > 0
    known = located and end >= 0
    lag = max(end - lane.upstream, 0) if known else math.nan
    return PartitionNow(
        lane.source,
        lane.target,
        lane.upstream if located else -1,
        lag,
        0.0 if lag == 0 else tally.seconds_behind(now) if known else math.nan,
        lane.state is State.OPEN,
        route.reason,
        tally.polled,
        tally.copied,
        tally.copied_bytes,
        tally.age.read(now),
        tally.latency.read(now),
    )
