"""MirrorMaker 2's filters: which topics, groups and topic settings it takes.

A list of names and regular expressions is joined with ``|`` into one expression that must match the
whole name; exclusion wins; an empty list matches nothing (MM2: DefaultTopicFilter and its siblings).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from failover.errors import ConfigError
from failover.mm2.java_regex import JavaRegexError, compile_java_regex
from failover.mm2.versions import Mm2Version, at_least

ALL = ".*"
TOPICS_EXCLUDE = r"mm2.*\.internal, .*\.replica, __.*"
TOPICS_EXCLUDE_BEFORE_4_0 = r".*[\-\.]internal, .*\.replica, __.*"
GROUPS_EXCLUDE = "console-consumer-.*, connect-.*, __.*"
CONFIG_PROPERTIES_EXCLUDE_BEFORE_4_3 = (
    r"follower\.replication\.throttled\.replicas, leader\.replication\.throttled\.replicas, "
    r"message\.timestamp\.difference\.max\.ms, message\.timestamp\.type, "
    r"unclean\.leader\.election\.enable, min\.insync\.replicas"
)
# From 4.3 on the dots are not escaped, and two keys are the brokers' names of topic settings.
CONFIG_PROPERTIES_EXCLUDE = (
    "follower.replication.throttled.replicas, leader.replication.throttled.replicas, "
    "message.timestamp.difference.max.ms, log.message.timestamp.before.max.ms, "
    "log.message.timestamp.after.max.ms, message.timestamp.type, "
    "unclean.leader.election.enable, min.insync.replicas"
)

_JAVA_SPACE = " \t\n\x0b\f\r"
_ITEM_END = re.compile(rf"[{_JAVA_SPACE}]*,[{_JAVA_SPACE}]*")
# Java's String.trim takes every character up to the space.
_TRIMMED = "".join(map(chr, range(0x21)))


class NameFilter(msgspec.Struct, frozen=True):
    """Takes the names that match ``include`` and not ``exclude``; None matches nothing.

    The keys name the settings they came from, for messages.
    """

    include: re.Pattern[str] | None
    exclude: re.Pattern[str] | None
    include_key: str = ""
    exclude_key: str = ""

    def matches(self, name: str) -> bool:
        """Says whether the filter takes ``name``."""
        return (
            self.include is not None
            and self.include.fullmatch(name) is not None
            and (self.exclude is None or self.exclude.fullmatch(name) is None)
        )

    def why_not(self, name: str) -> str | None:
        """Says which setting keeps ``name`` out; None when the filter takes it. Exclusion is named first."""
        if self.exclude is not None and self.exclude.fullmatch(name) is not None:
            return f"excluded by {self.exclude_key}"
        return None if self.matches(name) else f"not in {self.include_key}"


def java_list(text: str) -> list[str]:
    """Splits a list setting at its commas and drops spaces around items; blank text is no item (Kafka: ConfigDef)."""
    trimmed = text.strip(_TRIMMED)
    return _ITEM_END.split(trimmed) if trimmed else []


def topic_filter(
    settings: Mapping[str, str], mm2_version: Mm2Version | None = None, *, unofficial: bool = False
) -> NameFilter:
    """Makes the topic filter of a flow from ``topics`` and ``topics.exclude``.

    ``topics.blacklist`` is read up to 3.9, as MirrorMaker 2 does. ``unofficial`` also reads what only
    guides write: ``topics.regex``, and the blacklist whatever the release. Raises ConfigError.
    """
    newest = at_least(mm2_version, 4, 0)
    return _filter("topic", settings, TOPICS_EXCLUDE if newest else TOPICS_EXCLUDE_BEFORE_4_0, newest, unofficial)


def group_filter(
    settings: Mapping[str, str], mm2_version: Mm2Version | None = None, *, unofficial: bool = False
) -> NameFilter:
    """Makes the group filter of a flow from ``groups`` and ``groups.exclude``; otherwise as topic_filter."""
    return _filter("group", settings, GROUPS_EXCLUDE, at_least(mm2_version, 4, 0), unofficial)


def config_property_filter(settings: Mapping[str, str], mm2_version: Mm2Version | None = None) -> NameFilter:
    """Makes the filter of topic settings from ``config.properties.exclude``; raises ConfigError."""
    refuse_custom_class("config.property", settings)
    key = "config.properties.exclude"
    if key not in settings and not at_least(mm2_version, 4, 0) and "config.properties.blacklist" in settings:
        key = "config.properties.blacklist"
    default = CONFIG_PROPERTIES_EXCLUDE if at_least(mm2_version, 4, 3) else CONFIG_PROPERTIES_EXCLUDE_BEFORE_4_3
    return NameFilter(compile_list("", [ALL]), compile_list(key, java_list(settings.get(key, default))), "", key)


def compile_list(key: str, items: list[str]) -> re.Pattern[str] | None:
    """Joins list items into one expression; None for an empty list.

    Raises ConfigError that names the setting ``key`` and the item that is at fault.
    """
    if not items:
        return None
    # Joined first, as Java sees it: an item may switch a flag for those behind it.
    joined = "|".join(items)
    try:
        return compile_java_regex(joined)
    except JavaRegexError as error:
        raise _refused(key, *_culprit(items, (joined, error))) from error


def looks_like_glob(pattern: str) -> str | None:
    """Gives the expression that was probably meant when a list item is a shell pattern (``customer-*``); else None.

    A ``*`` that repeats a plain character, or nothing, is taken for a mistake; ``.*`` and ``[a-z]*`` are not.
    """
    suggestion: list[str] = []
    at, found = 0, False
    while at < len(pattern):
        if pattern[at] == "\\":
            suggestion.append(pattern[at : at + 2])
            at += 2
            continue
        if pattern[at] == "*" and (not suggestion or _is_plain(suggestion[-1])):
            suggestion.append(".")
            found = True
        suggestion.append(pattern[at])
        at += 1
    return "".join(suggestion) if found else None


def _is_plain(previous: str) -> bool:
    return len(previous) == 1 and (previous.isalnum() or previous in "-_:|(")


def _filter(kind: str, settings: Mapping[str, str], default_exclude: str, newest: bool, unofficial: bool) -> NameFilter:
    refuse_custom_class(kind, settings)
    include, exclude = f"{kind}s", f"{kind}s.exclude"
    if unofficial and include not in settings and f"{kind}s.regex" in settings:
        include = f"{kind}s.regex"
    if exclude not in settings and (unofficial or not newest) and f"{kind}s.blacklist" in settings:
        exclude = f"{kind}s.blacklist"
    return NameFilter(
        compile_list(include, java_list(settings.get(include, ALL))),
        compile_list(exclude, java_list(settings.get(exclude, default_exclude))),
        include,
        exclude,
    )


def refuse_custom_class(kind: str, settings: Mapping[str, str]) -> None:
    """Raises ConfigError for a filter class of somebody else's, unless the operator says to go by the lists.

    ``kind``: ``topic``, ``group`` or ``config.property``, as in ``failover.config.property.filter.class``.
    """
    key = f"{kind}.filter.class"
    java_kind = "".join(part.capitalize() for part in kind.split("."))
    java = settings.get(key, "").strip()
    own = f"failover.{key}"
    if java in ("", f"org.apache.kafka.connect.mirror.Default{java_kind}Filter"):
        return
    if settings.get(own, "").strip() == "default":
        return
    raise ConfigError(
        f"{key}: {java} is a Java class whose choice is not known here",
        hint=f"set {own}=default to go by the include and exclude lists of this configuration instead",
    )


def _culprit(items: list[str], otherwise: tuple[str, JavaRegexError]) -> tuple[str, JavaRegexError]:
    for item in items:
        try:
            compile_java_regex(item)
        except JavaRegexError as error:
            return item, error
    return otherwise


def _refused(key: str, pattern: str, error: JavaRegexError) -> ConfigError:
    glob = looks_like_glob(pattern)
    hint = (
        f"if a shell pattern was meant, write {glob}"
        if glob
        else "items are Java regular expressions; write a simpler one"
    )
    return ConfigError(f"{key}: {pattern!r} cannot be used: {error}", hint=hint)
