"""What the weekly checks ask beside a status: settings, disks and versions of both clusters, each in one request."""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import Future

from failover.checks.health_checks import DRIFT
from failover.errors import ClusterError
from failover.inventory.flow import Flow
from failover.inventory.look import in_background
from failover.kafka.faults import fault_of_loss
from failover.kafka.port import Cluster
from failover.model.health import Sides
from failover.model.names import Fault
from failover.model.snapshot import Snapshot


def internal_topics(flow: Flow) -> dict[str, tuple[str, ...]]:
    """Names the internal topics of a flow by the alias of their cluster."""
    names = flow.internal
    at_target = [
        names.checkpoints,
        names.exact_checkpoints,
        names.connect_offsets,
        names.connect_configs,
        names.connect_status,
        names.heartbeats,
    ]
    if names.offset_syncs_on == flow.target:
        return {flow.target: (*at_target, names.offset_syncs)}
    return {flow.target: tuple(at_target), flow.source: (names.offset_syncs,)}


def read_sides(flow: Flow, snapshot: Snapshot, open_cluster: Callable[[str], Cluster]) -> tuple[Sides, Sides]:
    """Asks source and target at once; a source that gives no answer has told nothing."""
    internal = internal_topics(flow)
    target = open_cluster(flow.target)
    copies = [topic for topic in snapshot.mirrored if topic in snapshot.target.topics]
    own = [topic for topic in internal.get(flow.target, ()) if topic in snapshot.target.topics]
    at_source: Future[Sides] | None = None
    if snapshot.source.status.answers:
        source = open_cluster(flow.source)
        topics = [topic for topic in snapshot.mirrored.values() if topic in snapshot.source.topics]
        theirs = [topic for topic in internal.get(flow.source, ()) if topic in snapshot.source.topics]
        at_source = in_background(lambda: _side(source, topics, theirs))
    at_target = _side(target, copies, own)
    return (Sides() if at_source is None else at_source.result()), at_target


def _side(cluster: Cluster, topics: Collection[str], internal: Collection[str]) -> Sides:
    untold: dict[str, Fault] = {}
    settings: dict[str, dict[str, str]] = {}
    try:
        for topic, found in cluster.topic_settings([*topics, *internal], DRIFT).items():
            if isinstance(found, Fault):
                untold.setdefault("topic settings", found)
            else:
                settings[topic] = found
        sizes = cluster.log_bytes(internal)
        speaks = cluster.api_versions()
    except ClusterError as error:
        return Sides(untold={"everything": fault_of_loss(error)})
    if isinstance(sizes, Fault):
        untold["disk"] = sizes
    if isinstance(speaks, Fault):
        untold["versions"] = speaks
    return Sides(
        settings=settings,
        sizes={} if isinstance(sizes, Fault) else sizes,
        speaks={} if isinstance(speaks, Fault) else speaks,
        untold=untold,
    )
