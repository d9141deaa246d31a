"""How a flow is cut into 64 shards, and which of several workers has which. Pure.

Three ways to run a flow:

- One worker alone has all shards and leads.
- With ``--shard I/N`` (I = 1 to N) worker I has every N-th shard from I on for good, and the first one leads.
- In a group the shards are tokens, partitions of a topic that nobody writes to, which Kafka's group coordinator hands
  out to the members: token k is shard k, and whoever holds token 0 leads. The coordinator gives a token to one member
  at a time as it believes; that only decides who is to work. What keeps an earlier owner from writing is the fence of
  the shard's transactional id, whoever believes what.

The leader does once what is not any partition's: it makes and enlarges target topics, keeps settings and ACLs alike,
writes heartbeats and checkpoints, and syncs group offsets.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from failover.errors import UsageError
from failover.mm2.connect_offsets import murmur2
from failover.model.names import TopicPartition

SHARDS = 64
EVERY = frozenset(range(1, SHARDS + 1))
LEAD = 1
"""The shard that a worker alone takes before any other: whoever took it last owns the flow."""
LEADER = 0
"""The token whose holder leads."""
TOKENS = SHARDS + 1


class Slice(NamedTuple):
    """Is worker ``number`` of so many ``workers``, counted from 1."""

    number: int
    workers: int

    @property
    def shards(self) -> frozenset[int]:
        """Gives its shards: the slices of all numbers of as many workers have each shard once."""
        return frozenset(range(self.number, SHARDS + 1, self.workers))

    def __str__(self) -> str:
        return f"{self.number}/{self.workers}"


def parse_slice(text: str) -> Slice:
    """Reads ``I/N``; raises UsageError."""
    number, _, count = text.partition("/")
    if all(part.isascii() and part.isdigit() and len(part) < 4 for part in (number, count)):
        found = Slice(int(number), int(count))
        if 1 <= found.number <= found.workers <= SHARDS:
            return found
    raise UsageError(
        f"--shard {text!r} cannot be used",
        hint=f"write I/N, as in 1/3 for the first of three workers; N is {SHARDS} at most and the same for all of them",
    )


def moves(had: Mapping[int, int], holds: Mapping[int, int]) -> tuple[frozenset[int], frozenset[int]]:
    """Gives the tokens to let go and those to take; both map tokens to the number of the assignment they came by.

    One that came by another assignment was somebody else's meanwhile: it is let go and taken anew, behind a fence.
    """
    return (
        frozenset(token for token, by in had.items() if holds.get(token) != by),
        frozenset(token for token, by in holds.items() if had.get(token) != by),
    )


def shard_of(tp: TopicPartition) -> int:
    """Gives the shard of a source partition, 1 to 64.

    It must not change from one release to the next: two workers that cut a flow otherwise would not fence each other.
    Nor may it depend on how many partitions there are, so that a topic that grows moves none.
    """
    return murmur2(f"{tp.topic}-{tp.partition}".encode()) % SHARDS + 1


def transactional_id(source: str, target: str, shard: int | None = None) -> str:
    """Names a shard of the flow ``source`` -> ``target`` to the target's transaction coordinator.

    None: what the names of all its shards begin with, for a prefixed ACL.
    """
    return f"failover|{source}->{target}|{'' if shard is None else shard}"
