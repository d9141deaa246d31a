"""What is read from one cluster: first everything by name, then what the chosen groups need."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future
from datetime import datetime
from typing import TypeVar

import msgspec

from failover.inventory.internal_topics import (
    CheckpointsByGroup,
    newest_heartbeat,
    read_checkpoints,
    read_offset_syncs,
)
from failover.inventory.selection import foreign_protocol
from failover.kafka.port import Cluster
from failover.model.cluster import ClusterFacts, ClusterState, ClusterStatus, LogRange, TopicInfo
from failover.model.groups import Commit, GroupInfo, GroupType, ListedGroup
from failover.model.names import Fault, TopicPartition
from failover.model.snapshot import ClusterView, InternalTopicReading
from failover.translate.segments import Syncs

T = TypeVar("T")
Report = Callable[[str, int, "int | None"], None]

SETTINGS = (
    "offsets.retention.minutes",
    "min.insync.replicas",
    "auto.create.topics.enable",
    "num.partitions",
    "inter.broker.protocol.version",
)
"""Broker settings a plan or a finding depends on."""


class FirstLook(msgspec.Struct, frozen=True):
    """Is what one cluster tells without knowing the groups.

    ``checkpoints``: of the target only. ``syncs``: by source partition, from the side that holds them.
    """

    facts: ClusterFacts
    topics: Mapping[str, TopicInfo]
    groups: Mapping[str, ListedGroup]
    listing_faults: tuple[Fault, ...]
    checkpoints: CheckpointsByGroup = {}
    syncs: Mapping[TopicPartition, Syncs] = {}
    readings: tuple[InternalTopicReading, ...] = ()
    heartbeat: int | None = None

    @property
    def complete(self) -> bool:
        """Says whether every broker told its groups."""
        return not self.listing_faults


class Offsets(msgspec.Struct, frozen=True):
    """Is what groups have committed on one cluster, and why some could not be read."""

    commits: dict[str, dict[TopicPartition, Commit]]
    faults: dict[str, Fault]


def in_background(work: Callable[[], T]) -> Future[T]:
    """Starts work in a thread of its own, which does not keep the process alive when nobody waits any more."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised again where the result is asked for
            future.set_exception(error)

    threading.Thread(target=run, name="failover-look", daemon=True).start()
    return future


def first_look(
    cluster: Cluster,
    side: str,
    *,
    checkpoints: str | None = None,
    syncs: str | None = None,
    heartbeats: str | None = None,
    report: Report,
) -> FirstLook:
    """Looks at a cluster; the internal topics named are read whole, at the same time as the groups are listed.

    Raises ``ClusterUnreachable`` and ``CredentialsRefused``.
    """
    report(f"asking {cluster.alias}", 0, None)
    facts = cluster.facts()
    topics = cluster.topics()
    listing = in_background(cluster.list_groups)
    hidden = hidden_topics(cluster, [name for name in (checkpoints, syncs) if name is not None and name not in topics])
    beat = in_background(lambda: newest_heartbeat(cluster, side, topics.get(heartbeats))) if heartbeats else None
    syncs_read = None
    if syncs is not None:
        syncs_read = in_background(
            lambda: read_offset_syncs(
                cluster, syncs, exists=syncs in topics, advance=lambda n: report("reading offset syncs", n, None)
            )
        )
    found: CheckpointsByGroup = {}
    readings: list[InternalTopicReading] = []
    if checkpoints is not None:
        found, reading = read_checkpoints(
            cluster,
            checkpoints,
            exists=checkpoints in topics,
            advance=lambda n: report("reading checkpoints", n, None),
        )
        readings.append(reading)
    history: Mapping[TopicPartition, Syncs] = {}
    if syncs_read is not None:
        history, reading = syncs_read.result()
        readings.append(reading)
    groups, faults = listing.result()
    return FirstLook(
        facts=facts,
        topics=topics,
        groups=groups,
        listing_faults=faults,
        checkpoints=found,
        syncs=history,
        readings=tuple(
            msgspec.structs.replace(reading, fault=hidden[reading.topic]) if reading.topic in hidden else reading
            for reading in readings
        ),
        heartbeat=beat.result() if beat is not None else None,
    )


def hidden_topics(cluster: Cluster, missing: Collection[str]) -> dict[str, Fault]:
    """Finds which topics a listing lacks for want of rights: without DESCRIBE, Kafka lists none and names none."""
    answers = cluster.describe_topics(missing) if missing else {}
    return {
        name: info
        for name, info in answers.items()
        if isinstance(info, Fault) and info.name == "TOPIC_AUTHORIZATION_FAILED"
    }


