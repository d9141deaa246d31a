"""``KafkaCluster``: the port over confluent-kafka, and over raw connections where that cannot do what is needed.

confluent-kafka finds out whether and how the cluster answers, lists its topics and reads settings.
Raw requests carry what it lacks or bends: groups with the broker's own words for state and type (its
enums know neither Assigning nor share groups), offsets of many groups in one request, metadata as
bytes, commits (see ``admin_commit``), log ends, OffsetDelete, whole topics and windows of records.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from failover.errors import ClusterUnreachable
from failover.kafka.admin_clients import Connections
from failover.kafka.admin_convert import broker, described_topic, listed_topic, missing_brokers, operations
from failover.kafka.faults import fault
from failover.kafka.port import AGAIN, APPEND_SECONDS, CommitResults, Credible, doubtful
from failover.model.cluster import Broker, ClusterFacts, LogRange, TopicInfo
from failover.model.groups import Commit, GroupInfo, GroupType, ListedGroup, Member
from failover.model.names import Fault, TopicPartition
from failover.model.records import Record, Window, WindowRequest

if TYPE_CHECKING:
    from failover.config.clients import ClientSettings
    from failover.kafka.append import Appender
    from failover.kafka.aside import Aside
    from failover.kafka.wire.cluster import WireCluster
    from failover.kafka.wire.thread import WireThread
    from failover.model.rights import AclBinding, ScramUser

K = TypeVar("K")
V = TypeVar("V")

_OPERATIONS_WAIT = 2.0
_UNSTABLE_OFFSET_COMMIT = 88
_UNKNOWN_TOPIC, _TOPIC_ALREADY_EXISTS = 3, 36


class KafkaCluster:
    """Is one real cluster; see ``failover.kafka.port.Cluster`` for what each method promises.

    ``timeout``: the longest accepted silence in seconds. Silence and refused credentials are
    decided once: every later call raises the same error at once.
    """

    def __init__(self, alias: str, settings: ClientSettings, *, timeout: float) -> None:
        self._alias = alias
        self._settings = settings
        self._timeout = timeout
        self._connections = Connections(alias, settings, timeout=timeout)
        self._lock = threading.RLock()
        self._facts: ClusterFacts | None = None
        self._listing: dict[str, TopicInfo] | None = None
        self._thread: WireThread | None = None
        self._wire: WireCluster | None = None
        self._aside: Aside | None = None
        self._types: dict[str, GroupType] = {}
        self._appender: Appender | None = None

    @property
    def alias(self) -> str:
        """Is the cluster's alias in the configuration."""
        return self._alias

    # -- the cluster and its topics ----------------------------------------------------------------

    def facts(self) -> ClusterFacts:
        """Identifies the cluster; the first call decides whether it can be used at all."""
        with self._lock:
            if self._facts is None:
                self._facts = self._look()
            return self._facts

    def topics(self) -> dict[str, TopicInfo]:
        """Lists every visible topic; never creates one."""
        self.facts()
        with self._lock:
            # what the first look found is used once, so that looking at a cluster costs one listing
            listing, self._listing = self._listing, None
            return listing if listing is not None else _listed(self._metadata())

    def describe_topics(self, names: Collection[str]) -> dict[str, TopicInfo | Fault]:
        """Describes topics with ids, leaders and authorized operations; never creates one.

        Raw, because librdkafka asks one broker only, and that one may be the silent one.
        """
        self.facts()
        if not names:
            return {}
        found = self._raw(lambda wire: wire.metadata(names, operations=True)).topics
        return {name: described_topic(found[name]) if name in found else fault(3) for name in names}

    def log_ranges(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, LogRange | Fault]:
        """Reads log start and high watermark of each partition.

        Raw, because one request a broker answers for all its partitions: 1,200 took 0.06 s against
        0.16 s by librdkafka (measured on Kafka 4.1.1).
        """
        from failover.kafka.wire.logs import log_ranges

        self.facts()
        return self._raw(lambda wire: log_ranges(wire, partitions))

    def offsets_at(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | Fault | None]:
        """Finds the first offset whose timestamp is at or after the partition's time (epoch ms); None: none."""
        from failover.kafka.wire.logs import list_offsets

        self.facts()
        found = self._raw(lambda wire: list_offsets(wire, times))
        return {
            tp: at if isinstance(at, Fault) else (at.offset if at.offset >= 0 else None) for tp, at in found.items()
        }

    def broker_settings(self, names: Collection[str]) -> dict[str, str]:
        """Reads these settings from one broker; what may not be read is left out."""
        from confluent_kafka.admin import ConfigResource, ResourceType

        facts = self.facts()
        silent = {each.id for each in facts.unreachable}
        for each in facts.brokers:
            if each.id in silent:
                continue
            resource = ConfigResource(ResourceType.BROKER, str(each.id))
            wait = self._connections.patience
            futures = self._connections.client().describe_configs([resource], request_timeout=wait)
            answer = self._connections.wait(futures)[resource]
            if not isinstance(answer, Fault):
                entries = ((name, answer.get(name)) for name in names)
                return {name: entry.value for name, entry in entries if entry is not None and entry.value is not None}
        return {}

    def last_times(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int | Fault | None]:
        """Reads the highest timestamp of each partition's records (epoch ms); None in an empty one."""
        from failover.kafka.wire.logs import last_times

        found = self._beside().ask(lambda wire: last_times(wire, partitions)) if partitions else {}
        return dict.fromkeys(partitions, found) if isinstance(found, Fault) else found

    def log_bytes(self, topics: Collection[str]) -> dict[str, int] | Fault:
        """Sums the bytes that topics take on the disks of all brokers."""
        from failover.kafka.wire.log_dirs import log_bytes

        return self._beside().ask(lambda wire: log_bytes(wire, topics))

    def api_versions(self) -> dict[int, dict[int, int]] | Fault:
        """Tells what each broker speaks: broker → API key → highest version."""
        return self._beside().ask(lambda wire: wire.api_versions())

    # -- what findings ask beside the plan ---------------------------------------------------------

    def acls(self) -> tuple[AclBinding, ...] | Fault:
        """Reads every ACL, in one request."""
        return self._beside().acls()

    def create_acls(self, bindings: Collection[AclBinding]) -> dict[AclBinding, Fault | None]:
        """Creates ACLs."""
        return self._beside().change_acls(bindings, delete=False)

    def delete_acls(self, bindings: Collection[AclBinding]) -> dict[AclBinding, Fault | None]:
        """Deletes these very ACLs."""
        return self._beside().change_acls(bindings, delete=True)

    def may_write(self, topics: Collection[str]) -> dict[str, bool | Fault]:
        """Finds out by trying whether this client may write to topics; nothing is written."""
        from failover.kafka.wire.attempt import may_write

        found = self._beside().ask(lambda wire: may_write(wire, topics))
        return dict.fromkeys(topics, found) if isinstance(found, Fault) else found

    def scram_users(self) -> tuple[ScramUser, ...] | Fault:
        """Reads which users brokers know by SCRAM, in one request."""
        return self._beside().scram_users()

    def topic_settings(self, topics: Collection[str], names: Collection[str]) -> dict[str, dict[str, str] | Fault]:
        """Reads these settings of topics as they are in effect."""
        return self._beside().topic_settings(topics, names)

    # -- groups and their offsets ------------------------------------------------------------------

    def list_groups(self) -> tuple[dict[str, ListedGroup], tuple[Fault, ...]]:
        """Lists groups of every type, and the faults of brokers that could not be asked."""
        from failover.kafka.wire.groups import list_groups

        self.facts()
        groups, faults = self._raw(list_groups)
        with self._lock:
            self._types.update((name, group.type) for name, group in groups.items())
        return groups, faults

    def describe_groups(self, groups: Collection[str]) -> dict[str, GroupInfo]:
        """Describes groups of every type; absent ones come back with ``exists`` False."""
        from failover.kafka.wire.groups import describe_groups

        self.facts()
        with self._lock:
            types = {name: self._types[name] for name in groups if name in self._types}
        return self._raw(lambda wire: describe_groups(wire, groups, types))

    def committed(
        self, groups: Collection[str], credible: Credible | None = None
    ) -> dict[str, dict[TopicPartition, Commit] | Fault]:
        """Reads all committed offsets of each group (require_stable false); {} when none."""
        self.facts()
        found = self._committed(groups)
        for pause in AGAIN if credible is not None else ():
            missing = doubtful(found, credible) if credible is not None else []
            if not missing:
                break
            time.sleep(pause)
            found |= self._committed(missing, afresh=True)
        return found

    def _committed(
        self, groups: Collection[str], *, afresh: bool = False
    ) -> dict[str, dict[TopicPartition, Commit] | Fault]:
        from failover.kafka.wire.offsets import committed_offsets

        async def ask(wire: WireCluster) -> dict[str, Any]:
            if afresh:
                await wire.coordinators(groups, refresh=True)
            return await committed_offsets(wire, groups)

        found = self._raw(ask)
        return {group: offsets if isinstance(offsets, Fault) else _commits(offsets) for group, offsets in found.items()}

    def pending(self, groups: Collection[str]) -> dict[str, tuple[TopicPartition, ...]]:
        """Names partitions whose commit an open transaction holds back (require_stable true)."""
        from failover.kafka.wire.offsets import committed_offsets

        self.facts()
        found = self._raw(lambda wire: committed_offsets(wire, groups, require_stable=True))
        held = {}
        for group, offsets in found.items():
            if isinstance(offsets, Fault):
                continue
            unstable = tuple(sorted(tp for tp, found in offsets.items() if _is(found, _UNSTABLE_OFFSET_COMMIT)))
            if unstable:
                held[group] = unstable
        return held

    def delete_offsets(
        self, offsets: Mapping[str, Collection[TopicPartition]]
    ) -> dict[str, dict[TopicPartition, Fault | None] | Fault]:
        """Deletes committed offsets, group by group."""
        from failover.kafka.wire.offsets import delete_offsets

        self.facts()
        return self._raw(lambda wire: delete_offsets(wire, offsets))

    def delete_groups(self, groups: Collection[str]) -> dict[str, Fault | None]:
        """Deletes groups."""
        from failover.kafka.wire.groups import delete_groups

        self.facts()
        return self._raw(lambda wire: delete_groups(wire, groups))

    def commit(
        self,
        commits: Mapping[str, Mapping[TopicPartition, Commit]],
        done: Callable[[str, CommitResults | Fault], None],
    ) -> None:
        """Commits for each group in one request, many groups at a time."""
        from failover.kafka.admin_commit import commit_all

        self.facts()
        commit_all(self._raw, self._connections, commits, done)

    # -- records -----------------------------------------------------------------------------------

    def read(self, partition: TopicPartition) -> Iterator[Sequence[Record]]:
        """Yields every data record from log start to the end known at the start, in chunks.

        Raises ``NotAuthorized`` without READ, ``BrokerError`` where the partition is not there or damaged.
        """
        from failover.kafka.wire.columns import read_records

        self.facts()
        thread, wire = self._connected()
        yield from thread.iterate(read_records(wire, partition))

    def create_topic(self, name: str, partitions: int, settings: Mapping[str, str]) -> Fault | None:
        """Creates a topic of the tool's own, on three brokers where there are so many; None when it is there then."""
        from confluent_kafka.admin import NewTopic

        replicas = min(3, len(self.facts().brokers))
        wait = min(APPEND_SECONDS, self._connections.patience)
        wanted = NewTopic(name, num_partitions=partitions, replication_factor=replicas, config=dict(settings))
        futures = self._connections.client().create_topics([wanted], request_timeout=wait)
        answer = self._connections.wait(futures)[name]
        return answer if isinstance(answer, Fault) and answer.number != _TOPIC_ALREADY_EXISTS else None

    def delete_topics(self, names: Collection[str]) -> dict[str, Fault | None]:
        """Deletes topics with all they hold; one that is not there is no fault."""
        if not names:
            return {}
        self.facts()
        wait = self._connections.patience
        answers = self._connections.wait(self._connections.client().delete_topics(list(names), request_timeout=wait))
        return {
            name: found if isinstance(found, Fault) and found.number != _UNKNOWN_TOPIC else None
            for name, found in answers.items()
        }

    def append_records(self, partition: TopicPartition, records: Sequence[tuple[bytes | None, bytes]]) -> int:
        """Appends records, acknowledged by every replica in sync; gives the last one's offset."""
        from failover.kafka.append import Appender

        with self._lock:
            self._appender = self._appender or Appender(self._alias, self._settings)
            appender = self._appender
        return appender.append(partition, records)

    def evict(self, group: str, members: Sequence[Member]) -> dict[str, Fault | None]:
        """Removes members from a group, classic or of the consumer protocol; answers by member id."""
        from failover.kafka.wire.leave import remove_members

        kind = self.describe_groups([group])[group].type
        answer = self._raw(lambda wire: remove_members(wire, group, kind, members))
        return {member.member_id: answer for member in members} if isinstance(answer, Fault) else answer

    def windows(self, requests: Sequence[WindowRequest], *, committed: bool = False) -> dict[WindowRequest, Window]:
        """Reads stretches of many partitions at once."""
        from failover.kafka.wire.windows import read_windows

        self.facts()
        return self._raw(lambda wire: read_windows(wire, requests, committed=committed))

    def close(self) -> None:
        """Ends every connection."""
        self._connections.close()
        with self._lock:
            appender, self._appender = self._appender, None
        if appender is not None:
            appender.close()
        self._forget_wire()
        with self._lock:
            thread, self._thread = self._thread, None
            aside, self._aside = self._aside, None
        if aside is not None:
            aside.close()
        if thread is not None:
            thread.close()

    # -- inside ------------------------------------------------------------------------------------

    def _look(self) -> ClusterFacts:
        metadata = self._metadata()
        self._listing = _listed(metadata)
        brokers = tuple(sorted(broker(node) for node in metadata.brokers.values()))
        unreachable = self._unreachable(brokers)
        if unreachable:
            self._connections.be_brief()
            self._forget_wire()
        return ClusterFacts(
            cluster_id=metadata.cluster_id,
            controller=metadata.controller_id if metadata.controller_id >= 0 else None,
            brokers=brokers,
            unreachable=unreachable + missing_brokers(metadata),
            operations=self._cluster_operations(),
        )

    def _unreachable(self, brokers: tuple[Broker, ...]) -> tuple[Broker, ...]:
        """Finds the brokers that give no answer to the smallest request.

        Each has half of the accepted silence: the others answered within it, and the second half is
        left for what still waits for the silent one.
        """
        from failover.kafka.wire.metadata import metadata_call

        async def probe(wire: WireCluster) -> list[Any]:
            calls = (wire.send(each.id, metadata_call(()), deadline=self._timeout / 2) for each in brokers)
            return await asyncio.gather(*calls, return_exceptions=True)

        answers = self._raw(probe)
        for answer in answers:
            if isinstance(answer, BaseException) and not isinstance(answer, ClusterUnreachable | TimeoutError):
                raise answer
        return tuple(each for each, answer in zip(brokers, answers, strict=True) if isinstance(answer, Exception))

    def _raw(self, work: Callable[[WireCluster], Coroutine[Any, Any, V]]) -> V:
        """Runs raw requests in the background loop; silence of the whole cluster is remembered."""
        from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

        def once() -> V:
            thread, wire = self._connected()
            return thread.run(work(wire))

        self._connections.check()
        # A refused connection is known at once; the cluster gets the whole accepted silence to come back.
        attempts = Retrying(
            retry=retry_if_exception_type(ClusterUnreachable),
            stop=stop_after_delay(self._connections.patience),
            wait=wait_random_exponential(0.1, max=1.0),
            reraise=True,
        )
        try:
            return attempts(once)
        except ClusterUnreachable as error:
            raise self._connections.decide(error) from error

    def _beside(self) -> Aside:
        from failover.kafka.aside import Aside

        self.facts()
        thread, _ = self._connected()
        with self._lock:
            if self._aside is None:
                self._aside = Aside(self._alias, self._settings, thread, silence=self._timeout)
            return self._aside

    def _connected(self) -> tuple[WireThread, WireCluster]:
        from failover.kafka.wire.cluster import WireCluster
        from failover.kafka.wire.thread import WireThread

        with self._lock:
            if self._thread is None:
                self._thread = WireThread()
            if self._wire is None:
                wire = WireCluster(self._settings, alias=self._alias, silence=self._connections.patience)
                self._thread.run(wire.open())
                self._wire = wire
            return self._thread, self._wire

    def _forget_wire(self) -> None:
        """Ends the raw connections; the next ones know how long to wait now."""
        with self._lock:
            wire, self._wire = self._wire, None
            if wire is not None and self._thread is not None:
                self._thread.run(wire.close())

    def _metadata(self) -> Any:
        # list_topics of a NAME would create it where brokers create topics by themselves; of none it only lists
        return self._connections.call(lambda client, wait: client.list_topics(timeout=wait))

    def _cluster_operations(self) -> frozenset[str] | None:
        """Asks what may be done on the cluster; it is told by the broker that leads it, which may be the silent one."""
        wait = min(_OPERATIONS_WAIT, self._connections.patience)
        future = self._connections.client().describe_cluster(include_authorized_operations=True, request_timeout=wait)
        answer = self._connections.wait({None: future})[None]
        return None if isinstance(answer, Fault) else operations(answer.authorized_operations)


def _commits(offsets: Mapping[TopicPartition, Commit | Fault]) -> dict[TopicPartition, Commit] | Fault:
    commits: dict[TopicPartition, Commit] = {}
    for tp, found in offsets.items():
        if isinstance(found, Fault):
            return Fault(found.number, found.name, f"{tp}: {found.message}", found.retriable)
        commits[tp] = found
    return commits


def _is(found: Commit | Fault, number: int) -> bool:
    return isinstance(found, Fault) and found.number == number


def _listed(metadata: Any) -> dict[str, TopicInfo]:
    return {name: listed_topic(name, topic) for name, topic in metadata.topics.items() if topic.error is None}
