"""Whether a consumer that starts at a target offset reads on where the group stands on the source.

The records on both sides of the two positions are laid beside each other; no offset sync and no checkpoint is asked,
so this is a check of a translation by other means than those it was made with. What counts as right is what
at-least-once copying allows: records that were consumed may come again, a restarted mirror may have copied a stretch
twice, and what aborted transactions wrote may be missing. What counts as wrong: an unread record before the position,
one that is left out behind it, and a record that is none of the source's.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Sequence

import msgspec

_FOREIGN = "the record there is none of the source's"
_TRIED = 50
"""Places at which the target's first record may lie on the source, where several records are alike."""


class Side(msgspec.Struct, frozen=True):
    """Is one side's records around a position, oldest first: what they are compared by, and their offsets."""

    offsets: Sequence[int]
    tokens: Sequence[int]

    def split(self, position: int) -> int:
        """Gives the place of the first record at or beyond ``position``."""
        return bisect_left(self.offsets, position)


class Followed(msgspec.Struct, frozen=True):
    """Is what a comparison found.

    ``compared``: target records, behind the position and before it, that are the source's. ``reread``: those behind it
    that the group had consumed. ``fault``: what is wrong, "" for nothing; ``at``: at which target offset.
    """

    compared: int
    reread: int = 0
    fault: str = ""
    at: int | None = None


def follow(
    source: Side,
    target: Side,
    *,
    committed: int,
    position: int,
    optional: Collection[int] = (),
    holes: bool = False,
) -> Followed:
    """Compares the records around ``committed`` on the source with those around ``position`` on the target.

    ``optional``: source offsets whose copy may be missing (aborted transactions). ``holes``: a cleaner removes records
    from one of the logs, so single records may be missing on either side.
    """
    return _Beside(source, target, source.split(committed), optional, holes=holes).from_place(target.split(position))


class _Beside:
    """Is both sides beside each other. ``border``: the place of the first unread source record.

    ``places``: where on the source each token is.
    """

    def __init__(self, source: Side, target: Side, border: int, optional: Collection[int], *, holes: bool) -> None:
        self.source, self.target = source, target
        self.border, self.optional, self.holes = border, optional, holes
        self.places: dict[int, list[int]] = {}
        for place, token in enumerate(source.tokens):
            self.places.setdefault(token, []).append(place)

    def from_place(self, start: int) -> Followed:
        """Says what a consumer finds that reads the target from this place on."""
        tokens, border = self.target.tokens, self.border
        passed = self._passed_over(start)
        if passed is not None:
            return passed
        if start == len(tokens):
            return self._up_to(start)
        while self.holes and start < len(tokens) - 1 and tokens[start] not in self.places:
            start += 1
        first = self.places.get(tokens[start], [])
        may_wait = border
        while may_wait < len(self.source.offsets) and self._may_lack(may_wait):
            may_wait += 1
        starts = [place for place in first if place <= may_wait]
        if not starts:
            if first:
                return self._wrong(start, f"{first[0] - border} unread records are passed over")
            return Followed(0) if self.holes else self._wrong(start, _FOREIGN)
        nearest = sorted(starts, key=lambda place: abs(border - place))[:_TRIED]
        tried = [self._walk(start, place) for place in nearest]
        best = next((found for found in tried if not found.fault), tried[0])
        if best.fault:
            return best
        return Followed(best.compared + self._back(start, starts[-1]), best.reread)

    def _may_lack(self, place: int) -> bool:
        return self.holes or self.source.offsets[place] in self.optional

    def _wrong(self, at: int, fault: str) -> Followed:
        return Followed(0, 0, fault, self.target.offsets[at])

    def _passed_over(self, start: int) -> Followed | None:
        """Finds an unread record that lies before the position and nowhere behind it."""
        behind = set(self.target.tokens[start:])
        for place in range(start):
            token = self.target.tokens[place]
            at = self.places.get(token, ())
            if at and at[0] >= self.border and token not in behind and self.source.offsets[at[0]] not in self.optional:
                return self._wrong(place, "an unread record lies before the position")
        return None

    def _up_to(self, end: int) -> Followed:
        """Compares what lies before a position at the end of the target's log."""
        if not end:
            return Followed(0)
        last = [place for place in self.places.get(self.target.tokens[end - 1], ()) if place < self.border]
        if last:
            return Followed(self._back(end, last[-1] + 1))
        if self.holes or not self.border:
            return Followed(0)
        return self._wrong(end - 1, "the record before the position is none of those that were consumed")

    def _walk(self, start: int, place: int) -> Followed:
        """Reads on from one place on both sides until one is over."""
        source, compared, reread = self.source, 0, 0
        for at in range(start, len(self.target.tokens)):
            token = self.target.tokens[at]
            ahead = place
            while (
                ahead < len(source.tokens) and source.tokens[ahead] != token and source.offsets[ahead] in self.optional
            ):
                ahead += 1
            if ahead == len(source.tokens):
                break
            if source.tokens[ahead] != token:
                known = self.places.get(token, ())
                earlier = [each for each in known if each < place]
                later = [each for each in known if each > ahead]
                if earlier:
                    ahead = earlier[-1]  # a mirror that was restarted copies a stretch once more
                elif later and self.holes:
                    ahead = later[0]
                elif later:
                    return self._wrong(at, f"{later[0] - ahead} records before it are missing")
                elif self.holes:
                    continue
                else:
                    return self._wrong(at, _FOREIGN)
            compared += 1
            reread += ahead < self.border
            place = ahead + 1
        return Followed(compared, reread)

    def _back(self, start: int, place: int) -> int:
        """Counts how many records before both places are the same without a break."""
        count = 0
        while start > 0 and place > 0:
            place -= 1
            if self.target.tokens[start - 1] == self.source.tokens[place]:
                count, start = count + 1, start - 1
            elif self.source.offsets[place] not in self.optional:
                break
        return count
