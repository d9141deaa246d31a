"""MirrorMaker 2's own translation of a committed offset, to the letter.

This is what the running MirrorMaker 2 answers, for comparison and as the last resort; the exact
translation of this package is better. MirrorMaker 2 keeps at most 64 syncs a partition in slots 0 to
63 (S), newest first, spaced so that the precision falls with the distance (MM2: OffsetSyncStore):

    A   S[0] is the newest sync.
    B   S[i] is at most 2^j - 2^i ahead of S[j], i < j: no slot holds anything older than its range.
    C   S[i] is at least 2^max(i-2, 0) ahead of S[j], or they are one sync: slots are not wasted.

``u`` and ``d`` are the offsets of a source record and of its copy on the target.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import TypeAlias

from failover.mm2.versions import Mm2Version, at_least

SLOTS = 64
"""One for each bit of an offset."""

_Sync: TypeAlias = tuple[int, int]


class Untranslatable(StrEnum):
    """Says why MirrorMaker 2 emits no checkpoint for an offset."""

    NOT_READ_TO_END = "not-read-to-end"
    NO_SYNC = "no-sync"
    TOO_FAR_IN_THE_PAST = "too-far-in-the-past"


class OffsetSyncStore:
    """Translates offsets of ONE source partition as MirrorMaker 2 does from 3.4.1 on.

    ``must_read_to_end``: the initial read keeps the last sync only, as after a start at which the
    earlier checkpoints could not be read back, and always before 3.7.1. ``first_rule``: replaces
    slots as 3.4.1 to 3.5.1 do, which lose more of them when syncs are unevenly spaced.
    """

    def __init__(self, must_read_to_end: bool, *, first_rule: bool = False) -> None:
        self._last_only = must_read_to_end
        self._first_rule = first_rule
        self._read_to_end = False
        self._slots: list[_Sync] = []
        # At least so many of the first slots hold the newest sync.
        self._run = 0

    def sync(self, upstream: int, downstream: int) -> None:
        """Takes one sync, in the order of the topic."""
        self.sync_all(((upstream, downstream),))

    def sync_all(self, syncs: Iterable[tuple[int, int]]) -> None:
        """Takes (upstream, downstream) pairs in the order of the topic."""
        if self._last_only and not self._read_to_end:
            for upstream, downstream in syncs:
                self._clear((upstream, downstream))
            return
        update = self._update_first_rule if self._first_rule else self._update
        for upstream, downstream in syncs:
            new = (upstream, downstream)
            slots = self._slots
            # A rewind of the source makes every earlier sync worthless; one of the target goes unnoticed.
            if not slots or upstream < slots[0][0]:
                self._clear(new)
            else:
                update(new, slots)

    def finish_initial_read(self) -> None:
        """Says that the topic was read to its end once; before that nothing is translated."""
        self._read_to_end = True

    def translate(self, upstream: int) -> int | Untranslatable:
        """Gives the target offset for a committed source offset, or why there is none.

        Exact on a sync, one behind the copy of the nearest sync below otherwise.
        """
        if not self._read_to_end:
            return Untranslatable.NOT_READ_TO_END
        for u, d in self._slots:
            if u <= upstream:
                return d if u == upstream else d + 1
        return Untranslatable.TOO_FAR_IN_THE_PAST if self._slots else Untranslatable.NO_SYNC

    def kept(self) -> list[tuple[int, int]]:
        """Gives the distinct (upstream, downstream) pairs in the slots, newest first."""
        return [s for i, s in enumerate(self._slots) if i == 0 or s is not self._slots[i - 1]]

    def _clear(self, new: _Sync) -> None:
        self._slots = [new] * SLOTS
        self._run = SLOTS

    def _update(self, new: _Sync, slots: list[_Sync]) -> None:
        newest = new[0]
        gap = newest - slots[0][0]
        # Every slot before c has a range smaller than the gap (B fails for all that is there), so it
        # gets the new sync; nothing old can be moved up either. The general rule starts at c.
        c = (gap - 1).bit_length() + 1 if gap > 0 else 1
        if c >= SLOTS:
            self._clear(new)
            return
        if newest - slots[c][0] <= 1 << c - 1:
            slots[:c] = [new] * c
            self._run = c
            return
        old = slots.copy()
        slots[:c] = [new] * c
        # The next old sync to consider: behind the equal ones the slots before c have passed over.
        k = min(c - 1, self._run - 1)
        while k < c - 1 and old[k] is old[k + 1]:
            k += 1
        self._run = c
        replacement = new
        previous = new
        while c < SLOTS:
            range_, apart = 1 << c - 1, 1 << max(c - 3, 0)
            here = slots[c]
            if previous is here or previous[0] - here[0] <= range_:
                return
            while True:
                candidate = old[k]
                same = previous is candidate
                distance = previous[0] - candidate[0]
                separated = same or distance >= apart
                promoted = separated and (same or distance <= range_) and self._separated_from_next(candidate, c)
                if promoted:
                    replacement = candidate
                skip = not separated or (k < SLOTS - 1 and candidate is old[k + 1])
                if promoted or skip:
                    k += 1
                if not skip or k >= c:
                    break
            slots[c] = previous = replacement
            c += 1

    def _separated_from_next(self, candidate: _Sync, c: int) -> bool:
        """Says whether C would hold between ``candidate`` in slot ``c`` and what is in the slot behind."""
        if c + 1 >= SLOTS:
            return True
        following = self._slots[c + 1]
        return candidate is following or candidate[0] - following[0] >= 1 << max(c - 2, 0)

    def _update_first_rule(self, new: _Sync, slots: list[_Sync]) -> None:
        replacement = new
        discarded = slots[0]
        slots[0] = new
        for c in range(1, SLOTS):
            p = c - 1
            previous = slots[p]
            same = previous is discarded
            distance = previous[0] - discarded[0]
            fits = same or 1 << max(p - 2, 0) <= distance <= 1 << p
            if fits and self._separated_from_next(discarded, c):
                replacement = discarded
            here = slots[c]
            if previous is here or previous[0] - here[0] <= 1 << p:
                return
            discarded = here
            slots[c] = replacement


class LatestSyncStore:
    """Translates offsets of ONE source partition as MirrorMaker 2 does up to 3.4.0: by the last sync alone.

    The distance to the sync is added as it is, so the answer may lie beyond the true position.
    ``copies_without_sync``: up to 3.2 an offset without any sync is copied unchanged.
    """

    def __init__(self, *, copies_without_sync: bool) -> None:
        self._copies_without_sync = copies_without_sync
        self._last: _Sync | None = None

    def sync(self, upstream: int, downstream: int) -> None:
        """Takes one sync, in the order of the topic."""
        self._last = (upstream, downstream)

    def sync_all(self, syncs: Iterable[tuple[int, int]]) -> None:
        """Takes (upstream, downstream) pairs in the order of the topic."""
        for upstream, downstream in syncs:
            self._last = (upstream, downstream)

    def finish_initial_read(self) -> None:
        """Changes nothing: these releases translate while they still read."""

    def translate(self, upstream: int) -> int | Untranslatable:
        """Gives the target offset for a committed source offset, or why there is none."""
        if self._last is None:
            return upstream if self._copies_without_sync else Untranslatable.NO_SYNC
        u, d = self._last
        return Untranslatable.TOO_FAR_IN_THE_PAST if u > upstream else d + (upstream - u)

    def kept(self) -> list[tuple[int, int]]:
        """Gives the last (upstream, downstream) pair, if any."""
        return [] if self._last is None else [self._last]


def offset_sync_store(
    mm2_version: Mm2Version | None = None, *, must_read_to_end: bool = False
) -> OffsetSyncStore | LatestSyncStore:
    """Makes the store of a release; None stands for the newest.

    ``must_read_to_end`` as in OffsetSyncStore; before 3.7.1 it is always so.
    """
    if not at_least(mm2_version, 3, 4, 1):
        return LatestSyncStore(copies_without_sync=not at_least(mm2_version, 3, 3))
    return OffsetSyncStore(
        must_read_to_end or not at_least(mm2_version, 3, 7, 1),
        first_rule=not at_least(mm2_version, 3, 5, 2),
    )
