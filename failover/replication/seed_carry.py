"""A flow's positions carried from the topic in which its mirror keeps them to a connector.

MirrorMaker 2's dedicated driver and ``failover replicate`` keep them there. Without them a new connector copies every
topic from its start.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from failover.kafka.wire.logs import log_ranges
from failover.kafka.wire.metadata import NO_TOPIC_ID
from failover.model.cluster import LogRange
from failover.model.names import Fault, TopicPartition
from failover.model.seed import SeedPartition
from failover.replication.anchor import Anchor
from failover.replication.seeding import Seeding


class Carrying(Seeding):
    """Is a seeding by positions of the same flow: ``mirrored`` reads them, ``positions`` is to have them."""

    async def look(self, only: Collection[str] = (), *, keep_tail: bool = False) -> list[SeedPartition]:
        """Reads the positions, of those topics alone if any, and what the connector has; nothing is written."""
        del keep_tail  # nothing is compared: where the mirror stood is where the connector goes on
        self._beats, self._still = await self._heartbeat_ends(), f"{self.flow.source}->{self.flow.target}"
        kept = self._moving = await self._mirrored.read()
        there = await self._positions.read()
        chosen = {tp: anchor for tp, anchor in kept.items() if not only or tp.topic in only}
        for topic in set(only) - {tp.topic for tp in chosen}:
            self.not_seeded[topic] = f"no position of {self.flow.source}->{self.flow.target} is kept for it"
        ids = await self._topic_ids({tp.topic for tp in chosen})
        logs = await log_ranges(self._source, [tp for tp in chosen if tp.topic in ids])
        found = []
        for tp, anchor in sorted(chosen.items()):
            if tp.topic not in ids:
                self.not_seeded[tp.topic] = f"{self.flow.source} has no such topic any more"
                continue
            seed = carried(tp, anchor, there.get(tp), logs.get(tp), ids[tp.topic])
            if seed.action == "write":
                self._anchors[tp] = anchor
            found.append(seed)
        return found

    async def stands(self, seeds: Sequence[SeedPartition], seconds: float) -> None:
        """Watches for so many seconds that the flow stands still; raises ``Refused`` else.

        Others may write to topics of the target, so their ends are not watched.
        """
        await super().stands(seeds[:0], seconds)

    async def _heartbeats_since(self) -> list[str]:
        own = f"{self.flow.source}->{self.flow.target}"
        return [flow for flow in await super()._heartbeats_since() if flow == own]

    async def _topic_ids(self, topics: Collection[str]) -> Mapping[str, bytes]:
        found = (await self._source.metadata(sorted(topics))).topics if topics else {}
        return {topic: state.topic_id for topic, state in found.items() if state.fault is None}


def carried(
    tp: TopicPartition, anchor: Anchor, before: Anchor | None, log: LogRange | Fault | None, topic_id: bytes
) -> SeedPartition:
    """Judges one position: is it true of the topic that is there now, and not behind the connector's own?"""
    end = log.end if isinstance(log, LogRange) else None
    own = before.upstream if before is not None else None
    why = _refusal(anchor, own, end, topic_id)
    same = anchor.upstream == (own or 0)
    return SeedPartition(
        topic=tp.topic,
        partition=tp.partition,
        action="refuse" if why else "none" if same else "write",
        reason=why[0] if why else "already-there" if same else "from-positions",
        detail=why[1] if why else "",
        offset=anchor.upstream,
        end=end,
        before=own,
        status="unchanged" if same and not why else "",
    )


def _refusal(anchor: Anchor, own: int | None, end: int | None, topic_id: bytes) -> tuple[str, str] | None:
    known = NO_TOPIC_ID not in (anchor.source_topic_id, topic_id)
    if known and anchor.source_topic_id != topic_id:
        return "recreated", "its topic on the source was made anew since"
    if end is not None and anchor.upstream > end:
        return "recreated", f"it lies beyond the source's end {end}: the topic was made anew or cut since"
    if own is not None and own > anchor.upstream:
        return "position-ahead", f"the connector goes on at {own}: records up to there would be copied again"
    return None
