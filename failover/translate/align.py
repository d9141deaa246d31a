"""Which target records are copies of which source records, and where between two of them reading goes on.

Offsets, never contents: records come as tokens (``digest``). Used wherever two logs are compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple


class Pair(NamedTuple):
    """Says that the target record at ``target`` is a copy of the source record at ``source``."""

    target: int
    source: int


class Strip(NamedTuple):
    """Is a stretch of one log: the offsets of its data records and their tokens, same length."""

    offsets: Sequence[int]
    tokens: Sequence[int]


class Settled(NamedTuple):
    """Is a target offset that nothing unread lies before; up to ``doubt`` consumed records may lie at or beyond it."""

    offset: int
    doubt: int


EMPTY = Strip((), ())


def matches(source: Strip, target: Strip, alike: Collection[int] = ()) -> list[Pair]:
    """Pairs each target record with the one source record of the strip that has its token.

    ``alike``: tokens of several source records, wherever they lie. Such a token, and one that occurs twice in the
    strip, pairs with none; one that occurs twice on the target was copied twice and pairs both times. In target order.
    """
    places = dict(zip(source.tokens, source.offsets, strict=True))
    if len(places) < len(source.tokens):
        for token in [token for token, times in Counter(source.tokens).items() if times > 1]:
            del places[token]
    for token in [token for token in places if token in alike] if alike else ():
        del places[token]
    found = map(places.get, target.tokens)
    return [Pair(at, place) for at, place in zip(target.offsets, found, strict=True) if place is not None]


def runs(pairs: Iterable[Pair]) -> list[list[Pair]]:
    """Cuts pairs in target order where the source offset does not rise: each piece is of one copying run."""
    found: list[list[Pair]] = []
    for pair in pairs:
        if found and found[-1][-1].source < pair.source:
            found[-1].append(pair)
        else:
            found.append([pair])
    return found


def straddle(run: Sequence[Pair], upstream: int) -> tuple[Pair, Pair] | None:
    """Returns the neighbours of a run between which ``upstream`` falls: (consumed, unread)."""
    for low, high in pairwise(run):
        if low.source < upstream <= high.source:
            return low, high
    return None


def settle(
    upstream: int, low: Pair | None, high: Pair, source: Strip, target: Strip, *, twin: int | None, lost: bool = False
) -> Settled:
    """Finds the first unread record between two certain pairs of one copying run.

    ``source`` and ``target`` are all data records strictly between the pairs; ``source`` is empty
    where it cannot be read (any more). ``low`` is None at the start of the target's log.
    ``twin``: token of the low pair's record, None when unknown. ``lost``: the source's log begins between the pairs,
    so a record that looks unread may be a consumed one that is gone there.

    Invariant: between the pairs the target holds copies of source records between the pairs
    only, in their order. So (1) equal strips are one to one; (2) a record whose token occurs only
    below ``upstream`` was consumed, only at or above it, unread; (3) as many target offsets as source
    offsets, each with a record, no two alike and none like the low pair's: each source offset
    was copied exactly once, so offsets count, even if the source has lost the records since (compaction, retention).
    Identical records that none of these tells apart are settled from the upper end: no more
    than all unread ones of the source strip can be unread on the target. Whatever is left is taken as unread.
    It could fail only if the target held copies from outside the pairs: a run that began
    between them and went back, which shows as a token out of order or unknown and is then taken as unread.
    """
    offsets, tokens = target
    if not offsets:
        return Settled(high.target, 0)
    split = sum(1 for offset in source.offsets if offset < upstream)
    if list(tokens) == list(source.tokens):
        return Settled(offsets[split] if split < len(offsets) else high.target, 0)
    consumed, unread = set(source.tokens[:split]), set(source.tokens[split:])
    first = 0
    while first < len(tokens) and tokens[first] in consumed and tokens[first] not in unread:
        first += 1
    if first == len(tokens):
        return Settled(high.target, 0)
    doubt, left = 0, Counter(source.tokens[split:])
    for token in tokens[first:]:
        # what is there more often than unread records like it is, in part, a consumed one copied again
        doubt += lost or token in consumed or left[token] <= 0
        left[token] -= 1
    if not doubt:
        return Settled(offsets[first], 0)
    if low is not None and high.target - low.target == high.source - low.source == len(offsets) + 1:
        distinct = set(tokens)
        if len(distinct) == len(tokens) and twin is not None and twin not in distinct:
            return Settled(low.target + upstream - low.source, 0)
    above = len(source.tokens) - split
    missing = len(source.tokens) - len(tokens)
    if low is not None and missing > 0 and list(tokens[-above:] if above else ()) == list(source.tokens[split:]):
        at = max(first, len(offsets) - above)
        return Settled(offsets[at] if at < len(offsets) else high.target, min(missing, doubt))
    return Settled(offsets[first], doubt)
