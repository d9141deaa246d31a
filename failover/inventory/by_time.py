"""Offsets found by time: where partitions stood at one moment, and how far a stretch of time leads back."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta

import msgspec

from failover.config.duration import parse_duration
from failover.config.moment import parse_moment
from failover.errors import UsageError
from failover.inventory.look import Report
from failover.kafka.port import Cluster
from failover.model.cluster import LogRange
from failover.model.names import TopicPartition
from failover.model.records import Record, WindowRequest
from failover.model.snapshot import ByTime, ClusterView, GoneBack, SeenCheckpoint
from failover.model.translation import Translation

NEAR = 100
"""Offsets before a position among which the record consumed last is looked for: markers and gaps take offsets too."""


AT_ONCE = 1000
"""Positions whose record is read at once: each brings the batch it lies in."""


class Times(msgspec.Struct, frozen=True):
    """Is which offsets are to be found by time.

    ``missing``: what ``--missing`` says; only ``at=TIME`` and ``ago=D`` ask for anything. ``rewind_seconds``: how far
    positions are to go back, 0 for not at all.
    """

    missing: str = ""
    rewind_seconds: float = 0.0

    def moment(self, now: datetime) -> datetime | None:
        """Gives the moment that ``missing`` names; raises ``UsageError`` where it names none, or one to come."""
        kind, _, text = self.missing.partition("=")
        if kind not in ("at", "ago"):
            return None
        seconds = parse_duration(text) if kind == "ago" else None
        moment = parse_moment(text) if kind == "at" else None
        if seconds is not None:
            try:
                moment = now - timedelta(seconds=seconds)
            except OverflowError:
                moment = None
        if moment is None:
            raise UsageError(
                f"--missing {self.missing}: that is no {'time' if kind == 'at' else 'length of time'}",
                hint="write at=2026-11-30T02:00:00Z (UTC unless an offset is given) or ago=90m",
            )
        if moment > now:
            raise UsageError(
                f"--missing {self.missing}: that time is yet to come",
                hint=f"now it is {now:%Y-%m-%dT%H:%M:%SZ}; times without an offset such as +01:00 are UTC",
            )
        return moment


def offsets_by_time(
    moment: datetime | None, target: tuple[Cluster, ClusterView], topics: Collection[str]
) -> ByTime | None:
    """Asks the target where the logs of ``topics`` stood; None without a moment. Raises what asking raises."""
    if moment is None:
        return None
    logs = _of(target[1].logs, topics)
    found: dict[TopicPartition, int] = {}
    answers = target[0].offsets_at(dict.fromkeys(logs, max(0, int(moment.timestamp() * 1000)))) if logs else {}
    for tp, offset in answers.items():
        start, end = logs[tp]
        if offset is None:
            found[tp] = end
        elif isinstance(offset, int):
            found[tp] = min(max(offset, start), end)
    return ByTime(moment, found)


def _of(logs: Mapping[TopicPartition, LogRange], topics: Collection[str]) -> dict[TopicPartition, LogRange]:
    return {tp: log for tp, log in logs.items() if tp.topic in topics}


def positions(
    translations: Mapping[str, Mapping[TopicPartition, Translation]],
    checkpoints: Mapping[str, Mapping[TopicPartition, SeenCheckpoint]],
) -> dict[TopicPartition, set[int]]:
    """Gathers the offsets of the target that groups may be placed at, by partition."""
    found: dict[TopicPartition, set[int]] = {}
    for answers in translations.values():
        for tp, answer in answers.items():
            if answer.offset is not None:
                found.setdefault(tp, set()).add(answer.offset)
    for seen in checkpoints.values():
        for tp, checkpoint in seen.items():
            found.setdefault(tp, set()).add(checkpoint.downstream)
    return found


def gone_back(
    seconds: float,
    target: tuple[Cluster, ClusterView],
    places: Mapping[TopicPartition, Collection[int]],
    topics: Collection[str],
    report: Report,
) -> GoneBack | None:
    """Finds for each place the first record written at most ``seconds`` before the record that lies right before it.

    That is the last one consumed, so time is counted from what the group did last, not from now. A place is left out
    where no record lies shortly before it, or the record has no timestamp: nothing tells the time there. None where
    ``seconds`` is 0: it is not asked for.
    """
    if not seconds:
        return None
    cluster, logs = target[0], _of(target[1].logs, topics)
    wanted = {
        tp: sorted(at for at in offsets if tp in logs and logs[tp].start < at <= logs[tp].end)
        for tp, offsets in places.items()
    }
    report("reading times", sum(map(len, wanted.values())), None)
    last = _last_consumed(cluster, wanted, logs)
    asked: dict[TopicPartition, dict[int, set[int]]] = {}
    for (tp, place), record in last.items():
        if record.timestamp >= 0:
            moment = int(max(0.0, record.timestamp - seconds * 1000))
            asked.setdefault(tp, {}).setdefault(moment, set()).add(place)
    found: dict[TopicPartition, dict[int, int]] = {}
    # a request names each partition once (Kafka: ListOffsets), so every round takes one moment of each
    rounds = {tp: list(moments.items()) for tp, moments in asked.items()}
    while rounds:
        turn = {tp: left.pop() for tp, left in rounds.items()}
        answers = cluster.offsets_at({tp: moment for tp, (moment, _) in turn.items()})
        for tp, (_, at) in turn.items():
            offset = answers[tp]
            if isinstance(offset, int):
                found.setdefault(tp, {}).update({place: max(logs[tp].start, min(place, offset)) for place in at})
        rounds = {tp: left for tp, left in rounds.items() if left}
    return GoneBack(seconds, found)


def _last_consumed(
    target: Cluster, wanted: Mapping[TopicPartition, Iterable[int]], logs: Mapping[TopicPartition, LogRange]
) -> dict[tuple[TopicPartition, int], Record]:
    found: dict[tuple[TopicPartition, int], Record] = {}
    for reach in (1, NEAR):
        requests = [
            WindowRequest("target", tp, max(logs[tp].start, place - reach), place)
            for tp, places in wanted.items()
            for place in places
            if (tp, place) not in found
        ]
        for first in range(0, len(requests), AT_ONCE):
            for request, window in target.windows(requests[first : first + AT_ONCE]).items():
                if window.records:
                    found[request.tp, request.stop] = window.records[-1]
    return found
