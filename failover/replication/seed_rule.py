"""Where on a topic that both clusters write the copies of a mirror end, and what came behind them. Pure.

The mirror brought *originals* to *copies*, under one name on both clusters. After a failover applications wrote behind
the copies. To mirror these records back, and nothing else, the reverse mirror must begin behind the last copy.

An anchor says that the originals below ``upstream`` lie among the copies below ``downstream``. From there on both logs
are read. Records of the copies that follow the originals in their order are copies; one that goes back, too, as a
killed MirrorMaker 2 copies again what it had not noted (``again``). The first record behind the last of these is where
to begin. Where this is not sure, the answer is a refusal: beginning too early doubles records, too late loses them.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Literal

import msgspec

from failover.replication.locate_match import Sample, sample
from failover.replication.reading import Stretch

SURE_STRANGERS = 1_000
"""So many records in a row that are no copies show, where the log is longer than what is read, that none follow."""

Code = Literal["anchor-wrong", "mixed", "alike", "originals-gone", "too-long"]


class CopiesEnd(msgspec.Struct, frozen=True):
    """Says where copies end: the reverse mirror begins at ``behind``, an offset of the copies' log.

    ``mirrored``: the offset behind the last original that was mirrored. ``tail``: originals behind it, which the
    copies lack. ``own``: records behind the copies, as far as was read. ``compared``: records found equal.
    ``leader_epoch``: of what lies before ``behind``, -1 if that is not known.
    """

    behind: int
    mirrored: int
    tail: int
    own: int
    compared: int
    leader_epoch: int = -1


class NoEnd(msgspec.Struct, frozen=True):
    """Says why it cannot be told where copies end."""

    code: Code
    reason: str


def copies_end(
    upstream: int, downstream: int, originals: Stretch, copies: Stretch, *, again: bool, whole: bool
) -> CopiesEnd | NoEnd:
    """Finds the end of the copies from an anchor.

    ``originals``, ``copies``: both logs from below the anchor on, the originals' to their end, the copies' too where
    ``whole`` says so. ``again``: the mirror may have copied again what lies before, as MirrorMaker 2 does.
    """
    beside = sample(originals, copies, bottom=False)
    first, before = (
        bisect_left(side.offsets, at) for side, at in ((beside.source, upstream), (beside.target, downstream))
    )
    compared = _borne_out(beside, first, before)
    if compared is None:
        return NoEnd(
            "anchor-wrong", f"the records before original {upstream} are not those before copy {downstream} on record"
        )
    walk = _Walk(beside, first, before, again=again)
    stamped = not copies.appended and all(row.timestamp != -1 for row in originals.rows)
    if walk.doubtful and not stamped:
        return NoEnd(
            "alike",
            "records are alike on both sides and brokers set their timestamps, so copies cannot be told from records"
            " that were written there",
        )
    if walk.strangers:
        return NoEnd(
            "mixed",
            f"{walk.strangers} records that are not among the originals lie before the last copy: somebody wrote there"
            " while the mirror was still at work, or the originals are gone",
        )
    own = len(beside.target.tokens) - walk.behind
    behind = beside.target.offsets[walk.behind - 1] + 1 if walk.behind > before else max(downstream, copies.start)
    mirrored = beside.source.offsets[walk.reached - 1] + 1 if walk.reached > first else max(upstream, originals.start)
    if own and any(at + count > mirrored for at, count in originals.holes):
        return NoEnd(
            "originals-gone",
            f"originals behind {mirrored} are gone, so what follows the last copy may be copies of them",
        )
    if not whole and own < SURE_STRANGERS:
        return NoEnd(
            "too-long", f"the copies go on for more than {len(beside.target.tokens)} records behind the anchor"
        )
    return CopiesEnd(
        behind,
        mirrored,
        len(beside.source.tokens) - walk.reached,
        own,
        compared + walk.copies,
        copies.epoch_before(behind),
    )


def _borne_out(beside: Sample, first: int, before: int) -> int | None:
    """Compares what lies before the anchor on both sides; gives how many pairs there are, None for a contradiction."""
    target = beside.target
    below = Sample(
        beside.source,
        target._replace(offsets=target.offsets[:before], tokens=target.tokens[:before], gaps=target.gaps[: before + 1]),
        bottom=False,
    )
    agreement = below.agreement(first)
    return agreement.pairs if agreement.broken is None else None


class _Walk:
    """Goes over the copies from an anchor on.

    ``behind``: the number of the first record behind the last copy. ``reached``: that of the first original that was
    never met. ``copies``: how many were found. ``strangers``: records among them that are none. ``doubtful``: equal
    records alone say so little that a written record may have been taken for a copy.
    """

    def __init__(self, beside: Sample, first: int, before: int, *, again: bool) -> None:
        source, target = beside.source, beside.target
        at = first
        self.behind, self.reached = before, first
        self.copies = self.strangers = 0
        self.doubtful = False
        passed = 0
        for number in range(before, len(target.tokens)):
            token = target.tokens[number]
            every = source.places.get(token, ())
            places = [place for place in every if again or place >= at]
            if not places:
                passed += 1
                continue
            in_order = at < len(source.tokens) and source.tokens[at] == token
            self.doubtful = self.doubtful or not in_order or len(places) > 1
            at = (at if in_order else next((place for place in places if place >= at), places[-1])) + 1
            self.reached = max(self.reached, at)
            self.strangers += passed
            self.copies, passed, self.behind = self.copies + 1, 0, number + 1
