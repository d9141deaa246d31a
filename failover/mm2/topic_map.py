"""A map of topic names, written ``source:target, …``.

``orders:orders.dr`` renames one topic; ``{topic}`` stands for any name, so ``eu-{topic}:{topic}-from-eu``
renames every topic that starts with ``eu-`` and ``{topic}.dr`` alone, short for ``{topic}:{topic}.dr``,
all of them; the target ``-`` means "do not mirror". A literal source goes before patterns, the first
pattern that fits before the later ones.
"""

from __future__ import annotations

import msgspec

from failover.errors import ConfigError
from failover.mm2.filters import java_list

_ANY = "{topic}"
DO_NOT_MIRROR = "-"


class _Pattern(msgspec.Struct, frozen=True):
    """Is one side of a pattern: a name with any text between ``prefix`` and ``suffix``."""

    prefix: str
    suffix: str

    def text_in(self, topic: str) -> str | None:
        fits = topic.startswith(self.prefix) and topic.endswith(self.suffix)
        if not fits or len(topic) <= len(self.prefix) + len(self.suffix):
            return None
        return topic[len(self.prefix) : len(topic) - len(self.suffix)]

    def with_text(self, text: str) -> str:
        return f"{self.prefix}{text}{self.suffix}"


class TopicMap(msgspec.Struct, frozen=True):
    """Is a parsed map; None as a target means "do not mirror"."""

    literals: dict[str, str | None]
    sources: dict[str, str]
    patterns: tuple[tuple[_Pattern, _Pattern | None], ...]

    def target_of(self, topic: str) -> str | None:
        """Gives the target name of a source topic; None when the map does not name one."""
        if topic in self.literals:
            return self.literals[topic]
        for source, target in self.patterns:
            text = source.text_in(topic)
            if text is not None:
                return None if target is None else target.with_text(text)
        return None

    def source_of(self, topic: str) -> str | None:
        """Gives the source topic that has the target name ``topic``; None when there is none."""
        if topic in self.sources:
            return self.sources[topic]
        for source, target in self.patterns:
            text = None if target is None else target.text_in(topic)
            if text is not None:
                upstream = source.with_text(text)
                # An earlier entry may send that source topic elsewhere.
                if self.target_of(upstream) == topic:
                    return upstream
        return None

    def forbids(self, topic: str) -> bool:
        """Says whether the map's entry for a source topic is "do not mirror"."""
        if topic in self.literals:
            return self.literals[topic] is None
        return next((target is None for source, target in self.patterns if source.text_in(topic) is not None), False)


def parse_topic_map(key: str, text: str) -> TopicMap | None:
    """Parses a map; None when ``text`` has no entry. Raises ConfigError naming the setting ``key`` and the entry."""
    literals: dict[str, str | None] = {}
    sources: dict[str, str] = {}
    patterns: list[tuple[_Pattern, _Pattern | None]] = []
    for entry in java_list(text):
        source, target = _sides(key, entry)
        if _ANY in source:
            patterns.append((_pattern(source), None if target == DO_NOT_MIRROR else _pattern(target)))
            continue
        if source in literals:
            raise ConfigError(f"{key}: {source} has two entries", hint="remove one")
        if target == DO_NOT_MIRROR:
            literals[source] = None
            continue
        if target in sources:
            raise ConfigError(
                f"{key}: {sources[target]} and {source} would both become {target}", hint="give each its own target"
            )
        literals[source] = target
        sources[target] = source
    return TopicMap(literals, sources, tuple(patterns)) if literals or patterns else None


def _sides(key: str, entry: str) -> tuple[str, str]:
    source, colon, target = (part.strip() for part in entry.partition(":"))
    if not colon and source.count(_ANY) == 1:
        return _ANY, source
    hint = "write source:target, source:- or a pattern such as {topic}.dr"
    if not source or not target or ":" in target:
        raise ConfigError(f"{key}: {entry!r} is not an entry of a topic map", hint=hint)
    if source.count(_ANY) > 1 or (target != DO_NOT_MIRROR and target.count(_ANY) != source.count(_ANY)):
        raise ConfigError(f"{key}: {entry!r} does not have {_ANY} once on both sides", hint=hint)
    return source, target


def _pattern(text: str) -> _Pattern:
    prefix, _, suffix = text.partition(_ANY)
    return _Pattern(prefix, suffix)
