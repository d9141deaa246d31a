"""Looks at the target again after an execution: does it hold what was written, and who came back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

import msgspec

from failover.kafka.port import Cluster
from failover.model.cluster import LogRange
from failover.model.execution import (
    BY_MM2,
    ExecutedGroup,
    ExecutedPartition,
    Execution,
    Now,
    Status,
    Verified,
    VerifiedGroup,
)
from failover.model.groups import Commit, GroupInfo
from failover.model.names import Fault, TopicPartition
from failover.model.snapshot import SeenCheckpoint

POLL_SECONDS = 2.0
WORST = (Now.BELOW, Now.MISSING, Now.EXPIRED, Now.OVERWRITTEN, Now.ADVANCED, Now.HELD)
BAD = frozenset({Now.EXPIRED, Now.MISSING, Now.OVERWRITTEN, Now.BELOW})
SHORTEST_RETENTION_MINUTES = 1440
"""What old and managed clusters keep offsets of a group without members for; assumed where the broker does not say."""


class Look(msgspec.Struct, frozen=True):
    """Is one look at the target. ``faults``: groups that could not be read."""

    at: datetime
    commits: Mapping[str, Mapping[TopicPartition, Commit]]
    infos: Mapping[str, GroupInfo]
    logs: Mapping[TopicPartition, LogRange]
    faults: Mapping[str, Fault]


def expected(p: ExecutedPartition) -> bool:
    """Says whether a partition is to stand at a value: it was written, or stood there already."""
    return p.sent or (p.status is Status.UNCHANGED and p.planned is not None)


def verified_groups(execution: Execution) -> list[ExecutedGroup]:
    """Gives the groups there is something to verify in."""
    return [group for group in execution.groups if any(expected(p) for p in group.partitions)]


def look_at(cluster: Cluster, groups: list[ExecutedGroup], at: datetime) -> Look:
    """Looks once at groups, their commits and the ends of their logs."""
    names = [group.group for group in groups]
    partitions = {TopicPartition(p.topic, p.partition) for g in groups for p in g.partitions if expected(p)}
    stand = {g.group for g in groups if any(expected(p) and not p.removes for p in g.partitions)}
    infos = cluster.describe_groups(names)
    commits = cluster.committed(names, lambda name, found: bool(found) or name not in stand)
    logs = cluster.log_ranges(partitions)
    return Look(
        at,
        {name: found for name, found in commits.items() if not isinstance(found, Fault)},
        infos,
        {tp: log for tp, log in logs.items() if isinstance(log, LogRange)},
        {name: found for name, found in commits.items() if isinstance(found, Fault)},
    )


def judge(p: ExecutedPartition, now: int | None, *, seen: bool, age: timedelta, retention_minutes: int) -> Now:
    """Judges one partition; pure.

    ``seen``: the group had members at some time since. ``age``: since it was written. Kafka removes
    the offsets of a group without members after ``offsets.retention.minutes``.
    """
    written = None if p.removes else p.written if p.written is not None else p.planned
    if now == written:
        return Now.HELD
    if now is None:
        return Now.EXPIRED if age >= timedelta(minutes=retention_minutes) else Now.MISSING
    if written is not None and now < written:
        return Now.BELOW
    return Now.ADVANCED if seen else Now.OVERWRITTEN


def joined_since(group: ExecutedGroup, info: GroupInfo) -> bool:
    """Says whether the group shows that members came since, though none is there now.

    Kafka: a group made by a commit from outside has no protocol type; only a joining member gives it one.
    """
    return bool(info.members) or (not group.existed and info.exists and info.fault is None and not info.simple)


class GroupSync(msgspec.Struct, frozen=True):
    """Is what MirrorMaker 2 would commit by itself: its checkpoints, and whether the configuration lets it.

    MM2 (MirrorCheckpointTask): a group without members is moved forward, never back, to its checkpoints. The one
    it wrote may be one older than the newest.
    """

    checkpoints: Mapping[str, Mapping[TopicPartition, SeenCheckpoint]]
    configured: bool

    def wrote(self, group: str, p: ExecutedPartition) -> bool:
        """Says whether an overwritten partition stands where the group sync puts it."""
        seen = self.checkpoints.get(group, {}).get(TopicPartition(p.topic, p.partition))
        if seen is None or p.now is None:
            return False
        return p.now == seen.downstream or (self.configured and p.now < seen.downstream)


class Verifier:
    """Verifies one execution; its state is in which groups members were seen.

    ``seen``: groups known to have had members since. ``noticed`` is told each group once, when
    members are first seen. ``sync`` is asked where something was overwritten.

    The other arguments are those of ``failover.execution.commit.Executor``.
    """

    def __init__(
        self,
        execution: Execution,
        cluster: Cluster,
        *,
        clock: Callable[[], datetime],
        sleep: Callable[[float], None],
        progress: Callable[[str, int, int], None],
        stop: Callable[[], str],
        seen: set[str] | None = None,
        noticed: Callable[[str, int, datetime], None] | None = None,
        sync: Callable[[], GroupSync] | None = None,
    ) -> None:
        self.execution = execution
        self.cluster = cluster
        self.clock = clock
        self.sleep = sleep
        self.progress = progress
        self.stop = stop
        self.seen = set(seen or ())
        self.noticed = noticed
        self.sync = sync

    def run(self, watch: float) -> Execution:
        """Looks now and, for ``watch`` seconds at most, until every group came back; gives the record with it."""
        groups = verified_groups(self.execution)
        minutes = self.cluster.broker_settings(["offsets.retention.minutes"]).get("offsets.retention.minutes", "")
        retention = int(minutes) if minutes.isdigit() else SHORTEST_RETENTION_MINUTES
        begun = self.clock()
        while True:
            look = look_at(self.cluster, groups, self.clock())
            self._notice(groups, look)
            found = [self._judged(group, look, retention) for group in groups]
            settled = [group for group, verified in found if back(verified) or _bad(group)]
            waited = (self.clock() - begun).total_seconds()
            if len(settled) == len(groups) or waited >= watch or self.stop():
                return self._record(found, begun, watch)
            self.progress("groups back", len(settled), len(groups))
            self.sleep(min(POLL_SECONDS, watch - waited))

    def _notice(self, groups: list[ExecutedGroup], look: Look) -> None:
        for group in groups:
            info = look.infos[group.group]
            if group.group not in self.seen and joined_since(group, info):
                self.seen.add(group.group)
                if self.noticed is not None:
                    self.noticed(group.group, len(info.members), look.at)

    def _judged(self, group: ExecutedGroup, look: Look, retention: int) -> tuple[ExecutedGroup, VerifiedGroup]:
        info, seen = look.infos[group.group], group.group in self.seen
        fault = look.faults.get(group.group) or info.fault
        if fault is not None:
            text = f"cannot be read: {fault}"
            return group, VerifiedGroup(group.group, info.state, info.members, seen, None, None, text)
        commits = look.commits[group.group]
        since = look.at - (group.finished or self.execution.finished or self.execution.started)
        partitions: list[ExecutedPartition] = []
        for p in group.partitions:
            if not expected(p):
                partitions.append(p)
                continue
            tp = TopicPartition(p.topic, p.partition)
            now = commits[tp].offset if tp in commits else None
            log = look.logs.get(tp)
            lag = max(0, log.end - max(now, log.start)) if log is not None and now is not None else None
            verdict = judge(p, now, seen=seen, age=since, retention_minutes=retention)
            partitions.append(msgspec.structs.replace(p, now=now, verdict=verdict, lag=lag, because=""))
        judged = msgspec.structs.replace(group, partitions=tuple(partitions))
        return judged, _summed(judged, info, seen=seen)

    def _record(self, found: list[tuple[ExecutedGroup, VerifiedGroup]], begun: datetime, watch: float) -> Execution:
        found = self._blamed(found)
        judged = {group.group: group for group, _ in found}
        groups = tuple(judged.get(group.group, group) for group in self.execution.groups)
        at = self.clock()
        code = _exit_code(found, watched=watch > 0)
        verified = Verified(at, (at - begun).total_seconds(), code, tuple(verified for _, verified in found))
        return msgspec.structs.replace(self.execution, groups=groups, verified=verified)

    def _blamed(self, found: list[tuple[ExecutedGroup, VerifiedGroup]]) -> list[tuple[ExecutedGroup, VerifiedGroup]]:
        """Names MirrorMaker 2 where a partition was overwritten by it."""
        overwritten = any(p.verdict is Now.OVERWRITTEN for group, _ in found for p in group.partitions)
        if self.sync is None or not overwritten:
            return found
        sync = self.sync()
        return [_blame(group, verified, sync) for group, verified in found]


def _blame(group: ExecutedGroup, verified: VerifiedGroup, sync: GroupSync) -> tuple[ExecutedGroup, VerifiedGroup]:
    partitions = tuple(
        msgspec.structs.replace(p, because=BY_MM2) if p.verdict is Now.OVERWRITTEN and sync.wrote(group.group, p) else p
        for p in group.partitions
    )
    if partitions == group.partitions:
        return group, verified
    text = verified.text.replace("overwritten", "overwritten by MM2's group sync")
    return msgspec.structs.replace(group, partitions=partitions), msgspec.structs.replace(verified, text=text)


def _summed(group: ExecutedGroup, info: GroupInfo, *, seen: bool) -> VerifiedGroup:
    looked = [p for p in group.partitions if p.verdict is not None]
    moved = sum(max(0, p.now - p.written) for p in looked if p.now is not None and p.written is not None)
    lags = [p.lag for p in looked]
    lag = sum(one for one in lags if one is not None) if any(one is not None for one in lags) else None
    bad = sorted({str(p.verdict) for p in looked if p.verdict in BAD})
    if bad:
        text = ", ".join(bad)
    elif not seen:
        text = "not back yet"
    elif not info.members:
        text = "came and left"
    elif moved == 0 and lag:
        text = "has members, does not advance"
    else:
        text = ""
    worst = min((p.verdict for p in looked if p.verdict is not None), key=WORST.index, default=None)
    return VerifiedGroup(group.group, info.state, info.members, seen, moved, lag, text, worst)


def back(group: VerifiedGroup) -> bool:
    """Says whether a group's consumers came back and get on: they moved, or nothing is left to read."""
    return group.seen and (bool(group.moved) or group.lag == 0)


def _bad(group: ExecutedGroup) -> bool:
    return any(p.verdict in BAD for p in group.partitions)


def _exit_code(found: list[tuple[ExecutedGroup, VerifiedGroup]], *, watched: bool) -> int:
    if any(_bad(group) for group, _ in found):
        return 6
    if any(verified.moved is None for _, verified in found):
        return 7
    return 4 if watched and not all(back(verified) for _, verified in found) else 0
