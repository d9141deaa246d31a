"""Keeps the settings of mirrored topics as they are on the source, by MirrorMaker 2's rule (``topic_configs``)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from failover.kafka.wire.cluster import WireCluster
from failover.kafka.wire.topics import ConfigEntry, alter_topic_configs, describe_topic_configs
from failover.model.names import Fault
from failover.replication.repeating import Troubles
from failover.replication.topic_configs import ConfigRule, differences, named_in, topic_configs

_log = logging.getLogger(__name__)

_ABSENT, _DENIED, _UNSUPPORTED = 3, 29, 35
_NOT_TAKEN = frozenset({40, 44})
"""INVALID_CONFIG, POLICY_VIOLATION: the setting is at fault, not the topic."""
_AT_ONCE = 200
_SHOWN = 3

Changes = dict[str, str | None]
"""Setting → its new value, None for the cluster's default."""


class Altered(NamedTuple):
    """Is what came of changes, by topic: what was changed, what the cluster does not take, why nothing was changed."""

    changed: dict[str, Changes]
    refused: dict[str, dict[str, Fault]]
    faults: dict[str, Fault]


class ConfigSync:
    """Compares the settings of topics with their mirrors' and changes what differs.

    ``topics``: gives the target topic of each source topic. Where nothing differs, nothing is sent but the questions:
    two requests for 200 topics. What the target does not take is told once, and sent again only with another value.
    """

    def __init__(
        self, source: WireCluster, target: WireCluster, *, topics: Callable[[], Mapping[str, str]], rule: ConfigRule
    ) -> None:
        self._source = source
        self._target = target
        self._topics = topics
        self._rule = rule
        self._vain: dict[tuple[str, str], tuple[str | None, bool]] = {}
        self._troubles = Troubles()

    async def sync(self) -> None:
        """Does one round. Raises ``ClusterUnreachable``, ``CredentialsRefused``."""
        topics = list(self._topics().items())
        faults: dict[str, list[tuple[str, Fault]]] = {"read": [], "see": [], "change": []}
        for at in range(0, len(topics), _AT_ONCE):
            await self._sync(dict(topics[at : at + _AT_ONCE]), faults)
        self._tell(faults)

    # -- inside ----------------------------------------------------------------------------------

    async def _sync(self, targets: Mapping[str, str], faults: Mapping[str, list[tuple[str, Fault]]]) -> None:
        theirs = await describe_topic_configs(self._source, targets)
        readable = [topic for topic, entries in theirs.items() if not isinstance(entries, Fault)]
        ours = await describe_topic_configs(self._target, [targets[topic] for topic in readable])
        changes: dict[str, Changes] = {}
        listed: dict[str, set[str]] = {}
        for topic, target in targets.items():
            wanted, present = theirs[topic], ours.get(target)
            if isinstance(wanted, Fault):
                faults["read"].append((topic, wanted))
            elif isinstance(present, Fault):
                faults["see"].append((target, present))
            elif present is not None:
                listed[target] = {entry.name for entry in present}
                changes[target] = self._worth_sending(target, wanted, present)
        altered = await alter_what_is_taken(
            self._target, {topic: values for topic, values in changes.items() if values}
        )
        faults["change"].extend(altered.faults.items())
        self._tell_changes(altered.changed)
        self._tell_refused(changes, altered.refused)
        for topic, names in altered.refused.items():
            self._vain.update({(topic, name): (changes[topic][name], name in listed[topic]) for name in names})
        for topic, values in altered.changed.items():
            # a setting that the cluster does not list would differ for ever
            unlisted = values.keys() - listed[topic]
            self._vain.update({(topic, name): (values[name], False) for name in unlisted})

    def _worth_sending(self, target: str, theirs: Iterable[ConfigEntry], ours: Sequence[ConfigEntry]) -> Changes:
        """Gives what differs, without what was sent in vain before to a target that knew as little of the setting."""
        names = {entry.name for entry in ours}
        return {
            name: value
            for name, value in differences(topic_configs(theirs, self._rule), ours).items()
            if self._vain.get((target, name)) != (value, name in names)
        }

    def _tell_changes(self, changed: Mapping[str, Changes]) -> None:
        for topic, values in changed.items():
            texts = [f"{name}={value}" if value is not None else f"{name} by default" for name, value in values.items()]
            _log.info(
                "Topic %s of %s has %s now, as on %s", topic, self._target.alias, ", ".join(texts), self._source.alias
            )

    def _tell_refused(self, changes: Mapping[str, Changes], refused: Mapping[str, Mapping[str, Fault]]) -> None:
        """Says in one line for each setting where it could not be set."""
        topics: dict[str, list[str]] = {}
        for topic, found in refused.items():
            for name in found:
                topics.setdefault(name, []).append(topic)
        for name, where in topics.items():
            text, reason = _setting(name, changes[where[0]][name]), refused[where[0]][name]
            _log.warning("%s does not take %s (%s); left out: %s", self._target.alias, text, reason, _some(where))

    def _tell(self, faults: Mapping[str, Sequence[tuple[str, Fault]]]) -> None:
        """Says once why settings are not kept alike, by cause."""
        source, target = self._source.alias, self._target.alias
        words = {
            "read": (f"read on {source}", source, "DESCRIBE_CONFIGS"),
            "see": (f"read on {target}", target, "ALTER_CONFIGS (DESCRIBE_CONFIGS is in it)"),
            "change": (f"changed on {target}", target, "ALTER_CONFIGS"),
        }
        present = set()
        for step, found in faults.items():
            causes: dict[int, list[tuple[str, Fault]]] = {}
            for topic, reason in found:
                if reason.number != _ABSENT:  # it was deleted meanwhile
                    causes.setdefault(reason.number, []).append((topic, reason))
            for number, topics in causes.items():
                doing, alias, right = words[step]
                text = f"settings of topics cannot be {doing}: {topics[0][1]}: {_some([topic for topic, _ in topics])}"
                if number == _DENIED:
                    text += f"; grant {right} on topics of {alias}, or set sync.topic.configs.enabled=false"
                if number == _UNSUPPORTED:
                    text += "; brokers from Kafka 2.3 on take single changes of settings"
                key = f"{step} {number}"
                present.add(key)
                self._troubles.tell(key, text, over=f"settings of topics can be {doing} again")
        self._troubles.only(present)


