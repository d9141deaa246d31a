"""One look at both clusters of a flow: everything a plan is decided from."""

from __future__ import annotations

from datetime import datetime

import msgspec

from failover.model.cluster import ClusterStatus, LogRange, TopicInfo
from failover.model.groups import Commit, GroupInfo
from failover.model.names import Fault, TopicPartition
from failover.model.rights import AclBinding, ScramUser
from failover.model.translation import Translation


class FlowInfo(msgspec.Struct, frozen=True):
    """Names the flow. ``reversed``: the settings are those of the opposite flow (failback)."""

    source: str
    target: str
    replication_policy: str
    separator: str
    reversed: bool = False


class SeenCheckpoint(msgspec.Struct, frozen=True):
    """Is the newest checkpoint (by log order) of a group and target partition.

    ``timestamp``: the record's, epoch milliseconds. ``earlier_upstream``: the upstream of the
    checkpoint before it when that was higher (the group was rewound on the source), else None.
    """

    upstream: int
    downstream: int
    timestamp: int
    metadata: bytes = b""
    earlier_upstream: int | None = None


class Tracked(msgspec.Struct, frozen=True):
    """Is a position that was kept on the target while the source was up.

    ``proof``, ``precision``: how it was known then; ``most``: records that might come again at most, then. ``as_of``:
    until when the group is known to have stood there (epoch ms). ``topic_id``: the target topic's then, "" if it had
    none.
    """

    upstream: int
    downstream: int
    metadata: bytes
    proof: str
    precision: str
    most: int | None
    as_of: int
    topic_id: str = ""


class ClusterView(msgspec.Struct, frozen=True):
    """Is what one cluster answered; mappings are empty for what was not asked or not answered.

    ``topics``: by name. ``logs``: per partition. ``groups``: by name, only groups of interest.
    ``commits``: group → partition → commit. ``pending``: group → partitions where an open
    transaction holds newer offsets. ``group_faults``: groups whose offsets could not be read.
    ``log_faults``: partitions whose ends could not be read. ``settings``: broker settings by
    Kafka's name. ``complete``: no broker or coordinator failed to answer in any listing.
    ``hidden``: topics this client may not see, so that nobody can tell whether they are there.
    ``bootstrap``: where a few of its brokers listen, as host:port. ``acls``, ``users``, ``topic_settings``: what
    findings alone need, None (or without the topic) where it was not asked or not told; then ``untold`` says why.
    """

    status: ClusterStatus
    topics: dict[str, TopicInfo] = {}
    logs: dict[TopicPartition, LogRange] = {}
    groups: dict[str, GroupInfo] = {}
    commits: dict[str, dict[TopicPartition, Commit]] = {}
    pending: dict[str, tuple[TopicPartition, ...]] = {}
    group_faults: dict[str, Fault] = {}
    log_faults: dict[TopicPartition, Fault] = {}
    settings: dict[str, str] = {}
    complete: bool = True
    hidden: frozenset[str] = frozenset()
    bootstrap: tuple[str, ...] = ()
    acls: tuple[AclBinding, ...] | None = None
    users: tuple[ScramUser, ...] | None = None
    topic_settings: dict[str, dict[str, str]] = {}
    untold: dict[str, Fault] = {}


class Waiting(msgspec.Struct, frozen=True):
    """Is the first record of a source partition that the target does not have.

    ``offset``: its offset; ``timestamp``: when it was written, epoch milliseconds; ``size``: bytes of key and value.
    """

    offset: int
    timestamp: int
    size: int


class NotPlanned(msgspec.Struct, frozen=True):
    """Is a group left out of the plan.

    ``why``: excluded, share, streams, no-mirrored-topic or newer-than-checkpoints.
    """

    group: str
    why: str
    topics: tuple[str, ...] = ()


class InternalTopicReading(msgspec.Struct, frozen=True):
    """Says how reading one of MM2's internal topics went.

    ``cluster``: the alias it is on. ``exists``: False when it is not there. ``records``: read;
    ``unreadable``: skipped because they could not be decoded, ``first_unreadable`` says where and
    why. ``newest``: timestamp of its newest record, epoch milliseconds, None when empty.
    ``fault``: it could not be read (no right, no answer).
    """

    topic: str
    cluster: str
    exists: bool
    records: int = 0
    unreadable: int = 0
    first_unreadable: str = ""
    newest: int | None = None
    fault: Fault | None = None


