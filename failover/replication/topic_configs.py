"""Which settings of a source topic its mirror gets (MM2: MirrorSourceConnector.targetConfig). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

from failover.kafka.wire.topics import ConfigEntry, ConfigSource
from failover.mm2.filters import NameFilter, config_property_filter
from failover.mm2.versions import Mm2Version, at_least

USE_DEFAULTS_FROM_KEY = "use.defaults.from"


class ConfigRule(msgspec.Struct, frozen=True):
    """Says what is copied. ``source_defaults``: also the values that are the source's defaults."""

    keep: NameFilter
    source_defaults: bool = False


def config_rule(settings: Mapping[str, str], mm2_version: Mm2Version | None = None) -> ConfigRule:
    """Makes the rule of a flow from its effective settings; raises ConfigError.

    Reads ``config.properties.exclude`` and, as MM2 from 3.5 on does, ``use.defaults.from`` (``target`` unless it is
    ``source``).
    """
    source_defaults = settings.get(USE_DEFAULTS_FROM_KEY, "target").strip() == "source"
    return ConfigRule(config_property_filter(settings, mm2_version), source_defaults and at_least(mm2_version, 3, 5))


def topic_configs(entries: Iterable[ConfigEntry], rule: ConfigRule) -> dict[str, str | None]:
    """Gives the settings a mirror shall have: a value, or None where it is left to the target's own default.

    What comes from the source brokers' files belongs to that cluster and is not in the answer, nor is what is
    read-only, sensitive or excluded. Values that a cluster's operators set for all its brokers at run time are copied
    (MM2 does).
    """
    return {
        entry.name: None if entry.source == ConfigSource.DEFAULT_CONFIG and not rule.source_defaults else entry.value
        for entry in entries
        if not entry.read_only
        and not entry.sensitive
        and entry.source != ConfigSource.STATIC_BROKER_CONFIG
        and rule.keep.matches(entry.name)
    }


def new_topic_configs(entries: Iterable[ConfigEntry], rule: ConfigRule) -> dict[str, str]:
    """Gives the settings a mirror is created with."""
    return {name: value for name, value in topic_configs(entries, rule).items() if value is not None}


def differences(wanted: Mapping[str, str | None], present: Iterable[ConfigEntry]) -> dict[str, str | None]:
    """Gives what has to be changed for a topic with the settings ``present`` to have those ``wanted``, {} if it has.

    A value is wanted as the topic's own, even where the cluster's default is the same; None is wanted where the topic
    has a value of its own. Settings not spoken of stay.
    """
    own = {entry.name: entry.value for entry in present if entry.source == ConfigSource.DYNAMIC_TOPIC_CONFIG}
    return {
        name: value
        for name, value in wanted.items()
        if (name in own if value is None else name not in own or own[name] != value)
    }


def named_in(message: str, names: Iterable[str]) -> str | None:
    """Finds the setting that a broker's message names first, as a whole word; None when it names none of them."""
    found = {}
    for name in names:
        match = re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-]|\.\w)", message)
        if match is not None:
            found[match.start(), -len(name)] = name
    return found[min(found)] if found else None
