"""Failback: where an offset committed on the copies lies among the originals, by the mirror's syncs read backwards.

Words used here: the flow that mirrored brought *originals* (its source's topic, now the target of
the plan) to *copies* (its target's topic, now the plan's source). A sync (up, down) says that the
copy at ``down`` is one of the original at ``up``. A group that committed ``copied`` has consumed every copy below.

What is wanted: m + 1, where m is the highest original with a copy below ``copied``. One run of MM2
copies a rising stretch; after ``kill -9`` the next run starts at or below what was copied, so the
copies below ``copied`` are those of every original up to m. Everything beyond m is unread: originals that were
never mirrored, too. So no rule here knows a "log end": a group at the end of the copies stands right after
the last original that was mirrored, however many the originals' log holds beyond.

What a sync proves. Each sync with ``down`` < ``copied`` proves that the original at ``up`` was consumed, and
with it all that was mirrored of lower ones: ``up`` + 1 passes nothing. Syncs do not prove more; in
between, offsets without a copy (transaction markers, compaction) and copies made twice hide each
other, so a distance counts only where whoever wrote the syncs vouches for it, or where records are compared
(``inverse_content``).

A sync whose ``up`` goes back begins another history: a restart that copies again, or originals made
anew. Syncs do not tell these apart. The history of the last sync below ``copied`` counts and no other, and
where a later one begins below the answer, the answer goes back to there: were the originals
made anew, everything from there on would be unread. Both cost records read again at most.
It fails where originals were made anew and the first sync of the run that copied them was lost, or they had
outgrown the old ones before the mirror looked (MM2 then goes on as if nothing had happened).
A sync whose ``down`` goes back: the copies were truncated or made anew; ``Syncs`` has dropped all before it. It
fails where truncated copies have outgrown a sync's ``down`` again and no sync has gone back.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate

import msgspec

from failover.model.translation import Precision, Proof, Translation
from failover.translate.segments import Syncs
from failover.translate.sync_rule import NO_SYNC, OLDER, TARGET_RECREATED, LogBounds


class Inverse:
    """Answers for one partition; the syncs are weighed once for all its groups.

    ``syncs``: those of the mirroring flow, None when there are none. ``bounds``: ``target_*`` are the
    originals' log, ``source_*`` the copies' (None when silent), both read after the syncs and the commits.
    ``one_to_one``: whoever wrote the syncs vouches that two neighbours with equal deltas have one record per offset
    between them (see ``sync_rule.translate``).
    """

    def __init__(self, syncs: Syncs | None, bounds: LogBounds, *, one_to_one: bool = False) -> None:
        self.bounds = bounds
        self.one_to_one = one_to_one
        self.why = ""
        self.doubt = ""
        self.syncs = None if syncs is None or not len(syncs) else self._usable(syncs)
        if self.syncs is None and not self.why:
            self.why, self.doubt = NO_SYNC, "no offset sync for this partition"
        self._reach: list[int] = [] if self.syncs is None else list(accumulate(self.syncs.ups, max))

    def _usable(self, syncs: Syncs) -> Syncs | None:
        """Keeps the histories that can speak of these two logs; a record they name beyond an end is not there."""
        copies, originals = self.bounds.source_end, self.bounds.target_end
        newest = f"newest sync {syncs.ups[-1]}→{syncs.downs[-1]}"
        if copies is not None and syncs.downs[-1] >= copies:
            self.why = NO_SYNC
            self.doubt = f"{newest} lies beyond the copies' end {copies}: they were truncated or made anew since"
            return None
        beyond = [h for h in range(len(syncs.starts)) if syncs.ups[syncs.bounds_of(h)[1] - 1] >= originals]
        if self.bounds.target_recreated or (beyond and beyond[-1] + 1 == len(syncs.starts)):
            self.why = TARGET_RECREATED
            self.doubt = f"{newest} lies beyond the originals' end {originals}: they were truncated or made anew since"
            return None
        return syncs.since(syncs.starts[beyond[-1] + 1]) if beyond else syncs

    def before(self, copied: int) -> int:
        """Returns the index of the last sync whose copy was consumed, -1 for none."""
        return -1 if self.syncs is None else bisect_left(self.syncs.downs, copied) - 1

    def reach(self, index: int) -> int:
        """Returns the highest original that a sync up to ``index`` names."""
        return self._reach[index]

    def place(self, copied: int) -> Translation:
        """Places one offset committed on the copies (next to read) among the originals.

        ``sync-match``: a sync names the copy consumed last, and no other can be of a higher original.
        ``equal-delta``: only with ``one_to_one``. Otherwise ``sync-below``. Without an offset, ``failure`` says why.
        ``reread_max`` rests on the counting described in ``sync_rule``.
        """
        syncs, index = self.syncs, self.before(copied)
        if syncs is None:
            return _failed(copied, self.why, self.doubt)
        if index < 0:
            if syncs.voided and self.bounds.source_start is not None and copied > self.bounds.source_start:
                return _failed(copied, NO_SYNC, "every sync below it is void: a log was truncated or made anew")
            return _failed(copied, OLDER, f"older than the first sync {syncs.ups[0]}→{syncs.downs[0]}")
        up, down = syncs.ups[index], syncs.downs[index]
        lines = [f"sync {up}→{down} names the copy consumed last" if down == copied - 1 else f"sync {up}→{down} below"]
        proof = Proof.SYNC_MATCH if down == copied - 1 else Proof.SYNC_BELOW
        offset, room = up + 1, copied - 1 - down
        if room and self.one_to_one and self._even(index):
            offset, room, proof = up + copied - down, 0, Proof.EQUAL_DELTA
            lines = [f"sync {up}→{down} below, the next with an equal delta, one record per offset"]
        later = min((syncs.ups[first] for first in syncs.starts if first > index), default=offset)
        if later < offset:
            lines.append(f"lowered from {offset}: a later sync names original {later} again, copied twice or made anew")
            offset, proof = later, Proof.SYNC_BELOW
        most = self.beyond(index, offset, room)
        if self._reach[index] >= offset:
            lines.append(f"earlier syncs reach {self._reach[index]}: copied again since, or of originals made anew")
        if syncs.voided:
            lines.append("older syncs are void: a log was truncated or made anew")
            most = self.bounds.target_end
        most = max(0, min(most, self.bounds.target_end - offset))
        estimate = min(most, room + max(0, self._reach[index] + 1 - offset))
        precision = Precision.BOUNDED if most else Precision.EXACT
        return Translation(copied, offset, precision, proof, estimate, most, tuple(lines))

    def _even(self, index: int) -> bool:
        syncs = self.syncs
        assert syncs is not None
        if index + 1 >= len(syncs) or index + 1 in syncs.starts:
            return False
        return syncs.downs[index + 1] - syncs.ups[index + 1] == syncs.downs[index] - syncs.ups[index]

    def beyond(self, index: int, offset: int, room: int) -> int:
        """Bounds how many originals at or beyond ``offset`` were consumed.

        ``index``: the last sync below the commit, ``room``: copies between the two. Originals up to
        ``reach`` count as offsets; beyond it copies can lie only in ``room`` and in breaks below.
        """
        syncs = self.syncs
        assert syncs is not None
        front = max(offset, self._reach[index] + 1)
        total = front - offset + max(0, room - self.mirrored(syncs.ups[index], front))
        return total + sum(most for _, most in self.tails(index, front))

    def tails(self, index: int, front: int) -> list[tuple[int, int]]:
        """Lists the breaks before sync ``index`` in which a killed run may have passed ``front``.

        Gives (sync before the break, most copies of originals at or beyond ``front``). To pass it, a
        run must first have copied all that lies between the syncs beside the break and ``front``.
        """
        syncs = self.syncs
        assert syncs is not None
        breaks = syncs.breaks
        found = []
        for at in range(bisect_right(breaks.after, index - 1) - 1, -1, -1):
            after = breaks.after[at]
            most = breaks.extra[at] - self.mirrored(max(syncs.ups[after], syncs.ups[after + 1]), front)
            if most > 0:
                found.append((after, most))
            elif self.mirrored(self._reach[after], front) > breaks.largest:
                break
        return found

    def mirrored(self, up: int, front: int) -> int:
        """Returns how many originals strictly between a sync's and ``front`` were mirrored, at least."""
        assert self.syncs is not None
        return max(self.syncs.data_between(up + 1, front), self.syncs.data_between(up, front) - 1)


