"""What findings need and no plan depends on: asked aside, one request each, and never waited for long."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import Future
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import msgspec

from failover.errors import ClusterError
from failover.inventory.look import FirstLook, Offsets, in_background
from failover.kafka.faults import NO_ANSWER, fault, fault_of_loss
from failover.kafka.port import Cluster
from failover.mm2.internal_topics import InternalTopics, checkpoint_group, replicate_group
from failover.model.cluster import LogRange
from failover.model.names import Fault, TopicPartition
from failover.model.records import WindowRequest
from failover.model.rights import ScramUser
from failover.model.snapshot import ClusterView, Waiting

V = TypeVar("V")

PATIENCE = 2.0
"""Seconds that all of this may hold up a look that is done otherwise."""

NO_AUTHORIZER = 54
"""Kafka: SECURITY_DISABLED."""

TOPIC_SETTINGS = ("min.insync.replicas", "max.message.bytes")

_LOOKED_AT = 500
"""Partitions whose first missing record is looked at, at most."""

_STRETCH = 10
"""Offsets read from where a partition is mirrored up to: the first may be a transaction's marker."""


class Asked:
    """Is what one cluster was asked; ``told`` puts the answers that came into its view."""

    def __init__(self, cluster: Cluster) -> None:
        acls = in_background(cluster.acls)

        def users() -> tuple[ScramUser, ...] | Fault:
            # A broker asked for users without DESCRIBE on the cluster gives no answer at all (measured on Kafka 4.1.1).
            found = acls.result()
            return found if isinstance(found, Fault) and found.number != NO_AUTHORIZER else cluster.scram_users()

        self._futures: dict[str, Future[Any]] = {"ACLs": acls, "SCRAM users": in_background(users)}
        self._cluster = cluster

    def topics(self, names: Collection[str]) -> None:
        """Asks for settings of topics as well."""
        if names:
            self._futures["topic settings"] = in_background(lambda: self._cluster.topic_settings(names, TOPIC_SETTINGS))

    def told(self, view: ClusterView, deadline: float) -> ClusterView:
        """Gives the view with what was told until ``deadline`` (monotonic seconds), and why the rest was not."""
        answers = {what: _answer(future, deadline) for what, future in self._futures.items()}
        untold = {what: found for what, found in answers.items() if isinstance(found, Fault)}
        settings: dict[str, dict[str, str]] = {}
        if isinstance(found := answers.get("topic settings"), dict):
            for topic, values in found.items():
                if isinstance(values, Fault):
                    untold.setdefault("topic settings", values)
                else:
                    settings[topic] = values
        if not view.settings:
            untold["broker settings"] = fault(NO_ANSWER, "no right or no answer")
        return msgspec.structs.replace(
            view,
            acls=None if "ACLs" in untold else answers["ACLs"],
            users=None if "SCRAM users" in untold else answers["SCRAM users"],
            topic_settings=settings,
            untold=untold,
        )


class Behind(NamedTuple):
    """Is what a source holds behind what the target has; see the fields of ``Snapshot`` of the same names."""

    waiting: Mapping[TopicPartition, Waiting] = MappingProxyType({})
    caught_up: frozenset[TopicPartition] = frozenset()


def first_waiting(
    source: Cluster,
    mirrored: Mapping[str, str],
    newest_syncs: Mapping[TopicPartition, tuple[int, int]],
    source_logs: Mapping[TopicPartition, LogRange],
    target_logs: Mapping[TopicPartition, LogRange],
    *,
    committed: bool,
) -> Future[Behind]:
    """Reads the first record that each target partition lacks: how long it has waited, and how large it is.

    The newest sync tells how far a partition is mirrored, and so does a target that is empty. Others are left out.
    ``committed``: the mirror copies nothing that was aborted. What is left of a log and short may hold no record that
    is ever copied, as behind a transaction: that partition has caught up.
    """
    wanted = []
    for topic, source_topic in mirrored.items():
        for tp in _partitions(topic, target_logs):
            origin, log = TopicPartition(source_topic, tp.partition), target_logs[tp]
            theirs, pair = source_logs.get(origin), newest_syncs.get(tp)
            if theirs is None or (pair is None and log.end) or (pair is not None and pair[1] > log.end):
                continue
            first = max(theirs.start, theirs.start if pair is None else pair[0] + log.end - pair[1])
            if first < theirs.end:
                wanted.append(WindowRequest("source", origin, first, min(theirs.end, first + _STRETCH)))

    def read() -> Behind:
        windows = source.windows(wanted[:_LOOKED_AT], committed=committed) if wanted else {}
        waiting = {
            request.tp: Waiting(record.offset, record.timestamp, len(record.key or b"") + len(record.value or b""))
            for request, window in windows.items()
            for record in window.records[:1]
        }
        caught_up = frozenset(
            request.tp
            for request, window in windows.items()
            if window.fault is None and not window.records and window.covered_to >= source_logs[request.tp].end
        )
        return Behind(waiting, caught_up)

    return in_background(read)


def soon(future: Future[V], deadline: float, otherwise: V) -> V:
    """Gives a result that is there by ``deadline`` (monotonic seconds), else ``otherwise``."""
    found = _answer(future, deadline)
    return otherwise if isinstance(found, Fault) else found


def deadline() -> float:
    """Gives the moment (monotonic seconds) after which nothing here is waited for any more."""
    return time.monotonic() + PATIENCE


def writers(target: FirstLook, internal: InternalTopics) -> dict[str, str]:
    """Finds which programs run that write what a plan is about, by their groups on the target (group → program)."""
    flow = internal.source, internal.target
    known = {
        internal.connect_group: "MirrorMaker 2",
        replicate_group(*flow): "failover replicate",
        checkpoint_group(*flow): "failover checkpoint",
    }
    return {
        group: program
        for group, program in known.items()
        if group in target.groups and target.groups[group].state not in ("", "Empty", "Dead", "Unknown")
    }


def local_topics(
    groups: Iterable[str],
    mirrored: Mapping[str, str],
    first: FirstLook,
    target: Offsets,
    source: Offsets | None,
    *,
    there: bool,
) -> list[str]:
    """Names what the producers of the groups' topics would write on the target: the plain names of these topics.

    Those that the target does not list, which it may hide; with ``there`` also those that it does.
    """
    names = {source_topic: topic for topic, source_topic in mirrored.items()}
    seen = {tp.topic for group in groups for tp in (*first.checkpoints.get(group, ()), *target.commits.get(group, ()))}
    if source is not None:
        seen |= {names.get(tp.topic, "") for group in groups for tp in source.commits.get(group, ())}
    plain = {mirrored[topic] for topic in seen if mirrored.get(topic, topic) != topic} - mirrored.keys()
    return sorted(name for name in plain if there or name not in first.topics)


def _partitions(topic: str, logs: Mapping[TopicPartition, LogRange]) -> Iterable[TopicPartition]:
    number = 0
    while (tp := TopicPartition(topic, number)) in logs:
        yield tp
        number += 1


def _answer(future: Future[V], deadline: float) -> V | Fault:
    try:
        return future.result(timeout=max(0.0, deadline - time.monotonic()))
    except TimeoutError:
        return fault(NO_ANSWER, "no answer in time")
    except ClusterError as error:
        return fault_of_loss(error)
