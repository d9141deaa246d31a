"""What the syncs alone say about a committed source offset: the answer while no record is compared.

What a sync proves. MM2 writes (up, down) after the target acknowledged the record, so the target
record at ``down`` is a copy of the source record at ``up``; within one run of a task copies keep
the source's order. Hence all that a run copies of offsets above ``up`` lies above ``down``. The
distance tells nothing: offsets without a mirrored record (transaction markers, compaction,
aborted records under read_committed) close up on the target, records copied twice spread it.

What could still pass the true position: a run that was killed had copied beyond what the
present one has reached again. Its records then lie on the target only before the syncs of
the present run. ``Syncs.usable_to`` finds that by counting: a break whose unseen tail has not
been outnumbered yet by what was mirrored since limits the answer to syncs before the break.

The counting, and with it each ``reread_max`` here, rests on one condition: no span between
neighbouring syncs both lacks source offsets and contains records copied twice, and the stretch
beyond the newest sync contains none copied twice (MM2 writes a sync for the first record
of every run; but while ten of a task's are in flight a later one of the partition replaces it, and ten are lost with
a kill). Where this fails, a span looks clean that is not, or has room for more copies than its offsets tell. Comparing
records (``content``) closes the second and finds the first among what it reads.
"""

from __future__ import annotations

from typing import Final

import msgspec

from failover.model.translation import Precision, Proof, Translation
from failover.translate.segments import Syncs


class LogBounds(msgspec.Struct, frozen=True, kw_only=True):
    """Is where both logs of a partition begin and end.

    Read in this order: committed offsets and syncs, then the target's bounds, then the source's; so
    no sync lies beyond an end, and nothing below ``target_end`` is a copy from beyond ``source_end``.
    ``target_end`` and ``source_end``: offset of the next record (high watermark). The source's are
    None when it does not answer. ``source_recreated``, ``target_recreated``: the topic is known
    to be another one than the syncs were written for.
    """

    target_start: int
    target_end: int
    source_start: int | None = None
    source_end: int | None = None
    source_recreated: bool = False
    target_recreated: bool = False


OLDER: Final = "older-than-first-sync"
NO_SYNC: Final = "no-checkpoint"
TARGET_RECREATED: Final = "target-recreated"


def translate(upstream: int, syncs: Syncs | None, bounds: LogBounds, *, one_to_one: bool = False) -> Translation:
    """Places one committed source offset by the syncs of its partition.

    ``one_to_one``: whoever wrote the syncs vouches that two neighbours with equal deltas have one
    record per offset between them (this package's replicator: it writes a sync wherever the delta changes).
    Returns a translation without an offset, with its ``failure``, when the syncs cannot place it.
    """
    if syncs is None or not len(syncs):
        return _drained(upstream, bounds) or _failed(upstream, NO_SYNC, "no offset sync for this partition")
    if bounds.target_recreated or syncs.downs[-1] >= bounds.target_end:
        return _failed(
            upstream,
            TARGET_RECREATED,
            f"newest sync {_pair(syncs, len(syncs) - 1)} lies beyond the target's end {bounds.target_end}: "
            "the target was truncated or recreated since",
        )
    drained = _drained(upstream, bounds, syncs)
    if drained is not None:
        return drained
    syncs, foreign = of_this_source(syncs, bounds)
    if not len(syncs):
        return _failed(upstream, NO_SYNC, "every offset sync is older than the source topic")
    caught_up = bounds.source_end is not None and syncs.ups[-1] + 1 == bounds.source_end
    last = len(syncs) - 1 if caught_up else syncs.usable_to()
    index = syncs.below(upstream, last)
    if index < 0:
        return _failed(upstream, OLDER, f"older than the first sync {_pair(syncs, 0)}")
    place = _Place(upstream, syncs, bounds, index, last, unsure=foreign)
    if syncs.ups[index] == upstream:
        return _match(place)
    return (_equal_delta(place) if one_to_one else None) or _below(place)


class _Place(msgspec.Struct, frozen=True):
    """Is a committed offset beside the sync at or below it."""

    upstream: int
    syncs: Syncs
    bounds: LogBounds
    index: int
    last: int
    unsure: bool

    @property
    def newest(self) -> bool:
        return self.index == len(self.syncs) - 1

    @property
    def limit(self) -> int:
        """The target offset of the next sync, or the log end."""
        return self.bounds.target_end if self.newest else self.syncs.downs[self.index + 1]


def _match(place: _Place) -> Translation:
    """Answers by a sync for this very record: ``sync-match``.

    Invariant: the target record at ``down`` is a copy of the first unread record, in the last
    history that reaches down to it. It could fail where a still later run copied the record once
    more without leaving a sync: then what lies between is read again, nothing is skipped;
    ``reread_max`` counts every break in which that can have happened.
    """
    down = place.syncs.downs[place.index]
    return _answer(place, down, Proof.SYNC_MATCH, (0, _recopied(place)), f"sync {_pair(place.syncs, place.index)}")


def _equal_delta(place: _Place) -> Translation | None:
    """Answers between two neighbours with equal deltas by counting offsets: ``equal-delta``.

    Invariant: as many target offsets as source offsets lie between the two syncs, so if every
    source offset holds a mirrored record (or no target record is a second copy) the mapping is
    one to one. Equal deltas alone do not prove that: source offsets missing below and records
    copied twice above cancel out, and the sum would then pass the true position. So it is
    asked for only when the writer of the syncs vouches for it; otherwise ``sync-below`` answers
    and comparing records makes it exact.
    """
    syncs, index = place.syncs, place.index
    if place.newest or index >= place.last or index + 1 in syncs.starts:
        return None
    delta = syncs.downs[index] - syncs.ups[index]
    if syncs.downs[index + 1] - syncs.ups[index + 1] != delta:
        return None
    evidence = f"syncs {_pair(syncs, index)} and {_pair(syncs, index + 1)} with equal deltas, one record per offset"
    return _answer(place, place.upstream + delta, Proof.EQUAL_DELTA, (0, _recopied(place)), evidence)


