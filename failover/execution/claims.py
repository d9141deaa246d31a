"""Pure: who holds the lock of a flow's executions, by the claims appended to one log.

The log's order decides, and the broker's append times decide what is over: the first claim while
nobody holds it wins, and a holder that has not renewed for its ``ttl`` holds it no more. The lock is
advisory: Kafka's OffsetCommit has no fencing token, so it keeps operators apart, not writes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

TTL_SECONDS = 60.0
"""How long a holder that died holds on: others wait that long at most."""

RENEW_SECONDS = 20.0


class Claim(msgspec.Struct, frozen=True):
    """Is one record of the log. ``id`` is the process's own; ``machine`` tells where its ``pid`` counts.

    ``what``: what it is doing, for people. A ``release`` needs the holder's id alone.
    """

    do: Literal["claim", "renew", "release"]
    id: str
    operator: str = ""
    host: str = ""
    machine: str = ""
    pid: int = 0
    what: str = ""
    ttl: float = TTL_SECONDS


class Holder(msgspec.Struct, frozen=True):
    """Is who holds the lock. ``since``, ``last``: append times in epoch milliseconds."""

    claim: Claim
    since: int
    last: int


def replay(records: Iterable[tuple[int, Claim]]) -> Holder | None:
    """Finds the holder at the time of the last record; records are (append time in epoch ms, claim).

    A renewal while nobody holds the lock takes it again: its process lives, it only came late.
    """
    holder: Holder | None = None
    for at, claim in records:
        if holder is not None and over(holder, at):
            holder = None
        if holder is None:
            holder = Holder(claim, at, at) if claim.do != "release" else None
        elif claim.id == holder.claim.id:
            holder = None if claim.do == "release" else msgspec.structs.replace(holder, last=at)
    return holder


def over(holder: Holder, at: int) -> bool:
    """Says whether a holder has not renewed for its time by ``at`` (epoch ms)."""
    return at - holder.last > holder.claim.ttl * 1000
