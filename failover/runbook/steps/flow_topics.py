"""Which topics of the source a flow is about."""

from __future__ import annotations

from failover.errors import StepFailed
from failover.inventory.flow import Flow, flow_of
from failover.runbook.kinds import Context


def data_topics(context: Context) -> list[str]:
    """Gives the data topics the flow mirrors: never one of MirrorMaker 2, Kafka or this tool."""
    reach = context.reach
    flow = flow_of(reach.flow.config, reach.flow.selected)
    found = [topic for topic in sorted(reach.source.topics()) if is_data_topic(flow, topic)]
    if not found:
        raise StepFailed(
            f"{reach.flow.name} mirrors no topic that is there", hint="failover status; failover config check"
        )
    return found


def is_data_topic(flow: Flow, topic: str) -> bool:
    """Says whether a source topic is one that the flow mirrors for applications."""
    return (
        flow.topics.should_replicate(topic)
        and not flow.policy.is_heartbeats_topic(topic)
        and not topic.startswith(("mm2-", "__"))
    )