def beside(own: Translation, inverse: Translation, tail: tuple[int, int], end: int) -> Translation:
    """Joins both answers for a topic of one name on both clusters, mirrored one way before and the other way since.

    ``own``: by the syncs of the flow of the plan; ``inverse``: by those of the flow before it.
    ``tail``: the originals [first, stop) that neither flow brought to the plan's source: from the last one mirrored
    to where the copies of the plan's flow begin. Nobody read them there, so no answer may pass them;
    ``end``: the target's log end.
    """
    first, stop = tail
    if own.offset is None:
        return own if inverse.offset is None and own.failure == TARGET_RECREATED else inverse
    if own.offset <= first or first >= stop:
        return own
    most = end - first
    lines = (*own.evidence, f"lowered from {own.offset}: records {first} to {stop - 1} never came from here")
    bounded = Precision.BOUNDED if most else Precision.EXACT
    return msgspec.structs.replace(
        own,
        offset=first,
        precision=bounded,
        proof=Proof.SYNC_BELOW,
        reread=min(most, own.offset - first),
        reread_max=most,
        evidence=lines,
    )


def _failed(copied: int, failure: str, evidence: str) -> Translation:
    return Translation(copied, None, Precision.NONE, Proof.NONE, evidence=(evidence,), failure=failure)