def read_offsets(cluster: Cluster, groups: Collection[str], had: Collection[str] = ()) -> Offsets:
    """Reads what groups have committed; ``had``: those that are known to have had something not long ago."""
    commits: dict[str, dict[TopicPartition, Commit]] = {}
    faults: dict[str, Fault] = {}
    answers = cluster.committed(groups, lambda group, found: bool(found) or group not in had) if groups else {}
    for group, found in answers.items():
        if isinstance(found, Fault):
            faults[group] = found
        else:
            commits[group] = found
    return Offsets(commits, faults)


class EndsOrder:
    """Lets the source's log ends be read only after the target's.

    A group that stands at the source's end has read everything, and so the target's end passes
    nothing unread; that holds only if nothing was copied between the two readings from beyond the
    source's end as it was read.
    """

    def __init__(self, first: str) -> None:
        self._first = first
        self._read = threading.Event()

    @contextlib.contextmanager
    def turn(self, alias: str) -> Iterator[None]:
        """Waits for this cluster's turn."""
        if alias != self._first:
            self._read.wait()
        yield
        if alias == self._first:
            self.give_way()

    def give_way(self) -> None:
        """Says that the first cluster's ends are read, or, after a failure, never will be."""
        self._read.set()


def second_look(
    cluster: Cluster,
    first: FirstLook,
    groups: Collection[str],
    offsets: Offsets,
    topics: Iterable[str],
    *,
    order: EndsOrder,
    pending: bool = False,
) -> ClusterView:
    """Describes the groups and topics of a plan, and last of all reads the logs' ends.

    Ends are read after commits and syncs, so that none of those can seem to lie beyond them.
    ``topics``: names the cluster may not have. ``order``: see there. ``pending``: also ask what open
    transactions hold back.
    """
    described = in_background(lambda: cluster.describe_groups(groups) if groups else {})
    held = in_background(lambda: cluster.pending(groups) if pending and groups else {})
    settings = in_background(lambda: cluster.broker_settings(SETTINGS))
    asked = list(topics)
    names = [name for name in asked if name in first.topics]
    hidden = hidden_topics(cluster, [name for name in asked if name not in first.topics])
    known = dict(first.topics)
    gone: set[str] = set()
    for name, info in (cluster.describe_topics(names) if names else {}).items():
        if isinstance(info, TopicInfo):
            known[name] = info
        elif info.number == 3:  # deleted since it was listed
            gone.add(name)
            del known[name]
    partitions = [
        TopicPartition(name, number) for name in names if name not in gone for number in _numbers(known[name])
    ]
    logs: dict[TopicPartition, LogRange] = {}
    log_faults: dict[TopicPartition, Fault] = {}
    with order.turn(cluster.alias):
        ranges = cluster.log_ranges(partitions) if partitions else {}
    for tp, found in ranges.items():
        if isinstance(found, Fault):
            log_faults[tp] = found
        else:
            logs[tp] = found
    return ClusterView(
        status=status_of(cluster.alias, first),
        topics=known,
        logs=logs,
        groups={name: _typed(info, first.groups.get(name)) for name, info in described.result().items()},
        commits={group: offsets.commits[group] for group in groups if group in offsets.commits},
        pending=held.result(),
        group_faults={group: offsets.faults[group] for group in groups if group in offsets.faults},
        log_faults=log_faults,
        settings=settings.result(),
        complete=first.complete,
        hidden=frozenset(hidden),
        bootstrap=tuple(f"{each.host}:{each.port}" for each in first.facts.brokers[:3]),
    )


def status_of(alias: str, first: FirstLook) -> ClusterStatus:
    """Says whether a cluster that answers is whole: every broker it names, a leader for every partition."""
    reasons = [
        f"broker {each.id}{f' at {each.host}:{each.port}' if each.host else ''} gives no answer"
        for each in first.facts.unreachable
    ]
    reasons += [fault.message or fault.name for fault in first.listing_faults if not first.facts.unreachable]
    leaderless = [f"{t.name}-{number}" for t in first.topics.values() for number in t.leaderless]
    if leaderless:
        more = f" and {len(leaderless) - 3} more" if len(leaderless) > 3 else ""
        plural = "s have" if len(leaderless) > 1 else " has"
        reasons.append(f"{len(leaderless)} partition{plural} no leader ({', '.join(leaderless[:3])}{more})")
    state = ClusterState.DEGRADED if reasons else ClusterState.UP
    return ClusterStatus(alias, first.facts.cluster_id, state, "; ".join(reasons))


def silent_view(alias: str, state: ClusterState, detail: str, since: datetime | None) -> ClusterView:
    """Makes the view of a cluster that was not asked or gave no answer."""
    return ClusterView(ClusterStatus(alias, None, state, detail, since), complete=False)


def _numbers(info: TopicInfo) -> range:
    return range(info.partitions)


def _typed(info: GroupInfo, listed: ListedGroup | None) -> GroupInfo:
    # Kafka Connect's workers form classic groups too; what they commit are no consumer offsets.
    if listed is not None and foreign_protocol((listed,)):
        return msgspec.structs.replace(info, type=GroupType.UNKNOWN)
    return info
