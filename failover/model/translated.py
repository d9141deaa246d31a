"""A group's translated offsets: what MM2's own client answers, and beside it what is proven here."""

from __future__ import annotations

from datetime import datetime

import msgspec

from failover.model.translation import Precision, Proof


class TranslatedOffset(msgspec.Struct, frozen=True, kw_only=True):
    """Is where a group may start on one target partition.

    ``offset``, ``metadata``: exactly what Java's ``RemoteClusterUtils.translateOffsets`` answers, that is MM2's newest
    checkpoint, made at ``checkpoint_time`` for the source's offset ``checkpoint_upstream``; None where there is no
    checkpoint. ``placed``: the offset found by this tool for the source's offset ``upstream``, ``precision`` and
    ``proof`` saying how it is known; None where it cannot be placed, and ``failure`` says why. ``reread`` and
    ``reread_max``: records that come again, estimated and at most, by ``placed``; None: unknown.
    """

    topic: str
    partition: int
    offset: int | None
    metadata: str
    checkpoint_upstream: int | None
    checkpoint_time: datetime | None
    upstream: int | None
    placed: int | None
    precision: Precision
    proof: Proof
    reread: int | None = None
    reread_max: int | None = None
    failure: str | None = None


class GroupTranslation(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="failover.translation"):
    """Is the translation of one group's offsets, taken at ``taken``; ``partitions`` is () for a group nobody knows."""

    group: str
    source: str
    target: str
    source_state: str
    taken: datetime
    partitions: tuple[TranslatedOffset, ...]
