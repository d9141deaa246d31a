"""Which flow of this process may copy into a topic of the target that several of them select.

Names that are kept or mapped do not tell two sources apart: both would write into one topic, and nothing could part
their records again. So a topic has one owner: the flow that copies it already, in this process or, by the position on
record, before it. Where none or several do, nobody copies it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from failover.inventory.flow import Flow
from failover.inventory.mirrored import may_collide
from failover.replication.topics_seen import TopicFault

PATIENCE_SECONDS = 10.0
"""So long does a flow's first look wait for those of the others, one of whose clusters may not answer."""

_SELECTED, _ON_RECORD, _COPIED = range(3)


class _Claim(NamedTuple):
    """Is a flow's wish to copy ``topic`` into a target topic, and how well it is founded."""

    topic: str
    ground: int


class Owners:
    """Knows what the flows of one process want to copy; ``flows``: all that are to run."""

    def __init__(self, flows: Iterable[Flow] = ()) -> None:
        self._flows = {_name(flow): flow for flow in flows}
        self._heard = {name: asyncio.Event() for name in self._flows}
        self._claims: dict[str, dict[str, _Claim]] = {}

    async def settle(
        self, flow: Flow, targets: Mapping[str, str], *, recorded: Collection[str], copied: Collection[str]
    ) -> list[TopicFault]:
        """Notes what a flow wants to copy and gives, with the reason, what it may not.

        ``targets``: source topic → target topic. ``recorded``: source topics with a position on record. ``copied``:
        those that it copies now. Waits for the first word of flows that may want the same, as long as is reasonable.
        """
        name = _name(flow)
        rivals = [
            other
            for other, rival in self._flows.items()
            if other != name and rival.target == flow.target and may_collide(flow, rival)
        ]
        if not rivals:
            return []
        self._claims[name] = {
            target: _Claim(topic, _COPIED if topic in copied else _ON_RECORD if topic in recorded else _SELECTED)
            for topic, target in targets.items()
        }
        self._heard[name].set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_SECONDS):
                await asyncio.gather(*(self._heard[other].wait() for other in rivals))
        found = []
        for target, mine in self._claims[name].items():
            theirs = {other: claim for other in rivals if (claim := self._claims.get(other, {}).get(target))}
            if theirs and mine.ground <= max(claim.ground for claim in theirs.values()):
                found.append(_refused(flow, mine, target, theirs))
        return found

    def left(self, flow: Flow) -> None:
        """Notes that a flow has ended or cannot begin, so that nobody waits for it; what it copied stays its own."""
        if (heard := self._heard.get(_name(flow))) is not None:
            heard.set()


def _name(flow: Flow) -> str:
    return f"{flow.source}->{flow.target}"


def _refused(flow: Flow, mine: _Claim, target: str, theirs: Mapping[str, _Claim]) -> TopicFault:
    best = max(claim.ground for claim in theirs.values())
    named = ", ".join(f"{claim.topic} of flow {other}" for other, claim in sorted(theirs.items()))
    if mine.ground < best:
        keeper = next(other for other, claim in sorted(theirs.items()) if claim.ground == best)
        outcome = f"{keeper} copies it already, so this one is not copied"
    else:
        outcome = "none of them is copied, since their records could not be told apart there"
    return TopicFault(
        mine.topic,
        target,
        "two-sources",
        f"topic {mine.topic} of {flow.source} becomes {target} on {flow.target}, and so does {named}; {outcome}",
        "exclude it in all of these flows but one, or give each its own name: the default replication policy or"
        " failover.replication.policy.topic.map",
    )
