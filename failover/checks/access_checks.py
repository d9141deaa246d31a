"""Checks of what a cluster lets this tool do: can it be reached, is it another one, which rights are there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from failover.checks.look import count, some
from failover.model.cluster import TopicInfo
from failover.model.groups import GroupInfo
from failover.model.names import Fault
from failover.model.plan import Finding, Severity

DENIED = frozenset({29, 30, 31})
"""Kafka: TOPIC_, GROUP_ and CLUSTER_AUTHORIZATION_FAILED."""


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """Is what one cluster let this tool see.

    ``trouble``: why it could not be asked. ``internal``: MM2's topics that are read there, with what they are for; a
    Fault where one cannot be described.
    ``topics``: the mirrored topics, by their names there. ``groups``: groups of the flow, described.
    """

    alias: str
    side: Literal["source", "target"]
    flow: str
    trouble: Finding | None = None
    cluster_id: str | None = None
    brokers: int = 0
    unreachable: int = 0
    internal: Mapping[str, tuple[str, TopicInfo | Fault | None]] = {}
    topics: Mapping[str, TopicInfo | Fault] = {}
    groups: Mapping[str, GroupInfo] = {}
    listing_denied: bool = False


def check_access(accesses: Sequence[Access]) -> tuple[Finding, ...]:
    """Gives the findings about the clusters that were asked."""
    found = [finding for access in accesses for finding in _of_cluster(access)]
    return tuple(dict.fromkeys([*found, *_same(accesses)]))


def _of_cluster(access: Access) -> Iterator[Finding]:
    if access.trouble is not None:
        yield access.trouble
        return
    if access.unreachable:
        message = f"{access.unreachable} of {count(access.brokers, 'broker')} of {access.alias} do not answer"
        remedy = "start them, or see whether this machine reaches their advertised addresses"
        yield Finding("brokers-unreachable", Severity.WARNING, access.alias, message, remedy)
    yield from _internal(access)
    if access.listing_denied:
        message = f"the groups of {access.alias} cannot be listed"
        yield Finding(
            "not-authorized", Severity.ERROR, access.alias, message, "grant DESCRIBE on the cluster, or on group *"
        )
    if access.side == "target":
        yield from _writing(access)
    else:
        yield from _reading(access)


def _internal(access: Access) -> Iterator[Finding]:
    for topic, (purpose, info) in access.internal.items():
        if info is None:
            message = f"{access.alias} has no topic {topic} ({purpose})"
            where = ", and look for it on the other cluster (offset-syncs.topic.location)" if "syncs" in purpose else ""
            remedy = f"nothing, if the mirror never ran yet: it makes it; else see whether it runs for this flow{where}"
            yield Finding("internal-topic-missing", Severity.WARNING, topic, message, remedy)
        elif isinstance(info, Fault) or not _may(info.operations, "READ"):
            message = f"{topic} on {access.alias} cannot be read ({purpose})"
            yield Finding("not-authorized", Severity.ERROR, topic, message, f"grant READ on topic {topic}")


def _reading(access: Access) -> Iterator[Finding]:
    hidden = [name for name, info in access.groups.items() if _denied(info)]
    if hidden:
        message = f"{count(len(hidden), 'group')} of {access.alias} may not be described: {some(hidden)}"
        yield Finding("not-authorized", Severity.ERROR, some(hidden), message, "grant DESCRIBE on these groups")
    if closed := _closed(access):
        message = f"records of {count(len(closed), 'topic')} of {access.alias} cannot be compared: {some(closed)}"
        remedy = "grant READ on these topics; without it offsets are placed by offset syncs alone"
        yield Finding("not-authorized", Severity.WARNING, some(closed), message, remedy)


def _writing(access: Access) -> Iterator[Finding]:
    no_commit = [name for name, info in access.groups.items() if _denied(info) or not _may(info.operations, "READ")]
    if no_commit:
        message = f"{access.alias} would refuse commits for {count(len(no_commit), 'group')}: {some(no_commit)}"
        yield Finding(
            "not-authorized", Severity.ERROR, some(no_commit), message, "grant READ on these groups, or on group *"
        )
    no_delete = [
        name for name, info in access.groups.items() if name not in no_commit and not _may(info.operations, "DELETE")
    ]
    if no_delete:
        message = f"{access.alias} would not let a rollback take back first commits of {count(len(no_delete), 'group')}"
        remedy = "grant DELETE on these groups, or on group *"
        yield Finding("rollback-limited", Severity.WARNING, some(no_delete), message, remedy)
    if closed := _closed(access):
        message = f"{access.alias} would refuse commits on {count(len(closed), 'topic')}: {some(closed)}"
        yield Finding("not-authorized", Severity.ERROR, some(closed), message, "grant READ on these topics")


def _closed(access: Access) -> list[str]:
    return [
        name
        for name, info in access.topics.items()
        if (isinstance(info, Fault) and info.number in DENIED)
        or (isinstance(info, TopicInfo) and not _may(info.operations, "READ"))
    ]


def _same(accesses: Sequence[Access]) -> Iterator[Finding]:
    by_id: dict[str, set[str]] = {}
    for access in accesses:
        if access.cluster_id is not None:
            by_id.setdefault(access.cluster_id, set()).add(access.alias)
    for cluster_id, aliases in by_id.items():
        if len(aliases) > 1:
            names = " and ".join(sorted(aliases))
            message = f"{names} are one cluster: both have the id {cluster_id}"
            yield Finding(
                "same-cluster", Severity.ERROR, names, message, "correct the bootstrap.servers of one of them"
            )


def _may(operations: frozenset[str] | None, operation: str) -> bool:
    return operations is None or operation in operations or "ALL" in operations


def _denied(info: GroupInfo) -> bool:
    return info.fault is not None and info.fault.number in DENIED
