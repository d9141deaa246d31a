"""Pure: which positions a cycle of the tracker asks about, and what of the answers goes on record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from failover.mm2.exact_checkpoint import Known, Position
from failover.model.cluster import LogRange
from failover.model.groups import Commit
from failover.model.names import TopicPartition
from failover.model.translation import Precision, Translation

LONGEST_PAUSE = 60.0
"""Seconds after which a position that could not be translated exactly is asked about again, at most."""


class Wanted(NamedTuple):
    """Is one position to be translated. ``commit_at``: when the commit was read first (epoch ms)."""

    group: str
    source: TopicPartition
    place: TopicPartition
    commit: Commit
    commit_at: int


class _Try(NamedTuple):
    commit: Commit
    commit_at: int
    times: int
    due: float


class Agenda:
    """Knows the positions of every group that are not on record exactly, and when each is due.

    One that moved is due at once; one that could not be placed exactly after a pause that doubles, since it may cost
    much to find that out again. ``pause``: seconds before the first repetition.
    """

    def __init__(self, pause: float) -> None:
        self._pause = pause
        self._tries: dict[str, dict[TopicPartition, _Try]] = {}
        self._sources: dict[TopicPartition, TopicPartition] = {}

    @property
    def open(self) -> int:
        """Is how many positions are not on record exactly."""
        return sum(map(len, self._tries.values()))

    def groups(self) -> Iterable[str]:
        """Names the groups with open positions."""
        return self._tries.keys()

    def behind(self, recorded: Mapping[str, Mapping[TopicPartition, Position]]) -> list[str]:
        """Names the groups of which an older commit is on record than the last one read."""
        found = []
        for group, tries in self._tries.items():
            known = recorded.get(group, {})
            if any(place not in known or known[place].upstream != each.commit.offset for place, each in tries.items()):
                found.append(group)
        return sorted(found)

    def look(
        self,
        group: str,
        commits: Mapping[TopicPartition, tuple[TopicPartition, Commit]],
        recorded: Mapping[TopicPartition, Position],
        at: int,
    ) -> None:
        """Compares a group's commits, by target partition, with what is on record; ``at``: when they were read."""
        tries = self._tries.setdefault(group, {})
        for place in tries.keys() - commits.keys():
            del tries[place]
        for place, (source, commit) in commits.items():
            known = recorded.get(place)
            if known is not None and _same(known, commit) and known.known.precision == Precision.EXACT:
                tries.pop(place, None)
                continue
            self._sources[place] = source
            old = tries.get(place)
            if old is None or old.commit != commit:
                tries[place] = _Try(commit, at, 0, 0.0)
        if not tries:
            del self._tries[group]

    def drop(self, group: str) -> None:
        """Forgets a group."""
        self._tries.pop(group, None)

    def due(self, now: float, most: int) -> list[Wanted]:
        """Gives what is to be translated now, those asked about least often first, ``most`` at a time."""
        found = [
            (each.times, each.due, Wanted(group, self._sources[place], place, each.commit, each.commit_at))
            for group, tries in self._tries.items()
            for place, each in tries.items()
            if each.due <= now
        ]
        if len(found) > most:
            found.sort(key=lambda row: row[:2])
        return [wanted for _, _, wanted in found[:most]]

    def asked(self, wanted: Wanted, now: float, *, exact: bool) -> None:
        """Notes that a position was translated."""
        tries = self._tries.get(wanted.group, {})
        old = tries.get(wanted.place)
        if old is None or old.commit != wanted.commit:
            return
        if exact:
            del tries[wanted.place]
            if not tries:
                del self._tries[wanted.group]
            return
        pause = min(self._pause * 2**old.times, LONGEST_PAUSE)
        # A little less than a whole number of cycles, so that it is due when the cycle comes.
        tries[wanted.place] = old._replace(times=min(old.times + 1, 20), due=now + pause * 0.9)


class Seen(NamedTuple):
    """Is what a translation was made from: the target's log and topic id, the source's end, and when (epoch ms)."""

    target: LogRange
    target_id: str
    source_end: int | None
    at: int


def settled(wanted: Wanted, found: Translation | None, seen: Seen, before: Position | None) -> Position | None:
    """Gives the position to go on record, None where nothing is known.

    An answer that is not exact never goes back unless the group did. All that was unread when ``before`` was found lay
    at or beyond its offset then, and what is copied later is appended behind, so that offset passes nothing unread as
    long as the group stands at its upstream offset or beyond, and the target's topic is the one it was and no shorter.
    An exact answer below it contradicts that: the target lost its end and grew again, say. Then the lower one counts.
    """
    if found is None or found.offset is None:
        return None
    offset, most = found.offset, found.reread_max
    bounded = found.precision is not Precision.EXACT
    if bounded and before is not None and wanted.commit.offset >= before.upstream and before.downstream > offset:
        same = not before.known.target_id or not seen.target_id or before.known.target_id == seen.target_id
        if same and before.downstream <= seen.target.end:
            most = None if most is None else max(0, most - (before.downstream - offset))
            offset = before.downstream
    known = Known(
        proof=str(found.proof),
        precision=str(found.precision),
        most=most,
        end=seen.source_end,
        end_at=seen.at,
        commit_at=wanted.commit_at,
        target_id=seen.target_id,
    )
    return Position(wanted.commit.offset, offset, wanted.commit.metadata, known)


def differs(new: Position, old: Position | None) -> bool:
    """Says whether a position is to be written: times and bounds alone are no news."""
    return old is None or (new.upstream, new.downstream, new.metadata, new.known.precision, new.known.target_id) != (
        old.upstream,
        old.downstream,
        old.metadata,
        old.known.precision,
        old.known.target_id,
    )


def _same(position: Position, commit: Commit) -> bool:
    return position.upstream == commit.offset and position.metadata == commit.metadata
