"""The end of a worker that another one has overtaken: who that is, as far as it can be told."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Protocol

from failover.errors import BrokerError, ClusterError, Refused
from failover.replication.shards import Slice

_LOOKS, _PAUSE_SECONDS = 5, 0.5
_LONGEST_SECONDS = 5.0


class Writers(Protocol):
    """Knows who wrote positions; see ``failover.replication.positions.Positions``."""

    async def other_writer(self, since_ms: int, *, shard: int | None = None) -> str:
        """Names the worker that wrote last, if it was another one; "" otherwise."""


async def overtaken(
    flow: str, why: str, positions: Writers, since_ms: int, *, part: Slice | None = None, shard: int | None = None
) -> Refused:
    """Makes the error by which a worker of a flow ends.

    The successor writes its name with the positions, as a rule within a second after it has copied something; it is
    waited for a little. ``since_ms``: when this worker began, epoch ms; ``why``: how it was noticed.
    ``part``: of the flow that this worker has, ``shard``: the one it lost.
    """
    successor = ""
    with contextlib.suppress(ClusterError, BrokerError, TimeoutError):
        async with asyncio.timeout(_LONGEST_SECONDS):
            for _ in range(_LOOKS):
                successor = await positions.other_writer(since_ms, shard=shard)
                if successor:
                    break
                await asyncio.sleep(_PAUSE_SECONDS)
    by = f", {successor}" if successor else ""
    if part is not None:
        return Refused(
            f"flow {flow}, --shard {part}: another worker has taken part of it{by} ({why})",
            hint=f"every worker of the flow needs --shard I/{part.workers} with an I of its own; this one ends",
        )
    return Refused(
        f"flow {flow}: another worker has taken over{by} ({why})",
        hint="one worker at a time replicates a flow; leave the other running, or stop it and start this one",
    )
