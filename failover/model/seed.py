"""Start positions for a mirror in the reverse direction: what was found, what is written, what came of it."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import msgspec

SeedAction = Literal["write", "refuse", "none"]


class SeedPartition(msgspec.Struct, frozen=True, kw_only=True):
    """Is the start position of one partition of the reverse mirror's source.

    ``offset``: the first source offset to be copied, behind the last copy of what came from the target; None where it
    is not known. ``end``: the source's log end, ``target_end`` the target's. ``tail``: records of the target that never
    reached the source, ``mirrored``: the target's offset behind the last one that did. ``before``: the position on
    record until now, as the next offset. ``reason`` is a stable slug. ``status``: what became of the writing, ""
    before.
    """

    topic: str
    partition: int
    action: SeedAction
    reason: str
    detail: str = ""
    offset: int | None = None
    end: int | None = None
    target_end: int | None = None
    tail: int = 0
    mirrored: int | None = None
    compared: int = 0
    before: int | None = None
    status: Literal["", "written", "failed", "unchanged"] = ""


class Seed(msgspec.Struct, frozen=True, kw_only=True):
    """Is one seeding of the flow ``source`` -> ``target``. ``topic`` of the target keeps the positions.

    ``connector``: the connector of a Connect cluster that keeps them instead, "" otherwise. ``connect``: the same as a
    body for ``PATCH /connectors/NAME/offsets`` of Kafka Connect.
    """

    kind: Literal["failover.seed"] = "failover.seed"
    version: int = 1
    created: datetime
    operator: str
    reason: str
    source: str
    target: str
    topic: str
    connector: str = ""
    dry_run: bool
    partitions: tuple[SeedPartition, ...]
    not_seeded: dict[str, str] = {}
    connect: dict[str, Any] = {}

    @property
    def to_write(self) -> tuple[SeedPartition, ...]:
        """Gives the partitions whose position is to be written."""
        return tuple(one for one in self.partitions if one.action == "write")

    @property
    def refused(self) -> tuple[SeedPartition, ...]:
        """Gives the partitions that are refused."""
        return tuple(one for one in self.partitions if one.action == "refuse")

    @property
    def exit_code(self) -> int:
        """Gives the exit status: 3 nothing may be written, 4 in part, 6 something was not, 0 else."""
        if any(one.status == "failed" for one in self.partitions):
            return 6
        if not self.refused:
            return 0
        return 4 if self.to_write else 3