def _below(place: _Place) -> Translation:
    """Answers with the offset after the nearest sync below: ``sync-below``.

    Invariant: the record at ``down`` was consumed and every unread record its run copied lies
    above, so ``down`` + 1 passes nothing. Consumed records above it: at most the source offsets
    between the sync and the committed offset, and at most what the span holds. ``limit`` - ``down``
    - 1 is 0 where nothing follows on the target: then the answer is exact.
    """
    syncs, index = place.syncs, place.index
    down = syncs.downs[index]
    consumed = place.upstream - syncs.ups[index] - 1
    room = place.limit - down - 1
    most = min(consumed, room) + _recopied(place)
    future = consumed - room if place.newest and place.bounds.source_end is not None else 0
    estimate = min(consumed, room)
    if not place.newest and (step := syncs.ups[index + 1] - syncs.ups[index]) > 0:
        estimate = min(estimate, round(consumed * (room + 1) / step))
    evidence = f"sync {_pair(syncs, index)} below"
    if not place.newest:
        evidence += f", next {_pair(syncs, index + 1)}"
    elif not room:
        evidence += ", nothing follows on the target"
    return _answer(place, down + 1, Proof.SYNC_BELOW, (estimate, most), evidence, future=max(0, future))


def _answer(
    place: _Place, offset: int, proof: Proof, reread: tuple[int, int], evidence: str, *, future: int = 0
) -> Translation:
    """Clamps an answer to the target's log; ``reread``: estimate, bound; ``future``: consumed, maybe mirrored later."""
    lines = [evidence]
    bounds, syncs = place.bounds, place.syncs
    estimate, most = reread
    if place.last < len(syncs) - 1:
        most = bounds.target_end
        future = max(future, place.upstream - syncs.ups[-1] - 1)
        lines.append(
            f"syncs after {_pair(syncs, place.last)} are not used: after a restart the mirror "
            "has not passed yet what it had copied before"
        )
    if place.unsure:
        most = bounds.target_end
        lines.append("a sync lies at or beyond the source's end: the source was truncated or recreated")
    if offset < bounds.target_start:
        estimate = max(0, estimate - (bounds.target_start - offset))
        lines.append(f"raised from {offset} to the target's log start")
        offset = bounds.target_start
    most = min(most, bounds.target_end - offset) + future
    precision = Precision.EXACT if most == 0 else Precision.BOUNDED
    return Translation(place.upstream, offset, precision, proof, min(estimate, most), most, tuple(lines))


def _recopied(place: _Place) -> int:
    """Returns how many consumed records later runs may have copied again beyond the answer, at most."""
    return sum(most for _, most in place.syncs.recopies(place.upstream, place.index))


def of_this_source(syncs: Syncs, bounds: LogBounds) -> tuple[Syncs, bool]:
    """Drops the histories written for an earlier topic of this name; says whether doubt remains.

    A sync at or beyond the source's end speaks of a record that is not there: the source was
    truncated or recreated. When a later history keeps below the end, only that one counts.
    """
    end = bounds.source_end
    if end is None:
        return syncs, bounds.source_recreated
    beyond = [h for h in range(len(syncs.starts)) if syncs.ups[syncs.bounds_of(h)[1] - 1] >= end]
    if not beyond:
        return syncs, bounds.source_recreated and len(syncs.starts) == 1
    newest = beyond[-1]
    if newest + 1 == len(syncs.starts):
        return syncs, True
    return syncs.since(syncs.starts[newest + 1]), False


def _drained(upstream: int, bounds: LogBounds, syncs: Syncs | None = None) -> Translation | None:
    """Answers a group that has read everything the source holds: ``log-end``.

    Invariant: nothing unread exists, so nothing unread lies on the target and its end passes
    nothing, unless somebody else writes there: where more follows the newest sync than the source had offsets for,
    all of it counts as unread (``sync-below``; comparing records tells what it is). What is not mirrored yet
    will be read again if the mirror goes on: ``reread_max`` counts the source offsets beyond the newest sync less
    the target records beyond it; only the records themselves tell whether those offsets hold any (transaction
    markers do not).
    """
    if bounds.source_end is None or upstream != bounds.source_end or bounds.source_recreated:
        return None
    lines = [f"the group has read the source to its end {upstream}: the target's end is next"]
    missing = upstream - (bounds.source_start or 0)
    if syncs is not None and len(syncs):
        down, tail = syncs.downs[-1], bounds.target_end - syncs.downs[-1]
        missing = max(0, upstream - syncs.ups[-1] - tail)
        if tail > max(1, upstream - syncs.ups[-1]):
            lines = [
                f"the group has read the source to its end {upstream}, but the target holds more behind sync "
                f"{_pair(syncs, len(syncs) - 1)} than was there to copy: copied twice, or written there by others"
            ]
            return Translation(
                upstream, down + 1, Precision.BOUNDED, Proof.SYNC_BELOW, tail - 1, tail - 1, tuple(lines)
            )
    precision = Precision.BOUNDED if missing else Precision.EXACT
    return Translation(upstream, bounds.target_end, precision, Proof.LOG_END, 0, missing, tuple(lines))


def _failed(upstream: int, failure: str, evidence: str) -> Translation:
    return Translation(upstream, None, Precision.NONE, Proof.NONE, evidence=(evidence,), failure=failure)


def _pair(syncs: Syncs, index: int) -> str:
    return f"{syncs.ups[index]}→{syncs.downs[index]}"
