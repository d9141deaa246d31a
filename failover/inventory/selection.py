"""Which groups a plan is made for, and which are left out and why: decided from names and types alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping

import msgspec

from failover.errors import GroupNotFound, UsageError
from failover.mm2.internal_topics import is_own_group
from failover.model.groups import GroupType, ListedGroup
from failover.model.snapshot import NotPlanned

_CONSUMER_PROTOCOLS = ("", "consumer")
_OTHER_TYPES = {GroupType.SHARE: "share", GroupType.STREAMS: "streams"}


class Selection(msgspec.Struct, frozen=True):
    """Is what the operator asked for.

    ``groups``: literal names, planned even where the filters exclude them. ``pattern``: a regular
    expression that must match a whole name; the filters still apply. Neither: every group that the
    filters pick. ``exclude``: literal names left out in any case. ``create``: plan a group named
    by hand although it exists nowhere.
    """

    groups: tuple[str, ...] = ()
    pattern: str | None = None
    exclude: tuple[str, ...] = ()
    create: bool = False


class Known(msgspec.Struct, frozen=True):
    """Is where groups are known from: both clusters' listings and the checkpoints.

    ``complete``: False when a broker of either cluster could not be asked for its groups, so that
    a name missing here may exist all the same. ``silent_source``: alias of a source that was not
    asked or gave no answer, so that its groups are not known.
    """

    source: Mapping[str, ListedGroup]
    target: Mapping[str, ListedGroup]
    checkpoints: Collection[str]
    complete: bool = True
    silent_source: str | None = None

    def __contains__(self, group: str) -> bool:
        return group in self.source or group in self.target or group in self.checkpoints

    def names(self) -> set[str]:
        """Gives every name."""
        return {*self.source, *self.target, *self.checkpoints}

    def listings(self, group: str) -> tuple[ListedGroup, ...]:
        """Gives the group's rows in the clusters' listings."""
        return tuple(rows[group] for rows in (self.target, self.source) if group in rows)


class Candidates(msgspec.Struct, frozen=True):
    """Is the outcome: groups whose offsets are worth reading, and those left out.

    ``by_hand``: the part of ``groups`` that stays in the plan whatever its offsets say.
    """

    groups: tuple[str, ...]
    by_hand: frozenset[str]
    left_out: tuple[NotPlanned, ...]


def choose(selection: Selection, known: Known, accepts: Callable[[str], bool]) -> Candidates:
    """Chooses the groups; ``accepts`` is the flow's group filter.

    Raises ``GroupNotFound`` for a name or pattern that fits nothing, unless a listing was
    incomplete or ``create`` was said; ``UsageError`` for a pattern that is none.
    """
    excluded = frozenset(selection.exclude)
    by_hand = frozenset(selection.groups) - excluded
    if known.complete and not selection.create:
        _require(by_hand, known)
    wanted = _wanted(selection, known)
    chosen, left_out = [], []
    for group in sorted((wanted | by_hand) & known.names() | by_hand):
        why = None
        if group not in by_hand:
            if not _consumes(known.listings(group), group in known.checkpoints):
                continue  # Kafka Connect's workers and the like: nobody expects these in a plan
            why = _reason(group, known, excluded, accepts)
        if why is None:
            chosen.append(group)
        else:
            left_out.append(NotPlanned(group, why))
    return Candidates(tuple(chosen), by_hand, tuple(left_out))


def pattern_of(text: str) -> re.Pattern[str]:
    """Reads what ``--group-pattern`` says; raises ``UsageError`` for what is no regular expression."""
    try:
        return re.compile(text)
    except re.error as error:
        raise UsageError(
            f"--group-pattern {text} is no regular expression: {error}",
            hint="the pattern must match the whole name, for example orders-.*",
        ) from error


def foreign_protocol(listings: Iterable[ListedGroup]) -> bool:
    """Says whether a group belongs to something other than consumers, such as Kafka Connect's workers."""
    return any(row.protocol_type not in _CONSUMER_PROTOCOLS and row.type not in _OTHER_TYPES for row in listings)


def not_found(group: str, known: Known) -> GroupNotFound:
    """Makes the error for a group that exists nowhere, with the nearest names."""
    from difflib import get_close_matches

    near = get_close_matches(group, sorted(known.names()), n=3, cutoff=0.6)
    hint = f"did you mean {' or '.join(near)}?" if near else "list the groups with: failover plan --all -v"
    where = "exists on neither cluster and in no checkpoint"
    if known.silent_source is not None:
        where = f"is not on the target and in no checkpoint ({known.silent_source} was not asked or gave no answer)"
    return GroupNotFound(f"group {group} {where}", hint=hint)


def _require(named: Iterable[str], known: Known) -> None:
    for group in sorted(named):
        if group not in known:
            raise not_found(group, known)


def _wanted(selection: Selection, known: Known) -> set[str]:
    if selection.pattern is None:
        return set() if selection.groups else known.names()
    pattern = pattern_of(selection.pattern)
    wanted = {group for group in known.names() if pattern.fullmatch(group)}
    if not wanted and known.complete:
        raise GroupNotFound(
            f"no group matches the pattern {selection.pattern}",
            hint="the pattern must match the whole name, for example orders-.*",
        )
    return wanted


def _consumes(listings: tuple[ListedGroup, ...], checkpointed: bool) -> bool:
    return checkpointed or not listings or not all(foreign_protocol((row,)) for row in listings)


def _reason(group: str, known: Known, excluded: frozenset[str], accepts: Callable[[str], bool]) -> str | None:
    if group in excluded or is_own_group(group) or not accepts(group):
        return "excluded"
    types = {row.type for row in known.listings(group)}
    # One id may be a share group here and a consumer group there: that one is planned, and refused aloud.
    if group not in known.checkpoints and types and all(kind in _OTHER_TYPES for kind in types):
        return _OTHER_TYPES[min(types)]
    return None
