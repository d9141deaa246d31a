"""Tries a configuration on its clusters: are they there, are they two, and what may this tool do on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from failover.checks.access_checks import DENIED, Access
from failover.config.findings import invalid
from failover.config.flow import Config, SelectedFlow
from failover.errors import ClusterError, ConfigError
from failover.inventory.flow import Flow, flow_of
from failover.kafka.port import Cluster
from failover.mm2.internal_topics import is_own_group
from failover.model.cluster import TopicInfo
from failover.model.plan import Finding, Severity

MOST = 1000
"""So many groups and topics are asked for their rights: enough to find a rule that is missing."""

Open = Callable[[SelectedFlow, str], Cluster]


def try_clusters(
    config: Config, flows: Iterable[SelectedFlow], open_cluster: Open, *, target_only: bool = False
) -> list[Access]:
    """Asks both clusters of each flow, the source first; what cannot be asked is a finding, never an error.

    Nothing is written and no topic is created.
    """
    found: list[Access] = []
    for selected in flows:
        try:
            flow = flow_of(config, selected)
        except ConfigError as error:
            found.append(Access(alias=selected.target, side="target", flow="", trouble=invalid(selected.name, error)))
            continue
        groups: Iterable[str] = ()
        if not target_only:
            found.append(_try(selected, flow, "source", open_cluster, ()))
            groups = found[-1].groups
        found.append(_try(selected, flow, "target", open_cluster, groups))
    return found


def _try(selected: SelectedFlow, flow: Flow, side: str, open_cluster: Open, more: Iterable[str]) -> Access:
    at_source = side == "source"
    alias = flow.source if at_source else flow.target
    empty = Access(alias=alias, side="source" if at_source else "target", flow=selected.name)
    try:
        cluster = open_cluster(selected, alias)
    except ConfigError as error:
        return _with(empty, invalid(alias, error))
    try:
        return _asked(cluster, flow, empty, more)
    except ClusterError as error:
        return _with(empty, Finding(error.code, Severity.ERROR, alias, error.message, error.hint))
    finally:
        cluster.close()


def _with(access: Access, trouble: Finding) -> Access:
    return Access(alias=access.alias, side=access.side, flow=access.flow, trouble=trouble)


def _asked(cluster: Cluster, flow: Flow, empty: Access, more: Iterable[str]) -> Access:
    facts = cluster.facts()
    topics = cluster.topics()
    wanted = _internal(flow, empty.side)
    described = cluster.describe_topics(list(wanted))
    internal = {
        name: (purpose, None if name not in topics and _is_absent(described[name]) else described[name])
        for name, purpose in wanted.items()
    }
    listed, faults = cluster.list_groups()
    # Connect's workers are groups as well, of another protocol: they commit nothing.
    consumers = (name for name, one in listed.items() if one.protocol_type in ("consumer", ""))
    names = {name for name in (*consumers, *more) if flow.groups.matches(name) and not is_own_group(name)}
    groups = cluster.describe_groups(list(islice(sorted(names), MOST)))
    mirrored = _is_copy if empty.side == "target" else _is_original
    chosen = [name for name in topics if mirrored(flow, name)][:MOST]
    return Access(
        alias=empty.alias,
        side=empty.side,
        flow=empty.flow,
        cluster_id=facts.cluster_id,
        brokers=len(facts.brokers) + len(facts.unreachable),
        unreachable=len(facts.unreachable),
        internal=internal,
        topics=cluster.describe_topics(chosen),
        groups=groups,
        listing_denied=any(fault.number in DENIED for fault in faults),
    )


def _internal(flow: Flow, side: str) -> dict[str, str]:
    return dict(_internal_names(flow, side))


def _internal_names(flow: Flow, side: str) -> Iterator[tuple[str, str]]:
    internal = flow.internal
    if side == "target":
        yield internal.checkpoints, "MM2's checkpoints"
    if internal.offset_syncs_location == side:
        yield internal.offset_syncs, "MM2's offset syncs"


def _is_copy(flow: Flow, topic: str) -> bool:
    origin = flow.source_topic(topic)
    return origin is not None and flow.topics.should_replicate(origin)


def _is_original(flow: Flow, topic: str) -> bool:
    return flow.topics.should_replicate(topic)


def _is_absent(described: object) -> bool:
    return not isinstance(described, TopicInfo) and getattr(described, "number", 3) == 3
