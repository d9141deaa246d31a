"""Reads MM2's internal topics for people: every record decoded, those that cannot be named and counted."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from failover.errors import BrokerError, NotAuthorized, UsageError
from failover.inventory.flow import Flow
from failover.inventory.inspected_rows import Other, row_of
from failover.inventory.look import hidden_topics
from failover.kafka.faults import fault
from failover.kafka.port import Cluster
from failover.mm2.fields import DecodeError
from failover.mm2.guide_names import CHECKPOINTS, HEARTBEATS, KINDS, OFFSET_SYNCS, POSITIONS, kind_of
from failover.mm2.internal_topics import InternalTopics
from failover.model.cluster import LogRange
from failover.model.inspection import (
    CheckpointRow,
    HeartbeatRow,
    Inspection,
    OffsetSyncRow,
    Row,
    UnreadableRecord,
)
from failover.model.names import Fault, TopicPartition
from failover.model.records import Record, WindowRequest
from failover.model.snapshot import InternalTopicReading

NAMED_UNREADABLE = 20
"""Unreadable records that are named one by one; beyond, they are counted."""

_NO_RIGHT = 29  # Kafka: TOPIC_AUTHORIZATION_FAILED
_STEP = 5_000


class Place(NamedTuple):
    """Is one topic to be read, and the alias of its cluster. ``optional``: nobody misses it where it is not there."""

    alias: str
    topic: str
    optional: bool = False


class Wanted(msgspec.Struct, frozen=True):
    """Is what is asked for; () takes everything. ``topics``: names of the source or of the target."""

    groups: frozenset[str] = frozenset()
    topics: frozenset[str] = frozenset()


def meant_by(word: str, flow: Flow) -> tuple[str, tuple[str, ...]]:
    """Gives the kind that a typed word stands for, and what to say about the word; raises ``UsageError``."""
    meant = kind_of(word, flow.internal)
    if meant is None:
        raise UsageError(
            f"{word} is none of MirrorMaker 2's topics of {flow.source}->{flow.target}",
            hint=f"failover inspect {'|'.join(KINDS)}",
        )
    return meant.kind, (meant.note,) if meant.note else ()


def places_of(kind: str, internal: InternalTopics) -> tuple[Place, ...]:
    """Lists the topics that hold records of a kind."""
    source, target = internal.source, internal.target
    if kind == CHECKPOINTS:
        return Place(target, internal.checkpoints), Place(target, internal.exact_checkpoints, optional=True)
    if kind == OFFSET_SYNCS:
        return (Place(internal.offset_syncs_on, internal.offset_syncs),)
    if kind == POSITIONS:
        return (Place(target, internal.connect_offsets),)
    return (
        Place(target, internal.remote_heartbeats),
        Place(target, internal.heartbeats, optional=True),
        Place(source, internal.heartbeats, optional=True),
    )


class Inspector:
    """Reads the topics of one kind, and then what is appended to them.

    ``clusters``: by alias; an optional place on another one is passed over. ``unreadable``: the first records that
    could not be decoded, until the caller empties it.
    """

    def __init__(self, flow: Flow, kind: str, clusters: Mapping[str, Cluster], wanted: Wanted = Wanted()) -> None:  # noqa: B008 - frozen
        self._flow = flow
        self._kind = kind
        self._clusters = clusters
        self._wanted = wanted
        self._places = [place for place in places_of(kind, flow.internal) if place.alias in clusters]
        self._positions: dict[tuple[str, TopicPartition], int] = {}
        self._syncs: dict[tuple[str, int], int] = {}
        self._tallies: dict[Place, _Tally] = {}
        self.unreadable: list[UnreadableRecord] = []

    def inspect(self, *, taken: datetime, everything: bool = False, notes: Sequence[str] = ()) -> Inspection:
        """Reads the topics to their ends; of each key the newest record alone unless ``everything``.

        Raises ``NotAuthorized`` when no topic that is there may be read, ``BrokerError`` likewise for damaged ones,
        ``ClusterUnreachable``, ``CredentialsRefused``.
        """
        newest: dict[object, Row] = {}
        listed: list[Row] = []
        for key, row in self._read_all():
            if everything:
                if row is not None:
                    listed.append(row)
            elif row is None:
                newest.pop(key, None)
            else:
                newest[key] = row
        rows = listed if everything else sorted(newest.values(), key=_order)
        return Inspection(
            what=self._kind,
            source=self._flow.source,
            target=self._flow.target,
            taken=taken,
            latest=not everything,
            topics=tuple(tally.reading(place) for place, tally in self._tallies.items()),
            records=tuple(row for row in rows if self._takes(row)),
            unreadable=tuple(self.unreadable),
            notes=(*notes, *self._notes()),
        )

    def appended(self) -> list[Row]:
        """Gives the rows of the records that were appended since the last look."""
        rows: list[Row] = []
        for alias, cluster in self._clusters.items():
            mine = [tp for at, tp in self._positions if at == alias]
            requests = []
            for tp, log in (cluster.log_ranges(mine) if mine else {}).items():
                start = self._positions[alias, tp]
                if isinstance(log, LogRange) and log.end > start:
                    requests.append(WindowRequest("target", tp, max(start, log.start), min(start + _STEP, log.end)))
            for request, window in (cluster.windows(requests) if requests else {}).items():
                if window.fault is not None:
                    continue  # the next look asks again from the same offset
                self._positions[alias, request.tp] = max(self._positions[alias, request.tp], window.covered_to)
                place = next(place for place in self._tallies if place[:2] == (alias, request.tp.topic))
                decoded = self._decoded(place, request.tp, window.records)
                rows += [row for _, row in decoded if row is not None and self._takes(row)]
        return rows

    # -- inside ------------------------------------------------------------------------------------

    def _read_all(self) -> Iterator[tuple[object, Row | None]]:
        refused: list[NotAuthorized | BrokerError] = []
        read = False
        for place in self._places:
            cluster = self._clusters[place.alias]
            info = cluster.topics().get(place.topic)
            tally = _Tally(exists=info is not None)
            if info is None:
                tally.fault = hidden_topics(cluster, [place.topic]).get(place.topic)
                if tally.fault is not None and not place.optional:
                    message = f"no DESCRIBE on topic {place.topic} of {place.alias}"
                    hint = f"grant READ and DESCRIBE on topic {place.topic} to this tool's user"
                    refused.append(NotAuthorized(message, alias=place.alias, hint=hint))
                if place.optional and tally.fault is None:
                    continue
            self._tallies[place] = tally
            try:
                for number in range(info.partitions if info is not None else 0):
                    yield from self._read(cluster, place, TopicPartition(place.topic, number))
                    read = True
            except (NotAuthorized, BrokerError) as error:
                number = error.number if isinstance(error, BrokerError) else _NO_RIGHT
                tally.fault = fault(number, error.message)
                if not place.optional:
                    refused.append(error)
        if refused and not read:
            raise refused[0]

    def _read(self, cluster: Cluster, place: Place, tp: TopicPartition) -> Iterator[tuple[object, Row | None]]:
        found = cluster.log_ranges([tp])[tp]
        self._positions[place.alias, tp] = found.end if isinstance(found, LogRange) else 0
        for chunk in cluster.read(tp):
            yield from self._decoded(place, tp, chunk)
            self._positions[place.alias, tp] = max(self._positions[place.alias, tp], chunk[-1].offset + 1)

    def _decoded(
        self, place: Place, tp: TopicPartition, records: Iterable[Record]
    ) -> Iterator[tuple[object, Row | None]]:
        """Gives each record's identity and row (None: deleted); records of other owners are passed over."""
        tally = self._tallies[place]
        exact = self._flow.internal.exact_checkpoints
        for record in records:
            tally.records += 1
            tally.newest = record.timestamp if record.timestamp >= 0 else tally.newest
            try:
                row = row_of(self._kind, place.alias, tp, record, exact=place.topic == exact)
            except DecodeError as error:
                tally.unreadable += 1
                named = UnreadableRecord(tp.topic, tp.partition, record.offset, error.message)
                tally.first = tally.first or f"offset {record.offset}: {error.message}"
                if len(self.unreadable) < NAMED_UNREADABLE:
                    self.unreadable.append(named)
                continue
            if row is Other.DELETED:
                yield (place, record.key), None
            elif isinstance(row, OffsetSyncRow):
                at = row.topic, row.partition
                self._syncs[at] = self._syncs.get(at, 0) + 1
                yield (place, record.key), msgspec.structs.replace(row, syncs=self._syncs[at])
            elif not isinstance(row, Other):
                yield (place, record.key), row

    def _takes(self, row: Row) -> bool:
        if isinstance(row, HeartbeatRow):
            return True
        if isinstance(row, CheckpointRow) and self._wanted.groups and row.group_id not in self._wanted.groups:
            return False
        topics = self._wanted.topics
        return not topics or not topics.isdisjoint(self._names(row.topic, source=not isinstance(row, CheckpointRow)))

    def _names(self, topic: str, *, source: bool) -> Collection[str]:
        other = self._flow.target_topic(topic) if source else self._flow.source_topic(topic)
        return (topic,) if other is None else (topic, other)

    def _notes(self) -> Iterator[str]:
        for place, tally in self._tallies.items():
            where = f"{place.topic} on {place.alias}"
            if tally.fault is not None:
                yield f"{where} could not be read: {tally.fault}"
            elif not tally.exists:
                yield f"{where} does not exist: {_ABSENT[self._kind]}"
            if tally.unreadable:
                yield f"{tally.unreadable:,} of {tally.records:,} records of {where} could not be decoded"


