"""The one port between this package and a Kafka cluster's control plane.

``failover.kafka.admin.KafkaCluster`` is the real thing; the tests' fake cluster is the second
implementation, for states a broker cannot be put into. Every method works on many items at
once, answers per item (a value or a ``Fault``) and raises only when the cluster as a whole
cannot be used: ``ClusterUnreachable`` after the longest accepted silence, ``CredentialsRefused``
as soon as a broker says so. Faults that pass by themselves are retried inside, within the same
silence; what is returned is final for this call. No method joins a group, and none but
``create_topic`` creates a topic.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Protocol

from failover.model.cluster import ClusterFacts, LogRange, TopicInfo
from failover.model.groups import Commit, GroupInfo, ListedGroup, Member
from failover.model.names import Fault, TopicPartition
from failover.model.records import Record, Window, WindowRequest
from failover.model.rights import AclBinding, ScramUser

APPEND_SECONDS = 3.0

Credible = Callable[[str, Mapping[TopicPartition, Commit]], bool]
"""Says of a group's commits whether they can be all there is, by what else is known of it."""

AGAIN = (0.0, 0.3, 0.7, 1.0)
"""Pauses before a question is asked again whose answer is not credible, in seconds."""

CommitResults = Mapping[TopicPartition, Fault | None]
"""Per partition: None when the broker accepted the commit."""


