"""The answer of the translation: one source offset, where it lies on the target, how it is known."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Precision(StrEnum):
    """Says how close a translated offset is to the true position.

    ``exact``: the first record not consumed is at the offset; nothing is read again.
    ``bounded``: at or below it, by at most a proven number of records.
    ``conservative``: at or below it, as MirrorMaker 2's own checkpoint says.
    """

    EXACT = "exact"
    BOUNDED = "bounded"
    CONSERVATIVE = "conservative"
    NONE = "none"


class Proof(StrEnum):
    """Names the evidence behind a translated offset."""

    SYNC_MATCH = "sync-match"
    EQUAL_DELTA = "equal-delta"
    CONTENT = "content"
    TRACKED = "tracked"
    SYNC_BELOW = "sync-below"
    CHECKPOINT = "checkpoint"
    LOG_START = "log-start"
    LOG_END = "log-end"
    TIMESTAMP = "timestamp"
    NONE = "none"


class Translation(msgspec.Struct, frozen=True, omit_defaults=True):
    """Says where a committed source offset lies on the target.

    ``upstream``: the committed source offset (next to read). ``offset``: the target offset to
    commit, None when it cannot be placed. ``reread``: data records at or beyond ``offset`` on the
    target that lie before the true position, estimated; ``reread_max``: the proven upper bound of
    that number. Both None when unknown. ``evidence``: one line each, for ``plan --evidence``; no
    record content ever. ``failure``: a skip code when ``offset`` is None
    (``older-than-first-sync``, ``no-checkpoint``, …).
    """

    upstream: int
    offset: int | None
    precision: Precision
    proof: Proof
    reread: int | None = None
    reread_max: int | None = None
    evidence: tuple[str, ...] = ()
    failure: str | None = None