class _Tally:
    """Counts the records of one topic."""

    def __init__(self, *, exists: bool = True) -> None:
        self.exists = exists
        self.records = self.unreadable = 0
        self.first = ""
        self.newest: int | None = None
        self.fault: Fault | None = None

    def reading(self, place: Place) -> InternalTopicReading:
        return InternalTopicReading(
            place.topic,
            place.alias,
            self.exists,
            self.records,
            self.unreadable,
            self.first,
            self.newest,
            self.fault,
        )


_ABSENT = {
    CHECKPOINTS: "MirrorMaker 2 has written no checkpoint (emit.checkpoints.enabled, and its checkpoint connector)",
    OFFSET_SYNCS: "no offset sync was written there (emit.offset-syncs.enabled, offset-syncs.topic.location)",
    HEARTBEATS: "heartbeats are off, or not mirrored (emit.heartbeats.enabled, heartbeats.replication.enabled)",
    POSITIONS: "no dedicated MirrorMaker 2 and no failover replicate keeps positions there; on Kafka Connect its"
    " offset.storage.topic is elsewhere: set offset.storage.topic",
}


def _order(row: Row) -> tuple[str, ...]:
    if isinstance(row, CheckpointRow):
        return row.group_id, row.topic, f"{row.partition:09}", row.by
    if isinstance(row, HeartbeatRow):
        return row.record.cluster, row.record.topic, row.source_cluster_alias, row.target_cluster_alias
    return row.topic, f"{row.partition:09}"
