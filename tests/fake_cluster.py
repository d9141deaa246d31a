"""A Kafka cluster in memory: the second implementation of ``failover.kafka.port.Cluster``.

It puts a cluster into states a broker cannot be put into on purpose: a describe that times out
for one group, a commit that is accepted and not stored, an answer that is lost after the write.
It follows the brokers' own rules where the package relies on them: a commit for a group with
members answers UNKNOWN_MEMBER_ID on every partition, one for an unknown partition answers
UNKNOWN_TOPIC_OR_PARTITION for that one alone, a commit for an unknown group creates it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from failover.errors import ClusterUnreachable, CredentialsRefused, NotAuthorized
from failover.kafka.port import AGAIN, CommitResults, Credible, doubtful
from failover.model.cluster import Broker, ClusterFacts, LogRange, TopicInfo
from failover.model.groups import Commit, GroupInfo, GroupType, ListedGroup, Member
from failover.model.names import Fault, TopicPartition
from failover.model.records import Record, Window, WindowRequest
from failover.model.rights import AclBinding, ScramUser

ALL_OPERATIONS = frozenset({"READ", "WRITE", "DESCRIBE", "DELETE", "ALTER", "CREATE", "DESCRIBE_CONFIGS"})
UNKNOWN_TOPIC_OR_PARTITION = Fault(3, "UNKNOWN_TOPIC_OR_PARTITION", "This server does not host this topic-partition.")
UNKNOWN_MEMBER_ID = Fault(25, "UNKNOWN_MEMBER_ID", "The coordinator is not aware of this member.")
GROUP_ID_NOT_FOUND = Fault(69, "GROUP_ID_NOT_FOUND", "The group id does not exist.")
NON_EMPTY_GROUP = Fault(68, "NON_EMPTY_GROUP", "The group is not empty.")
SUBSCRIBED = Fault(86, "GROUP_SUBSCRIBED_TO_TOPIC", "The group is subscribed to the topic.")
NO_AUTHORIZER = Fault(54, "SECURITY_DISABLED", "No Authorizer is configured.")
FETCH_41 = {1: 18}
TIMED_OUT = Fault(-185, "_TIMED_OUT", "no answer within the accepted silence", retriable=True)


@dataclass
class _Group:
    type: GroupType = GroupType.CLASSIC
    state: str = "Empty"
    members: tuple[Member, ...] = ()
    protocol_type: str = "consumer"
    operations: frozenset[str] | None = ALL_OPERATIONS
    commits: dict[TopicPartition, Commit] = field(default_factory=dict)


class FakeCluster:
    """Is one cluster in memory; tests fill it by its builder methods and read ``calls`` afterwards.

    ``faults`` maps (method name, item) to the Fault that the method answers for the item, where
    an item is a group, a topic or a partition (None: the whole call); a list of Faults is used up one a call.
    ``bindings``: its ACLs, None for brokers without an authorizer.
    ``append_time`` gives the timestamps (epoch ms) of records appended through the port.
    ``unaware``: how many more times a group's coordinator, which has just taken it over, shows no commits.
    ``before`` maps a method name to a function called with the method's arguments first.
    """

    def __init__(self, alias: str, *, cluster_id: str | None = None, brokers: int = 1) -> None:
        self._alias = alias
        self.cluster_id = cluster_id if cluster_id is not None else f"id-of-{alias}"
        self.brokers = tuple(Broker(n + 1, "127.0.0.1", 9092 + n) for n in range(brokers))
        self.unreachable: tuple[Broker, ...] = ()
        self.operations: frozenset[str] | None = ALL_OPERATIONS
        self.settings: dict[str, str] = {"offsets.retention.minutes": "10080", "min.insync.replicas": "1"}
        self.topic_configs: dict[str, dict[str, str]] = {}
        self.bindings: list[AclBinding] | None = None
        self.users: list[ScramUser] = []
        self.sizes: dict[str, int] = {}
        self.speaks: dict[int, dict[int, int]] = {}
        self.infos: dict[str, TopicInfo] = {}
        self.logs: dict[TopicPartition, LogRange] = {}
        self.log: dict[TopicPartition, list[Record]] = {}
        self.aborted: set[tuple[TopicPartition, int]] = set()
        self.groups: dict[str, _Group] = {}
        self.held_back: dict[str, tuple[TopicPartition, ...]] = {}
        self.faults: dict[tuple[str, object], Fault | list[Fault]] = {}
        self.listing_faults: tuple[Fault, ...] = ()
        self.before: dict[str, Callable[..., None]] = {}
        self.no_read: set[str] = set()
        self.no_write: set[str] = set()
        self.append_time: Callable[[], int] = lambda: 0
        self.forgetful: set[str] = set()
        self.lost_answers: set[str] = set()
        self.unaware: dict[str, int] = {}
        self.down: str | None = None
        self.denied: str | None = None
        self.calls: list[tuple[str, int]] = []
        self.closed = False

    # -- building ------------------------------------------------------------------------------

    def topic(
        self,
        name: str,
        partitions: int = 1,
        *,
        start: int = 0,
        end: int = 0,
        topic_id: str | None = None,
        operations: frozenset[str] | None = ALL_OPERATIONS,
    ) -> FakeCluster:
        """Adds a topic whose every partition holds the offsets [start, end)."""
        self.infos[name] = TopicInfo(
            name=name,
            partitions=partitions,
            topic_id=topic_id if topic_id is not None else f"{self._alias}/{name}",
            replication_factor=1,
            internal=name.startswith("__"),
            operations=operations,
        )
        for number in range(partitions):
            self.logs[TopicPartition(name, number)] = LogRange(start, end)
        return self

    def append(
        self,
        name: str,
        key: bytes | None,
        value: bytes | None,
        *,
        timestamp: int = 0,
        partition: int = 0,
        headers: tuple[tuple[str, bytes | None], ...] = (),
    ) -> FakeCluster:
        """Appends one record, creating the topic when it is not there."""
        if name not in self.infos:
            self.topic(name)
        tp = TopicPartition(name, partition)
        end = self.logs[tp].end
        self.log.setdefault(tp, []).append(Record(end, timestamp, key, value, headers))
        self.logs[tp] = LogRange(self.logs[tp].start, end + 1)
        return self

    def group(
        self,
        name: str,
        commits: Mapping[TopicPartition, int | Commit] | None = None,
        *,
        type: GroupType = GroupType.CLASSIC,  # noqa: A002 - the port's own word
        state: str = "Empty",
        members: tuple[Member, ...] = (),
        protocol_type: str = "consumer",
        operations: frozenset[str] | None = ALL_OPERATIONS,
    ) -> FakeCluster:
        """Adds a group with what it has committed."""
        kept = {tp: c if isinstance(c, Commit) else Commit(c) for tp, c in (commits or {}).items()}
        self.groups[name] = _Group(type, state, members, protocol_type, operations, kept)
        return self

    # -- the port ------------------------------------------------------------------------------

    @property
    def alias(self) -> str:
        return self._alias

    def facts(self) -> ClusterFacts:
        self._enter("facts")
        return ClusterFacts(self.cluster_id, 1, self.brokers, self.unreachable, self.operations)

    def topics(self) -> dict[str, TopicInfo]:
        self._enter("topics")
        return dict(self.infos)

    def describe_topics(self, names: Collection[str]) -> dict[str, TopicInfo | Fault]:
        self._enter("describe_topics", names)
        answers: dict[str, TopicInfo | Fault] = {}
        for name in names:
            answers[name] = self._fault("describe_topics", name) or self.infos.get(name) or UNKNOWN_TOPIC_OR_PARTITION
        return answers

    def log_ranges(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, LogRange | Fault]:
        self._enter("log_ranges", partitions)
        answers: dict[TopicPartition, LogRange | Fault] = {}
        for tp in partitions:
            answers[tp] = self._fault("log_ranges", tp) or self.logs.get(tp) or UNKNOWN_TOPIC_OR_PARTITION
        return answers

    def offsets_at(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | Fault | None]:
        self._enter("offsets_at", times)
        found: dict[TopicPartition, int | Fault | None] = {}
        for tp, timestamp in times.items():
            fault = self._fault("offsets_at", tp)
            if fault is None and tp not in self.logs:
                fault = UNKNOWN_TOPIC_OR_PARTITION
            found[tp] = fault or next((r.offset for r in self.log.get(tp, ()) if r.timestamp >= timestamp), None)
        return found

    def last_times(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int | Fault | None]:
        self._enter("last_times", partitions)
        found: dict[TopicPartition, int | Fault | None] = {}
        for tp in partitions:
            times = [record.timestamp for record in self.log.get(tp, ())]
            found[tp] = self._fault("last_times", tp) or (max(times) if times else None)
        return found

    def log_bytes(self, topics: Collection[str]) -> dict[str, int] | Fault:
        self._enter("log_bytes", topics)
        return self._fault("log_bytes", None) or {topic: self.sizes.get(topic, 0) for topic in topics}

    def api_versions(self) -> dict[int, dict[int, int]] | Fault:
        self._enter("api_versions")
        return self._fault("api_versions", None) or {
            each.id: dict(self.speaks.get(each.id, FETCH_41)) for each in self.brokers
        }

    def list_groups(self) -> tuple[dict[str, ListedGroup], tuple[Fault, ...]]:
        self._enter("list_groups")
        listed = {n: ListedGroup(n, g.type, g.state, g.protocol_type) for n, g in self.groups.items()}
        return listed, self.listing_faults

    def describe_groups(self, groups: Collection[str]) -> dict[str, GroupInfo]:
        self._enter("describe_groups", groups)
        described = {}
        for name in groups:
            fault = self._fault("describe_groups", name)
            known = self.groups.get(name)
            if fault is not None:
                described[name] = GroupInfo(
                    name, exists=known is not None, type=GroupType.UNKNOWN, state="Unknown", fault=fault
                )
            elif known is None:
                described[name] = GroupInfo(name, exists=False, type=GroupType.UNKNOWN, state="Dead")
            else:
                described[name] = GroupInfo(
                    name=name,
                    exists=True,
                    type=known.type,
                    state=known.state,
                    members=known.members,
                    simple=known.protocol_type == "",
                    operations=known.operations,
                )
        return described

    def committed(
        self, groups: Collection[str], credible: Credible | None = None
    ) -> dict[str, dict[TopicPartition, Commit] | Fault]:
        found = self._committed(groups)
        for _ in AGAIN if credible is not None else ():
            missing = doubtful(found, credible) if credible is not None else []
            if not missing:
                break
            found |= self._committed(missing)
        return found

    def _committed(self, groups: Collection[str]) -> dict[str, dict[TopicPartition, Commit] | Fault]:
        self._enter("committed", groups)
        found: dict[str, dict[TopicPartition, Commit] | Fault] = {}
        for name in groups:
            commits = dict(self.groups[name].commits) if name in self.groups else {}
            if self.unaware.get(name, 0) > 0:
                self.unaware[name] -= 1
                commits = {}
            found[name] = self._fault("committed", name) or commits
        return found

    def pending(self, groups: Collection[str]) -> dict[str, tuple[TopicPartition, ...]]:
        self._enter("pending", groups)
        return {n: self.held_back[n] for n in groups if n in self.held_back}

    def commit(
        self,
        commits: Mapping[str, Mapping[TopicPartition, Commit]],
        done: Callable[[str, CommitResults | Fault], None],
    ) -> None:
        self._enter("commit", commits)
        for name, offsets in commits.items():
            done(name, self._commit_one(name, offsets))

    def delete_offsets(
        self, offsets: Mapping[str, Collection[TopicPartition]]
    ) -> dict[str, dict[TopicPartition, Fault | None] | Fault]:
        self._enter("delete_offsets", offsets)
        answers: dict[str, dict[TopicPartition, Fault | None] | Fault] = {}
        for name, partitions in offsets.items():
            fault = self._fault("delete_offsets", name)
            known = self.groups.get(name)
            if fault is not None or known is None:
                answers[name] = fault or GROUP_ID_NOT_FOUND
            elif known.members:
                answers[name] = dict.fromkeys(partitions, SUBSCRIBED)
            else:
                for tp in partitions:
                    known.commits.pop(tp, None)
                answers[name] = dict.fromkeys(partitions)
        return answers

    def delete_groups(self, groups: Collection[str]) -> dict[str, Fault | None]:
        self._enter("delete_groups", groups)
        answers: dict[str, Fault | None] = {}
        for name in groups:
            fault = self._fault("delete_groups", name)
            if fault is None and name not in self.groups:
                fault = GROUP_ID_NOT_FOUND
            if fault is None and self.groups[name].members:
                fault = NON_EMPTY_GROUP
            if fault is None:
                del self.groups[name]
            answers[name] = fault
        return answers

    def broker_settings(self, names: Collection[str]) -> dict[str, str]:
        self._enter("broker_settings", names)
        return {n: self.settings[n] for n in names if n in self.settings}

    def acls(self) -> tuple[AclBinding, ...] | Fault:
        self._enter("acls")
        return self._fault("acls", None) or (NO_AUTHORIZER if self.bindings is None else tuple(self.bindings))

    def create_acls(self, bindings: Collection[AclBinding]) -> dict[AclBinding, Fault | None]:
        self._enter("create_acls", bindings)
        fault = self._fault("create_acls", None) or (NO_AUTHORIZER if self.bindings is None else None)
        if fault is None and self.bindings is not None:
            self.bindings = list(dict.fromkeys([*self.bindings, *bindings]))
        return dict.fromkeys(bindings, fault)

    def delete_acls(self, bindings: Collection[AclBinding]) -> dict[AclBinding, Fault | None]:
        self._enter("delete_acls", bindings)
        fault = self._fault("delete_acls", None) or (NO_AUTHORIZER if self.bindings is None else None)
        if fault is None and self.bindings is not None:
            self.bindings = [binding for binding in self.bindings if binding not in bindings]
        return dict.fromkeys(bindings, fault)

    def may_write(self, topics: Collection[str]) -> dict[str, bool | Fault]:
        self._enter("may_write", topics)
        denied = {
            binding.name
            for binding in self.bindings or ()
            if (binding.permission, binding.operation, binding.principal) == ("DENY", "WRITE", "User:*")
        }
        return {topic: self._fault("may_write", topic) or topic not in denied for topic in topics}

    def scram_users(self) -> tuple[ScramUser, ...] | Fault:
        self._enter("scram_users")
        return self._fault("scram_users", None) or tuple(self.users)

    def topic_settings(self, topics: Collection[str], names: Collection[str]) -> dict[str, dict[str, str] | Fault]:
        self._enter("topic_settings", topics)
        whole = self._fault("topic_settings", None)
        if whole is not None:
            return dict.fromkeys(topics, whole)
        return {t: {n: v for n, v in self.topic_configs.get(t, {}).items() if n in names} for t in topics}

    def read(self, partition: TopicPartition) -> Iterator[Sequence[Record]]:
        self._enter("read", partition)
        if partition.topic in self.no_read:
            message = f"no READ on topic {partition.topic} of cluster {self._alias}"
            raise NotAuthorized(message, alias=self._alias, hint=f"grant READ on topic {partition.topic}")
        records = self.log.get(partition, [])
        for at in range(0, len(records), 500):
            yield records[at : at + 500]

    def create_topic(self, name: str, partitions: int, settings: Mapping[str, str]) -> Fault | None:
        self._enter("create_topic", name)
        fault = self._fault("create_topic", name)
        if fault is None and name not in self.infos:
            self.topic(name, partitions)
            self.topic_configs[name] = dict(settings)
        return fault

    def delete_topics(self, names: Collection[str]) -> dict[str, Fault | None]:
        self._enter("delete_topics", tuple(names))
        answers = {name: self._fault("delete_topics", name) for name in names}
        for name, fault in answers.items():
            info = self.infos.pop(name, None) if fault is None else None
            for number in range(info.partitions if info is not None else 0):
                self.logs.pop(TopicPartition(name, number), None)
                self.log.pop(TopicPartition(name, number), None)
        return answers

    def append_records(self, partition: TopicPartition, records: Sequence[tuple[bytes | None, bytes]]) -> int:
        self._enter("append", partition)
        if partition.topic in self.no_write:
            message = f"no WRITE on topic {partition.topic} of cluster {self._alias}"
            raise NotAuthorized(message, alias=self._alias, hint=f"grant WRITE on topic {partition.topic}")
        for key, value in records:
            self.append(partition.topic, key, value, timestamp=self.append_time(), partition=partition.partition)
        return self.logs[partition].end - 1

    def evict(self, group: str, members: Sequence[Member]) -> dict[str, Fault | None]:
        self._enter("evict", group)
        known = self.groups[group]
        gone = {member.member_id for member in members}
        known.members = tuple(member for member in known.members if member.member_id not in gone)
        if not known.members:
            known.state = "Empty"
        return dict.fromkeys(gone)

    def windows(self, requests: Sequence[WindowRequest], *, committed: bool = False) -> dict[WindowRequest, Window]:
        self._enter("windows", requests)
        answers = {}
        for request in requests:
            log = self.logs.get(request.tp)
            if log is None:
                answers[request] = Window((), request.start, 0, 0, fault=UNKNOWN_TOPIC_OR_PARTITION)
                continue
            records = tuple(
                record
                for record in self.log.get(request.tp, ())
                if request.start <= record.offset < request.stop
                and not (committed and (request.tp, record.offset) in self.aborted)
            )
            answers[request] = Window(records, min(request.stop, log.end), log.start, log.end)
        return answers

    def close(self) -> None:
        self.closed = True

    # -- inside --------------------------------------------------------------------------------

    def _enter(self, method: str, *arguments: object) -> None:
        hook = self.before.get(method)
        if hook is not None:
            hook(*arguments)
        first = arguments[0] if arguments else None
        self.calls.append((method, len(first) if isinstance(first, Collection) else 1))
        if self.down is not None:
            raise ClusterUnreachable(self.down, alias=self._alias, hint="check the brokers")
        if self.denied is not None:
            raise CredentialsRefused(self.denied, alias=self._alias, hint="check the credentials")

    def _fault(self, method: str, item: object) -> Fault | None:
        planned = self.faults.get((method, item))
        if isinstance(planned, list):
            return planned.pop(0) if planned else None
        return planned

    def _commit_one(self, name: str, offsets: Mapping[TopicPartition, Commit]) -> CommitResults | Fault:
        fault = self._fault("commit", name)
        if fault is not None:
            return fault
        known = self.groups.get(name)
        if known is not None and (known.members or known.state not in ("Empty", "Dead")):
            return dict.fromkeys(offsets, UNKNOWN_MEMBER_ID)
        if known is None:
            known = self.groups[name] = _Group(protocol_type="")
        results: dict[TopicPartition, Fault | None] = {}
        for tp, commit in offsets.items():
            fault = self._fault("commit", (name, tp))
            if fault is None and tp not in self.logs:
                fault = UNKNOWN_TOPIC_OR_PARTITION
            if fault is None and name not in self.forgetful:
                known.commits[tp] = msgspec.structs.replace(commit)
            results[tp] = fault
        return TIMED_OUT if name in self.lost_answers else results
