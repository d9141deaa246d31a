"""The part of a flow that one worker has; see ``failover.replication.shards`` for who has which."""

from __future__ import annotations

from typing import Protocol

from failover.replication.shards import EVERY, LEADER, Slice


class Membership(Protocol):
    """Is a member of a group; see ``failover.kafka.tokens.Tokens``."""

    def holds(self, token: int) -> bool:
        """Says whether a token is held, by what was heard of the group lately."""

    def fresh(self) -> bool:
        """Says whether the group was heard of lately."""


class Share:
    """Is one worker's part of one flow, by default all of it.

    ``shards``: those it owns now; in a group they come and go. ``group``: by which they do, "" where they are fixed.
    ``membership``: while it is a member.
    """

    def __init__(self, *, part: Slice | None = None, group: str = "") -> None:
        self.part = part
        self.group = group
        self.shards: set[int] = set() if group else set(EVERY if part is None else part.shards)
        self.membership: Membership | None = None

    @property
    def shared(self) -> bool:
        """Says whether others are to have the rest of the flow."""
        return self.part is not None or bool(self.group)

    @property
    def first(self) -> int | None:
        """Gives the shard that it takes before any other, by which it knows whether the rest is still its own.

        None in a group, where each shard comes by itself.
        """
        return None if self.group else min(self.shards)

    def leads(self) -> bool:
        """Says whether this worker does what only one of them does."""
        if self.group:
            return self.membership is not None and self.membership.holds(LEADER)
        return self.part is None or self.part.number == 1

    def alive(self) -> bool:
        """Says whether anything may be written: a member that has not heard of its group may have lost its shards."""
        return not self.group or (self.membership is not None and self.membership.fresh())

    def __str__(self) -> str:
        return f"group {self.group}" if self.group else f"shard {self.part}" if self.part is not None else ""
