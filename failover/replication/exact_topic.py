"""The exact checkpoints topic of a flow on the target: read at a start, written whenever an answer changes."""

from __future__ import annotations

from collections.abc import Sequence

from failover.config.settings import Settings
from failover.errors import BrokerError, NotAuthorized
from failover.kafka.wire.append import NewRecord, append
from failover.kafka.wire.cluster import WireCluster
from failover.kafka.wire.columns import read_records
from failover.kafka.wire.topics import NewTopic
from failover.mm2.checkpoint import Checkpoint
from failover.mm2.exact_checkpoint import Exact, ExactRecords, Note, encode_note
from failover.mm2.internal_topics import InternalTopics
from failover.model.names import Fault, TopicPartition
from failover.replication.internal_topic import ensure_topic

FACTOR_KEY = "checkpoints.topic.replication.factor"
_SEGMENT_BYTES = 4 << 20
_DENIED = frozenset({29, 31})  # TOPIC_AUTHORIZATION_FAILED, CLUSTER_AUTHORIZATION_FAILED


def exact_topic(internal: InternalTopics, connector: Settings) -> NewTopic:
    """Gives the topic as it is made: replicated as MirrorMaker 2's checkpoints are; raises ConfigError.

    Segments are smaller than the brokers' default, since the open one is never compacted and each start reads it all.
    """
    settings = {"cleanup.policy": "compact", "segment.bytes": str(_SEGMENT_BYTES)}
    return NewTopic(internal.exact_checkpoints, 1, connector.integer(FACTOR_KEY), settings)


def checkpoints_topic(internal: InternalTopics, connector: Settings) -> NewTopic:
    """Gives MirrorMaker 2's own checkpoints topic as its connector makes it; raises ConfigError."""
    return NewTopic(internal.checkpoints, 1, connector.integer(FACTOR_KEY), {"cleanup.policy": "compact"})


class CheckpointLog:
    """Is a topic of checkpoints on the target, partition 0 alone (MM2 writes no other).

    Everything raises ``NotAuthorized``, ``BrokerError``, ``ClusterUnreachable``.
    """

    def __init__(self, target: WireCluster, topic: NewTopic) -> None:
        self.place = TopicPartition(topic.name, 0)
        self._wanted = topic
        self._target = target

    async def open(self) -> None:
        """Makes the topic if there is none."""
        fault, _ = await ensure_topic(self._target, self._wanted)
        if fault is not None:
            raise self._error("cannot be used", fault)

    async def read(self) -> Exact:
        """Reads the whole topic as exact checkpoints."""
        records = ExactRecords()
        async for chunk in read_records(self._target, self.place):
            records.take(chunk)
        return records.decoded()

    async def write(self, records: Sequence[NewRecord]) -> None:
        """Appends records in their order."""
        fault = (await append(self._target, {self.place: records}, purpose="checkpoints")).get(self.place)
        if fault is not None:
            raise self._error("cannot be written", fault)

    def _error(self, what: str, fault: Fault) -> Exception:
        where = f"cluster {self._target.alias}: topic {self.place.topic} {what}: {fault}"
        if fault.number in _DENIED:
            rights = f"grant READ, WRITE and DESCRIBE on topic {self.place.topic}, and CREATE if it is to be made"
            return NotAuthorized(where, alias=self._target.alias, hint=rights)
        hint = f"{FACTOR_KEY} says how many replicas it is to have"
        return BrokerError(where, number=fault.number, name=fault.name, hint=hint)


def record_of(checkpoint: Checkpoint, note: Note) -> NewRecord:
    """Makes one record of the exact checkpoints topic."""
    return NewRecord(checkpoint.encode_key(), checkpoint.encode_value(), encode_note(note))
