"""Consumer groups as one cluster describes them, and what they have committed."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from failover.model.names import Fault


class GroupType(StrEnum):
    """Is the protocol a group lives by."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"
    UNKNOWN = "unknown"


class Member(msgspec.Struct, frozen=True):
    """Is one member. ``group_instance_id`` is set for static members only."""

    client_id: str
    host: str
    member_id: str
    group_instance_id: str | None = None


class ListedGroup(msgspec.Struct, frozen=True):
    """Is a row of a group listing; ``state`` is the broker's own word, "" when not told.

    ``protocol_type``: ``"consumer"`` for consumer groups, ``""`` for groups that only commit.
    """

    name: str
    type: GroupType
    state: str = ""
    protocol_type: str = "consumer"


class GroupInfo(msgspec.Struct, frozen=True):
    """Describes one group on one cluster.

    ``exists``: the cluster lists it. ``state``: Kafka's own word (``Empty``, ``Stable``, ``Dead``,
    ``Assigning`` …); ``Unknown`` when no answer could be had, and then ``fault`` says why.
    ``simple``: it has no protocol type, so only clients with manual assignment commit to it.
    ``operations``: what this client may do with the group, None when the broker does not say.
    """

    name: str
    exists: bool
    type: GroupType
    state: str
    members: tuple[Member, ...] = ()
    simple: bool = False
    operations: frozenset[str] | None = None
    fault: Fault | None = None

    @property
    def inactive(self) -> bool:
        """Says whether an offset commit from outside is allowed: Empty or Dead and no members."""
        return self.fault is None and not self.members and self.state in ("Empty", "Dead")


class Commit(msgspec.Struct, frozen=True):
    """Is a committed offset. ``metadata`` passes through byte for byte, also when not UTF-8.

    ``leader_epoch``: None when absent.
    """

    offset: int
    metadata: bytes = b""
    leader_epoch: int | None = None
