"""Which topics of the source a flow is about."""

from __future__ import annotations

from failover.errors import StepFailed
from failover.runbook.kinds import Context


def data_topics(context: Context) -> list[str]:
    """Gives the data topics the flow mirrors: never one of MirrorMaker 2, Kafka or this tool."""
    from failover.inventory.flow import flow_of

    reach = context.reach
    flow = flow_of(reach.flow.config, reach.flow.selected)
    found = [
        topic
        for topic in sorted(reach.source.topics())
        if flow.topics.should_replicate(topic)
        and not flow.policy.is_heartbeats_topic(topic)
        and not topic.startswith(("mm2-", "__"))
    ]
    if not found:
        raise StepFailed(
            f"{reach.flow.name} mirrors no topic that is there", hint="failover status; failover config check"
        )
    return found
