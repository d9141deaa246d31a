"""MirrorMaker 2's own checkpoints, written from exact positions: for Java's RemoteClusterUtils and for a later MM2."""

from __future__ import annotations

import logging
import time

from failover.kafka.wire.append import NewRecord
from failover.kafka.wire.cluster import WireCluster
from failover.kafka.wire.columns import read_records
from failover.kafka.wire.topics import NewTopic
from failover.mm2.checkpoint import Checkpoint
from failover.mm2.exact_checkpoint import HEADER, encode_note
from failover.mm2.fields import DecodeError
from failover.model.names import TopicPartition
from failover.model.records import Record
from failover.replication.exact_topic import CheckpointLog
from failover.replication.tally import Window
from failover.replication.tracker import Tracker

_log = logging.getLogger(__name__)

QUIET_SECONDS = 600.0
"""So long must nobody else have written before this tool does: MM2 writes only what changes, so silence says little."""


class Mm2Checkpoints:
    """Writes one flow's checkpoints by MM2's rules; reads the topic on before each round.

    A record is written where there was none, where the group went back on the source, or where the target's offset
    grew (MM2: MirrorCheckpointTask). Ours carry a header that Java's readers ignore; a record without one was written
    by somebody else, and while there are such, nothing is written here: two writers would contradict each other.
    ``quiet``: seconds, see ``QUIET_SECONDS``. ``stopped``: whoever wrote what is there at the start is known to have
    stopped. ``latency``: milliseconds between the reading of a commit and its checkpoint's being there (MM2:
    checkpoint-latency).
    """

    def __init__(
        self,
        tracker: Tracker,
        target: WireCluster,
        topic: NewTopic,
        *,
        quiet: float = QUIET_SECONDS,
        stopped: bool = False,
    ) -> None:
        self._tracker = tracker
        self._target = target
        self._log = CheckpointLog(target, topic)
        self._quiet = quiet
        self._stopped = stopped
        self._opened = False
        self._next: int | None = None
        self._newest: dict[str, dict[TopicPartition, tuple[int, int]]] = {}
        self._other: int | None = None
        self._told = False
        self.latency = Window()

    async def write(self) -> None:
        """Writes what is new since the last round.

        Raises ``NotAuthorized``, ``BrokerError``, ``ClusterUnreachable``.
        """
        if not self._tracker.leads:
            return
        if not self._opened:
            await self._log.open()
            self._opened = True
        async for records in read_records(self._target, self._log.place, start=self._next):
            for record in records:
                self._take(record)
        if self._stopped:
            self._stopped, self._other = False, None
        if self._somebody_else():
            return
        news: list[NewRecord] = []
        for group, positions in self._tracker.positions.items():
            newest = self._newest.get(group, {})
            at = self._tracker.looked.get(group)
            for place, position in positions.items():
                if at is None or not _news(position.upstream, position.downstream, newest.get(place)):
                    continue
                checkpoint = position.checkpoint(group, place)
                headers = encode_note(position.known)
                news.append(NewRecord(checkpoint.encode_key(), checkpoint.encode_value(), headers, at))
        if news:
            await self._log.write(news)
            now = time.time()
            for new in news:
                self.latency.add(now * 1000 - (new.timestamp or 0), now)

    # -- inside ----------------------------------------------------------------------------------

    def _take(self, record: Record) -> None:
        self._next = record.offset + 1
        if not any(name == HEADER for name, _ in record.headers):
            self._other = max(self._other or 0, record.timestamp)
        try:
            checkpoint = Checkpoint.decode(record.key, record.value)
        except DecodeError:
            return
        if checkpoint is not None:
            place = TopicPartition(checkpoint.topic, checkpoint.partition)
            offsets = (checkpoint.upstream, checkpoint.downstream)
            self._newest.setdefault(checkpoint.group, {})[place] = offsets

    def _somebody_else(self) -> bool:
        """Says whether others write; tells when that begins and when it is over."""
        present = self._other is not None and time.time() * 1000 - self._other < self._quiet * 1000
        topic = self._log.place.topic
        if present and not self._told:
            _log.warning(
                "somebody else writes %s (MirrorMaker 2's checkpoint connector?); it is not written here until %.0f s"
                " after the last record of theirs",
                topic,
                self._quiet,
            )
        elif self._told and not present:
            _log.warning("%s: nobody else has written for %.0f s; it is written here", topic, self._quiet)
        self._told = present
        return present


def _news(upstream: int, downstream: int, newest: tuple[int, int] | None) -> bool:
    return newest is None or upstream < newest[0] or downstream > newest[1]
