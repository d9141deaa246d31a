"""Start positions of a mirror's reverse flow, from what the mirror copied; see ``seed_rule``.

Needed where both directions use one topic name: the reverse flow would copy everything back. With MM2's default names
nothing comes back, and there is nothing to do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from failover.errors import BrokerError, ClusterError, Refused
from failover.inventory.flow import Flow
from failover.kafka.wire.cluster import WireCluster
from failover.kafka.wire.columns import read_columns
from failover.kafka.wire.logs import log_ranges
from failover.kafka.wire.metadata import NO_TOPIC_ID
from failover.mm2.fields import DecodeError
from failover.mm2.heartbeat import Heartbeat
from failover.model.cluster import LogRange
from failover.model.names import Fault, TopicPartition
from failover.model.seed import SeedPartition
from failover.replication.anchor import Anchor
from failover.replication.positions import Positions
from failover.replication.reading import Stretch, Want, read_stretches
from failover.replication.seed_rule import CopiesEnd, NoEnd, copies_end
from failover.replication.syncs import Syncs

_MOST = 200_000
_BACK = 10_000
"""So far below an anchor MirrorMaker 2 may begin again: what it copied since it noted its position last."""
_BELOW = 64
_AT_ONCE = 500_000
_TRIED = 4
_LOOKS, _BETWEEN_LOOKS = 25, 0.2  # seconds


class _Pair(NamedTuple):
    """Is a partition of both clusters; ids are ``NO_TOPIC_ID`` where a cluster has none."""

    tp: TopicPartition
    copies_id: bytes
    originals_id: bytes


class _Known(NamedTuple):
    """Is an anchor of the mirror; ``again``: it is from an offset sync, so records may have been copied again."""

    anchor: Anchor
    again: bool


class Kept(Protocol):
    """Keeps a flow's positions: ``Positions`` in a topic, ``ConnectPositions`` in a Connect cluster."""

    async def open(self) -> None:
        """Makes what is missing."""

    async def read(self) -> dict[TopicPartition, Anchor]:
        """Reads all positions."""

    async def write(self, anchors: Mapping[TopicPartition, Anchor]) -> dict[TopicPartition, Fault]:
        """Writes positions; gives a fault for each that is not kept."""


def _whole(anchor: Anchor) -> Anchor | None:
    return anchor


