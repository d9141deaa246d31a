"""What a flow's status needs beside two looks: positions, the age of records, topics that are left out."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

import msgspec

from failover.errors import ClusterError
from failover.inventory.flow import Flow
from failover.inventory.for_findings import Behind, deadline, first_waiting, soon
from failover.inventory.look import in_background
from failover.inventory.positions import Positions, read_positions
from failover.kafka.port import Cluster
from failover.model.names import Fault, TopicPartition
from failover.model.snapshot import ClusterView, Snapshot
from failover.model.status import SkippedTopic


class Beside(msgspec.Struct, frozen=True):
    """Is what was asked beside the snapshots. ``source_times``, ``target_times``: newest timestamps, epoch ms."""

    positions: Positions
    source_times: dict[TopicPartition, int]
    target_times: dict[TopicPartition, int]
    skipped: tuple[SkippedTopic, ...]


def read_beside(flow: Flow, snapshot: Snapshot, open_cluster: Callable[[str], Cluster]) -> tuple[Snapshot, Beside]:
    """Asks both clusters, all partitions at a time; what is not told is left out.

    Also gives the snapshot with the first record that each partition lacks, which a look that compares no records
    does not read.
    """
    target = open_cluster(flow.target)
    at_target = in_background(lambda: _times(target, snapshot.target))
    at_source: Future[dict[TopicPartition, int]] | None = None
    waiting: Future[Behind] | None = None
    if snapshot.source.status.answers:
        source = open_cluster(flow.source)
        at_source = in_background(lambda: _times(source, snapshot.source))
        logs = snapshot.source.logs, snapshot.target.logs
        waiting = first_waiting(source, snapshot.mirrored, snapshot.newest_syncs, *logs, committed=flow.reads_committed)
    info = snapshot.target.topics.get(flow.internal.connect_offsets)
    beside = Beside(
        positions=read_positions(target, info, flow.source),
        source_times={} if at_source is None else at_source.result(),
        target_times=at_target.result(),
        skipped=skipped_topics(flow, snapshot),
    )
    if waiting is not None:
        behind = soon(waiting, deadline(), Behind())
        snapshot = msgspec.structs.replace(snapshot, waiting=dict(behind.waiting), caught_up=behind.caught_up)
    return snapshot, beside


def skipped_topics(flow: Flow, snapshot: Snapshot) -> tuple[SkippedTopic, ...]:
    """Lists the source's topics that the flow leaves out, with MM2's reason; internal ones are nobody's question."""
    found = []
    for topic, info in sorted(snapshot.source.topics.items()):
        if info.internal or flow.policy.is_internal_topic(topic) or flow.topics.is_own(topic):
            continue
        reason = flow.topics.why_not(topic)
        if reason is not None:
            found.append(SkippedTopic(topic, reason))
    return tuple(found)


def _times(cluster: Cluster, view: ClusterView) -> dict[TopicPartition, int]:
    try:
        answers = cluster.last_times([tp for tp, log in view.logs.items() if log.end > log.start])
    except ClusterError:
        return {}
    return {tp: at for tp, at in answers.items() if at is not None and not isinstance(at, Fault)}