async def alter_what_is_taken(cluster: WireCluster, changes: Mapping[str, Changes]) -> Altered:
    """Changes settings of topics, again without one that is refused: not known there, no such value, against a policy.

    A broker refuses all changes of a topic for one of them, and as a rule names it. Where it does not, each is sent
    alone. Raises ``ClusterUnreachable``, ``CredentialsRefused``.
    """
    result = Altered({}, {}, {})
    waiting = {topic: [dict(values)] for topic, values in changes.items()}
    while waiting:
        # a topic may be in a request once
        turn = {topic: turns.pop(0) for topic, turns in waiting.items()}
        for topic, reason in (await alter_topic_configs(cluster, turn)).items():
            values = turn[topic]
            if reason is None:
                result.changed.setdefault(topic, {}).update(values)
            elif reason.number not in _NOT_TAKEN:
                result.faults[topic] = reason
                waiting[topic].clear()
            elif (culprit := _culprit(reason, values)) is not None:
                result.refused.setdefault(topic, {})[culprit] = reason
                rest = {name: value for name, value in values.items() if name != culprit}
                waiting[topic][:0] = [rest] * bool(rest)
            else:
                waiting[topic] = [{name: value} for name, value in values.items()]
        waiting = {topic: turns for topic, turns in waiting.items() if turns}
    return result


def _culprit(reason: Fault, names: Collection[str]) -> str | None:
    return next(iter(names)) if len(names) == 1 else named_in(reason.message, names)


def _setting(name: str, value: str | None) -> str:
    return f"{name} by default" if value is None else f"{name}={value}"


def _some(topics: Sequence[str]) -> str:
    more = len(topics) - _SHOWN
    return ", ".join(topics[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
