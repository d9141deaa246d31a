"""Topics that producers need on the target under their plain names."""

from __future__ import annotations

from typing import Literal

import msgspec

from failover.errors import StepFailed
from failover.inventory.flow import flow_of
from failover.inventory.mirrored import may_be_mirrored
from failover.kafka.port import Cluster
from failover.model.cluster import TopicInfo
from failover.model.names import Fault
from failover.report.values import things
from failover.runbook.kinds import Context, Kind, Result, Settled
from failover.runbook.steps.flow_topics import data_topics, is_data_topic
from failover.runbook.steps.noted import note_more

_SETTINGS = (
    "cleanup.policy",
    "compression.type",
    "delete.retention.ms",
    "max.message.bytes",
    "message.timestamp.type",
    "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms",
    "retention.bytes",
    "retention.ms",
    "segment.bytes",
    "segment.ms",
)
"""What makes a topic behave alike for those who write to it and read it."""
_WHERE = {"source": "source", "copies": "target"}
_AS = {"source": "on the source", "copies": "in its copy"}


class PrepareTopics(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``topics``: literal names on the source; none: every data topic the flow mirrors.

    ``like``: made like the topics of the ``source``, or, where that is gone, like their ``copies`` on the target.
    """

    topics: list[str] = []
    like: Literal["source", "copies"] = "source"


class PrepareTopicsKind(Kind[PrepareTopics]):
    """Makes the topics producers will write to on the target, with the source's partition counts and settings.

    By default naming the mirror writes to ``a.orders``, producers write to ``orders``: that has to be there, with as
    many partitions. Where the mirror keeps names nothing is to be made. A topic that is there with fewer partitions
    fails the step: enlarging it would move keys. What it makes is empty and stays on the way back.
    """

    parameters = PrepareTopics
    results = {"created": "topics made", "there": "topics that were there already"}  # noqa: RUF012

    def preview(self, given: PrepareTopics, context: Context) -> str:
        missing, there = self._missing(given, context)
        if not missing:
            return f"nothing to make, there already: {things(len(there), 'topic')}"
        return f"would make {things(len(missing), 'topic')} on the target: {', '.join(sorted(missing)[:5])}"

    def run(self, given: PrepareTopics, context: Context) -> Result:
        missing, there = self._missing(given, context)
        created = sorted(note_more(context, "created", sorted(missing)))
        models, cluster = _models(given, context)
        settings = cluster.topic_settings([models[topic] for topic in missing], _SETTINGS) if missing else {}
        for topic, partitions in missing.items():
            found = settings[models[topic]]
            if isinstance(found, Fault):
                raise StepFailed(
                    f"the settings of {models[topic]} cannot be read on {cluster.alias}: {found}",
                    hint="this user needs DESCRIBE_CONFIGS on it",
                )
            fault = context.reach.target.create_topic(topic, partitions, found)
            if fault is not None:
                raise StepFailed(f"topic {topic} cannot be made on the target: {fault}")
            context.say(f"made {topic} with {things(partitions, 'partition')}")
        return {"created": created, "there": [topic for topic in there if topic not in created]}

    def settle(self, given: PrepareTopics, context: Context) -> Settled:  # noqa: ARG002
        return Settled(done=False)  # what is there is not made again

    def _missing(self, given: PrepareTopics, context: Context) -> tuple[dict[str, int], list[str]]:
        models, cluster = _models(given, context)
        described, target = cluster.describe_topics(models.values()), context.reach.target.describe_topics(models)
        missing: dict[str, int] = {}
        there = []
        for name, model in models.items():
            wanted, found = described[model], target[name]
            if not isinstance(wanted, TopicInfo):
                raise StepFailed(f"topic {model} cannot be seen on the {_WHERE[given.like]}: {wanted}")
            if not isinstance(found, TopicInfo):
                missing[name] = wanted.partitions
            elif found.partitions < wanted.partitions:
                raise StepFailed(
                    f"topic {name} has {found.partitions} partitions on the target, "
                    f"{wanted.partitions} {_AS[given.like]}",
                    hint="enlarge it by hand if keys may move: kafka-topics.sh --alter --partitions",
                )
            else:
                there.append(name)
        return missing, there


def _models(given: PrepareTopics, context: Context) -> tuple[dict[str, str], Cluster]:
    """Gives, by plain name, the topic that one is to be made like, and the cluster that has those."""
    reach = context.reach
    flow = flow_of(reach.flow.config, reach.flow.selected)
    if given.like == "copies":
        brought = {
            flow.source_topic(topic): topic for topic in sorted(reach.target.topics()) if may_be_mirrored(flow, topic)
        }
        copies = {
            name: topic
            for name, topic in brought.items()
            if name is not None and (name in given.topics if given.topics else is_data_topic(flow, name))
        }
        return copies, reach.target
    names = given.topics or data_topics(context)
    return {name: name for name in names if flow.target_topic(name) != name}, reach.source


KIND = PrepareTopicsKind()
