"""``--local-topics earliest``: where groups begin on the topics that moved producers will write on the target."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from failover.model.groups import Commit
from failover.model.names import TopicPartition
from failover.model.plan import Action, LocalTopic, PlannedPartition, PlanOptions
from failover.model.snapshot import ClusterView
from failover.planning.decide import decide
from failover.planning.position import left_alone
from failover.planning.view import PartitionView


def local_views(
    target: ClusterView, group: str, topics: Iterable[LocalTopic], commits: Mapping[TopicPartition, Commit]
) -> list[PartitionView]:
    """Gives the partitions of a group's local topics that are there; nothing of them is on the source."""
    info = target.groups.get(group)
    views = []
    for local in topics:
        topic = target.topics.get(local.topic)
        for number in range(topic.partitions if topic is not None else 0):
            tp = TopicPartition(local.topic, number)
            views.append(
                PartitionView(
                    topic=local.topic,
                    partition=number,
                    source_topic="",
                    source_known=False,
                    source_commit=None,
                    source_range=None,
                    checkpoint=None,
                    translation=None,
                    mm2_answer=None,
                    target_commit=commits.get(tp),
                    topic_info=topic,
                    target_range=target.logs.get(tp),
                    unavailable=tp in target.log_faults or (topic is not None and number in topic.leaderless),
                    foreign=(),
                    recreated=False,
                    written=None,
                    active=info is not None and bool(info.members),
                    synced=False,
                )
            )
    return views


def decide_local(view: PartitionView, options: PlanOptions, refusal: str | None, taken_ms: int) -> PlannedPartition:
    """Decides one partition of a local topic: the log start, unless the group has a position there already.

    Where it has none it has read nothing there, so that nothing is read again or passed over.
    """
    earliest = msgspec.structs.replace(options, missing="earliest", rewind_by=0.0)
    decided = decide(view, earliest, refusal, taken_ms)
    if decided.action is Action.REFUSE:
        return decided
    stands = left_alone(view).offset is not None
    if decided.action is Action.SKIP and not stands:
        return decided
    return msgspec.structs.replace(
        decided,
        reason="already-there" if stands else "local-topic",
        precision="exact",
        reread=0,
        reread_max=0,
        skipped=0,
    )