class Unmirrored(msgspec.Struct, frozen=True):
    """Is what one partition holds on one cluster only, after its records went from the target to the source (failback).

    ``first``: the target's offset after the last record that was mirrored; ``records``: how many the target
    holds from there on, exactly (``exact``) or at most, counted in offsets. ``own``: how many records the source
    wrote itself behind the last copy, at most, from ``own_first`` on; 0 where only the mirror writes to its topic.
    """

    first: int
    records: int
    exact: bool
    own: int = 0
    own_first: int = 0


class ByTime(msgspec.Struct, frozen=True):
    """Is where the target's logs stood at a moment: the first record's offset from then on, the log's end without one.

    ``offsets``: by partition, without those that could not be asked.
    """

    moment: datetime
    offsets: dict[TopicPartition, int] = {}


class GoneBack(msgspec.Struct, frozen=True):
    """Is how far back a stretch of time before offsets of the target leads.

    ``seconds``: its length. ``offsets``: target partition → offset → the first record written in the time before it.
    """

    seconds: float
    offsets: dict[TopicPartition, dict[int, int]] = {}


class Snapshot(msgspec.Struct, frozen=True):
    """Is one look at both clusters, taken at ``taken``.

    ``mirrored``: target topic → source topic, for every topic the flow mirrors or mirrored.
    ``groups``: the groups to plan, in name order. ``checkpoints`` and ``translations``: group →
    TARGET partition → value; ``mm2_answers`` likewise: MM2's checkpoint, or what its own rule makes of
    the syncs for a group it has not looked at. ``foreign_owners``: target topic → aliases of other
    flows' sources that mirror into it too. ``local_topics``: group → topics by their plain name that its
    producers write on the source and that would be local on the target.
    ``group_offsets_synced``: the flow's configuration has ``sync.group.offsets.enabled``.
    ``commit_samples``: group → partition → offset on the target in an earlier look, and
    ``sampled`` when that was. ``newest_syncs``: target partition → (upstream, downstream) of the
    newest offset sync, {} when the syncs could not be read. ``last_source_ends``: source partition
    → log end as last known, at ``last_source_seen``, for when the source does not answer now.
    ``tracked``: group → target partition → what was kept of groups whose commits the source does not tell now.
    ``originals``: target topics whose topic on the source is a copy of them (failback). ``unmirrored``: by target
    partition of these, where it is known. ``outside_filters``: groups that the flow's filters do not take, left out
    or in ``groups`` because they were named. ``plain``: topics by their plain names were looked at, for
    commits on them. ``waiting``: by source partition, where the target lacks something and
    records were read. ``caught_up``: source partitions read likewise whose logs hold no record any more behind what
    the target has (markers of transactions, and what the mirror passes over). ``writers``: group → the program that
    its members on the target are, of those that write there what a plan is about (MirrorMaker 2, this tool's own).
    ``by_time``, ``gone_back``: asked for by an option, None otherwise.
    """

    taken: datetime
    flow: FlowInfo
    source: ClusterView
    target: ClusterView
    mirrored: dict[str, str]
    groups: tuple[str, ...]
    checkpoints: dict[str, dict[TopicPartition, SeenCheckpoint]] = {}
    translations: dict[str, dict[TopicPartition, Translation]] = {}
    mm2_answers: dict[str, dict[TopicPartition, int]] = {}
    not_planned: tuple[NotPlanned, ...] = ()
    foreign_owners: dict[str, tuple[str, ...]] = {}
    readings: tuple[InternalTopicReading, ...] = ()
    last_heartbeat: int | None = None
    group_offsets_synced: bool = False
    commit_samples: dict[str, dict[TopicPartition, int]] = {}
    sampled: datetime | None = None
    newest_syncs: dict[TopicPartition, tuple[int, int]] = {}
    last_source_ends: dict[TopicPartition, int] = {}
    last_source_seen: datetime | None = None
    tracked: dict[str, dict[TopicPartition, Tracked]] = {}
    originals: tuple[str, ...] = ()
    unmirrored: dict[TopicPartition, Unmirrored] = {}
    outside_filters: tuple[str, ...] = ()
    plain: bool = False
    waiting: dict[TopicPartition, Waiting] = {}
    caught_up: frozenset[TopicPartition] = frozenset()
    writers: dict[str, str] = {}
    by_time: ByTime | None = None
    gone_back: GoneBack | None = None