class Seeding:
    """Finds and writes start positions of ``flow``, whose source holds the copies and whose target the originals.

    ``source``, ``target``: the flow's. ``positions``: the flow's own, on the target; ``kept``: what of one is read
    again there. ``mirrored``: those of the opposite flow, on the source, ``syncs`` its offset syncs. ``committed``: the
    opposite flow read committed records.
    """

    def __init__(
        self,
        flow: Flow,
        source: WireCluster,
        target: WireCluster,
        *,
        positions: Kept,
        mirrored: Positions,
        syncs: Syncs,
        committed: bool,
        kept: Callable[[Anchor], Anchor | None] = _whole,
    ) -> None:
        self.flow = flow
        self.not_seeded: dict[str, str] = {}
        self._source, self._target = source, target
        self._positions, self._mirrored, self._syncs = positions, mirrored, syncs
        self._committed = committed
        self._kept = kept
        self._still = f"{flow.target}->{flow.source}"
        self._ids: dict[TopicPartition, _Pair] = {}
        self._anchors: dict[TopicPartition, Anchor] = {}
        self._beats: dict[str, int] = {}
        self._moving: dict[TopicPartition, Anchor] = {}

    async def look(self, only: Collection[str] = (), *, keep_tail: bool = False) -> list[SeedPartition]:
        """Finds the position of every partition, or of those topics alone; nothing is written.

        ``keep_tail``: records of the target that never reached the source are no reason to refuse. Raises
        ``ClusterError``, ``BrokerError``.
        """
        self._beats = await self._heartbeat_ends()
        pairs = await self._pairs(only)
        before = await self._positions.read()
        known = self._moving = await self._mirrored.read()
        synced = await self._syncs.read_last(list(pairs))
        copies = await log_ranges(self._source, pairs)
        originals = await log_ranges(self._target, pairs)
        found: list[SeedPartition] = []
        waiting: dict[TopicPartition, tuple[list[_Known], LogRange, LogRange]] = {}
        for tp, pair in pairs.items():
            here, there = copies[tp], originals[tp]
            if isinstance(here, Fault) or isinstance(there, Fault):
                fault = here if isinstance(here, Fault) else there
                found.append(_refused(tp, "unreadable", f"its logs cannot be read: {fault}", before.get(tp)))
                continue
            anchors = [_Known(known[tp], False)] if tp in known and known[tp].downstream is not None else []
            anchors += [_Known(anchor, True) for anchor in reversed(synced.get(tp, ()))]
            usable = [one for one in anchors if _fits(one.anchor, pair, here, there)][:_TRIED]
            if usable:
                waiting[tp] = usable, here, there
            else:
                found.append(self._without_anchor(tp, bool(anchors), here, there, before.get(tp)))
        for share in _shares(waiting):
            found += await self._ends({tp: waiting[tp] for tp in share}, before, keep_tail=keep_tail)
        return sorted(found, key=lambda one: (one.topic, one.partition))

    async def stands(self, seeds: Sequence[SeedPartition], seconds: float) -> None:
        """Watches for so many seconds that nothing mirrors and nobody writes on the target; raises ``Refused`` else."""
        await asyncio.sleep(seconds)
        flow = self.flow
        beats = await self._heartbeats_since()
        if beats:
            raise Refused(
                f"heartbeats of {', '.join(beats)} are being written: a worker of {flow.source}->{flow.target} or of"
                " the opposite flow runs",
                hint="stop MirrorMaker 2 and failover replicate for both directions first",
            )
        moved = [tp for tp, anchor in (await self._mirrored.read()).items() if self._moving.get(tp) != anchor]
        if moved:
            raise Refused(
                f"the position of {min(moved)} moves: {self._still} is still mirrored",
                hint="stop what mirrors it, then seed again",
            )
        ends = await log_ranges(self._target, [TopicPartition(one.topic, one.partition) for one in seeds])
        for one in seeds:
            log = ends[TopicPartition(one.topic, one.partition)]
            if isinstance(log, LogRange) and log.end != one.target_end:
                raise Refused(
                    f"{one.topic}-{one.partition} of {flow.target} grows: from {one.target_end} to {log.end}",
                    hint=f"stop whoever writes to {flow.target}, then seed again",
                )

    async def write(self, seeds: Sequence[SeedPartition]) -> list[SeedPartition]:
        """Writes positions, reads them back, and gives the partitions with what became of them.

        Raises ``ClusterError``, ``BrokerError``, ``Refused`` where the topic cannot be used.
        """
        await self._positions.open()
        wanted = {TopicPartition(one.topic, one.partition): one for one in seeds}
        refused = await self._positions.write({tp: self._anchors[tp] for tp in wanted})
        kept = {tp: self._kept(self._anchors[tp]) for tp in wanted}
        written = await self._read_back(
            lambda now: all(now.get(tp) == anchor for tp, anchor in kept.items() if tp not in refused)
        )
        done = []
        for tp, one in wanted.items():
            holds = written.get(tp) == kept[tp]
            why = "" if holds else str(refused.get(tp) or "another position stands there")
            done.append(msgspec.structs.replace(one, status="written" if holds else "failed", detail=why or one.detail))
        return done

    async def begin_again(self, topics: Collection[str]) -> list[TopicPartition]:
        """Sets the positions that are kept for topics to their logs' starts; gives those that could not be set.

        A mirror that finds none begins there by itself. Raises what ``write`` raises.
        """
        kept = [tp for tp in await self._positions.read() if tp.topic in topics]
        logs = await log_ranges(self._source, kept)
        starts = {tp: Anchor(log.start, 0) for tp, log in logs.items() if isinstance(log, LogRange)}
        await self._positions.write(starts)

        def left(now: Mapping[TopicPartition, Anchor]) -> list[TopicPartition]:
            return [tp for tp in kept if tp not in starts or (now.get(tp) or Anchor(0)).upstream != starts[tp].upstream]

        return left(await self._read_back(lambda now: starts.keys().isdisjoint(left(now)))) if kept else []

    async def _read_back(
        self, stands: Callable[[Mapping[TopicPartition, Anchor]], bool]
    ) -> Mapping[TopicPartition, Anchor]:
        """Reads positions until what was written stands, five seconds at the most."""
        for _ in range(_LOOKS):
            now: Mapping[TopicPartition, Anchor] = await self._positions.read()
            if stands(now):
                break
            # Kafka Connect answers from memory, which follows its topic: what was set is seen a moment later
            await asyncio.sleep(_BETWEEN_LOOKS)
        return now

    def connect_body(self, seeds: Sequence[SeedPartition]) -> dict[str, object]:
        """Gives the positions as Kafka Connect's REST API takes them (Kafka: KIP-875, PATCH)."""
        return {
            "offsets": [
                {
                    "partition": {"cluster": self.flow.source, "partition": one.partition, "topic": one.topic},
                    # MM2 (MirrorUtils.validateSourceOffset) refuses -1; without a position it begins at the start
                    "offset": {"offset": one.offset - 1} if one.offset else None,
                }
                for one in seeds
                if one.offset is not None
            ]
        }

    # -- inside ----------------------------------------------------------------------------------

    async def _pairs(self, only: Collection[str]) -> dict[TopicPartition, _Pair]:
        """Gives the partitions that the flow would bring to a topic whose records it was mirrored from."""
        flow, back = self.flow, self.flow.opposite
        assert back is not None
        copies = (await self._source.metadata(None)).topics
        wanted: list[str] = []
        for topic in sorted(copies):
            if not flow.topics.should_replicate(topic) or flow.policy.is_heartbeats_topic(topic):
                continue
            if only and topic not in only:
                continue
            name = flow.target_topic(topic)
            if name != topic or back.target_topic(name) != topic:
                self.not_seeded[topic] = f"it is called {name} on {flow.target}, so nothing comes back"
            else:
                wanted.append(topic)
        for topic in set(only) - copies.keys():
            self.not_seeded[topic] = (
                f"{flow.source} has no such topic, or {flow.source}->{flow.target} does not take it"
            )
        originals = (await self._target.metadata(wanted)).topics if wanted else {}
        for topic in wanted:
            state = originals[topic]
            if state.fault is not None:
                self.not_seeded[topic] = f"{flow.target} does not have it: all of it is copied ({state.fault.name})"
                continue
            if copies[topic].fault is not None:
                self.not_seeded[topic] = f"{flow.source} does not show it: {copies[topic].fault}"
                continue
            for number in sorted(copies[topic].partitions.keys() & state.partitions.keys()):
                tp = TopicPartition(topic, number)
                self._ids[tp] = _Pair(tp, copies[topic].topic_id, state.topic_id)
        return dict(self._ids)

    async def _ends(
        self,
        waiting: Mapping[TopicPartition, tuple[list[_Known], LogRange, LogRange]],
        before: Mapping[TopicPartition, Anchor],
        *,
        keep_tail: bool,
    ) -> list[SeedPartition]:
        """Reads both logs from an anchor on and judges; where an older one must be tried, once more from there."""
        found: list[SeedPartition] = []
        failed: dict[TopicPartition, NoEnd] = {}
        for turn in range(_TRIED):
            asked = {
                tp: (known[turn], here, there)
                for tp, (known, here, there) in waiting.items()
                if len(known) > turn and (not turn or tp in failed)
            }
            if not asked:
                break
            here_wants = [(tp, _copies_want(known.anchor, here)) for tp, (known, here, _) in asked.items()]
            there_wants = [(tp, _originals_want(known, there)) for tp, (known, _, there) in asked.items()]
            copies, originals = await asyncio.gather(
                read_stretches(self._source, here_wants, committed=False),
                read_stretches(self._target, there_wants, committed=self._committed),
            )
            for (tp, (known, here, there)), copied, original in zip(asked.items(), copies, originals, strict=True):
                if isinstance(copied, Fault) or isinstance(original, Fault):
                    failed.pop(tp, None)
                    fault = copied if isinstance(copied, Fault) else original
                    found.append(_refused(tp, "unreadable", f"its logs cannot be read: {fault}", before.get(tp)))
                    continue
                answer = _judge(known, original, copied, here)
                if isinstance(answer, NoEnd):
                    failed[tp] = answer
                    continue
                failed.pop(tp, None)
                found.append(self._seed(tp, answer, here, there, before.get(tp), keep_tail=keep_tail))
        found += [_refused(tp, no.code, no.reason, before.get(tp)) for tp, no in failed.items()]
        return found

    def _seed(
        self,
        tp: TopicPartition,
        end: CopiesEnd,
        here: LogRange,
        there: LogRange,
        before: Anchor | None,
        *,
        keep_tail: bool,
    ) -> SeedPartition:
        pair = self._ids[tp]
        self._anchors[tp] = Anchor(end.behind, there.end, pair.copies_id, pair.originals_id, end.leader_epoch)
        seed = SeedPartition(
            topic=tp.topic,
            partition=tp.partition,
            action="write",
            reason="behind-copies",
            offset=end.behind,
            end=here.end,
            target_end=there.end,
            tail=end.tail,
            mirrored=end.mirrored,
            compared=end.compared,
            before=None if before is None else before.upstream,
        )
        if end.tail and not keep_tail:
            alone = f"which {self.flow.target} alone has"
            why = f"{end.tail} records from offset {end.mirrored} on, {alone}, were never mirrored"
            return msgspec.structs.replace(seed, action="refuse", reason="unreplicated-tail", detail=why)
        if before == self._kept(self._anchors[tp]):
            return msgspec.structs.replace(seed, action="none", reason="already-there", status="unchanged")
        return seed

    def _without_anchor(
        self, tp: TopicPartition, some: bool, here: LogRange, there: LogRange, before: Anchor | None
    ) -> SeedPartition:
        flow = self.flow
        if not some and there.start == there.end == 0:
            end = CopiesEnd(here.start, 0, 0, here.end - here.start, 0)
            return self._seed(tp, end, here, there, before, keep_tail=True)
        if some:
            why = f"its topic on {flow.source} or {flow.target} was made anew or cut since it was mirrored"
            return _refused(tp, "recreated", why, before)
        why = f"no position and no offset sync of {flow.target}->{flow.source} tells what was mirrored"
        return _refused(tp, "position-unknown", why, before)

    async def _heartbeat_ends(self) -> dict[str, int]:
        found = {}
        for side, place in self._heartbeats():
            log = (await log_ranges(side, [place]))[place]
            if isinstance(log, LogRange):
                found[side.alias] = log.end
        return found

    async def _heartbeats_since(self) -> list[str]:
        """Gives the flows between the two clusters whose heartbeats were written since the look began."""
        ends = {self.flow.source, self.flow.target}
        found: set[str] = set()
        for side, place in self._heartbeats():
            if side.alias not in self._beats:
                continue
            try:
                async for rows in read_columns(side, place, start=self._beats[side.alias]):
                    for _, _, key, value in rows:
                        try:
                            beat = Heartbeat.decode(key, value)
                        except DecodeError:
                            continue
                        if beat is not None and {beat.source, beat.target} == ends:
                            found.add(f"{beat.source}->{beat.target}")
            except (ClusterError, BrokerError):
                continue  # whoever may not read them goes by positions and logs
        return sorted(found)

    def _heartbeats(self) -> Iterator[tuple[WireCluster, TopicPartition]]:
        place = TopicPartition(self.flow.internal.heartbeats, 0)
        yield self._source, place
        yield self._target, place


