"""Which topics of the target are mirrored, from where, and who else writes them: decided from names alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from failover.inventory.flow import Flow


def mirrored_topics(
    flow: Flow,
    *,
    target_topics: Collection[str],
    source_topics: Collection[str] | None,
    checkpointed: Collection[str],
    synced: Collection[str],
) -> dict[str, str]:
    """Maps each target topic the flow mirrors or mirrored to its source topic, also where the target lacks it.

    ``source_topics``: None when the source does not answer. ``checkpointed``: target topics named
    by checkpoints. ``synced``: source topics named by offset syncs or by Connect's positions.

    A topic of the target counts when its name says that it came from the source and the topic
    filter takes it or MM2 left evidence of it. Where names are kept every topic's name says so;
    then the source must hold the topic, or there must be evidence. A checkpoint for a plain topic
    is one for a topic that went from here to the source (MM2: MirrorCheckpointTask).
    """
    names_tell = flow.policy.topic_source("") is None
    found: dict[str, str] = {}
    for topic in target_topics:
        source_topic = flow.source_topic(topic)
        if source_topic is None or not may_be_mirrored(flow, topic):
            continue
        evident = topic in checkpointed or source_topic in synced
        known = names_tell or (source_topics is not None and source_topic in source_topics)
        if evident or (known and flow.topics.should_replicate(source_topic)):
            found[topic] = source_topic
    for topic in checkpointed:
        if topic not in found:
            source_topic = flow.source_topic(topic)
            found[topic] = flow.came_from_target(topic) if source_topic is None else source_topic
    for source_topic in source_topics or ():
        if not flow.policy.is_heartbeats_topic(source_topic) and flow.topics.should_replicate(source_topic):
            found.setdefault(flow.target_topic(source_topic), source_topic)
    return dict(sorted(found.items()))


def brought_back(
    flow: Flow, *, source_topics: Collection[str], target_topics: Collection[str], synced: Collection[str]
) -> dict[str, str]:
    """Maps topics of the target to those of the source that the opposite flow brought from there (failback).

    ``synced``: topics of the target that the opposite flow's offset syncs name. Where names tell, they are enough
    (MM2: DefaultReplicationPolicy); where names are kept, only syncs prove it.
    """
    opposite = flow.opposite
    if opposite is None:
        return {}
    names_tell = opposite.policy.topic_source("") is None
    found: dict[str, str] = {}
    for topic in sorted(source_topics):
        original = opposite.source_topic(topic)
        if original is None or not may_be_mirrored(opposite, topic):
            continue
        if names_tell or (original in synced and original in target_topics):
            found[original] = topic
    return found


def may_collide(flow: Flow, rival: Flow) -> bool:
    """Says whether two flows into one target can write the same topic; prefixes of two aliases never meet."""
    return flow.policy.name != "default" or rival.policy.name != "default"


def foreign_owners(mirrored: Collection[str], evidence: Mapping[str, Collection[str]]) -> dict[str, tuple[str, ...]]:
    """Finds mirrored topics that other sources write too. ``evidence``: their alias → target topics they write."""
    owners: dict[str, tuple[str, ...]] = {}
    for alias, topics in sorted(evidence.items()):
        for topic in topics:
            if topic in mirrored:
                owners[topic] = (*owners.get(topic, ()), alias)
    return owners


def may_be_mirrored(flow: Flow, topic: str) -> bool:
    """Says whether a topic of the target can be a copy of data: none that MM2, Kafka or this tool keeps there."""
    policy = flow.policy
    return not (policy.is_internal_topic(topic) or policy.is_heartbeats_topic(topic) or flow.topics.is_own(topic))
