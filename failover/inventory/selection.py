"""Which groups a plan is made for, and which are left out and why: decided from names and types alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping

import msgspec

from failover.errors import GroupNotFound, UsageError
from failover.mm2.filters import looks_like_glob
from failover.mm2.internal_topics import is_own_group
from failover.mm2.java_regex import JavaRegexError, compile_java_regex
from failover.model.groups import GroupType, ListedGroup
from failover.model.snapshot import NotPlanned

_WHOLE_NAME = "the pattern is a Java regular expression and must match the whole name, for example orders-.*"
_CONSUMER_PROTOCOLS = ("", "consumer")
_OTHER_TYPES = {GroupType.SHARE: "share", GroupType.STREAMS: "streams"}


class Selection(msgspec.Struct, frozen=True):
    """Is what the operator asked for.

    ``groups``: literal names, planned even where the filters exclude them. ``pattern``: a regular
    expression that must match a whole name; the filters still apply. Neither: every group that the
    filters pick. ``exclude``: literal names left out in any case. ``create``: plan a group named
    by hand although it exists nowhere. ``topics``: names on either cluster; only these are
    translated, () for every mirrored topic.
    """

    groups: tuple[str, ...] = ()
    pattern: str | None = None
    exclude: tuple[str, ...] = ()
    create: bool = False
    topics: tuple[str, ...] = ()


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
    incomplete or ``create`` was said; ``UsageError`` for a pattern that is none. A name left out
    must exist too, or a mistyped one would be planned; where the source tells nothing, the group
    may be one of the source's alone.
    """
    excluded = frozenset(selection.exclude)
    by_hand = frozenset(selection.groups) - excluded
    if known.complete:
        _require(() if selection.create else by_hand, known)
        _require(() if known.silent_source is not None else excluded, known, "--exclude-group: ")
    wanted = _wanted(selection, known)
    chosen, left_out = [], []
    for group in sorted((wanted | by_hand) & known.names() | by_hand):
        why = None
        if group not in by_hand:
            if group not in excluded and not _consumes(known.listings(group), group in known.checkpoints):
                continue  # Kafka Connect's workers and the like: nobody expects these in a plan
            why = _reason(group, known, excluded, accepts)
        if why is None:
            chosen.append(group)
        else:
            left_out.append(NotPlanned(group, why))
    return Candidates(tuple(chosen), by_hand, tuple(left_out))


def pattern_of(text: str) -> re.Pattern[str]:
    """Reads what ``--group-pattern`` says, as MM2 reads ``groups``: Java's syntax, for whole names.

    Raises ``UsageError`` for what is no such expression.
    """
    try:
        return compile_java_regex(text)
    except JavaRegexError as error:
        glob = looks_like_glob(text)
        raise UsageError(
            f"--group-pattern {text} is no regular expression: {error}",
            hint=f"if a shell pattern was meant, write {glob}" if glob else _WHOLE_NAME,
        ) from error


def foreign_protocol(listings: Iterable[ListedGroup]) -> bool:
    """Says whether a group belongs to something other than consumers, such as Kafka Connect's workers."""
    return any(row.protocol_type not in _CONSUMER_PROTOCOLS and row.type not in _OTHER_TYPES for row in listings)


def require_topics(named: Collection[str], mirrored: Mapping[str, str], flow: str) -> dict[str, str]:
    """Gives the part of ``mirrored`` (target topic → source topic) that has these names on either cluster.

    No name stands for all. Raises ``UsageError`` for a name that is no mirrored topic.
    """
    known = mirrored.keys() | mirrored.values()
    unknown = [topic for topic in named if topic not in known]
    if unknown:
        raise UsageError(
            f"topic {unknown[0]} is not mirrored by {flow}",
            hint=_did_you_mean(unknown[0], known) or "give its name on the source or on the target",
        )
    return {topic: source for topic, source in mirrored.items() if not named or topic in named or source in named}


def not_found(group: str, known: Known, *more: str, option: str = "") -> GroupNotFound:
    """Makes the error for a group that exists nowhere, with the nearest names; ``more``: others like it."""
    hint = _did_you_mean(group, known.names()) or "list the groups with: failover plan --all -v"
    where = "exists on neither cluster and in no checkpoint"
    if known.silent_source is not None:
        where = f"is not on the target and in no checkpoint ({known.silent_source} was not asked or gave no answer)"
    others = f"; likewise {', '.join(more[:5])}" if more else ""
    others += f" and {len(more) - 5} more" if len(more) > 5 else ""
    return GroupNotFound(f"{option}group {group} {where}{others}", hint=hint)


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, sorted(known), n=3, cutoff=0.6)
    return f"did you mean {' or '.join(near)}?" if near else ""


def _require(named: Iterable[str], known: Known, option: str = "") -> None:
    unknown = [group for group in sorted(named) if group not in known]
    if unknown:
        raise not_found(unknown[0], known, *unknown[1:], option=option)


def _wanted(selection: Selection, known: Known) -> set[str]:
    if selection.pattern is None:
        return set() if selection.groups else known.names()
    pattern = pattern_of(selection.pattern)
    wanted = {group for group in known.names() if pattern.fullmatch(group)}
    if not wanted and known.complete:
        glob = looks_like_glob(selection.pattern)
        raise GroupNotFound(
            f"no group matches the pattern {selection.pattern}",
            hint=f"if a shell pattern was meant, write {glob}" if glob else _WHOLE_NAME,
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