class Cluster(Protocol):
    """Is one Kafka cluster as this package uses it. Calls may come from several threads."""

    @property
    def alias(self) -> str:
        """Is the cluster's alias in the configuration."""

    def facts(self) -> ClusterFacts:
        """Identifies the cluster; the first call decides whether it can be used at all."""

    def topics(self) -> dict[str, TopicInfo]:
        """Lists every visible topic with its partition count; never creates one."""

    def describe_topics(self, names: Collection[str]) -> dict[str, TopicInfo | Fault]:
        """Describes topics with ids, leaders and authorized operations; never creates one."""

    def log_ranges(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, LogRange | Fault]:
        """Reads log start and high watermark of each partition."""

    def offsets_at(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | Fault | None]:
        """Finds the first offset whose timestamp is at or after the partition's time (epoch ms); None: none."""

    def last_times(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int | Fault | None]:
        """Reads the highest timestamp of each partition's records (epoch ms), None in an empty one; asked once.

        UNSUPPORTED_VERSION (35) for all before Kafka 3.0 (KIP-734).
        """

    def log_bytes(self, topics: Collection[str]) -> dict[str, int] | Fault:
        """Sums the bytes that topics take on the disks of all brokers, replicas included; asked once."""

    def api_versions(self) -> dict[int, dict[int, int]] | Fault:
        """Tells what each broker speaks: broker → API key → highest version. The brokers' release shows in it."""

    def list_groups(self) -> tuple[dict[str, ListedGroup], tuple[Fault, ...]]:
        """Lists groups of every type, and the faults of brokers that could not be asked."""

    def describe_groups(self, groups: Collection[str]) -> dict[str, GroupInfo]:
        """Describes groups of every type; absent ones come back with ``exists`` False."""

    def committed(
        self, groups: Collection[str], credible: Credible | None = None
    ) -> dict[str, dict[TopicPartition, Commit] | Fault]:
        """Reads all committed offsets of each group (require_stable false); {} when none.

        Groups whose answer is not ``credible`` are asked about again for two seconds, their
        coordinators found anew: a broker that has just taken groups over may know none of their
        commits, or not the last ones (measured on Kafka 4.1.1: {} right after another broker left).
        The last answer counts, credible or not.
        """

    def pending(self, groups: Collection[str]) -> dict[str, tuple[TopicPartition, ...]]:
        """Names partitions whose commit an open transaction holds back (require_stable true)."""

    def commit(
        self,
        commits: Mapping[str, Mapping[TopicPartition, Commit]],
        done: Callable[[str, CommitResults | Fault], None],
    ) -> None:
        """Commits for each group in one request, many groups at a time.

        ``done`` is called once a group, from the calling thread, in order of completion. A Fault
        for the whole group with ``number`` < 0 means that the outcome is unknown. Raises
        ``ClusterUnreachable`` when the cluster falls silent; groups ``done`` was not told of were
        then never sent. When ``done`` raises, nothing more is sent.
        """

    def delete_offsets(
        self, offsets: Mapping[str, Collection[TopicPartition]]
    ) -> dict[str, dict[TopicPartition, Fault | None] | Fault]:
        """Deletes committed offsets, group by group."""

    def delete_groups(self, groups: Collection[str]) -> dict[str, Fault | None]:
        """Deletes groups."""

    def broker_settings(self, names: Collection[str]) -> dict[str, str]:
        """Reads these settings from one broker; what may not be read is left out."""

    def acls(self) -> tuple[AclBinding, ...] | Fault:
        """Reads every ACL in one request; SECURITY_DISABLED (54) where brokers have no authorizer.

        No plan depends on this and the next two: they are asked once, and silence is a fault of theirs alone.
        """

    def create_acls(self, bindings: Collection[AclBinding]) -> dict[AclBinding, Fault | None]:
        """Creates ACLs; one that is there already is no fault. Silence is a fault, and the outcome then unknown."""

    def delete_acls(self, bindings: Collection[AclBinding]) -> dict[AclBinding, Fault | None]:
        """Deletes these very ACLs; one that is not there is no fault. Silence as of ``create_acls``."""

    def may_write(self, topics: Collection[str]) -> dict[str, bool | Fault]:
        """Finds out by trying whether this client may write to topics; nothing is written."""

    def scram_users(self) -> tuple[ScramUser, ...] | Fault:
        """Reads which users brokers know by SCRAM in one request; no password is ever told."""

    def topic_settings(self, topics: Collection[str], names: Collection[str]) -> dict[str, dict[str, str] | Fault]:
        """Reads these settings of topics as they are in effect, many topics in one request."""

    def read(self, partition: TopicPartition) -> Iterator[Sequence[Record]]:
        """Yields every data record from log start to the end known at the start, in chunks.

        Ends also where the last offset is no data record. Raises ``NotAuthorized`` without READ.
        """

    def create_topic(self, name: str, partitions: int, settings: Mapping[str, str]) -> Fault | None:
        """Creates a topic of the tool's own, on three brokers where there are so many; None when it is there then."""

    def delete_topics(self, names: Collection[str]) -> dict[str, Fault | None]:
        """Deletes topics with all they hold; one that is not there is no fault. Silence is a fault, asked once."""

    def append_records(self, partition: TopicPartition, records: Sequence[tuple[bytes | None, bytes]]) -> int:
        """Appends records (key, value), acknowledged by every replica in sync; gives the last one's offset.

        Waits ``APPEND_SECONDS`` at most, not the longest accepted silence: what is appended is never
        worth holding anything up. Raises ``NotAuthorized`` without WRITE, ``ClusterUnreachable``
        (then the records may still arrive), ``BrokerError``.
        """

    def evict(self, group: str, members: Sequence[Member]) -> dict[str, Fault | None]:
        """Removes members from a group; answers by member id. A live client joins again."""

    def windows(self, requests: Sequence[WindowRequest], *, committed: bool = False) -> dict[WindowRequest, Window]:
        """Reads stretches of many partitions at once; ``committed``: without what aborted transactions wrote."""

    def close(self) -> None:
        """Ends every connection."""


def doubtful(answers: Mapping[str, Mapping[TopicPartition, Commit] | Fault], credible: Credible) -> list[str]:
    """Names the groups whose commits are not credible; a fault is believed."""
    return [group for group, found in answers.items() if not isinstance(found, Fault) and not credible(group, found)]
