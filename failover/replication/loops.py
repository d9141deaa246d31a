"""Which topics would be copied in a circle by the flows of a configuration. Pure.

Default names tell where a topic came from, and the cycle rule stops it (MM2: MirrorSourceConnector.isCycle).
Names that are kept, or given by a topic map, tell nothing: with both directions enabled each record would be copied
back and forth without end. MM2 does that; here no flow of the circle copies such a topic.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from failover.config.flow import FlowConfig
from failover.errors import ConfigError
from failover.inventory.flow import Flow
from failover.mm2.replication_policy import MappedReplicationPolicy

_PROBE = "t"


class Loops:
    """Knows the enabled flows of a configuration; those whose rules cannot be worked out are left out."""

    def __init__(self, flows: Sequence[Flow] = ()) -> None:
        self._flows = flows
        self._hops = 2 * len(flows) + 1

    def path(self, flow: Flow, topic: str) -> tuple[str, ...]:
        """Gives the clusters that a record of a source topic passes until it is back in it; () when it never is."""
        start = (flow.source, topic)
        reached: dict[tuple[str, str], tuple[str, ...]] = {
            (flow.target, flow.target_topic(topic)): (flow.source, flow.target)
        }
        seen = set(reached)
        for _ in range(self._hops):
            further: dict[tuple[str, str], tuple[str, ...]] = {}
            for (cluster, name), path in reached.items():
                for other in self._flows:
                    if other.source == cluster and other.topics.should_replicate(name):
                        further.setdefault((other.target, other.target_topic(name)), (*path, other.target))
            if start in further:
                return further[start]
            reached = {place: path for place, path in further.items() if place not in seen}
            seen |= reached.keys()
        return ()

    def echo(self, flow: Flow, topic: str) -> str:
        """Says why a source topic is an echo of what the flow or its opposite brought; "" otherwise.

        Two clusters of one alias in files that do not know of each other send a topic to and fro, with one more prefix
        each time. Its second prefix shows that. (MM2 stops at the first from 4.4 on, which a plain name may have, too.)
        """
        # A map's names tell nothing: any may be some topic's name there.
        policy = flow.policy.base if isinstance(flow.policy, MappedReplicationPolicy) else flow.policy
        if policy.topic_source("") is None and policy.topic_source(topic) == flow.source:
            upstream = policy.upstream_topic(topic)
            if upstream is not None and policy.topic_source(upstream) == flow.source:
                return f"cycle: it came from {flow.source} twice, so two clusters are called {flow.source}"
        for other in self._flows:
            if (other.source, other.target) != (flow.target, flow.source):
                continue
            original = other.source_topic(topic)
            if original in (None, topic) or other.target_topic(original) != topic:
                continue
            if other.topics.should_replicate(original):
                return f"cycle: it is the copy of {original} of {other.source}"
        return ""

    def refuse(self, flow: Flow, config: FlowConfig) -> None:
        """Raises ConfigError where the settings alone show that what a flow selects would go round in a circle."""
        for topic in _probes(config.topics):
            if flow.topics.should_replicate(topic) and (path := self.path(flow, topic)):
                raise ConfigError(
                    f"flow {config.name} keeps topic names, and so do the flows that lead back: every record of a topic"
                    f" that matches 'topics' would be copied {' -> '.join(path)} and so on without end",
                    hint="enable one direction at a time, let 'topics' or 'topics.exclude' give each topic one"
                    " direction, or use the default replication policy",
                )


def _probes(patterns: Iterable[str]) -> list[str]:
    """Gives topic names that the patterns are likely to match: a pattern mostly matches its own text."""
    return [*(pattern.replace("\\", "") for pattern in patterns), _PROBE]
