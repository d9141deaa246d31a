"""Group offset sync: exact positions committed on the target for groups that do not consume there."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

from failover.kafka.wire.cluster import WireCluster
from failover.kafka.wire.groups import describe_groups
from failover.kafka.wire.logs import log_ranges
from failover.kafka.wire.offsets import GroupOffsets, commit_offsets, committed_offsets
from failover.mm2.exact_checkpoint import Position
from failover.model.cluster import LogRange
from failover.model.groups import Commit
from failover.model.names import Fault, TopicPartition
from failover.replication.repeating import Troubles
from failover.replication.tracker import Tracker

_log = logging.getLogger(__name__)

FRESH_SECONDS = 30.0
"""How old the reading of a group's commits on the source may be: with the source gone nothing is written."""

_MEMBERS = 25  # UNKNOWN_MEMBER_ID: the group has got members since it was described


class GroupSync:
    """Commits for one flow.

    Three rules that MM2's own sync does not keep (MM2: MirrorCheckpointTask):

    * a group is written only if it was described in this round as without members, and its commits read after that: a
      group nobody could describe is left alone. MM2 writes such a group without looking at what it has committed.
    * a commit never goes back. MM2's may, when consumers stop between its two looks.
    * a partition whose commit is another than the one written here last was consumed on the target, and is left to
      those consumers from then on. MM2 passes over what they have not read.

    The broker refuses a commit while the group has members.
    """

    def __init__(self, tracker: Tracker, target: WireCluster) -> None:
        self._tracker = tracker
        self._target = target
        self._written: dict[tuple[str, TopicPartition], int] = {}
        self._left: set[tuple[str, TopicPartition]] = set()
        self._troubles = Troubles()
        self._term = 0

    async def sync(self) -> None:
        """Writes what is due. Raises ``ClusterUnreachable``, ``CredentialsRefused``."""
        if not self._tracker.leads:
            return
        if self._term != self._tracker.terms:
            # Another worker may have led meanwhile: what it wrote is not what consumers did.
            self._term = self._tracker.terms
            self._written.clear()
            self._left.clear()
        since = time.time() * 1000 - max(FRESH_SECONDS, 3 * self._tracker.options.interval) * 1000
        looked = self._tracker.looked
        groups = {
            group: positions
            for group, positions in self._tracker.positions.items()
            if positions and looked.get(group, 0) >= since
        }
        if not groups:
            return
        described = await describe_groups(self._target, groups)
        idle = [group for group, info in described.items() if info.inactive]
        if not idle:
            return
        standing = await committed_offsets(self._target, idle)
        wanted = {
            group: due
            for group, offsets in standing.items()
            if not isinstance(offsets, Fault) and (due := self._due(group, groups[group], offsets))
        }
        logs = await log_ranges(self._target, {place for due in wanted.values() for place in due}) if wanted else {}
        commits = {group: kept for group, due in wanted.items() if (kept := _within(due, logs))}
        if not commits:
            return
        present = []
        for group, answer in (await commit_offsets(self._target, commits)).items():
            results = dict.fromkeys(commits[group], answer) if isinstance(answer, Fault) else answer
            for place, fault in results.items():
                if fault is None:
                    self._written[group, place] = commits[group][place].offset
                elif fault.number != _MEMBERS:
                    present.append(group)
                    self._troubles.tell(group, f"group offset sync: {group} on {self._target.alias}, {place}: {fault}")
        self._troubles.only(present)

    def _due(
        self, group: str, positions: Mapping[TopicPartition, Position], standing: GroupOffsets
    ) -> dict[TopicPartition, Commit]:
        """Picks the positions that a group's standing commits are behind of."""
        due = {}
        for place, position in positions.items():
            now, key = standing.get(place), (group, place)
            if isinstance(now, Fault) or key in self._left:
                continue
            if now is not None:
                if now.offset != self._written.get(key, now.offset):
                    self._left.add(key)
                    _log.info("group offset sync: %s consumed %s on the target; left to it from now on", group, place)
                    continue
                if now.offset >= position.downstream:
                    continue
            due[place] = Commit(position.downstream, position.metadata)
        return due


def _within(
    due: Mapping[TopicPartition, Commit], logs: Mapping[TopicPartition, LogRange | Fault]
) -> dict[TopicPartition, Commit]:
    """Keeps what the target's logs hold, and raises the rest to their starts; beyond an end nothing is written."""
    kept = {}
    for place, commit in due.items():
        log = logs.get(place)
        if isinstance(log, LogRange) and commit.offset <= log.end:
            kept[place] = Commit(max(commit.offset, log.start), commit.metadata)
    return kept