def _judge(known: _Known, originals: Stretch, copies: Stretch, here: LogRange) -> CopiesEnd | NoEnd:
    anchor = known.anchor
    assert anchor.downstream is not None
    return copies_end(
        anchor.upstream, anchor.downstream, originals, copies, again=known.again, whole=copies.stop == here.end
    )


def _fits(anchor: Anchor, pair: _Pair, copies: LogRange, originals: LogRange) -> bool:
    """Says whether an anchor can be true of these two logs."""
    if anchor.downstream is None or anchor.downstream > copies.end or anchor.upstream > originals.end:
        return False
    sides = ((anchor.source_topic_id, pair.originals_id), (anchor.target_topic_id, pair.copies_id))
    return all(NO_TOPIC_ID in (then, now) or then == now for then, now in sides)


def _copies_want(anchor: Anchor, log: LogRange) -> Want:
    at = anchor.downstream or 0
    return Want("target", max(log.start, at - _BELOW), min(log.end, max(at, log.start) + _MOST))


def _originals_want(known: _Known, log: LogRange) -> Want:
    at = known.anchor.upstream
    below = _BACK if known.again else _BELOW
    return Want("source", max(log.start, at - below), min(log.end, max(at, log.start) + _MOST))


def _shares(
    waiting: Mapping[TopicPartition, tuple[list[_Known], LogRange, LogRange]],
) -> Iterator[list[TopicPartition]]:
    """Cuts the partitions into shares whose records fit into memory together."""
    share: list[TopicPartition] = []
    offsets = 0
    for tp, (known, here, there) in waiting.items():
        wants = _copies_want(known[0].anchor, here), _originals_want(known[0], there)
        offsets += sum(want.stop - want.start for want in wants)
        if share and offsets > _AT_ONCE:
            yield share
            share, offsets = [], 0
        share.append(tp)
    if share:
        yield share


def _refused(tp: TopicPartition, reason: str, detail: str, before: Anchor | None) -> SeedPartition:
    return SeedPartition(
        topic=tp.topic,
        partition=tp.partition,
        action="refuse",
        reason=reason,
        detail=detail,
        before=None if before is None else before.upstream,
    )
