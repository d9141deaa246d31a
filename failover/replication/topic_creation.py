"""Creates topics with those of their settings that the cluster takes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import msgspec

from failover.kafka.wire.cluster import WireCluster
from failover.kafka.wire.topics import CreatedTopic, NewTopic, create_topics
from failover.model.names import Fault
from failover.replication.topic_configs import named_in

_INVALID_CONFIG = 40


class Creation(msgspec.Struct, frozen=True):
    """Is what came of it. ``left_out``: topic → setting that was refused → why; the topic stands without it."""

    answers: dict[str, CreatedTopic | Fault]
    left_out: dict[str, dict[str, Fault]]


async def create_with_what_is_taken(cluster: WireCluster, topics: Iterable[NewTopic]) -> Creation:
    """Creates topics, again without a setting that is refused: unknown to that release, or with no such value there.

    A broker refuses one setting at a time and as a rule names it. Where it does not, each setting is tried alone
    without creating anything. Settings that are refused only together leave the topic uncreated. Raises
    ``ClusterUnreachable``, ``CredentialsRefused``.
    """
    answers: dict[str, CreatedTopic | Fault] = {}
    left_out: dict[str, dict[str, Fault]] = {}
    waiting = {topic.name: topic for topic in topics}
    while waiting:
        made = await create_topics(cluster, waiting.values())
        answers.update(made)
        refused = {name: why for name, why in made.items() if isinstance(why, Fault) and why.number == _INVALID_CONFIG}
        culprits = {
            name: {culprit: why}
            for name, why in refused.items()
            if (culprit := named_in(why.message, waiting[name].configs)) is not None
        }
        unnamed = [waiting[name] for name in refused if name not in culprits and waiting[name].configs]
        culprits |= await _refused_alone(cluster, unnamed)
        for name, found in culprits.items():
            left_out.setdefault(name, {}).update(found)
        waiting = {name: _without(waiting[name], found) for name, found in culprits.items()}
    stands = {name for name, answer in answers.items() if not isinstance(answer, Fault)}
    return Creation(answers, {name: found for name, found in left_out.items() if name in stands})


async def _refused_alone(cluster: WireCluster, topics: Collection[NewTopic]) -> dict[str, dict[str, Fault]]:
    """Finds the settings of each topic that are refused without any other, all topics at once; none: not there."""
    culprits: dict[str, dict[str, Fault]] = {}
    rounds = max((len(topic.configs) for topic in topics), default=0)
    for at in range(rounds):
        alone = {topic.name: list(topic.configs.items())[at] for topic in topics if len(topic.configs) > at}
        tried = [_with(topic, dict([alone[topic.name]])) for topic in topics if topic.name in alone]
        for name, why in (await create_topics(cluster, tried, validate_only=True)).items():
            if isinstance(why, Fault) and why.number == _INVALID_CONFIG:
                culprits.setdefault(name, {})[alone[name][0]] = why
    return culprits


def _without(topic: NewTopic, names: Collection[str]) -> NewTopic:
    return _with(topic, {name: value for name, value in topic.configs.items() if name not in names})


def _with(topic: NewTopic, configs: Mapping[str, str]) -> NewTopic:
    return NewTopic(topic.name, topic.partitions, topic.replication_factor, configs)
