"""The end of a worker that another one has overtaken: who that is, as far as it can be told."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Protocol

from failover.errors import BrokerError, ClusterError, Refused

_LOOKS, _PAUSE_SECONDS = 5, 0.5
_LONGEST_SECONDS = 5.0


class Writers(Protocol):
    """Knows who wrote positions; see ``failover.replication.positions.Positions``."""

    async def other_writer(self, since_ms: int) -> str:
        """Names the worker that wrote last, if it was another one; "" otherwise."""


async def overtaken(flow: str, why: str, positions: Writers, since_ms: int) -> Refused:
    """Makes the error by which a worker of a flow ends.

    The successor writes its name with the positions, as a rule within a second after it has copied something; it is
    waited for a little. ``since_ms``: when this worker began, epoch ms; ``why``: how it was noticed.
    """
    successor = ""
    with contextlib.suppress(ClusterError, BrokerError, TimeoutError):
        async with asyncio.timeout(_LONGEST_SECONDS):
            for _ in range(_LOOKS):
                successor = await positions.other_writer(since_ms)
                if successor:
                    break
                await asyncio.sleep(_PAUSE_SECONDS)
    by = f", {successor}" if successor else ""
    return Refused(
        f"flow {flow}: another worker has taken over{by} ({why})",
        hint="one worker at a time replicates a flow; leave the other running, or stop it and start this one",
    )
