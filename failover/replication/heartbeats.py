"""Writes a flow's heartbeats on its target, as MirrorMaker 2's MirrorHeartbeatConnector does.

They prove no more than that the target can be written to. Their copy does: ``heartbeats`` of A, written by the flow
B->A, is mirrored by A->B, and the newest record of ``A.heartbeats`` on B tells how far behind the mirror is.
"""

from __future__ import annotations

import asyncio
import logging
import time

import msgspec

from failover.config.flow import FlowConfig
from failover.config.mm2_keys import HEARTBEAT
from failover.errors import FailoverError
from failover.kafka.wire.append import NewRecord, append
from failover.kafka.wire.cluster import WireCluster
from failover.kafka.wire.topics import NewTopic
from failover.mm2.heartbeat import Heartbeat
from failover.model.names import Fault, TopicPartition
from failover.replication.internal_topic import ensure_topic

_log = logging.getLogger(__name__)

_FACTOR_KEY = "heartbeats.topic.replication.factor"
_LEAST_SECONDS = 0.1
_LONGEST_PAUSE = 10.0
_ABSENT, _BAD_FACTOR = 3, 38
_DENIED = frozenset({29, 31})


class HeartbeatSettings(msgspec.Struct, frozen=True):
    """Says which heartbeats a flow writes, where, and every how many seconds."""

    source: str
    target: str
    topic: NewTopic
    seconds: float


def heartbeat_settings(flow: FlowConfig, topic: str) -> HeartbeatSettings | None:
    """Reads a flow's settings, None where heartbeats are switched off; ``topic`` is their topic's name.

    Whether the flow is enabled does not matter (MM2: MirrorHeartbeatConnector). Raises ConfigError.
    """
    seconds = flow.emit_heartbeats_interval_seconds
    if not flow.emit_heartbeats_enabled or seconds < 0:
        return None
    factor = flow.connectors[HEARTBEAT].integer(_FACTOR_KEY)
    wanted = NewTopic(topic, 1, factor, {"cleanup.policy": "compact"})
    return HeartbeatSettings(flow.source.alias, flow.target.alias, wanted, max(float(seconds), _LEAST_SECONDS))


class Heartbeats:
    """Makes the topic if there is none, and writes a heartbeat at once and every interval.

    ``admin`` makes the topic, ``cluster`` writes: the flow's target both. What does not work is told once, tried on,
    at most ten seconds apart unless the interval is longer, and told when it works again. ``written``: the timestamp of
    the last one that the target has, None before the first.
    """

    def __init__(self, cluster: WireCluster, admin: WireCluster, settings: HeartbeatSettings) -> None:
        self._cluster = cluster
        self._admin = admin
        self._settings = settings
        self._name = f"{settings.source}->{settings.target}"
        self._place = TopicPartition(settings.topic.name, 0)
        self._there = False
        self._failures = 0
        self.written: int | None = None

    async def run(self) -> None:
        """Writes until cancelled."""
        seconds = self._settings.seconds
        while True:
            try:
                reason: Fault | FailoverError | None = await self._beat()
            except FailoverError as error:
                reason = error
            self._judge(reason)
            await asyncio.sleep(max(seconds, min(_LONGEST_PAUSE, seconds * min(self._failures, 100))))

    # -- inside ----------------------------------------------------------------------------------

    async def _beat(self) -> Fault | None:
        if not self._there:
            reason, _ = await ensure_topic(self._admin, self._settings.topic)
            if reason is not None:
                return reason
            self._there = True
        now = time.time_ns() // 1_000_000
        beat = Heartbeat(self._settings.source, self._settings.target, now)
        record = NewRecord(beat.encode_key(), beat.encode_value(), timestamp=now)
        faults = await append(self._cluster, {self._place: [record]}, purpose="heartbeats")
        reason = faults.get(self._place)
        if reason is None:
            self.written = now
        if reason is not None and reason.number == _ABSENT:
            self._there = False
        return reason

    def _judge(self, reason: Fault | FailoverError | None) -> None:
        if reason is None:
            if self._failures:
                _log.warning("heartbeats of %s are written again", self._name)
            self._failures = 0
            return
        self._failures += 1
        if self._failures == 1:
            where = f"topic {self._place.topic} of {self._settings.target}"
            _log.warning(
                "heartbeats of %s cannot be written to %s: %s%s; tried again",
                self._name,
                where,
                reason,
                self._way_out(reason),
            )

    def _way_out(self, reason: Fault | FailoverError) -> str:
        settings = self._settings
        number = reason.number if isinstance(reason, Fault) else 0
        if number in _DENIED:
            right = "WRITE" if self._there else "WRITE and CREATE"
            topic, target = settings.topic.name, settings.target
            return f"; grant {right} on topic {topic} of {target}, or set {self._name}.emit.heartbeats.enabled=false"
        if number == _BAD_FACTOR:
            return f"; {_FACTOR_KEY} is {settings.topic.replication_factor}, -1 is the brokers' default"
        return ""
